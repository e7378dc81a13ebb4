//! The small forms of the model, and the forms that the runtime knows in their place. All code that
//! decides is the runtime's.

use std::{sync::Arc, time::Duration};

use idempotent_runtime::{
    policy::OnCrash,
    protocol::{self, Ending, Holding},
    record::{
        self, Moment, RawOutcome, Record, Step, StepName, StepState, Time, TokenRule, Version,
    },
    store::Snapshot,
};
use model::call::{
    CURRENT, NOW, STALE, arguments, attempt, attempt_name, claim, holder, small, subject, token,
    token_name,
};

use crate::world::{Ahead, Cell, Draft, End, Held, NONE, STEPS, Seen, StepCell, StepVersion};

fn outcome(values: [StepVersion; STEPS]) -> RawOutcome {
    RawOutcome::value(values.to_vec())
}

fn values(outcome: Option<&RawOutcome>) -> [StepVersion; STEPS] {
    outcome.map_or([NONE; STEPS], |outcome| {
        [outcome.bytes[0], outcome.bytes[1]]
    })
}

fn ahead(time: Time) -> Ahead {
    time.since(NOW).as_micros() as Ahead
}

fn time(ahead: Ahead) -> Time {
    NOW.plus(Duration::from_micros(u64::from(ahead)))
}

/// The record that stands, as the store tells it.
pub(crate) fn snapshot(cell: Option<Cell>) -> Snapshot {
    Snapshot {
        now: NOW,
        record: cell.map(|cell| Arc::new(cell.record())),
    }
}

impl Seen {
    pub(crate) fn version(self) -> Option<Version> {
        match self {
            Seen::Nothing => None,
            Seen::Current => Some(CURRENT),
            Seen::Stale => Some(STALE),
        }
    }
}

impl Cell {
    pub(crate) fn of(record: &Record) -> Self {
        Self {
            state: record.state,
            token: token_name(record.token),
            number: small(record.attempt),
            attempt: attempt_name(record.attempt_id),
            on_crash: record.on_crash,
            lease: ahead(record.lease_end),
            expires: ahead(record.expires),
            outcome: values(record.outcome.as_ref()),
        }
    }

    pub(crate) fn record(self) -> Record {
        let mut record = Record::new(subject(), CURRENT, NOW);
        record.state = self.state;
        record.token = token(self.token);
        record.attempt = self.number.into();
        record.attempt_id = attempt(self.attempt);
        record.holder = holder();
        record.on_crash = self.on_crash;
        record.lease_end = time(self.lease);
        record.expires = time(self.expires);
        record.outcome = (self.outcome != [NONE; STEPS]).then(|| outcome(self.outcome));
        record
    }
}

impl Draft {
    pub(crate) fn of(draft: &record::Draft) -> Self {
        let length = |moment| match moment {
            Moment::Keep => None,
            Moment::In(duration) => Some(duration.as_micros() as Ahead),
        };
        Self {
            begins: draft.subject.is_some(),
            state: draft.state,
            above: match draft.token {
                TokenRule::Keep => None,
                TokenRule::Above(floor) => Some(token_name(floor)),
            },
            number: small(draft.attempt),
            attempt: attempt_name(draft.attempt_id),
            on_crash: draft.on_crash,
            lease: length(draft.lease),
            expires: length(draft.expires),
            outcome: values(draft.outcome.as_ref()),
        }
    }

    pub(crate) fn draft(self) -> record::Draft {
        let moment = |length: Option<Ahead>| {
            length.map_or(Moment::Keep, |length| {
                Moment::In(Duration::from_micros(u64::from(length)))
            })
        };
        record::Draft {
            version: CURRENT,
            subject: self.begins.then(subject),
            state: self.state,
            token: self
                .above
                .map_or(TokenRule::Keep, |floor| TokenRule::Above(token(floor))),
            attempt: self.number.into(),
            attempt_id: attempt(self.attempt),
            holder: holder(),
            on_crash: self.on_crash,
            lease: moment(self.lease),
            expires: moment(self.expires),
            keep: Duration::ZERO,
            outcome: (self.outcome != [NONE; STEPS]).then(|| outcome(self.outcome)),
            note: None,
        }
    }
}

impl StepCell {
    /// The step as a store gives it back.
    pub(crate) fn step(self, number: usize, on_crash: OnCrash) -> Arc<Step> {
        Arc::new(Step {
            name: StepName::from_bytes([small(number as u32); 32]),
            label: Arc::clone(&holder().label),
            version: Version::from_u128(self.version().into()),
            state: self.state,
            attempt_id: attempt(self.attempt),
            on_crash,
            fingerprint: arguments().clone(),
            outcome: (self.state == StepState::Done)
                .then(|| RawOutcome::value(vec![self.version()])),
            undo: None,
            note: None,
        })
    }
}

/// The name behind a version of a step.
pub(crate) fn step_version(version: Version) -> StepVersion {
    version.to_bytes()[15]
}

impl Held {
    pub(crate) fn holding(&self, on_crash: OnCrash) -> Holding {
        let claim = claim(self.attempt, on_crash, false);
        Holding::new(&claim, self.number.into(), self.on_crash, self.meaning)
    }

    /// The runtime's name for it, where this holder ends so.
    pub(crate) fn ending(&self, end: End) -> Ending {
        match end {
            End::Done => Ending::Done(outcome(self.values)),
            End::Release => Ending::Release,
            End::GiveBack => Ending::GiveBack,
            End::Uncertain => Ending::Uncertain,
            End::Unpolled => Ending::Unpolled,
            End::Stopped => Ending::Stopped,
        }
    }
}

#[test]
fn packing_loses_nothing_that_a_decision_depends_on() {
    let claim = claim(7, OnCrash::Uncertain, true);
    let first = protocol::first(&claim, CURRENT);
    assert_eq!(
        Draft::of(&first).draft(),
        record::Draft {
            token: TokenRule::Above(token(0)),
            ..first.clone()
        }
    );
    let stands = first.apply(None, NOW);
    assert_eq!(Cell::of(&stands).record(), stands);
    let holding = Holding::new(&claim, 2, claim.on_crash, protocol::Meaning::GoOn);
    let endings = [
        Ending::Done(outcome([8, 9])),
        Ending::Release,
        Ending::GiveBack,
        Ending::Uncertain,
        Ending::Unpolled,
        Ending::Stopped,
    ];
    for draft in endings.map(|ending| holding.end(&ending, CURRENT)) {
        assert_eq!(Draft::of(&draft).draft(), draft);
        // The time at which a call ended is for people.
        let mut stands = draft.apply(Some(&stands), NOW);
        stands.finished = None;
        assert_eq!(Cell::of(&stands).record(), stands);
    }
}
