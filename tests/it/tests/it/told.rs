//! The answers that callers get in simulated and chaos runs, in a word.

use idempotent_runtime::{CallReport, Error};

/// By an error of ours.
pub(crate) fn of_refusal(refusal: &Error) -> &'static str {
    match refusal {
        Error::InProgress { .. } => "told that it runs",
        Error::KeyReused { .. } => "told of other arguments",
        Error::Uncertain { .. } => "told that nobody knows",
        Error::Parked { .. } => "told that it is parked",
        Error::LeaseLost { .. } => "told that the lease is lost",
        Error::Store(_) => "told that the store is away",
        _ => "told something else",
    }
}

/// By an answer that came about so, if that is known.
pub(crate) fn of_answer(how: Option<&CallReport>) -> &'static str {
    match how {
        Some(CallReport::Replayed { waited: true, .. }) => "a replay after waiting",
        Some(CallReport::Replayed { .. }) => "a replay",
        Some(CallReport::Executed {
            recorded: false, ..
        }) => "an answer not recorded yet",
        _ => "an answer",
    }
}
