//! How a claim decides, beside a number that stands and at rest.

use std::time::Duration;

use super::{
    Claim, Decision, Draft, Ending, Gaps, Holding, Last, Meaning, Passed, Running, Standing, Stream,
};
use crate::{
    policy::OnCrash,
    record::{FencingToken, Moment, Time, TokenRule, Version},
};

impl Claim {
    /// Decides beside a number that was begun. This claim's is larger than the last one.
    pub(super) fn beside(
        &self,
        stream: &Stream,
        running: &Running,
        now: Time,
        version: Version,
    ) -> Decision {
        let is_same = self.number == running.number;
        if is_same && running.fingerprint != self.fingerprint {
            return Decision::KeyReused;
        }
        match running.state {
            Standing::Uncertain => return Decision::Uncertain(running.number),
            Standing::Parked => return Decision::Parked(running.number),
            Standing::Running if is_same && stream.attempt_id == self.attempt_id => {
                return Decision::Mine;
            }
            Standing::Running if !stream.lease_is_over(now) => {
                return Decision::InProgress(running.number, stream.lease_end.since(now));
            }
            Standing::Running => {}
        }
        self.beside_abandoned(stream, running, version)
    }

    /// Decides beside a number whose holder vanished.
    fn beside_abandoned(&self, stream: &Stream, running: &Running, version: Version) -> Decision {
        let on_crash = running.on_crash.max(self.on_crash);
        let marks = |state, meaning| {
            let running = Some(Running {
                state,
                on_crash,
                ..*running
            });
            let draft = Draft {
                running,
                ..stream.touched(version)
            };
            write(stream, draft, meaning)
        };
        let takes = |draft| write(stream, draft, Meaning::Takeover);
        if on_crash != OnCrash::Rerun {
            marks(Standing::Uncertain, Meaning::LeaveUncertain)
        } else if self.gaps == Gaps::Accept && self.number > running.number {
            takes(self.pass(stream, running, version))
        } else if running.is_spent(stream.attempt_id, self.max_takeovers) {
            marks(Standing::Parked, Meaning::Park)
        } else if self.number == running.number {
            takes(self.take_over(stream, running, version))
        } else if self.number < running.number {
            Decision::Overtaken(running.number)
        } else {
            self.gap(running.number)
        }
    }

    /// Decides where no number stands that was begun. `last` says whether the last number still
    /// counts.
    pub(super) fn at_rest(
        &self,
        stream: Option<&Stream>,
        last: Last,
        version: Version,
    ) -> Decision {
        let counted = stream.filter(|_| last == Last::Keep);
        let ended = counted.and_then(|stream| stream.last);
        // This number is above the last one, so that neither sum can overflow.
        let expected = match (self.gaps, ended) {
            (Gaps::Accept, _) => self.number,
            (_, Some(last)) => last.number + 1,
            (Gaps::Refuse(first) | Gaps::Wait(first), None) => first,
        };
        if self.number > expected {
            return self.gap(expected);
        }
        if self.number < expected {
            return Decision::Past { last: expected - 1 };
        }
        Decision::Write {
            seen: stream.map(|stream| stream.version),
            draft: self.begin(stream, last, version),
            meaning: Meaning::Fresh,
        }
    }

    /// The draft for when no caller waits any longer for the answer to this claim, which was sent
    /// over `seen`. The claim may stand, it may stand later, or it is lost. `None` where it does
    /// not stand, and cannot any more.
    ///
    /// A claim that stands is given up as a number whose body was never polled. A claim that may be
    /// under way is kept from standing by moving the version that it was sent over.
    #[must_use]
    pub fn give_up(
        &self,
        seen: Option<Version>,
        stream: Option<&Stream>,
        version: Version,
    ) -> Option<(Option<Version>, Draft)> {
        let Some(stream) = stream else {
            let released = Draft {
                running: None,
                lease: Moment::In(Duration::ZERO),
                ..self.begin(None, Last::Keep, version)
            };
            return Some((None, released));
        };
        let draft = match Holding::standing(self, stream) {
            Some(holding) => holding.end(&Ending::Unpolled, version),
            None if seen == Some(stream.version) => stream.touched(version),
            None => return None,
        };
        Some((Some(stream.version), draft))
    }

    /// Claims again what this very claim won already, where the answer came so late that the lease
    /// is over.
    #[must_use]
    pub fn renew(&self, stream: &Stream, version: Version) -> Draft {
        Draft {
            running: stream.running,
            ..self.begin(Some(stream), Last::Keep, version)
        }
    }

    fn gap(&self, expected: u64) -> Decision {
        match self.gaps {
            Gaps::Wait(_) => Decision::AwaitGap { expected },
            Gaps::Refuse(_) | Gaps::Accept => Decision::Gap { expected },
        }
    }

    /// Begins this number.
    fn begin(&self, stream: Option<&Stream>, last: Last, version: Version) -> Draft {
        let token = stream.map_or(FencingToken::from_u64(0), |stream| stream.token);
        Draft {
            version,
            token: TokenRule::Above(token),
            last,
            running: Some(Running {
                number: self.number,
                fingerprint: self.fingerprint,
                state: Standing::Running,
                on_crash: self.on_crash,
                takeovers: 0,
                passed: None,
            }),
            attempt_id: self.attempt_id,
            lease: Moment::In(self.lease),
            expires: self
                .expires_after
                .map(|after| Moment::In(self.lease.saturating_add(after))),
        }
    }

    /// Begins this number in the place of a smaller one, whose holder vanished.
    fn pass(&self, stream: &Stream, running: &Running, version: Version) -> Draft {
        let begun = self.begin(Some(stream), Last::Keep, version);
        let passed = Some(Passed {
            number: running.number,
            fingerprint: running.fingerprint,
            takeovers: running.takeovers,
        });
        Draft {
            running: begun.running.map(|running| Running { passed, ..running }),
            ..begun
        }
    }

    /// Goes on with this number, whose holder vanished.
    fn take_over(&self, stream: &Stream, running: &Running, version: Version) -> Draft {
        Draft {
            running: Some(Running {
                takeovers: running.takeovers.saturating_add(1),
                ..*running
            }),
            ..self.begin(Some(stream), Last::Keep, version)
        }
    }
}

fn write(stream: &Stream, draft: Draft, meaning: Meaning) -> Decision {
    Decision::Write {
        seen: Some(stream.version),
        draft,
        meaning,
    }
}
