//! How a call was refused.

use idempotent_runtime::{Error, StoreErrorKind};

pub(crate) fn is_in_progress<T>(answer: &Result<T, Error>) -> bool {
    matches!(answer, Err(Error::InProgress { .. }))
}

pub(crate) fn is_uncertain<T>(answer: &Result<T, Error>) -> bool {
    matches!(answer, Err(Error::Uncertain { .. }))
}

pub(crate) fn is_parked<T>(answer: &Result<T, Error>) -> bool {
    matches!(answer, Err(Error::Parked { .. }))
}

pub(crate) fn is_reused<T>(answer: &Result<T, Error>) -> bool {
    matches!(answer, Err(Error::KeyReused { .. }))
}

pub(crate) fn is_not_replayable<T>(answer: &Result<T, Error>) -> bool {
    matches!(answer, Err(Error::NotReplayable { .. }))
}

pub(crate) fn is_unreadable<T>(answer: &Result<T, Error>) -> bool {
    matches!(answer, Err(Error::Unreadable { .. }))
}

/// Whether the store failed, and of this kind.
pub(crate) fn failed_as<T>(answer: &Result<T, Error>, kind: StoreErrorKind) -> bool {
    matches!(answer, Err(Error::Store(error)) if error.kind() == kind)
}
