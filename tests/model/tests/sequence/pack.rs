//! The small forms of the model, and the forms that the runtime knows in their place. All code that
//! decides is the runtime's.

use std::time::Duration;

use idempotent_runtime::{
    fingerprint::Fingerprint,
    policy::OnCrash,
    protocol::sequence::{
        Applied, BegunNumber, CopyAnswer, Gaps, Passed, Stream, StreamClaim, StreamEnding,
        StreamHolding,
    },
    record::{AttemptId, FencingToken, OutcomeKind, Time, Version},
};

use crate::world::{Cell, End, Held, Owner, Run, Seen};

/// The time by the store's clock, whatever happened before.
pub(crate) const NOW: Time = Time::from_micros(0);
pub(crate) const LEASE: Duration = Duration::from_micros(1);
pub(crate) const TAKEOVERS: u32 = 1;

const CURRENT: Version = Version::from_u128(1);
const STALE: Version = Version::from_u128(2);
/// A version that is not in use yet.
pub(crate) const FRESH: Version = Version::from_u128(3);

/// The attempt that the record stands for, and any other one.
const OWNER: AttemptId = AttemptId::from_u128(100);
const OTHER: AttemptId = AttemptId::from_u128(200);

/// The choice of the workers, all alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub(crate) gaps: Gaps,
    pub(crate) on_crash: OnCrash,
}

fn fingerprint(number: u64) -> Fingerprint {
    Fingerprint::from_bytes([small(number); 32])
}

pub(crate) fn small(number: u64) -> u8 {
    u8::try_from(number).expect("numbers are small here")
}

impl Choice {
    pub(crate) fn claim(self, number: u8, owns: bool) -> StreamClaim {
        StreamClaim {
            number: number.into(),
            fingerprint: fingerprint(number.into()),
            attempt_id: if owns { OWNER } else { OTHER },
            gaps: self.gaps,
            on_crash: self.on_crash,
            lease: LEASE,
            expires_after: None,
            max_takeovers: TAKEOVERS,
        }
    }

    /// The runtime's form of a holding.
    pub(crate) fn holding(self, held: &Held, owns: bool) -> StreamHolding {
        let claim = self.claim(held.run.number, owns);
        let stream = Stream {
            version: CURRENT,
            token: FencingToken::from_u64(held.token.into()),
            last: None,
            running: Some(held.run.running()),
            attempt_id: claim.attempt_id,
            lease_end: NOW,
            expires: None,
        };
        StreamHolding::standing(&claim, &stream).expect("it was made of this claim")
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

impl Run {
    fn running(self) -> BegunNumber {
        BegunNumber {
            number: self.number.into(),
            fingerprint: fingerprint(self.number.into()),
            state: self.state,
            on_crash: self.on_crash,
            takeovers: self.takeovers.into(),
            passed: self.passed.map(|(number, takeovers)| Passed {
                number: number.into(),
                fingerprint: fingerprint(number.into()),
                takeovers: takeovers.into(),
            }),
        }
    }

    fn of(running: BegunNumber) -> Self {
        Self {
            number: small(running.number),
            state: running.state,
            on_crash: running.on_crash,
            takeovers: small(running.takeovers.into()),
            passed: running
                .passed
                .map(|passed| (small(passed.number), small(passed.takeovers.into()))),
        }
    }
}

impl Cell {
    pub(crate) fn stream(self) -> Stream {
        let answer = if self.skipped {
            CopyAnswer::Skipped
        } else {
            CopyAnswer::Recorded(OutcomeKind::Value)
        };
        let number = u64::from(self.last);
        Stream {
            version: CURRENT,
            token: FencingToken::from_u64(self.token.into()),
            last: (number > 0).then(|| Applied {
                number,
                fingerprint: fingerprint(number),
                answer,
            }),
            running: self.running.map(Run::running),
            attempt_id: match self.owner {
                Owner::Nobody => AttemptId::NOBODY,
                Owner::Resumed => AttemptId::RESUMED,
                Owner::Somebody => OWNER,
            },
            lease_end: if self.live { NOW.plus(LEASE) } else { NOW },
            expires: None,
        }
    }

    pub(crate) fn of(stream: &Stream) -> Self {
        Self {
            last: stream.last.map_or(0, |last| small(last.number)),
            skipped: stream
                .last
                .is_some_and(|last| last.answer == CopyAnswer::Skipped),
            running: stream.running.map(Run::of),
            owner: match stream.attempt_id {
                AttemptId::NOBODY => Owner::Nobody,
                AttemptId::RESUMED => Owner::Resumed,
                _ => Owner::Somebody,
            },
            token: small(stream.token.as_u64()),
            live: !stream.lease_is_over(NOW),
        }
    }
}

/// Whether a draft or a stream of this attempt begins one that the record did not stand for.
pub(crate) fn is_new(attempt_id: AttemptId) -> bool {
    attempt_id == OTHER
}

impl End {
    pub(crate) fn ending(self) -> StreamEnding {
        match self {
            // An error moves the number as a value does; which of them it is, the watch remembers.
            End::Done | End::Failed => StreamEnding::Done(OutcomeKind::Value),
            End::Release => StreamEnding::Release,
            End::Uncertain => StreamEnding::Uncertain,
            End::Unpolled => StreamEnding::Unpolled,
            End::Stopped => StreamEnding::Stopped,
        }
    }
}
