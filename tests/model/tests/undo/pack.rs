//! The small forms of the model, and what the runtime knows in their place: whatever decides is the
//! runtime's.

use std::{sync::Arc, time::Duration};

use idempotent_runtime::{
    policy::OnCrash,
    protocol::{self, Claim, Ending, Holding, Meaning},
    record::{
        self, Moment, RawOutcome, Record, Step, StepName, StepState, TokenRule, Version,
        WHILE_UNDOS_ARE_OPEN,
    },
    store::Snapshot,
};
use model::call::{
    self, CURRENT, NOW, STALE, arguments, attempt, attempt_name, holder, small, subject, token,
    token_name,
};

use crate::world::{Ahead, Cell, Draft, End, Expiry, Held, Name, Outcome, Row, Seen};

pub(crate) fn claim(by: Name, goes_on: bool) -> Claim {
    call::claim(by, OnCrash::Rerun, goes_on)
}

/// The error of the call.
pub(crate) fn error() -> RawOutcome {
    RawOutcome::error(Vec::new())
}

impl Outcome {
    fn of(outcome: Option<&RawOutcome>) -> Self {
        match outcome {
            None => Outcome::None,
            Some(outcome) if outcome.is_error() => Outcome::Error,
            Some(_) => Outcome::Value,
        }
    }

    fn raw(self) -> Option<RawOutcome> {
        match self {
            Outcome::None => None,
            Outcome::Value => Some(RawOutcome::value(Vec::new())),
            Outcome::Error => Some(error()),
        }
    }
}

impl Expiry {
    fn of(duration: Duration) -> Self {
        let rest = duration.checked_sub(WHILE_UNDOS_ARE_OPEN);
        Self {
            ahead: rest.unwrap_or(duration).as_micros() as Ahead,
            open: rest.is_some(),
        }
    }

    fn duration(self) -> Duration {
        let open = if self.open {
            WHILE_UNDOS_ARE_OPEN
        } else {
            Duration::ZERO
        };
        open + micros(self.ahead)
    }
}

fn micros(ahead: Ahead) -> Duration {
    Duration::from_micros(ahead.into())
}

/// The answer of a store that is asked.
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
            lease: record.lease_end.since(NOW).as_micros() as Ahead,
            expires: Expiry::of(record.expires.since(NOW)),
            outcome: Outcome::of(record.outcome.as_ref()),
        }
    }

    pub(crate) fn record(self) -> Record {
        let mut record = Record::new(subject(), CURRENT, NOW);
        record.state = self.state;
        record.token = token(self.token);
        record.attempt = self.number.into();
        record.attempt_id = attempt(self.attempt);
        record.holder = holder();
        record.lease_end = NOW.plus(micros(self.lease));
        record.expires = NOW.plus(self.expires.duration());
        record.outcome = self.outcome.raw();
        record
    }
}

impl Draft {
    pub(crate) fn of(draft: &record::Draft) -> Self {
        let length = |moment| match moment {
            Moment::Keep => None,
            Moment::In(duration) => Some(duration),
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
            lease: length(draft.lease).map(|length| length.as_micros() as Ahead),
            expires: length(draft.expires).map(Expiry::of),
            outcome: Outcome::of(draft.outcome.as_ref()),
        }
    }

    pub(crate) fn draft(self) -> record::Draft {
        let moment = |length: Option<Duration>| length.map_or(Moment::Keep, Moment::In);
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
            on_crash: OnCrash::Rerun,
            lease: moment(self.lease.map(micros)),
            expires: moment(self.expires.map(Expiry::duration)),
            keep: Duration::ZERO,
            outcome: self.outcome.raw(),
            note: None,
        }
    }
}

impl Row {
    fn version(self) -> Version {
        let state = self.state.code();
        Version::from_u128(u128::from(self.attempt) << 8 | u128::from(state))
    }

    /// The step as a store gives it back.
    pub(crate) fn step(self, place: usize) -> Arc<Step> {
        let ended = matches!(self.state, StepState::Done | StepState::Undone);
        Arc::new(Step {
            name: StepName::from_bytes([place as u8; 32]),
            label: Arc::clone(&holder().label),
            version: self.version(),
            state: self.state,
            attempt_id: attempt(self.attempt),
            on_crash: OnCrash::Rerun,
            fingerprint: arguments().clone(),
            outcome: ended.then(|| RawOutcome::value(Vec::new())),
            undo: Some(self.number.into()),
            note: None,
        })
    }
}

impl Held {
    pub(crate) fn holding(&self) -> Holding {
        let claim = claim(self.attempt, false);
        let number = self.number.into();
        let holding = Holding::new(&claim, number, OnCrash::Rerun, self.meaning);
        match self.undoing {
            true => holding.undoing(error()),
            false => holding,
        }
    }
}

impl End {
    /// The name that the runtime has for it.
    pub(crate) fn ending(self) -> Ending {
        match self {
            End::Value => Ending::Done(RawOutcome::value(Vec::new())),
            End::Error => Ending::Done(error()),
            End::Undo => Ending::Undo(error()),
            End::NotUndone => Ending::NotUndone,
            End::Release => Ending::Release,
            End::GiveBack => Ending::GiveBack,
            End::Stopped => Ending::Stopped,
            End::LeftToUndo => Ending::LeftToUndo(error()),
            End::Left => Ending::Left,
        }
    }
}

#[test]
fn packing_loses_nothing_that_a_decision_depends_on() {
    let claim = claim(7, true);
    let first = protocol::first(&claim, CURRENT);
    let stands = first.apply(None, NOW);
    assert_eq!(Cell::of(&stands).record(), stands);
    let forward = Holding::new(&claim, 2, claim.on_crash, Meaning::GoOn);
    let endings = [
        End::Value,
        End::Error,
        End::Undo,
        End::NotUndone,
        End::Release,
        End::GiveBack,
        End::Stopped,
        End::LeftToUndo,
        End::Left,
    ];
    for holding in [forward.clone(), forward.undoing(error())] {
        let ends = endings.map(|end| holding.end(&end.ending(), CURRENT));
        for draft in ends.into_iter().chain([holding.heartbeat(CURRENT)]) {
            for draft in [draft.clone(), draft.with_open_undos()] {
                assert_eq!(Draft::of(&draft).draft(), draft);
                // When a call ended is for people.
                let mut stands = draft.apply(Some(&stands), NOW);
                stands.finished = None;
                assert_eq!(Cell::of(&stands).record(), stands);
            }
        }
    }
}
