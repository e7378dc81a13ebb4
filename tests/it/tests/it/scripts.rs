//! The answers that bodies of simulations and chaos runs share, and the verdicts on them.

use idempotent_runtime::{Error, Verdict};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Attached,
    Detached,
}

/// The word of an error about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Say {
    /// It is an outcome.
    Declined,
    Nothing,
    Perhaps,
}

/// The error of a call that gives no value.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
pub(crate) enum Failure<W> {
    #[error("declined")]
    Declined { word: W, say: Say },
    #[error(transparent)]
    Refused(#[from] Error),
}

/// The result of a body, as it is stored.
pub(crate) fn stored<W: Serialize>(result: &Result<W, Failure<W>>) -> String {
    let json = match result {
        Ok(value) => serde_json::to_string(value),
        Err(error) => serde_json::to_string(error),
    };
    json.expect("words are JSON")
}

/// The same and its word; nothing if there was no answer.
pub(crate) fn heard<W: Serialize>(result: &Result<W, Failure<W>>) -> Option<(String, &W)> {
    match result {
        Ok(word) | Err(Failure::Declined { word, .. }) => Some((stored(result), word)),
        Err(Failure::Refused(_)) => None,
    }
}

pub(crate) fn verdict<W>(failure: &Failure<W>) -> Verdict {
    match failure {
        Failure::Declined { say, .. } => match say {
            Say::Declined => Verdict::Replay,
            Say::Nothing => Verdict::Release,
            Say::Perhaps => Verdict::Uncertain,
        },
        Failure::Refused(_) => Verdict::Uncertain,
    }
}
