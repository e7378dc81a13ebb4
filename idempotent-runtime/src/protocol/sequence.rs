//! A stream of numbered calls: what its one record holds, and what a call with a number does about
//! it.
//!
//! | what stands | `state` | `last` | `running` | lease |
//! |---|---|---|---|---|
//! | no number has ended, none is held | *released* | none | none | – |
//! | number n has ended, none is held | *done* | n | none | – |
//! | number r is held, or its holder vanished | *running* | n, or none | r | the holder's, or over |
//! | it is unknown how far r came | *uncertain* | n, or none | r | – |
//! | too many holders of r vanished | *parked* | n, or none | r | – |
//!
//! `last` is a number, its fingerprint, and its outcome with kind, schema and bytes. It stands in
//! every state, outside the codec, under an [`OutcomeKind`] of its own that an older build refuses.
//! `running` is the number beside it. The subject's fingerprint is then that of r; attempt, attempt
//! id, holder, `on_crash` and token are the record's. Under `accept_gaps` a [`Passed`] number
//! stands beside `running`, so that a larger one that did nothing puts it back.
//!
//! A store needs nothing new. Each write stands where `seen` stands, as every swap does, and every
//! write sends the whole stream: [`StoredStream`] turns it into the outcome of a record and back. A
//! draft keeps `last` unless it says that it moves ([`LastChange`]). Only [`StreamEnding::Done`],
//! [`settle()`], [`skip`] and [`end_next`] move the number, and only upwards. A call over an
//! expired stream clears it.
//!
//! Every decision is made on the primary store. A tier never copies a stream, because its copy may
//! be past.

mod claim;
mod failing;
mod holding;
mod settle;
mod stored;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use self::{
    failing::{FailingNumber, note_failure},
    holding::{StreamEnding, StreamHolding, StreamRefusal},
    settle::{NextNumber, StreamSettlement, end_next, settle, skip},
    stored::{Damaged, LastValue, StoredStream},
};
use crate::{
    fingerprint::Fingerprint,
    policy::OnCrash,
    record::{AttemptId, FencingToken, Moment, OutcomeKind, Time, TokenRule, Version},
};

/// The record of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    /// Names what stands: fresh at every write.
    pub version: Version,
    /// Grows with every claim of any number.
    pub token: FencingToken,
    /// The last number that ended.
    pub last: Option<Applied>,
    /// The number that is held, or that waits for an operator.
    pub running: Option<BegunNumber>,
    /// Whose claim it is, or was last.
    pub attempt_id: AttemptId,
    /// When the holder's lease ends, by the store's clock.
    pub lease_end: Time,
    /// When the stream stops binding calls; most never do.
    pub expires: Option<Time>,
}

/// A number that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Applied {
    /// The number.
    pub number: u64,
    /// Must be equal in a copy.
    pub fingerprint: Fingerprint,
    /// The answer to a copy.
    pub answer: CopyAnswer,
}

/// The answer to a copy of the last number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyAnswer {
    /// The outcome of this kind that was recorded.
    Recorded(OutcomeKind),
    /// Nothing: an operator used the number up.
    Skipped,
}

/// A number that a call began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BegunNumber {
    /// The number.
    pub number: u64,
    /// Must be equal in a copy.
    pub fingerprint: Fingerprint,
    /// Its state.
    pub state: NumberState,
    /// Says how it goes on when its holder vanishes.
    pub on_crash: OnCrash,
    /// How many holders of this number vanished.
    pub takeovers: u32,
    /// The abandoned number that this one took the place of.
    pub passed: Option<Passed>,
}

/// A number whose holder vanished, as a larger one found it that passed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Passed {
    /// The number.
    pub number: u64,
    /// Must be equal in a copy.
    pub fingerprint: Fingerprint,
    /// How many holders of this number vanished.
    pub takeovers: u32,
}

/// The state of a number that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NumberState {
    /// A holder has it, or had it and vanished.
    Running,
    /// It is unknown whether it happened.
    Uncertain,
    /// Too many holders vanished.
    Parked,
}

/// A call, as it comes to the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamClaim {
    /// Its number.
    pub number: u64,
    /// Must be equal in a copy: it is of number and arguments.
    pub fingerprint: Fingerprint,
    /// Its own name, the same for every try of one call.
    pub attempt_id: AttemptId,
    /// Which numbers may be missing.
    pub gaps: Gaps,
    /// Says how the number goes on when this holder vanishes.
    pub on_crash: OnCrash,
    /// How long a holder may be silent.
    pub lease: Duration,
    /// How long the stream binds calls after a number; `None` for ever.
    pub expires_after: Option<Duration>,
    /// How many takeovers one number may see before it is parked.
    pub max_takeovers: u32,
}

/// The rule for a call whose number does not follow the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gaps {
    /// It is refused. A stream begins with this number.
    Refuse(u64),
    /// It waits, without a claim. A stream begins with this number.
    Wait(u64),
    /// It runs: every larger number does.
    Accept,
}

/// The next version of a stream, as a caller asks a store to write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamDraft {
    /// Names the version that is written.
    pub version: Version,
    /// The token.
    pub token: TokenRule,
    /// The rule for the last number.
    pub last: LastChange,
    /// As in the [`Stream`].
    pub running: Option<BegunNumber>,
    /// As in the [`Stream`].
    pub attempt_id: AttemptId,
    /// The end of the lease.
    pub lease: Moment,
    /// When the stream stops binding calls; `None` where it does not.
    pub expires: Option<Moment>,
}

/// The rule for the last number in a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LastChange {
    /// It stays, with its fingerprint and its outcome.
    Keep,
    /// This one takes its place.
    Moves(Applied),
    /// There is none: the stream begins anew.
    Forget,
}

impl StreamDraft {
    /// Makes the stream that stands after this draft was written over `previous` at `now`.
    #[must_use]
    pub fn apply(&self, previous: Option<&Stream>, now: Time) -> Stream {
        let moment = |moment: Moment, kept: Option<Time>| match moment {
            Moment::Keep => kept.unwrap_or(now),
            Moment::In(duration) => now.plus(duration),
        };
        let token = previous.map_or(FencingToken::from_u64(0), |stream| stream.token);
        let expires = previous.and_then(|stream| stream.expires);
        Stream {
            version: self.version,
            token: match self.token {
                TokenRule::Keep => token,
                TokenRule::Above(floor) => floor.next(now),
            },
            last: match self.last {
                LastChange::Keep => previous.and_then(|stream| stream.last),
                LastChange::Moves(applied) => Some(applied),
                LastChange::Forget => None,
            },
            running: self.running,
            attempt_id: self.attempt_id,
            lease_end: moment(self.lease, previous.map(|stream| stream.lease_end)),
            expires: self.expires.map(|ends| moment(ends, expires)),
        }
    }
}

/// The next step of a call. A call that must wait holds no claim, and decides again on the record
/// of then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is taken apart where it is made"
)]
pub enum StreamDecision {
    /// Writes this draft where `seen` stands; if that is refused, it decides again on what stands
    /// there then.
    Write {
        /// The version that was decided upon.
        seen: Option<Version>,
        /// The stream to put there.
        draft: StreamDraft,
        /// Its meaning once it is applied.
        meaning: StreamMeaning,
    },
    /// Holds the number already: the answer to its own claim was lost.
    Mine,
    /// Answers with the recorded outcome of the last number.
    Replay(OutcomeKind),
    /// Is answered: the number is below the last one, or an operator used it up.
    Past {
        /// The last number that ended, or the one before the first.
        last: u64,
    },
    /// Refuses: the source is to be read again from the expected number.
    Gap {
        /// The number that comes next.
        expected: u64,
    },
    /// Waits until the expected number has ended; then it is a gap.
    AwaitGap {
        /// The number that comes next.
        expected: u64,
    },
    /// Refuses: the number belongs to a call with other arguments.
    KeyReused,
    /// Waits, or refuses: another call holds this number for this much longer.
    InProgress(u64, Duration),
    /// Refuses for now: a holder of this larger number vanished, and that one goes first.
    Overtaken(u64),
    /// Refuses: it is unknown whether this number happened.
    Uncertain(u64),
    /// Refuses: too many holders of this number vanished.
    Parked(u64),
}

/// The meaning of a call's write once it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamMeaning {
    /// It holds the number, and nothing unfinished stands behind it.
    Fresh,
    /// It holds a number, and an earlier holder may have begun that one, or one that it passed: the
    /// body is told so.
    Takeover,
    /// It left the number that stands uncertain.
    LeaveUncertain,
    /// It left the number that stands parked.
    Park,
}

/// Decides what `claim` does about `stream` at `now`, by the store's clock. `version` names the
/// draft, if there is one.
///
/// The order is the protocol's: nothing or expired, past, last, running, at rest.
#[must_use]
pub fn decide(
    claim: &StreamClaim,
    stream: Option<&Stream>,
    now: Time,
    version: Version,
) -> StreamDecision {
    let Some(stream) = stream else {
        return claim.at_rest(None, LastChange::Keep, version);
    };
    if stream.is_expired(now) {
        return claim.at_rest(Some(stream), LastChange::Forget, version);
    }
    match stream.last {
        Some(last) if claim.number < last.number => {
            return StreamDecision::Past { last: last.number };
        }
        Some(last) if claim.number == last.number => return last.answers(claim),
        _ => {}
    }
    match &stream.running {
        Some(running) => claim.beside(stream, running, now, version),
        None => claim.at_rest(Some(stream), LastChange::Keep, version),
    }
}

impl Stream {
    /// Tells whether the holder's lease has ended.
    #[must_use]
    pub fn lease_is_over(&self, now: Time) -> bool {
        self.lease_end <= now
    }

    /// Tells whether the stream binds no call any more. A number that is held or must be settled
    /// keeps it from expiring.
    #[must_use]
    pub fn is_expired(&self, now: Time) -> bool {
        let is_free = self.running.is_none_or(|running| {
            running.state == NumberState::Running
                && running.on_crash == OnCrash::Rerun
                && self.lease_is_over(now)
        });
        is_free && self.expires.is_some_and(|expires| expires <= now)
    }

    /// The draft that changes only the version.
    fn touched(&self, version: Version) -> StreamDraft {
        StreamDraft {
            version,
            token: TokenRule::Keep,
            last: LastChange::Keep,
            running: self.running,
            attempt_id: self.attempt_id,
            lease: Moment::Keep,
            expires: self.expires.map(|_| Moment::Keep),
        }
    }
}

impl Applied {
    /// Whether the number was applied, and the outcome that it had could not be kept.
    #[must_use]
    pub fn lacks_outcome(&self) -> bool {
        self.answer == CopyAnswer::Recorded(OutcomeKind::NotReplayable)
    }

    fn answers(&self, claim: &StreamClaim) -> StreamDecision {
        match self.answer {
            CopyAnswer::Skipped => StreamDecision::Past { last: self.number },
            CopyAnswer::Recorded(_) if self.fingerprint != claim.fingerprint => {
                StreamDecision::KeyReused
            }
            CopyAnswer::Recorded(kind) => StreamDecision::Replay(kind),
        }
    }
}

impl BegunNumber {
    /// Whether an earlier holder may have begun this number, or one that it passed.
    fn is_begun_before(&self) -> bool {
        self.takeovers > 0 || self.passed.is_some()
    }

    /// The number that this one passed, as it stood.
    fn put_back(&self) -> Option<BegunNumber> {
        self.passed.map(|passed| BegunNumber {
            number: passed.number,
            fingerprint: passed.fingerprint,
            state: NumberState::Running,
            on_crash: OnCrash::Rerun,
            takeovers: passed.takeovers,
            passed: None,
        })
    }

    /// Whether as many holders of this number vanished as the budget allows. A number that an
    /// operator resumed is tried once more.
    fn is_spent(&self, attempt_id: AttemptId, max_takeovers: u32) -> bool {
        self.takeovers >= max_takeovers.max(u32::from(attempt_id == AttemptId::RESUMED))
    }
}
