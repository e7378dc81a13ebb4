//! The small forms of the model, and the forms that the runtime knows in their place. All code that
//! decides is the runtime's.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use idempotent_runtime::{
    fingerprint::{ArgumentDigests, Fingerprint, Fingerprinted},
    protocol::{self, Claim, Ending, Holding},
    record::{
        self, AttemptId, FencingToken, Holder, Moment, RawOutcome, Record, Subject, Time,
        TokenRule, Version,
    },
    store::Snapshot,
};

use crate::world::{Ahead, Caller, Cell, Draft, End, Held, NONE, Name, RESUMED, TICK};

/// The time by the store's clock, whatever happened before.
pub(crate) const NOW: Time = Time::from_micros(100);
/// A token below the clock is as good as any other.
const LOWEST_TOKEN: u64 = 99;
pub(crate) const LEASE: Duration = Duration::from_micros(2 * TICK as u64);
pub(crate) const TTL: Duration = Duration::from_micros(TICK as u64);
pub(crate) const TAKEOVERS: u32 = 1;

pub(crate) fn claim(caller: Caller, attempt_id: Name) -> Claim {
    Claim {
        subject: subject(caller.arguments),
        attempt_id: attempt(attempt_id),
        holder: holder(),
        on_crash: caller.on_crash,
        lease: LEASE,
        ttl: TTL,
        keep: Duration::ZERO,
        on_expired: idempotent_runtime::policy::OnExpired::Run,
        max_takeovers: TAKEOVERS,
        numbered: None,
        goes_on: false,
    }
}

fn subject(arguments: u8) -> Arc<Subject> {
    static SUBJECTS: LazyLock<[Arc<Subject>; 2]> = LazyLock::new(|| {
        [0, 1].map(|arguments| {
            let fingerprint = Fingerprinted::stored(
                Fingerprint::from_bytes([arguments; 32]),
                ArgumentDigests::default(),
            );
            Arc::new(Subject {
                operation: "model".into(),
                scope: Vec::new(),
                key: Vec::new(),
                fingerprint,
            })
        })
    });
    Arc::clone(&SUBJECTS[usize::from(arguments)])
}

fn holder() -> Holder {
    static HOLDER: LazyLock<Holder> = LazyLock::new(|| Holder {
        label: "worker".into(),
        trace_parent: None,
    });
    HOLDER.clone()
}

pub(crate) fn outcome(of: Name) -> RawOutcome {
    RawOutcome::value(vec![of])
}

pub(crate) fn outcome_of(outcome: Option<&RawOutcome>) -> Name {
    outcome.map_or(NONE, |outcome| outcome.bytes[0])
}

pub(crate) fn version(name: Name) -> Version {
    Version::from_u128(u128::from(name))
}

/// Those that the runtime knows by name are no attempt of a worker.
pub(crate) fn attempt(name: Name) -> AttemptId {
    match name {
        NONE => AttemptId::NOBODY,
        RESUMED => AttemptId::RESUMED,
        drawn => AttemptId::from_u128(u128::from_be_bytes([drawn; 16])),
    }
}

fn attempt_name(attempt_id: AttemptId) -> Name {
    match attempt_id {
        AttemptId::RESUMED => RESUMED,
        drawn => drawn.to_bytes()[0],
    }
}

pub(crate) fn name(version: Version) -> Name {
    version.to_bytes()[15]
}

pub(crate) fn attempt_number(attempt: u32) -> u8 {
    u8::try_from(attempt).expect("a record sees few attempts")
}

pub(crate) fn ahead(time: Time) -> Ahead {
    time.since(NOW).as_micros() as Ahead
}

fn token_ahead(token: FencingToken) -> Ahead {
    token.as_u64().saturating_sub(LOWEST_TOKEN) as Ahead
}

fn token(ahead: Ahead) -> FencingToken {
    FencingToken::from_u64(LOWEST_TOKEN + u64::from(ahead))
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

impl Cell {
    pub(crate) fn of(record: &Record) -> Self {
        Self {
            arguments: record.subject.fingerprint.fingerprint().as_bytes()[0],
            state: record.state,
            version: name(record.version),
            token: token_ahead(record.token),
            attempt: attempt_number(record.attempt),
            attempt_id: attempt_name(record.attempt_id),
            on_crash: record.on_crash,
            lease: ahead(record.lease_end),
            expires: ahead(record.expires),
            outcome: outcome_of(record.outcome.as_ref()),
        }
    }

    pub(crate) fn record(self) -> Record {
        let begins = Draft {
            version: self.version,
            begins: Some(self.arguments),
            state: self.state,
            above: None,
            attempt: self.attempt,
            attempt_id: self.attempt_id,
            on_crash: self.on_crash,
            lease: None,
            expires: None,
            outcome: self.outcome,
        };
        let mut record = begins.draft().apply(None, NOW);
        record.token = token(self.token);
        record.lease_end = time(self.lease);
        record.expires = time(self.expires);
        record
    }

    pub(crate) fn is_expired(self) -> bool {
        self.record().is_expired(NOW)
    }
}

impl Draft {
    pub(crate) fn of(draft: &record::Draft) -> Self {
        let length = |moment| match moment {
            Moment::Keep => None,
            Moment::In(duration) => Some(duration.as_micros() as Ahead),
        };
        Self {
            version: name(draft.version),
            begins: draft
                .subject
                .as_ref()
                .map(|subject| subject.fingerprint.fingerprint().as_bytes()[0]),
            state: draft.state,
            above: match draft.token {
                TokenRule::Keep => None,
                TokenRule::Above(floor) => Some(token_ahead(floor)),
            },
            attempt: attempt_number(draft.attempt),
            attempt_id: attempt_name(draft.attempt_id),
            on_crash: draft.on_crash,
            lease: length(draft.lease),
            expires: length(draft.expires),
            outcome: outcome_of(draft.outcome.as_ref()),
        }
    }

    pub(crate) fn draft(self) -> record::Draft {
        let moment = |length: Option<Ahead>| {
            length.map_or(Moment::Keep, |length| {
                Moment::In(Duration::from_micros(u64::from(length)))
            })
        };
        record::Draft {
            version: version(self.version),
            subject: self.begins.map(subject),
            state: self.state,
            token: self
                .above
                .map_or(TokenRule::Keep, |floor| TokenRule::Above(token(floor))),
            attempt: u32::from(self.attempt),
            attempt_id: attempt(self.attempt_id),
            holder: holder(),
            on_crash: self.on_crash,
            lease: moment(self.lease),
            expires: moment(self.expires),
            keep: Duration::ZERO,
            outcome: (self.outcome != NONE).then(|| outcome(self.outcome)),
            note: None,
        }
    }
}

impl Held {
    pub(crate) fn holding(self, caller: Caller) -> Holding {
        let claim = claim(caller, self.attempt_id);
        Holding::new(&claim, u32::from(self.attempt), self.on_crash, self.meaning)
    }

    pub(crate) fn refused_heartbeat(self, caller: Caller, cell: Option<Cell>) -> protocol::Beat {
        self.holding(caller).refused_heartbeat(&snapshot(cell))
    }
}

impl End {
    /// The runtime's name for it, where `holder` ends so.
    pub(crate) fn ending(self, holder: Name) -> Ending {
        match self {
            End::Done => Ending::Done(outcome(holder)),
            End::Release => Ending::Release,
            End::Uncertain => Ending::Uncertain,
            End::Unpolled => Ending::Unpolled,
            End::Stopped => Ending::Stopped,
        }
    }
}

#[test]
fn packing_loses_nothing_that_a_decision_depends_on() {
    let caller = Caller {
        arguments: 1,
        on_crash: idempotent_runtime::policy::OnCrash::Reconcile,
    };
    let claim = claim(caller, 3);
    let first = protocol::first(&claim, version(4));
    assert_eq!(
        Draft::of(&first).draft().apply(None, NOW),
        first.apply(None, NOW)
    );
    let stands = first.apply(None, NOW);
    assert_eq!(Cell::of(&stands).record(), stands);
    for meaning in [
        protocol::Meaning::Fresh,
        protocol::Meaning::Takeover,
        protocol::Meaning::Reconcile,
    ] {
        let holding = Holding::new(&claim, 2, claim.on_crash, meaning);
        let ends = [
            End::Done,
            End::Release,
            End::Uncertain,
            End::Unpolled,
            End::Stopped,
        ];
        let drafts = ends.map(|end| holding.end(&end.ending(3), version(5)));
        for draft in drafts.iter().chain([&holding.heartbeat(version(5))]) {
            assert_eq!(Draft::of(draft).draft(), *draft);
            let stands = draft.apply(Some(&stands), NOW);
            assert_eq!(Cell::of(&stands).record(), stands);
        }
    }
}
