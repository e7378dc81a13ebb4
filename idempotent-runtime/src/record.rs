//! What stands in a store: the record of one key, and the draft of its next version.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;

use crate::{
    fingerprint::{ArgumentDigests, Fingerprint, Fingerprinted},
    policy::OnCrash,
};

/// Everything a store keeps about one key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Record {
    /// What the record is about; the same in every version.
    pub subject: Arc<Subject>,
    /// Where the call stands.
    pub state: State,
    /// Names this version of the record: fresh at every write.
    pub version: Version,
    /// Grows with every claim of this id.
    pub token: FencingToken,
    /// Counts the claims since the record began; the first is 1.
    pub attempt: u32,
    /// Whose claim it is.
    pub attempt_id: AttemptId,
    /// Who holds or held it, for people.
    pub holder: Holder,
    /// What becomes of it when its holder vanishes.
    pub on_crash: OnCrash,
    /// When the holder's lease ends, by the store's clock.
    pub lease_end: Time,
    /// When the first claim was written.
    pub created: Time,
    /// When the record last left [`State::Running`].
    pub finished: Option<Time>,
    /// When the record stops binding calls, if its state allows that: see [`Record::is_expired`].
    pub expires: Time,
    /// What answers duplicates; only in [`State::Done`].
    pub outcome: Option<RawOutcome>,
}

impl Record {
    /// Tells whether nobody needs the record any more: it binds no call, and purge may delete it.
    ///
    /// Only finished and released records expire, and running ones that may be run again once
    /// their lease is over too. What somebody must still settle never does.
    #[must_use]
    pub fn is_expired(&self, now: Time) -> bool {
        let forgettable = match self.state {
            State::Done | State::Released => true,
            State::Running => self.on_crash == OnCrash::Rerun && self.lease_is_over(now),
            State::Uncertain | State::Parked => false,
        };
        forgettable && self.expires <= now
    }

    /// Tells whether a purge may delete the record: it has been [expired](Self::is_expired) for at least `keep`.
    #[must_use]
    pub fn is_forgettable(&self, now: Time, keep: Duration) -> bool {
        self.is_expired(now) && self.expires.plus(keep) <= now
    }

    /// How long the outcome answers duplicates, as the call that holds or held it chose: what is left between the end of
    /// its lease and the end of its retention, which every claim and heartbeat moves together.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.expires.since(self.lease_end)
    }

    /// Tells whether the lease has ended by the store's clock.
    #[must_use]
    pub fn lease_is_over(&self, now: Time) -> bool {
        self.lease_end <= now
    }
}

/// What a record is about.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Subject {
    /// The operation's stable name.
    pub operation: Arc<str>,
    /// The scope, readable; empty when there is none or it is hidden.
    pub scope: Vec<u8>,
    /// The key, readable; empty when it is hidden.
    pub key: Vec<u8>,
    /// What must be equal in a retry.
    pub fingerprint: Fingerprinted,
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

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// Somebody holds it, or held it and vanished.
    Running,
    /// Its outcome is recorded.
    Done,
    /// Nothing happened: the next call runs, with any arguments.
    Released,
    /// Nobody knows whether it happened: somebody must settle it.
    Uncertain,
    /// Too many holders vanished: somebody must look at it.
    Parked,
}

impl State {
    /// The number that stands for the state in a store: stable over releases.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            State::Running => 1,
            State::Done => 2,
            State::Released => 3,
            State::Uncertain => 4,
            State::Parked => 5,
        }
    }

    /// The state behind a stored number; `None` where there is none.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        [
            State::Running,
            State::Done,
            State::Released,
            State::Uncertain,
            State::Parked,
        ]
        .into_iter()
        .find(|state| state.code() == code)
    }
}

impl OnCrash {
    /// The number that stands for the choice in a store: stable over releases.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            OnCrash::Rerun => 1,
            OnCrash::Reconcile => 2,
            OnCrash::Uncertain => 3,
        }
    }

    /// The choice behind a stored number; `None` where there is none.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        [OnCrash::Rerun, OnCrash::Reconcile, OnCrash::Uncertain]
            .into_iter()
            .find(|on_crash| on_crash.code() == code)
    }
}

/// An outcome as a store keeps it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawOutcome {
    /// What the bytes are.
    pub kind: OutcomeKind,
    /// The schema version of the bytes, chosen by the caller.
    pub schema: u32,
    /// The encoded value or error; empty when not replayable.
    pub bytes: Bytes,
}

impl RawOutcome {
    /// Makes the outcome of a call that ended well.
    #[must_use]
    pub fn value(bytes: impl Into<Bytes>) -> Self {
        Self {
            kind: OutcomeKind::Value,
            schema: 0,
            bytes: bytes.into(),
        }
    }

    /// Makes the outcome of a call that failed for good.
    #[must_use]
    pub fn error(bytes: impl Into<Bytes>) -> Self {
        Self {
            kind: OutcomeKind::Error,
            schema: 0,
            bytes: bytes.into(),
        }
    }

    /// Makes the mark of a call that happened, with an outcome that could not be kept.
    #[must_use]
    pub fn not_replayable() -> Self {
        Self {
            kind: OutcomeKind::NotReplayable,
            schema: 0,
            bytes: Bytes::new(),
        }
    }

    /// Sets the schema version of the bytes.
    #[must_use]
    pub fn with_schema(mut self, schema: u32) -> Self {
        self.schema = schema;
        self
    }
}

impl fmt::Debug for RawOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawOutcome")
            .field("kind", &self.kind)
            .field("schema", &self.schema)
            .field("bytes", &format_args!("{} bytes", self.bytes.len()))
            .finish()
    }
}

/// What the bytes of an outcome are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutcomeKind {
    /// The value of an `Ok`.
    Value,
    /// The error of an `Err`.
    Error,
    /// Nothing: the call happened, and its outcome could not be kept.
    NotReplayable,
}

impl OutcomeKind {
    /// The number that stands for the kind in a store: stable over releases.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            OutcomeKind::Value => 1,
            OutcomeKind::Error => 2,
            OutcomeKind::NotReplayable => 3,
        }
    }

    /// The kind behind a stored number; `None` where there is none.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        [
            OutcomeKind::Value,
            OutcomeKind::Error,
            OutcomeKind::NotReplayable,
        ]
        .into_iter()
        .find(|kind| kind.code() == code)
    }
}

/// Who holds a record, for people: never part of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    /// Names the process, such as `host:pid`.
    pub label: Arc<str>,
    /// The W3C `traceparent` of the call that holds it, where the application gives one.
    pub trace_parent: Option<Arc<str>>,
}

/// The next version of a record, as a caller asks a store to write it. What depends on the
/// store's clock is said relative to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Draft {
    /// Names the version that is written.
    pub version: Version,
    /// The subject of a record that begins, which sets `created`; `None` keeps both.
    pub subject: Option<Arc<Subject>>,
    /// Where the call will stand. Anything but running sets `finished`.
    pub state: State,
    /// The token.
    pub token: TokenRule,
    /// The attempt number.
    pub attempt: u32,
    /// Whose claim it is.
    pub attempt_id: AttemptId,
    /// Who writes, for people.
    pub holder: Holder,
    /// What becomes of it when its holder vanishes.
    pub on_crash: OnCrash,
    /// The end of the lease.
    pub lease: Moment,
    /// When the record may stop binding calls.
    pub expires: Moment,
    /// How long the record stays from then on, for whoever audits. No part of the record: it is for a store that forgets by
    /// itself, and a purge is told it [again](crate::Store::purge).
    pub keep: Duration,
    /// The outcome that stands afterwards.
    pub outcome: Option<RawOutcome>,
}

impl Draft {
    /// Makes the record that stands after this draft was written over `previous` at `now`:
    /// the meaning of every field, once, for every store that keeps records in memory.
    #[must_use]
    pub fn apply(&self, previous: Option<&Record>, now: Time) -> Record {
        let moment = |moment: Moment, kept: Option<Time>| match moment {
            Moment::Keep => kept.unwrap_or(now),
            Moment::In(duration) => now.plus(duration),
        };
        let (subject, created) = match (&self.subject, previous) {
            (Some(subject), _) => (Arc::clone(subject), now),
            (None, Some(previous)) => (Arc::clone(&previous.subject), previous.created),
            (None, None) => (Arc::new(Subject::unknown()), now),
        };
        Record {
            subject,
            state: self.state,
            version: self.version,
            token: match self.token {
                TokenRule::Keep => previous.map_or(FencingToken(0), |record| record.token),
                TokenRule::Above(floor) => floor.next(now),
            },
            attempt: self.attempt,
            attempt_id: self.attempt_id,
            holder: self.holder.clone(),
            on_crash: self.on_crash,
            lease_end: moment(self.lease, previous.map(|record| record.lease_end)),
            created,
            finished: (self.state != State::Running).then_some(now),
            expires: moment(self.expires, previous.map(|record| record.expires)),
            outcome: self.outcome.clone(),
        }
    }
}

impl Subject {
    /// Stands in where a draft that keeps the subject meets no record; such a swap is refused.
    fn unknown() -> Self {
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

/// How a draft says a moment of the store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// As it stands.
    Keep,
    /// This long after the write.
    In(Duration),
}

/// How a draft says the fencing token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenRule {
    /// As it stands.
    Keep,
    /// A new one, above this and not below the store's time: `max(this + 1, now in microseconds)`.
    ///
    /// So tokens grow over release, takeover, purge and re-creation without a sequence, while the store's clock does
    /// not step back.
    Above(FencingToken),
}

/// A moment by a store's clock, in microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// Makes a moment from microseconds since the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// The microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The moment `duration` later; the largest one where that would overflow.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(micros(duration)))
    }

    /// The moment `duration` earlier; the smallest one where that would overflow.
    #[cfg(feature = "client")]
    pub(crate) fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(micros(duration)))
    }

    /// How long after `earlier` this is; zero where it is not.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// A duration in whole microseconds, as stores count; the largest number where it would overflow.
#[must_use]
pub fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Names one version of a record: a fresh random value at every write, because a counter would
/// repeat after a delete.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version(u128);

/// Names one attempt: random, made by the caller, so that a claim whose answer was lost is
/// recognised as one's own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttemptId(u128);

macro_rules! random_id {
    ($name:ident) => {
        impl $name {
            /// Draws a fresh one.
            #[must_use]
            pub fn random() -> Self {
                Self(rand::random())
            }

            /// Makes one from a number: for stores, and for tests that name their versions.
            #[must_use]
            pub const fn from_u128(number: u128) -> Self {
                Self(number)
            }

            /// Makes one from its bytes in a store.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(u128::from_be_bytes(bytes))
            }

            /// Its bytes in a store.
            #[must_use]
            pub const fn to_bytes(self) -> [u8; 16] {
                self.0.to_be_bytes()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:08x}…)"), self.0 >> 96)
            }
        }
    };
}

random_id!(Version);
random_id!(AttemptId);

/// A number that grows with every claim of a key: a downstream system that keeps the largest one
/// it has seen can refuse a holder that lost its lease (Kleppmann, *How to do distributed
/// locking*, 2016).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    /// Makes a token from its number.
    #[must_use]
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The token that follows this one at `now`.
    #[must_use]
    pub fn next(self, now: Time) -> Self {
        Self(
            self.0
                .saturating_add(1)
                .max(u64::try_from(now.as_micros()).unwrap_or(0)),
        )
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
