//! The sentences that say what can be done, and with which call.

use super::super::steps::StepRow;
use crate::{
    policy::OnCrash,
    protocol::sequence::{NumberState, StoredStream},
    record::{Record, State, StepState, Time},
};

/// Says what the next call does, and what an operator can do. `stream` is that of a stream, if this
/// build can read it.
pub(super) fn on(
    record: &Record,
    steps: &[StepRow],
    stream: Option<Option<&StoredStream>>,
    now: Time,
) -> Vec<String> {
    let advice: &[&str] = match stream {
        None => on_call(record, steps, now),
        Some(None) => &["A newer build can settle it."],
        Some(Some(stored)) => on_stream(stored, now),
    };
    advice.iter().map(|&it| it.to_owned()).collect()
}

fn on_call(record: &Record, steps: &[StepRow], now: Time) -> &'static [&'static str] {
    let is_over = record.lease_is_over(now);
    let lacks_undo = steps.iter().any(|step| step.is_to_be_undone);
    let is_in_doubt = steps
        .iter()
        .any(|step| step.state == StepState::Begun && step.on_crash == OnCrash::Uncertain);
    match record.state {
        _ if record.is_expired(now) => &["The next call runs."],
        State::Released => &["The next call runs."],
        State::Done if record.lacks_outcome(now) => &[
            "If its outcome is known, `settle_id(id).await?.with_value(&value)` has it answer duplicates.",
        ],
        State::Done => {
            &["If it may not answer any more, `invalidate(id, reason)` has the next call run."]
        }
        State::Running if !is_over => &["Nothing has to be done: duplicates wait or are told so."],
        State::Running if record.on_crash == OnCrash::Uncertain => &[
            "The next call leaves it uncertain.",
            "If no call comes, find out whether it happened: `settle_id(id).await?.with_value(&value)`, `.with_error(&error)` or `.as_done()`.",
        ],
        State::Running => &[
            "The next call takes over.",
            "If no call comes, call it again, or settle it by `settle_id(id)`.",
        ],
        State::Uncertain if is_in_doubt => &[
            "Find out whether the step that has begun happened: `settle_id(id).await?.step(name).with_value(&value)` or `.not_happened()`. Then the next call goes on behind it.",
        ],
        State::Uncertain => &[
            "Find out whether it happened: `settle_id(id).await?.with_value(&value)`, `.with_error(&error)` or `.as_done()`.",
        ],
        State::Parked if record.outcome.is_some() => &[
            "`resume_id(id)` has the next call undo the rest.",
            "An undo that was done by hand is told by `settle_id(id).await?.step(name).undone()`.",
        ],
        State::Parked if lacks_undo => &[
            "`resume_id(id)` has the next call try again.",
            "`settle_id(id).await?.undo(&error)` has it fail, and the next call undo its steps.",
        ],
        State::Parked => &[
            "`resume_id(id)` has the next call try again.",
            "If its outcome is known, `settle_id(id).await?` takes it: `.with_value(&value)`, `.with_error(&error)` or `.as_done()`.",
        ],
        State::Undoing if !is_over => &["Nothing has to be done: its holder undoes the steps."],
        State::Undoing => &[
            "The next call goes on with the undos.",
            "An undo that was done by hand is told by `settle_id(id).await?.step(name).undone()`.",
        ],
    }
}

fn on_stream(stored: &StoredStream, now: Time) -> &'static [&'static str] {
    let stream = &stored.stream;
    match stream.running.map(|running| running.state) {
        None => &["Nothing has to be done: the next number may come."],
        Some(NumberState::Running) if stream.lease_is_over(now) => {
            &["The next call of the number takes over, or leaves it uncertain."]
        }
        Some(NumberState::Running) => &["Nothing has to be done: its holder is at work."],
        Some(NumberState::Uncertain) => &[
            "Find out whether it happened: `settle_number_id(id).await?.with_value(&value)`, `.with_error(&error)`, `.as_done()`, or `.release()` if it did not.",
        ],
        Some(NumberState::Parked) => &[
            "`resume_id(id)` has the next call of the number try again.",
            "`settle_number_id(id).await?` takes its outcome, or uses the number up by `.skip()`.",
        ],
    }
}
