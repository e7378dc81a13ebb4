//! The errors of calls that book a trip in steps.

use idempotent_runtime::{Error, Verdict};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, thiserror::Error)]
pub(crate) enum BookError {
    /// It is final.
    #[error("no car is left")]
    Refused,
    #[error(transparent)]
    Ours(#[from] Error),
}

pub(crate) fn verdict(error: &BookError) -> Verdict {
    match error {
        BookError::Refused => Verdict::Replay,
        BookError::Ours(_) => Verdict::Release,
    }
}
