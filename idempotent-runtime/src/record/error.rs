//! Why a call got no answer: a variant for each thing that a caller can do about it.

mod answers;
#[cfg(feature = "_sql")]
mod message;
mod moved;
mod nested;
mod not_settled;

use std::{sync::Arc, time::Duration};

use self::answers::{Called, Differing, GivenUp, LeftSteps, SET_UP, Settles, Told};
#[cfg(feature = "_sql")]
pub use self::message::MessageError;
#[cfg(feature = "_sql")]
pub(crate) use self::message::{LONGEST_HEADERS, LONGEST_NAME};
pub(crate) use self::nested::{mark, take_mark};
pub use self::{moved::Moved, not_settled::NotSettled};
use super::store_error::StoreError;
pub use crate::value::{BoxError, Unreadable};
use crate::{fingerprint::FingerprintError, identity::RecordId, key::KeyError};

/// Says why a call got no answer. The body did not run, unless the variant says otherwise.
///
/// Keys, scopes and argument values never appear in its messages.
///
/// The failure to get an answer from a nested call is not the outer call's outcome, so it is not
/// recorded. A body that was refused something, and did not get it later, has no outcome if it ends
/// with an `Err`, even one in other words. `KeyReused` and invalid input are answers for good.
///
/// It may stand inside an error type that derives serde's traits. Its `Serialize` always fails, on
/// purpose: so a type that holds one has no JSON for a client either. Look at it first.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another call with this key is still running.
    #[error(
        "a call of `{operation}` with this key is still running (attempt {attempt}, held by {holder}), try again in {retry_after:?}"
    )]
    #[non_exhaustive]
    InProgress {
        /// The operation.
        operation: Arc<str>,
        /// How long ago it began, by the store's clock.
        since: Duration,
        /// The rest of the holder's lease: a bound, not an estimate. The call may end much sooner;
        /// a holder that has vanished is replaced then, and one that lives has prolonged its lease
        /// meanwhile.
        retry_after: Duration,
        /// Whether its holder is silent: it has missed a heartbeat, and may have vanished.
        silent: bool,
        /// The number of the attempt that runs.
        attempt: u32,
        /// The label of the process that holds it.
        holder: Arc<str>,
        /// The `traceparent` of the call that holds it, where it gave one.
        trace_parent: Option<Arc<str>>,
    },

    /// The key belongs to a call with other arguments.
    #[error("this key was used for a call of `{operation}` with other arguments{}, use a new key for a new request", Differing(.differing))]
    #[non_exhaustive]
    KeyReused {
        /// The operation.
        operation: Arc<str>,
        /// The names of the arguments that differ, where they can be told apart.
        differing: Vec<String>,
    },

    /// It is unknown whether an earlier call happened. An operator must find out and settle it,
    /// unless its first holder was only paused, and wakes up and tells.
    #[error(
        "it is unknown whether {} of `{operation}` happened, find out and settle it with {}: its record is {}", Called(.number), Settles(.number), .id.to_hex()
    )]
    #[non_exhaustive]
    Uncertain {
        /// The operation.
        operation: Arc<str>,
        /// The record of the call.
        id: RecordId,
        /// The number at which a sequence stops; `None` for a plain call.
        number: Option<u64>,
    },

    /// Too many holders of this key vanished. An operator must look at it.
    #[error(
        "{}`{operation}` was given up after {attempts} attempts that vanished, look at it, then settle it or resume it with {}: its record is {}", GivenUp(.number), Settles(.number), .id.to_hex()
    )]
    #[non_exhaustive]
    Parked {
        /// The operation.
        operation: Arc<str>,
        /// How many attempts vanished.
        attempts: u32,
        /// The record of the call.
        id: RecordId,
        /// The number at which a sequence stops; `None` for a plain call.
        number: Option<u64>,
    },

    /// The call failed for good, and not all of its steps could be undone. It is *parked*: look at
    /// the steps that are left, then `settle(…).resume()` has the next call undo the rest. A step
    /// that you undo by hand is settled by `settle(…).step(name).undone()`.
    #[error(
        "`{operation}` failed, and not all of its steps were undone{}: look at those, then resume it with `Idempotency::settle_id`: its record is {}", LeftSteps(.left), .id.to_hex()
    )]
    #[non_exhaustive]
    NotUndone {
        /// The operation.
        operation: Arc<str>,
        /// The literal parts of the names of the steps that were undone, the first one first.
        undone: Vec<String>,
        /// Those of the steps that were not.
        left: Vec<String>,
        /// The record of the call.
        id: RecordId,
    },

    /// The body ran, but its lease was lost meanwhile and another attempt has no outcome yet.
    #[error(
        "the lease of this call of `{operation}` was lost while its body ran, call again for the recorded outcome"
    )]
    #[non_exhaustive]
    LeaseLost {
        /// The operation.
        operation: Arc<str>,
    },

    /// A detached call ran on in a task of its own, and its runtime ended and took it along. Its
    /// body stopped where it was, and `on_crash` applies; if it had ended already, its outcome is
    /// recorded.
    #[error(
        "the runtime in which `{operation}` ran on ended before the call did, call again for what became of it"
    )]
    #[non_exhaustive]
    Stopped {
        /// The operation.
        operation: Arc<str>,
    },

    /// The transaction that the call was a part of had ended, or took no more statements, when its
    /// body returned `Ok`. The body swallowed the error of a statement or of a deadlock, or rolled
    /// back by itself. Nothing is recorded. Roll back, and call again.
    #[error(
        "the transaction of `{operation}` ended while its body ran, roll back and call again, and let the body return the errors of its statements"
    )]
    #[non_exhaustive]
    TransactionEnded {
        /// The operation.
        operation: Arc<str>,
    },

    /// The database refused the commit of `CallBuilder::transact`, and trying again would not help.
    /// Nothing stands, and the key is free.
    #[error("the transaction of `{operation}` was refused, so nothing of it stands: {source}")]
    #[non_exhaustive]
    Commit {
        /// The operation.
        operation: Arc<str>,
        /// The error of the database.
        #[source]
        source: StoreError,
    },

    /// The answer to the commit of `CallBuilder::transact` was lost, and the database did not tell
    /// in time whether it was carried out. The same call with the same key finds that out, if it
    /// has a record. If not, calling again may write the rows a second time: look first.
    #[error("it is not known whether the transaction of `{operation}` was committed, {}", Told(*.has_record))]
    #[non_exhaustive]
    CommitUnknown {
        /// The operation.
        operation: Arc<str>,
        /// Whether a record tells the next call.
        has_record: bool,
    },

    /// The call happened earlier, but its stored outcome, or its stored reference, cannot be
    /// decoded. It is not run again.
    #[error(
        "the stored outcome of `{operation}` (schema version {schema}) cannot be decoded, keep its type compatible or give `version` and `upgrade`"
    )]
    #[non_exhaustive]
    Unreadable {
        /// The operation.
        operation: Arc<str>,
        /// The schema version that it was stored with.
        schema: u32,
        /// The error of the codec or the `upgrade` function.
        #[source]
        source: Unreadable,
    },

    /// The call happened earlier, and its reference is stored, but `load` could not read the value
    /// back through it. The body is not run again; the same call gives the value once `load` finds
    /// it.
    #[error(
        "`{operation}` happened, but `load` could not read its value back through the stored reference, call again when it can"
    )]
    #[non_exhaustive]
    NotLoaded {
        /// The operation.
        operation: Arc<str>,
        /// The error of `load`.
        #[source]
        source: Unreadable,
    },

    /// The call happened earlier, but its outcome could not be kept. It is not run again.
    #[error(
        "`{operation}` happened, but its outcome could not be stored, so it cannot be replayed"
    )]
    #[non_exhaustive]
    NotReplayable {
        /// The operation.
        operation: Arc<str>,
    },

    /// The call happened so long ago that its outcome has expired. It is not run again, because
    /// [`OnExpired::Refuse`](crate::OnExpired::Refuse) asks for that.
    #[error(
        "`{operation}` happened with this key, and its outcome has expired, use a new key for a new request"
    )]
    #[non_exhaustive]
    Expired {
        /// The operation.
        operation: Arc<str>,
    },

    /// The audit of the records is not there, or was not seen for 30 seconds. Nothing was written.
    #[error("the audit of the records is missing, so `{operation}` was not called: {reason}")]
    #[non_exhaustive]
    AuditMissing {
        /// The operation.
        operation: Arc<str>,
        /// Why.
        reason: Arc<str>,
    },

    /// The message cannot be sent. Nothing was written.
    #[cfg(feature = "_sql")]
    #[error("a message of the topic `{topic}` cannot be sent: {reason}")]
    #[non_exhaustive]
    InvalidMessage {
        /// The topic.
        topic: Arc<str>,
        /// Why.
        reason: MessageError,
    },

    /// Another message with this id waits to be sent: its topic, key or payload is another one.
    #[cfg(feature = "_sql")]
    #[error(
        "another message with the id `{id}` waits to be sent, give each message an id of its own"
    )]
    #[non_exhaustive]
    MessageChanged {
        /// The id.
        id: Arc<str>,
    },

    /// The call was made from inside its own body, with the same key, before the call around it had
    /// ended. It was in the same task, or in one to which [`Attempt::enter`](crate::Attempt::enter)
    /// carried the attempt.
    #[error(
        "`{operation}` was called with the same key inside its own body, which would wait for itself: use another key"
    )]
    #[non_exhaustive]
    Recursive {
        /// The operation.
        operation: Arc<str>,
    },

    /// A step of this name runs or has run in this attempt. Its body did not run, and nothing was
    /// written. The error shows the literal part of the name only.
    #[error(
        "the step `{step}` of `{operation}` runs or has run in this attempt, give each step a name of its own, such as `(\"{step}\", item.id)`"
    )]
    #[non_exhaustive]
    DuplicateStep {
        /// The operation.
        operation: Arc<str>,
        /// The literal part of the step's name.
        step: &'static str,
    },

    /// An earlier attempt ran the step with other arguments: the code, or what it was given,
    /// changed in between. Its body did not run, and the record stays as it was.
    #[error(
        "the step `{step}` of `{operation}` has run with other arguments{}, give it another name where it is another step", Differing(.differing)
    )]
    #[non_exhaustive]
    StepChanged {
        /// The operation.
        operation: Arc<str>,
        /// The literal part of the step's name.
        step: &'static str,
        /// The names of the arguments that differ, where they can be told apart.
        differing: Vec<String>,
    },

    /// The step stands in a body that shares a transaction, which undoes all of it or none. Its
    /// body did not run, and nothing was written.
    #[error(
        "the step `{step}` stands in `{operation}`, whose body shares a transaction: call what it does without a step"
    )]
    #[non_exhaustive]
    StepInTransaction {
        /// The operation.
        operation: Arc<str>,
        /// The literal part of the step's name.
        step: &'static str,
    },

    /// A step cannot stand here. Its body did not run, and nothing was written.
    #[error("the step `{step}` cannot stand here: {reason}")]
    #[non_exhaustive]
    MisplacedStep {
        /// The literal part of the step's name.
        step: &'static str,
        /// Why.
        reason: &'static str,
    },

    /// Two functions bear one name, so each would answer with the other's outcomes.
    #[error("two functions are named `{operation}`, give one of them another `name = \"…\"`")]
    #[non_exhaustive]
    DuplicateOperation {
        /// The operation.
        operation: Arc<str>,
    },

    /// The key or the scope cannot be one; nothing was written.
    #[error("the call of `{operation}` has no usable {part}")]
    #[non_exhaustive]
    InvalidKey {
        /// The operation.
        operation: Arc<str>,
        /// `"key"` or `"scope"`.
        part: &'static str,
        /// The fault in it.
        #[source]
        source: KeyError,
    },

    /// The arguments cannot be fingerprinted; nothing was written.
    #[error(
        "the arguments of `{operation}` cannot be fingerprinted, leave the offending one out with `skip(…)`"
    )]
    #[non_exhaustive]
    InvalidArguments {
        /// The operation.
        operation: Arc<str>,
        /// Which one, and the error of its `Serialize`.
        #[source]
        source: FingerprintError,
    },

    /// A policy makes no sense, as a lease of zero, or there is no name; nothing was written.
    #[error("{0}")]
    InvalidPolicy(&'static str),

    /// No handle was set up.
    #[error(
        "no store is set up for `{operation}`: call `{SET_UP}.install()?` at the start of the program, or run the call inside `idem.enter(…)`, which a task that is spawned there does not inherit, or give `handle = …`"
    )]
    #[non_exhaustive]
    NotConfigured {
        /// The operation.
        operation: Arc<str>,
    },

    /// Nothing was settled or resumed.
    #[error("nothing was settled of `{operation}`: {reason}")]
    #[non_exhaustive]
    NotSettled {
        /// The operation.
        operation: Arc<str>,
        /// Why.
        reason: NotSettled,
    },

    /// An operator's act was meant for another version of the record. Nothing was written.
    #[error("nothing was done to `{operation}`: {moved}")]
    #[non_exhaustive]
    Moved {
        /// The operation.
        operation: Arc<str>,
        /// The version that stands.
        moved: Arc<Moved>,
    },

    /// A handle is installed already; it stays.
    #[error(
        "a handle is installed already, install one at the start of the program and use `handle = …` or `enter` for others"
    )]
    AlreadyInstalled,

    /// The store failed. Whether the call is under way there is unknown; its body did not run,
    /// unless it shares a transaction, of which nothing may be committed then.
    #[error(transparent)]
    Store(#[from] StoreError),
}
