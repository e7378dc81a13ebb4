//! The judgement of an attempt: the outcome, a reason to send the call again, or one to stop.

use std::time::Duration;

use http::StatusCode;
use idempotent_runtime::wire::Kind;

use super::{Answered, Happened, Observed, Progress, Protection, StopReason, Stopped};
use crate::policy::profile::{Conflict, Profile};

pub(super) enum Judgement {
    /// The answer is the outcome.
    Known,
    Again {
        happened: Happened,
        not_before: Option<Duration>,
    },
    Stop(Stopped),
}

pub(super) fn judge(profile: &Profile, progress: &Progress, observed: &Observed) -> Judgement {
    let again = |happened| Judgement::Again {
        happened,
        not_before: None,
    };
    match observed {
        Observed::Answer(answer) if answer.open => match answered(profile, progress, answer) {
            Judgement::Known
            | Judgement::Stop(Stopped::Unsupported | Stopped::KeyReused | Stopped::ResultGone) => {
                Judgement::Stop(Stopped::Unknown(StopReason::Refused))
            }
            Judgement::Again { not_before, .. } => Judgement::Again {
                happened: Happened::Perhaps,
                not_before,
            },
            judgement => judgement,
        },
        // A server that does not let the call through cannot say how the attempt before ended.
        Observed::Answer(answer)
            if progress.may_have_happened
                && (answer.refuses() || answer.may_come_of_the_call(progress)) =>
        {
            match answered(profile, progress, answer) {
                Judgement::Known | Judgement::Stop(Stopped::Unsupported) => {
                    Judgement::Stop(Stopped::Unknown(StopReason::Refused))
                }
                judgement => judgement,
            }
        }
        // The call was answered by being led on. Whether the address that it was led on to can be
        // read is another question.
        Observed::Answer(answer) if progress.led_on && answer.status.as_u16() >= 400 => {
            match answered(profile, progress, answer) {
                open @ (Judgement::Again { .. } | Judgement::Stop(Stopped::Unknown(_))) => open,
                _ => Judgement::Stop(Stopped::Unknown(StopReason::Refused)),
            }
        }
        Observed::Answer(answer) => answered(profile, progress, answer),
        Observed::NotSent => again(Happened::No),
        Observed::Lost => match progress.protection {
            Protection::Key | Protection::Method => again(Happened::Perhaps),
            Protection::KeyOnTrial => Judgement::Stop(Stopped::Unknown(StopReason::Undeclared)),
            Protection::None => Judgement::Known,
        },
        Observed::Hopeless if progress.may_have_happened => {
            Judgement::Stop(Stopped::Unknown(StopReason::Hopeless))
        }
        Observed::Hopeless => Judgement::Known,
        Observed::Failed => Judgement::Stop(Stopped::Unknown(StopReason::Middleware)),
    }
}

/// The meaning of an answer. If it says that nothing happened, nothing did.
fn answered(profile: &Profile, progress: &Progress, answer: &Answered) -> Judgement {
    match by_what_it_says(profile, progress, answer) {
        Judgement::Again { not_before, .. } if answer.released => Judgement::Again {
            happened: Happened::No,
            not_before,
        },
        judgement => judgement,
    }
}

/// The meaning of an answer, by the part that says most about it: the problem, the vendor's word,
/// the problem's members, the status.
fn by_what_it_says(profile: &Profile, progress: &Progress, answer: &Answered) -> Judgement {
    if progress.keyed && answer.moves() {
        return Judgement::Stop(Stopped::Unknown(StopReason::Moved));
    }
    if answer.status.as_u16() < 400 {
        return Judgement::Known;
    }
    let again = |happened| Judgement::Again {
        happened,
        not_before: answer.retry_after.or(answer.problem.retry_after),
    };
    if let Some(kind) = answer.problem.kind {
        return match kind {
            Kind::KeyReused => Judgement::Stop(Stopped::KeyReused),
            // Its store has to be mended first, and may hold the outcome of an earlier attempt.
            Kind::StoreUnavailable if answer.problem.retryable == Some(false) => {
                Judgement::Stop(Stopped::Unknown(StopReason::Server))
            }
            // A store that is out of reach may hold the outcome of an earlier attempt. A result
            // that is out of reach belongs to one.
            Kind::RequestInProgress | Kind::StoreUnavailable | Kind::ResultOutOfReach => {
                again(Happened::Perhaps)
            }
            Kind::OutcomeUnknown | Kind::HandlerFailed => {
                Judgement::Stop(Stopped::Unknown(StopReason::Server))
            }
            Kind::ResultUnavailable | Kind::ResultExpired => Judgement::Stop(Stopped::ResultGone),
            Kind::BodyUnreadable | Kind::BodyTimeout | Kind::Overloaded | Kind::TooManyKeys => {
                again(Happened::No)
            }
            Kind::TooEarly if !progress.was_early => again(Happened::No),
            Kind::NotSupported => Judgement::Stop(Stopped::Unsupported),
            // The request has to change, or the server.
            _ => Judgement::Known,
        };
    }
    if let Some(stripe) = &answer.problem.stripe {
        match (stripe.kind.as_deref(), stripe.code.as_deref()) {
            (_, Some("idempotency_key_in_use" | "lock_timeout")) => {
                return again(Happened::Perhaps);
            }
            (Some("idempotency_error"), _) => return Judgement::Stop(Stopped::KeyReused),
            _ => {}
        }
    }
    let members = answer
        .problem
        .retryable
        .filter(|_| answer.problem.speaks_of_keys());
    match answer.verdict.or(members) {
        Some(true) => again(perhaps(answer.status)),
        Some(false) if ambiguous(answer.status) && progress.protection == Protection::Key => {
            Judgement::Stop(Stopped::Unknown(StopReason::Server))
        }
        // Asking again is no use, and it is not said how the attempt before ended.
        Some(false) if leaves_open_what_came_before(progress, answer) && !answer.released => {
            Judgement::Stop(Stopped::Unknown(StopReason::Server))
        }
        Some(false) => Judgement::Known,
        None => by_status(profile, progress, answer, again),
    }
}

fn by_status(
    profile: &Profile,
    progress: &Progress,
    answer: &Answered,
    again: impl Fn(Happened) -> Judgement,
) -> Judgement {
    let keyed = progress.protection == Protection::Key;
    match answer.status.as_u16() {
        409 if may_be_running(profile, progress, answer) => again(Happened::Perhaps),
        425 if !progress.was_early => again(Happened::No),
        429 if answer.retry_after.is_some() => again(Happened::No),
        501 if progress.protection.is_key() && !answer.replayed => {
            Judgement::Stop(Stopped::Unsupported)
        }
        501 if keyed => Judgement::Stop(Stopped::Unknown(StopReason::Recorded)),
        // A status that no specification knows counts as 500, from a server and from a proxy before
        // it (RFC 9110, section 15).
        408 | 500 | 502.. => match progress.protection {
            Protection::Key if answer.replayed => {
                Judgement::Stop(Stopped::Unknown(StopReason::Recorded))
            }
            Protection::Key | Protection::Method => again(perhaps(answer.status)),
            // The answer tells all that is known, and the key would not help.
            Protection::KeyOnTrial | Protection::None => Judgement::Known,
        },
        _ => Judgement::Known,
    }
}

/// A bare conflict may be about the key. Once an attempt may have come through, the draft has a
/// server say so of that one.
fn may_be_running(profile: &Profile, progress: &Progress, answer: &Answered) -> bool {
    progress.keyed
        && match profile.conflict {
            Conflict::InProgress => true,
            Conflict::Application => leaves_open_what_came_before(progress, answer),
        }
}

/// A bare conflict that may be about an attempt before this one.
fn leaves_open_what_came_before(progress: &Progress, answer: &Answered) -> bool {
    progress.keyed
        && progress.may_have_happened
        && answer.status == StatusCode::CONFLICT
        && !answer.replayed
}

/// A server error leaves open what was done before it; a refusal does not.
fn perhaps(status: StatusCode) -> Happened {
    if ambiguous(status) || matches!(status.as_u16(), 408 | 409) {
        Happened::Perhaps
    } else {
        Happened::No
    }
}

fn ambiguous(status: StatusCode) -> bool {
    status.as_u16() >= 500
}
