//! The choices of an engineer: one enum for each argument of the attribute that is a choice.

use std::time::Duration;

/// How a duplicate acts while the first call is still running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InFlight {
    /// Waits for the outcome, at most this long from the beginning of the call on; then
    /// [`Error::InProgress`](crate::Error::InProgress).
    Wait(Duration),
    /// Answers [`Error::InProgress`](crate::Error::InProgress) at once.
    Reject,
}

/// How a record whose holder vanished is treated. Ordered by strictness: where the record and the
/// caller differ, the stricter one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum OnCrash {
    /// The next call takes over and runs the body again, told that it does.
    Rerun,
    /// The next call takes over and asks the function given to `reconcile(…)` what happened.
    Reconcile,
    /// The record becomes *uncertain*, and calls say so until an operator settles it, or its first
    /// holder wakes up and tells.
    Uncertain,
}

/// Whether the body runs on when the caller's future is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnCancel {
    /// The body stops where it is, and [`OnCrash`] applies as soon as that is written: in the
    /// background, usually within milliseconds. Until then a duplicate waits, or, with
    /// [`InFlight::Reject`], still sees it running.
    Stop,
    /// The body runs on in a task of its own and its outcome is recorded.
    Detach,
}

/// How a call whose key is `None` is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnMissingKey {
    /// [`Error::InvalidKey`](crate::Error::InvalidKey), before anything is written.
    Refuse,
    /// The body runs unprotected, and a warning says so.
    Run,
}

/// How a call is treated when the store cannot be reached at the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnOutage {
    /// [`Error::Store`](crate::Error::Store); the body does not run.
    Closed,
    /// The body runs unprotected, whatever `on_crash` says, and an event of the level *error* says
    /// so. It runs only if the store did not answer or was busy
    /// ([`StoreError::is_transient`](crate::StoreError::is_transient)), and no holder of the call
    /// was seen. A store that says why it takes nothing, because it is full, say, or may not be
    /// written, is [`Error::Store`](crate::Error::Store).
    Open,
    /// Finished outcomes are still replayed where they can be read, and other arguments refused;
    /// nothing new runs.
    ReadOnly,
}

/// How a call is treated whose key belongs to an earlier call, of which the outcome has expired and
/// the record is still [kept](crate::handle::Builder::audit_retention).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnExpired {
    /// The body runs: the key is new.
    Run,
    /// [`Error::Expired`](crate::Error::Expired), until the record is kept no longer; with other
    /// arguments, [`Error::KeyReused`](crate::Error::KeyReused).
    Refuse,
}

/// How an `Err` that the body returned is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// It is the outcome: recorded, and replayed to every duplicate.
    Replay,
    /// Nothing happened: the record is released, and a retry runs again. Only where an `Err` really
    /// means that.
    ///
    /// After a takeover under [`OnCrash::Rerun`] it is not released: it is unknown what the holder
    /// before it did. The retry is a takeover again.
    Release,
    /// It is unknown whether it happened: the record becomes *uncertain*.
    Uncertain,
}

/// An error type that says of each of its variants what becomes of a call that ends with it.
///
/// Derive it, and use it by `on_error = ErrorVerdict::verdict`. The type needs serde for what it
/// replays; a variant that serde skips can be released or left uncertain.
///
/// ```
/// use idempotent_runtime::{Error, ErrorVerdict, Idempotency, idempotent};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, Serialize, Deserialize, ErrorVerdict, thiserror::Error)]
/// enum PayError {
///     #[verdict(replay)] // an answer: every duplicate gets it
///     #[error("the card was declined")]
///     Declined,
///     #[verdict(release)] // nothing happened: a retry runs again
///     #[serde(skip)]
///     #[error("the database failed")]
///     Database(#[from] std::io::Error),
///     #[verdict(uncertain)] // it is unknown
///     #[error("the gateway did not answer")]
///     NoAnswer,
///     #[verdict(replay)] // an error of the library is never recorded: `on_crash` decides
///     #[error(transparent)]
///     Idempotency(#[from] Error),
/// }
///
/// #[idempotent(key = order, on_error = ErrorVerdict::verdict)]
/// async fn charge(order: u64, cents: u64) -> Result<u64, PayError> {
///     Err(PayError::Declined)
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// # Idempotency::memory().install()?;
/// # for _ in 0..2 { assert!(matches!(charge(1, 5).await, Err(PayError::Declined))); }
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "the error type `{Self}` does not say what becomes of a call that ends with it",
    label = "needs `ErrorVerdict`",
    note = "write `#[derive(ErrorVerdict)]`, and `#[verdict(replay)]`, `#[verdict(release)]` or `#[verdict(uncertain)]` on every variant"
)]
pub trait ErrorVerdict {
    /// Returns what becomes of a call that ends with this error.
    fn verdict(&self) -> Verdict;
}

/// The verdicts that store nothing of the error, so that its type needs no serde:
/// what a classifier for `anyhow::Error` or `Box<dyn Error>` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unrecorded {
    /// Nothing happened: the record is released, and a retry runs again. For takeovers, see
    /// [`Verdict::Release`].
    Release,
    /// It is unknown whether it happened: the record becomes *uncertain*.
    Uncertain,
}

impl From<Unrecorded> for Verdict {
    fn from(verdict: Unrecorded) -> Self {
        match verdict {
            Unrecorded::Release => Verdict::Release,
            Unrecorded::Uncertain => Verdict::Uncertain,
        }
    }
}

/// The finding of a reconciling function about an attempt whose holder vanished.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reconciled<T, E> {
    /// It happened, with this value, which is recorded and replayed.
    Happened(T),
    /// It failed, with this error: as if the body had returned it, so `on_error` decides.
    Failed(E),
    /// The function cannot tell: the record becomes (or stays) *uncertain*.
    Unknown,
    /// It did not happen: the body runs under the claim that already stands.
    ///
    /// Right only where downstream dedupes by [`child_key`](crate::Attempt::child_key):
    /// a paused first holder may still wake.
    RunAgain,
}
