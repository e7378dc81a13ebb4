//! How a call decides about the record that it found.

use std::{sync::Arc, time::Duration};

use crate::{
    fingerprint::Fingerprinted,
    policy::{OnCrash, OnExpired},
    protocol::{CallNumber, Ending, Holding},
    record::answers::Snapshot,
    record::{
        AttemptId, Draft, FencingToken, Holder, Moment, Record, State, Subject, Time, TokenRule,
        Version,
    },
};

/// The facts that a call brings to the store: its identity and its choices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The subject of the record.
    pub subject: Arc<Subject>,
    /// Its own name, the same for every try of one call.
    pub attempt_id: AttemptId,
    /// The holder, for people.
    pub holder: Holder,
    /// How the record goes on when this holder vanishes.
    pub on_crash: OnCrash,
    /// How long a holder may be silent.
    pub lease: Duration,
    /// How long an outcome answers duplicates.
    pub ttl: Duration,
    /// How long the record stays after that, for an audit.
    pub keep: Duration,
    /// How the call is treated if its outcome has expired and the record stays.
    pub on_expired: OnExpired,
    /// How many takeovers a record may see before it is parked.
    pub max_takeovers: u32,
    /// The number of a call of a stream. [`Claim::next`] decides by it, and nothing else here does.
    pub numbered: Option<CallNumber>,
    /// Whether it was sent over a record that its holder gave back after steps.
    pub goes_on: bool,
}

/// The next step of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is taken apart where it is made, and a box would be an allocation for every takeover"
)]
pub enum ClaimDecision {
    /// The call writes this draft where `seen` stands. If that is refused, it decides again on what
    /// stands there then.
    Write {
        /// The version that was decided upon.
        seen: Option<Version>,
        /// The draft to put there.
        draft: Draft,
        /// Its meaning once it is applied.
        meaning: Meaning,
    },
    /// The call holds the record already: the answer to its claim was lost.
    Mine(Arc<Record>),
    /// The recorded outcome answers the call.
    Replay(Arc<Record>),
    /// The call is refused: the outcome that was recorded has expired.
    Expired(Arc<Record>),
    /// The call is refused: the key belongs to a call with other arguments.
    KeyReused(Arc<Record>),
    /// The call is refused: it is unknown whether it happened.
    Uncertain(Arc<Record>),
    /// The call is refused: too many holders vanished, or an undo failed.
    Parked(Arc<Record>),
    /// The call waits or is refused: another holder has a lease for this much longer, by the
    /// store's clock.
    InProgress(Arc<Record>, Duration),
}

/// The meaning of a call's write once it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// It holds the record, and nothing that another call began stands behind it: the body runs.
    Fresh,
    /// It holds a record whose earlier holder vanished: the body runs again, and is told so.
    Takeover,
    /// It holds a record that its earlier holder gave back after steps: the body runs again.
    GoOn,
    /// It holds a record whose earlier holder vanished: the reconciling function is asked.
    Reconcile,
    /// It holds a record whose call has failed for good: what its steps did is undone.
    Undo,
    /// It left the record parked.
    Park,
    /// It left the record uncertain.
    LeaveUncertain,
}

impl Meaning {
    /// Whether it leaves a record to be settled, and holds nothing.
    pub(crate) fn leaves(self) -> bool {
        matches!(self, Meaning::Park | Meaning::LeaveUncertain)
    }

    /// The meaning of the claim that `record` stands for; `goes_on` tells whether it was sent over
    /// one that was given back. That claim need not be the last one that its holder sent: a claim
    /// that was taken for lost may arrive after the next one was sent.
    #[must_use]
    pub fn won(record: &Record, goes_on: bool) -> Self {
        match (record.attempt, record.on_crash) {
            _ if record.state == State::Undoing => Meaning::Undo,
            (1, _) if goes_on => Meaning::GoOn,
            (1, _) if record.passes() => Meaning::Takeover,
            (1, _) => Meaning::Fresh,
            (_, OnCrash::Reconcile) => Meaning::Reconcile,
            (_, OnCrash::Rerun | OnCrash::Uncertain) => Meaning::Takeover,
        }
    }
}

/// The draft that a call tries before it has looked: right where nothing stands.
#[must_use]
pub fn first(claim: &Claim, version: Version) -> Draft {
    claim.fresh_claim(FencingToken::from_u64(0), version)
}

/// Tells whether `record` is what answers a call with these arguments: it is done, has not expired,
/// and was made of the same.
#[must_use]
pub fn replays(record: &Record, fingerprint: &Fingerprinted, now: Time) -> bool {
    record.state == State::Done
        && !record.is_expired(now)
        && record.subject.fingerprint == *fingerprint
}

/// Decides about a snapshot. `version` draws the version of the draft, if there is one.
///
/// The order is the protocol's: nothing, done, expired, other fingerprint, uncertain, parked,
/// released, my own, lease over, being undone, running.
#[must_use]
pub fn decide(
    claim: &Claim,
    snapshot: &Snapshot,
    version: impl FnOnce() -> Version,
) -> ClaimDecision {
    let Some(record) = &snapshot.record else {
        return ClaimDecision::Write {
            seen: None,
            draft: first(claim, version()),
            meaning: Meaning::Fresh,
        };
    };
    let write = |draft, meaning| ClaimDecision::Write {
        seen: Some(record.version),
        draft,
        meaning,
    };
    if replays(record, &claim.subject.fingerprint, snapshot.now) {
        return ClaimDecision::Replay(Arc::clone(record));
    }
    let is_expired = record.is_expired(snapshot.now);
    if is_expired && !claim.still_refuses(record, snapshot.now) {
        return write(claim.fresh_claim(record.token, version()), Meaning::Fresh);
    }
    if record.state != State::Released && record.subject.fingerprint != claim.subject.fingerprint {
        return ClaimDecision::KeyReused(Arc::clone(record));
    }
    let on_crash = record.on_crash.max(claim.on_crash);
    let can_reconcile = claim.on_crash == OnCrash::Reconcile && on_crash == OnCrash::Reconcile;
    match record.state {
        State::Done => ClaimDecision::Expired(Arc::clone(record)),
        State::Uncertain if can_reconcile => {
            write(claim.takeover(record, version()), Meaning::Reconcile)
        }
        State::Uncertain => ClaimDecision::Uncertain(Arc::clone(record)),
        State::Parked => ClaimDecision::Parked(Arc::clone(record)),
        State::Released => write(claim.fresh_claim(record.token, version()), Meaning::Fresh),
        State::Running | State::Undoing if record.attempt_id == claim.attempt_id => {
            ClaimDecision::Mine(Arc::clone(record))
        }
        State::Running | State::Undoing if !record.lease_is_over(snapshot.now) => {
            ClaimDecision::InProgress(Arc::clone(record), record.lease_end.since(snapshot.now))
        }
        State::Undoing if is_spent(record, claim.max_takeovers) => write(
            claim.mark_unsettled(record, State::Parked, on_crash, version()),
            Meaning::Park,
        ),
        State::Undoing => write(claim.takeover(record, version()), Meaning::Undo),
        State::Running if record.attempt_id == AttemptId::GIVEN_BACK => {
            write(claim.takeover(record, version()), Meaning::GoOn)
        }
        State::Running
            if on_crash == OnCrash::Uncertain
                || (on_crash == OnCrash::Reconcile && !can_reconcile) =>
        {
            write(
                claim.mark_unsettled(record, State::Uncertain, on_crash, version()),
                Meaning::LeaveUncertain,
            )
        }
        State::Running if is_spent(record, claim.max_takeovers) => write(
            claim.mark_unsettled(record, State::Parked, on_crash, version()),
            Meaning::Park,
        ),
        State::Running if can_reconcile => {
            write(claim.takeover(record, version()), Meaning::Reconcile)
        }
        State::Running => write(claim.takeover(record, version()), Meaning::Takeover),
    }
}

/// Whether as many holders vanished as the budget allows. A record that an operator resumed is
/// tried once more, whatever the budget is, and so is one that its holder gave back.
pub(super) fn is_spent(record: &Record, max_takeovers: u32) -> bool {
    let at_least = u32::from(record.attempt_id == AttemptId::RESUMED);
    let is_given_back = record.attempt_id == AttemptId::GIVEN_BACK;
    !is_given_back && record.attempt > max_takeovers.max(at_least)
}

impl Claim {
    /// Whether an expired record still binds its key. The time for which it is kept counts by the
    /// store's clock, and not by the purges, so that all stores answer alike.
    fn still_refuses(&self, record: &Record, now: Time) -> bool {
        self.on_expired == OnExpired::Refuse
            && record.state == State::Done
            && !record.is_forgettable(now, self.keep)
    }

    /// Begins a record: nothing that stood there before counts, except that tokens grow.
    fn fresh_claim(&self, token: FencingToken, version: Version) -> Draft {
        Draft {
            version,
            subject: Some(Arc::clone(&self.subject)),
            state: State::Running,
            token: TokenRule::Above(token),
            attempt: 1,
            attempt_id: self.attempt_id,
            holder: self.holder.clone(),
            on_crash: self.on_crash,
            lease: Moment::In(self.lease),
            expires: Moment::In(self.lease.saturating_add(self.ttl)),
            keep: self.keep,
            outcome: None,
            note: None,
        }
    }

    /// Claims again what this very claim won already, where the answer came so late that the lease
    /// is over.
    #[must_use]
    pub fn renew(&self, record: &Record, version: Version) -> Draft {
        Draft {
            attempt: record.attempt,
            ..self.takeover(record, version)
        }
    }

    /// The draft for when no caller waits any longer for the answer to this claim, which was sent
    /// over `seen`. The claim may stand, it may be under way and stand later, or it may be lost.
    /// `None` where it does not stand, and cannot any more.
    ///
    /// A claim that stands is given up as one whose body was never polled. A claim that may be
    /// under way is kept from standing by moving the version that it was sent over, and changing
    /// nothing else. If nothing stands, a released record does it, whatever the claim was sent over
    /// last: the first try of every claim is sent over nothing.
    #[must_use]
    pub fn give_up(
        &self,
        seen: Option<Version>,
        snapshot: &Snapshot,
        version: Version,
    ) -> Option<(Option<Version>, Draft)> {
        let Some(record) = &snapshot.record else {
            let released = Draft {
                state: State::Released,
                lease: Moment::In(Duration::ZERO),
                expires: Moment::In(self.lease),
                ..first(self, version)
            };
            return Some((None, released));
        };
        let draft = match record.state {
            _ if self.holds(record) => {
                let meaning = Meaning::won(record, self.goes_on);
                let holding = Holding::new(self, record.attempt, record.on_crash, meaning);
                let holding = holding.over(record);
                with_open_undos_of(record, holding.end(&Ending::Unpolled, version))
            }
            _ if seen == Some(record.version) => {
                self.mark_unsettled(record, record.state, record.on_crash, version)
            }
            _ => return None,
        };
        Some((Some(record.version), draft))
    }

    /// Tells whether it is this very claim that a record stands for.
    pub(crate) fn holds(&self, record: &Record) -> bool {
        matches!(record.state, State::Running | State::Undoing)
            && record.attempt_id == self.attempt_id
    }

    /// Goes on with a record whose holder vanished, forward or back.
    fn takeover(&self, record: &Record, version: Version) -> Draft {
        let (state, outcome) = match record.state {
            State::Undoing => (State::Undoing, record.outcome.clone()),
            _ => (State::Running, None),
        };
        let draft = Draft {
            subject: None,
            state,
            attempt: record.attempt.saturating_add(1),
            on_crash: record.on_crash.max(self.on_crash),
            outcome,
            ..self.fresh_claim(record.token, version)
        };
        with_open_undos_of(record, draft)
    }

    /// Leaves a record whose holder vanished to be settled. It keeps the attempt id, so that a
    /// holder that was only paused may still complete an uncertain one.
    fn mark_unsettled(
        &self,
        record: &Record,
        state: State,
        on_crash: OnCrash,
        version: Version,
    ) -> Draft {
        Draft {
            version,
            subject: None,
            state,
            token: TokenRule::Keep,
            attempt: record.attempt,
            attempt_id: record.attempt_id,
            holder: record.holder.clone(),
            on_crash,
            lease: Moment::Keep,
            expires: Moment::Keep,
            keep: self.keep,
            outcome: record.outcome.clone(),
            note: None,
        }
    }
}

/// Keeps a record from expiring whose steps have open undos.
pub(super) fn with_open_undos_of(record: &Record, draft: Draft) -> Draft {
    match record.has_open_undos() {
        true => draft.with_open_undos(),
        false => draft,
    }
}
