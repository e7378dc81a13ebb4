//! The contents of a store: the record of one key, and the draft of its next version.
//!
//! A record is one version of a cell. Each write makes a new [`Version`], and names the one that it
//! replaces. A claim raises the [`FencingToken`], and the number of the attempt. A record is
//! *running* under a lease, *done* with an outcome, *uncertain*, *parked*, *undoing*, or
//! *released*. [`Draft`] is the next version as a caller sends it, with times that count from the
//! store's clock.
//!
//! Beside it lies the data of what can go wrong: the errors of calls and stores, and why nothing
//! was settled. An outcome is at most `max_outcome` bytes. A record of a stream is never read as an
//! outcome, and a step never as a record.

pub(crate) mod answers;
mod codes;
pub(crate) mod draft;
pub(crate) mod duration;
pub(crate) mod error;
pub(crate) mod label;
pub(crate) mod limits;
pub(crate) mod note;
pub(crate) mod outcome;
mod raw_ending;
mod raw_outcome;
mod step;
pub(crate) mod store_error;
mod token;
mod version;

use std::{fmt, sync::Arc, time::Duration};

use self::codes::codes;
pub use self::{
    draft::{Draft, Moment},
    note::Note,
    raw_ending::RawEnding,
    raw_outcome::{OutcomeKind, RawOutcome},
    step::{ListedStep, Step, StepName, StepNames, StepState},
    token::{FencingToken, TokenRule},
    version::{AttemptId, Version},
};
pub use crate::value::{Time, micros};
use crate::{
    fingerprint::{ArgumentDigests, Fingerprint, Fingerprinted},
    policy::OnCrash,
};

/// How much longer a record is kept while its steps have open undos: 200 years, which is for ever
/// to a call.
pub const WHILE_UNDOS_ARE_OPEN: Duration = Duration::from_secs(200 * 365 * 24 * 60 * 60);

/// The longest time for which an outcome answers duplicates: 100 years.
pub const LONGEST_TTL: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Everything a store keeps about one key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Record {
    /// The subject of the record; the same in every version.
    pub subject: Arc<Subject>,
    /// The state of the call.
    pub state: State,
    /// Names this version of the record: fresh at every write.
    pub version: Version,
    /// Grows with every claim of this id.
    pub token: FencingToken,
    /// Counts the claims since the record began; the first is 1.
    pub attempt: u32,
    /// Whose claim it is.
    pub attempt_id: AttemptId,
    /// Its present or last holder, for people.
    pub holder: Holder,
    /// How it goes on when its holder vanishes.
    pub on_crash: OnCrash,
    /// When the holder's lease ends, by the store's clock.
    pub lease_end: Time,
    /// When the first claim was written.
    pub created: Time,
    /// When the record last left [`State::Running`].
    pub finished: Option<Time>,
    /// When the record stops binding calls, if its state allows that: see [`Record::is_expired`].
    pub expires: Time,
    /// The answer to duplicates: only in [`State::Done`], except for a stream and for a record that
    /// is being undone.
    pub outcome: Option<RawOutcome>,
    /// The note about this version.
    pub note: Option<Arc<Note>>,
}

impl Record {
    /// Begins a record for a store that reads one back from elsewhere, and sets every other field
    /// by its name: `store::writing` (feature `testing`) shows all of them.
    ///
    /// Until then it is a first attempt without a holder, which runs under [`OnCrash::Rerun`] with
    /// the token 0 and without an outcome. Its lease and retention ended when it began. A store of
    /// your own that forgets one of the fields fails the conformance suite.
    #[must_use]
    pub fn new(subject: Arc<Subject>, version: Version, created: Time) -> Self {
        Self {
            subject,
            state: State::Running,
            version,
            token: FencingToken::from_u64(0),
            attempt: 1,
            attempt_id: AttemptId::NOBODY,
            holder: Holder {
                label: "".into(),
                trace_parent: None,
            },
            on_crash: OnCrash::Rerun,
            lease_end: created,
            created,
            finished: None,
            expires: created,
            outcome: None,
            note: None,
        }
    }

    /// Tells whether the record is that of a stream of numbered calls.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        let outcome = self.outcome.as_ref();
        outcome.is_some_and(|outcome| outcome.kind == OutcomeKind::Stream)
    }

    /// Whether the call happened, and the outcome that it had could not be kept.
    #[must_use]
    pub fn lacks_outcome(&self, now: Time) -> bool {
        let outcome = self.outcome.as_ref();
        let is_bare = outcome.is_some_and(RawOutcome::is_not_replayable);
        self.state == State::Done && is_bare && !self.is_expired(now)
    }

    /// Tells whether the record is no longer needed: it binds no call, and purge may delete it.
    ///
    /// Only finished and released records expire, and running ones that may be run again once
    /// their lease is over too. A record that an operator must still settle never expires.
    #[must_use]
    pub fn is_expired(&self, now: Time) -> bool {
        let forgettable = match self.state {
            State::Done | State::Released => true,
            State::Running => self.on_crash == OnCrash::Rerun && self.lease_is_over(now),
            State::Uncertain | State::Parked | State::Undoing => false,
        };
        forgettable && self.expires <= now
    }

    /// Tells whether a purge may delete the record: it has been [expired](Self::is_expired) for at
    /// least `keep`.
    #[must_use]
    pub fn is_forgettable(&self, now: Time, keep: Duration) -> bool {
        self.is_expired(now) && self.expires.plus(keep) <= now
    }

    /// How long the outcome answers duplicates, as the call that holds or held it chose. It is the
    /// time between the end of its lease and the end of its retention, which a holder moves
    /// together.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        let kept = self.expires.since(self.lease_end);
        kept.checked_sub(WHILE_UNDOS_ARE_OPEN).unwrap_or(kept)
    }

    /// Tells whether a step of it has registered an undo, and its call has no outcome yet. Such a
    /// record expires [in 200 years](WHILE_UNDOS_ARE_OPEN) only, whatever becomes of its holder.
    #[must_use]
    pub fn has_open_undos(&self) -> bool {
        self.state != State::Done && self.expires.since(self.lease_end) >= WHILE_UNDOS_ARE_OPEN
    }

    /// Tells whether the lease has ended by the store's clock.
    #[must_use]
    pub fn lease_is_over(&self, now: Time) -> bool {
        self.lease_end <= now
    }
}

/// The subject of a record.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Subject {
    /// The operation's stable name.
    pub operation: Arc<str>,
    /// The scope, readable; empty when there is none or it is hidden.
    pub scope: Vec<u8>,
    /// The key, readable; empty when it is hidden.
    pub key: Vec<u8>,
    /// The fingerprint, which must be equal in a retry.
    pub fingerprint: Fingerprinted,
}

impl Subject {
    /// The same as a store gives it: that of a call holds all of its arguments, of any length.
    pub(crate) fn as_stored(&self) -> Self {
        let fingerprint = &self.fingerprint;
        Self {
            operation: Arc::clone(&self.operation),
            scope: self.scope.clone(),
            key: self.key.clone(),
            fingerprint: Fingerprinted::stored(fingerprint.fingerprint(), fingerprint.digests()),
        }
    }

    /// Stands in where a draft that keeps the subject meets no record; such a swap is refused.
    pub(crate) fn unknown() -> Self {
        let fingerprint =
            Fingerprinted::stored(Fingerprint::from_bytes([0; 32]), ArgumentDigests::default());
        Self {
            operation: "".into(),
            scope: Vec::new(),
            key: Vec::new(),
            fingerprint,
        }
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Keys and scopes name customers and orders, and debug output ends up in logs.
        f.debug_struct("Subject")
            .field("operation", &self.operation)
            .field("scope", &format_args!("{} bytes", self.scope.len()))
            .field("key", &format_args!("{} bytes", self.key.len()))
            .field("fingerprint", &self.fingerprint)
            .finish()
    }
}

/// The state of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// A holder has it, or had it and vanished.
    Running,
    /// Its outcome is recorded.
    Done,
    /// Nothing happened: the next call runs, with any arguments.
    Released,
    /// It is unknown whether it happened: an operator must settle it.
    Uncertain,
    /// Too many holders vanished, or an undo failed: an operator must look at it.
    Parked,
    /// It failed for good, and its steps are being undone. Its outcome is the error.
    Undoing,
}

impl State {
    /// The states in which a record waits for an operator, or for the rest of its undos.
    pub(crate) const ATTENTION: [Self; 3] = [Self::Uncertain, Self::Parked, Self::Undoing];

    /// Tells whether the record needs somebody: it is uncertain, parked or undoing. It does not
    /// expire in this state.
    #[must_use]
    pub fn needs_attention(self) -> bool {
        Self::ATTENTION.contains(&self)
    }
}

codes! {
    State, "state": Running = 1, Done = 2, Released = 3, Uncertain = 4, Parked = 5, Undoing = 6
}

codes! { OnCrash, "choice": Rerun = 1, Reconcile = 2, Uncertain = 3 }

/// The holder of a record, for people: never part of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    /// Names the process, such as `host:pid`.
    pub label: Arc<str>,
    /// The W3C `traceparent` of the call that holds it, where the application gives one.
    pub trace_parent: Option<Arc<str>>,
}
