//! How a claim decides, beside a number that stands and at rest.

use std::time::Duration;

use super::{
    BegunNumber, Gaps, LastChange, NumberState, Passed, Stream, StreamClaim, StreamDecision,
    StreamDraft, StreamEnding, StreamHolding, StreamMeaning,
};
use crate::{
    policy::OnCrash,
    record::{FencingToken, Moment, Time, TokenRule, Version},
};

impl StreamClaim {
    /// Decides beside a number that was begun. This claim's is larger than the last one.
    pub(super) fn beside(
        &self,
        stream: &Stream,
        running: &BegunNumber,
        now: Time,
        version: Version,
    ) -> StreamDecision {
        let is_same = self.number == running.number;
        if is_same && running.fingerprint != self.fingerprint {
            return StreamDecision::KeyReused;
        }
        match running.state {
            NumberState::Uncertain => return StreamDecision::Uncertain(running.number),
            NumberState::Parked => return StreamDecision::Parked(running.number),
            NumberState::Running if is_same && stream.attempt_id == self.attempt_id => {
                return StreamDecision::Mine;
            }
            NumberState::Running if !stream.lease_is_over(now) => {
                return StreamDecision::InProgress(running.number, stream.lease_end.since(now));
            }
            NumberState::Running => {}
        }
        self.beside_abandoned(stream, running, version)
    }

    /// Decides beside a number whose holder vanished.
    fn beside_abandoned(
        &self,
        stream: &Stream,
        running: &BegunNumber,
        version: Version,
    ) -> StreamDecision {
        let on_crash = running.on_crash.max(self.on_crash);
        let marks = |state, meaning| {
            let running = Some(BegunNumber {
                state,
                on_crash,
                ..*running
            });
            let draft = StreamDraft {
                running,
                ..stream.touched(version)
            };
            write(stream, draft, meaning)
        };
        let takes = |draft| write(stream, draft, StreamMeaning::Takeover);
        if on_crash != OnCrash::Rerun {
            marks(NumberState::Uncertain, StreamMeaning::LeaveUncertain)
        } else if self.gaps == Gaps::Accept && self.number > running.number {
            takes(self.pass(stream, running, version))
        } else if running.is_spent(stream.attempt_id, self.max_takeovers) {
            marks(NumberState::Parked, StreamMeaning::Park)
        } else if self.number == running.number {
            takes(self.take_over(stream, running, version))
        } else if self.number < running.number {
            StreamDecision::Overtaken(running.number)
        } else {
            self.gap(running.number)
        }
    }

    /// Decides where no number stands that was begun. `last` says whether the last number still
    /// counts.
    pub(super) fn at_rest(
        &self,
        stream: Option<&Stream>,
        last: LastChange,
        version: Version,
    ) -> StreamDecision {
        let counted = stream.filter(|_| last == LastChange::Keep);
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
            return StreamDecision::Past { last: expected - 1 };
        }
        StreamDecision::Write {
            seen: stream.map(|stream| stream.version),
            draft: self.begin(stream, last, version),
            meaning: StreamMeaning::Fresh,
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
    ) -> Option<(Option<Version>, StreamDraft)> {
        let Some(stream) = stream else {
            let released = StreamDraft {
                running: None,
                lease: Moment::In(Duration::ZERO),
                ..self.begin(None, LastChange::Keep, version)
            };
            return Some((None, released));
        };
        let draft = match StreamHolding::standing(self, stream) {
            Some(holding) => holding.end(&StreamEnding::Unpolled, version),
            None if seen == Some(stream.version) => stream.touched(version),
            None => return None,
        };
        Some((Some(stream.version), draft))
    }

    /// Claims again what this very claim won already, where the answer came so late that the lease
    /// is over.
    #[must_use]
    pub fn renew(&self, stream: &Stream, version: Version) -> StreamDraft {
        StreamDraft {
            running: stream.running,
            ..self.begin(Some(stream), LastChange::Keep, version)
        }
    }

    fn gap(&self, expected: u64) -> StreamDecision {
        match self.gaps {
            Gaps::Wait(_) => StreamDecision::AwaitGap { expected },
            Gaps::Refuse(_) | Gaps::Accept => StreamDecision::Gap { expected },
        }
    }

    /// Begins this number.
    fn begin(&self, stream: Option<&Stream>, last: LastChange, version: Version) -> StreamDraft {
        let token = stream.map_or(FencingToken::from_u64(0), |stream| stream.token);
        StreamDraft {
            version,
            token: TokenRule::Above(token),
            last,
            running: Some(BegunNumber {
                number: self.number,
                fingerprint: self.fingerprint,
                state: NumberState::Running,
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
    fn pass(&self, stream: &Stream, running: &BegunNumber, version: Version) -> StreamDraft {
        let begun = self.begin(Some(stream), LastChange::Keep, version);
        let passed = Some(Passed {
            number: running.number,
            fingerprint: running.fingerprint,
            takeovers: running.takeovers,
        });
        StreamDraft {
            running: begun
                .running
                .map(|running| BegunNumber { passed, ..running }),
            ..begun
        }
    }

    /// Goes on with this number, whose holder vanished.
    fn take_over(&self, stream: &Stream, running: &BegunNumber, version: Version) -> StreamDraft {
        StreamDraft {
            running: Some(BegunNumber {
                takeovers: running.takeovers.saturating_add(1),
                ..*running
            }),
            ..self.begin(Some(stream), LastChange::Keep, version)
        }
    }
}

fn write(stream: &Stream, draft: StreamDraft, meaning: StreamMeaning) -> StreamDecision {
    StreamDecision::Write {
        seen: Some(stream.version),
        draft,
        meaning,
    }
}
