//! The sentences that say what a record is, and what happened to it. Texts of others are escaped:
//! nothing in them moves a terminal.

use std::time::Duration;

use super::super::{row::RecordRow, steps::StepRow};
use crate::{
    protocol::sequence::{NumberState, StoredStream},
    record::{AttemptId, OutcomeKind, Record, State, StepState, Time},
};

/// Says what a call is, how it stands, and the note of its version.
pub(super) fn of_call(record: &Record, row: &RecordRow, now: Time) -> Vec<String> {
    let mut story = vec![about(row, "a call")];
    let (holder, attempt) = (row.holder.escape_debug(), row.attempt);
    let since = row
        .finished
        .map_or_else(String::new, |it| format!(" since {it}"));
    story.push(match row.state {
        _ if record.is_expired(now) => {
            format!("It expired at {}: it answers no call any more.", row.expires)
        }
        State::Done => format!("It is done{since}: {}.", answer(row)),
        State::Released => "It was released: nothing of it answers a call.".to_owned(),
        State::Uncertain => format!(
            "It is uncertain: the body began in `{holder}` (attempt {attempt}), and nobody knows{since} whether it happened."
        ),
        State::Parked if record.outcome.is_some() => format!(
            "It is parked{since}: it failed for good, and its steps could not be undone in `{holder}`."
        ),
        State::Parked => format!(
            "It is parked{since}: its holders vanished too often, the last one was `{holder}` (attempt {attempt})."
        ),
        State::Undoing => format!(
            "It failed for good{since}, and what its steps did is being undone. {}",
            lease(record, row, now)
        ),
        State::Running => lease(record, row, now),
    });
    story.extend(note(row));
    story
}

/// The same of a stream, which may be one that this build cannot read.
pub(super) fn of_stream(row: &RecordRow, stream: Option<&StoredStream>, now: Time) -> Vec<String> {
    let mut story = vec![about(row, "a stream of numbered calls")];
    let Some(StoredStream { stream, .. }) = stream else {
        story.push("This build cannot read its position.".to_owned());
        return story;
    };
    story.push(match stream.last {
        Some(last) => format!("Its last number is {}.", last.number),
        None => "No number of it has ended.".to_owned(),
    });
    if let Some(running) = stream.running {
        let (number, holder, attempt) = (running.number, row.holder.escape_debug(), row.attempt);
        story.push(match running.state {
            NumberState::Running if stream.lease_is_over(now) => format!(
                "Number {number} was held by `{holder}` (attempt {attempt}), whose lease ended {}.",
                ago(now.since(stream.lease_end))
            ),
            NumberState::Running => {
                format!("Number {number} is held by `{holder}` (attempt {attempt}).")
            }
            NumberState::Uncertain => format!(
                "Number {number} is uncertain: it began in `{holder}`, and nobody knows whether it happened. No other number runs."
            ),
            NumberState::Parked => format!(
                "Number {number} is parked: its holders vanished too often, the last one was `{holder}`. No other number runs."
            ),
        });
    }
    story.extend(note(row));
    story
}

/// How a step stands.
pub(super) fn of_step(step: &StepRow) -> String {
    let label = step.label.escape_debug();
    let mut sentence = match (step.state, step.outcome) {
        (StepState::Begun, _) => format!("Step `{label}` has begun, and no outcome is recorded"),
        (StepState::Released, _) => format!("Step `{label}` did not happen: it runs again"),
        (StepState::Undone, _) => format!("Step `{label}` is undone"),
        (StepState::Done, Some(outcome)) if outcome.kind == OutcomeKind::Error => {
            format!("Step `{label}` failed for good")
        }
        (StepState::Done, Some(outcome)) if outcome.kind == OutcomeKind::Value => {
            format!(
                "Step `{label}` is done, with a value of {} bytes",
                outcome.bytes
            )
        }
        (StepState::Done, _) => format!("Step `{label}` is done, and its value could not be kept"),
    };
    if step.is_to_be_undone {
        sentence.push_str(", and has an undo");
    }
    if let Some(note) = &step.note {
        let by = note.by.as_deref().unwrap_or("a program").escape_debug();
        sentence.push_str(&format!(" ({by}: {:?})", note.text));
    }
    sentence.push('.');
    sentence
}

fn about(row: &RecordRow, what: &str) -> String {
    let operation = row.operation.escape_debug();
    let key = match &row.key {
        Some(key) => format!("the key {key}"),
        None => "a key that is not shown".to_owned(),
    };
    let scope = row.scope.as_ref();
    let scope = scope.map_or_else(String::new, |scope| format!(" and the scope {scope}"));
    format!("It is {what} of `{operation}` with {key}{scope}.")
}

fn note(row: &RecordRow) -> Option<String> {
    let note = row.note.as_ref()?;
    let text = &note.text;
    Some(match note.by.as_deref().map(str::escape_debug) {
        Some(by) if text.is_empty() => format!("{by} wrote this version."),
        Some(by) => format!("{by} wrote this version: {text:?}."),
        None => format!("The reason of this version: {text:?}."),
    })
}

/// How duplicates are answered.
fn answer(row: &RecordRow) -> String {
    let until = row.expires;
    match row.outcome {
        Some(outcome) if outcome.kind == OutcomeKind::Value => format!(
            "its value of {} bytes answers duplicates until {until}",
            outcome.bytes
        ),
        Some(outcome) if outcome.kind == OutcomeKind::Error => format!(
            "it failed for good, and its error of {} bytes answers duplicates until {until}",
            outcome.bytes
        ),
        _ => format!(
            "its outcome could not be kept, and duplicates get `NotReplayable` until {until}"
        ),
    }
}

/// Says who holds it, or held it.
fn lease(record: &Record, row: &RecordRow, now: Time) -> String {
    let (holder, attempt) = (row.holder.escape_debug(), row.attempt);
    let is_nobodys = [AttemptId::NOBODY, AttemptId::GIVEN_BACK, AttemptId::RESUMED];
    match record.lease_is_over(now) {
        true if is_nobodys.contains(&record.attempt_id) => {
            format!("No process holds it; `{holder}` was the last one.")
        }
        true => format!(
            "`{holder}` held it (attempt {attempt}), and vanished: its lease ended {}.",
            ago(now.since(row.lease_end))
        ),
        false => format!(
            "`{holder}` holds it (attempt {attempt}), and its lease ends in {}.",
            about_so_long(row.lease_end.since(now))
        ),
    }
}

fn ago(duration: Duration) -> String {
    format!("{} ago", about_so_long(duration))
}

/// A duration in its largest unit.
fn about_so_long(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}
