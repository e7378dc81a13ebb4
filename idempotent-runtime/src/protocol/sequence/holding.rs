//! How a holder of a number ends, and what it learns when that is refused.

use std::time::Duration;

use super::{
    Applied, BegunNumber, CopyAnswer, LastChange, NumberState, Stream, StreamClaim, StreamDraft,
};
use crate::{
    fingerprint::Fingerprint,
    policy::OnCrash,
    record::{AttemptId, Moment, OutcomeKind, TokenRule, Version},
};

/// A claim that stands: what its holder needs to know to write the next version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamHolding {
    running: BegunNumber,
    attempt_id: AttemptId,
    lease: Duration,
    expires_after: Option<Duration>,
}

/// How a holder ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnding {
    /// It records the outcome, of this kind: the number moves. The bytes are written beside it, in
    /// the same step.
    Done(OutcomeKind),
    /// The body's own word, by its verdict on the error it returned, that it did nothing.
    Release,
    /// The body's own word that it is unknown whether it happened.
    Uncertain,
    /// It was dropped, or panicked, before the body was polled.
    Unpolled,
    /// It was dropped, or panicked, after the body was polled.
    Stopped,
}

/// The meaning of a refused ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamRefusal {
    /// It is still this holder's, at this version: write again over it.
    Again(Version),
    /// It stands already: the answer was lost.
    Stands,
    /// Another call holds or held it since, it was settled, or the number moved on.
    Lost,
}

impl StreamHolding {
    /// Begins to hold what `claim` won, as `stream` says; `None` where it does not stand for this
    /// claim. A number that its first holder never began is its own, although another call left it
    /// uncertain since.
    #[must_use]
    pub fn standing(claim: &StreamClaim, stream: &Stream) -> Option<Self> {
        let running = stream.running.filter(|running| {
            running.number == claim.number
                && stream.attempt_id == claim.attempt_id
                && match running.state {
                    NumberState::Running => true,
                    NumberState::Uncertain => running.takeovers == 0,
                    NumberState::Parked => false,
                }
        })?;
        Some(Self {
            running: BegunNumber {
                state: NumberState::Running,
                ..running
            },
            attempt_id: claim.attempt_id,
            lease: claim.lease,
            expires_after: claim.expires_after,
        })
    }

    /// The number that is held.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.running.number
    }

    /// Must be equal in a copy.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.running.fingerprint
    }

    /// Whether a smaller number whose holder vanished was passed.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.running.passed.is_some()
    }

    /// Whether an earlier holder may have begun this number, or one that it passed.
    #[must_use]
    pub fn is_takeover(&self) -> bool {
        self.running.is_begun_before()
    }

    /// The draft that prolongs the lease. If that is refused, it is sent again only if
    /// [`StreamHolding::may_beat`] allows it.
    #[must_use]
    pub fn heartbeat(&self, version: Version) -> StreamDraft {
        StreamDraft {
            lease: Moment::In(self.lease),
            expires: self.stays(self.lease),
            ..self.draft(Some(self.running), version)
        }
    }

    /// Whether the record is still this holder's to prolong. A number that was left uncertain is
    /// not, although its holder may still complete it.
    #[must_use]
    pub fn may_beat(&self, stream: &Stream) -> bool {
        let stands = |running: &BegunNumber| {
            running.number == self.running.number && running.state == NumberState::Running
        };
        stream.attempt_id == self.attempt_id && stream.running.as_ref().is_some_and(stands)
    }

    /// The draft that ends the holding.
    ///
    /// A holder that did nothing puts back what stood: the last number alone, or beside it the
    /// number of a holder that vanished, taken over or passed. That holder may have begun
    /// something, so its number stays bound.
    #[must_use]
    pub fn end(&self, ending: &StreamEnding, version: Version) -> StreamDraft {
        match ending {
            StreamEnding::Done(kind) => StreamDraft {
                last: LastChange::Moves(Applied {
                    number: self.running.number,
                    fingerprint: self.running.fingerprint,
                    answer: CopyAnswer::Recorded(*kind),
                }),
                expires: self.stays(Duration::ZERO),
                ..self.draft(None, version)
            },
            StreamEnding::Release | StreamEnding::Unpolled => match self.found() {
                Some(running) => StreamDraft {
                    attempt_id: AttemptId::NOBODY,
                    ..self.left(running, version)
                },
                None => self.draft(None, version),
            },
            StreamEnding::Stopped if self.running.on_crash == OnCrash::Rerun => {
                self.left(self.running, version)
            }
            StreamEnding::Uncertain | StreamEnding::Stopped => {
                let running = BegunNumber {
                    state: NumberState::Uncertain,
                    ..self.running
                };
                self.draft(Some(running), version)
            }
        }
    }

    /// The meaning of an ending that was refused because of `stream`.
    #[must_use]
    pub fn refused(&self, ending: &StreamEnding, stream: Option<&Stream>) -> StreamRefusal {
        let Some(stream) = stream else {
            return StreamRefusal::Lost;
        };
        let intended = self.end(ending, stream.version);
        if stream.attempt_id != intended.attempt_id && stream.attempt_id != self.attempt_id {
            return StreamRefusal::Lost;
        }
        let Some(running) = stream.running else {
            let stands = match intended.last {
                LastChange::Moves(applied) => stream.last == Some(applied),
                _ => intended.running.is_none() && !self.has_ended(stream),
            };
            return if stands {
                StreamRefusal::Stands
            } else {
                StreamRefusal::Lost
            };
        };
        if stream.attempt_id != self.attempt_id {
            let stands = intended.running == Some(running);
            return if stands {
                StreamRefusal::Stands
            } else {
                StreamRefusal::Lost
            };
        }
        match (running.state, &intended.running) {
            _ if running.number != self.running.number => StreamRefusal::Lost,
            // Writing it again would put this holder's choice over that of a stricter caller.
            (NumberState::Uncertain, Some(_)) => StreamRefusal::Stands,
            (NumberState::Running | NumberState::Uncertain, _) => {
                StreamRefusal::Again(stream.version)
            }
            (NumberState::Parked, _) => StreamRefusal::Lost,
        }
    }

    fn has_ended(&self, stream: &Stream) -> bool {
        stream
            .last
            .is_some_and(|last| last.number >= self.running.number)
    }

    /// The number of the holder that vanished, as this holder found it.
    fn found(&self) -> Option<BegunNumber> {
        match self.running.takeovers {
            0 => self.running.put_back(),
            takeovers => Some(BegunNumber {
                takeovers: takeovers - 1,
                // In a transaction the claim is stricter than what it found.
                on_crash: OnCrash::Rerun,
                ..self.running
            }),
        }
    }

    /// Leaves a number to the next call, with the lease over.
    fn left(&self, running: BegunNumber, version: Version) -> StreamDraft {
        StreamDraft {
            lease: Moment::In(Duration::ZERO),
            expires: self.stays(Duration::ZERO),
            ..self.draft(Some(running), version)
        }
    }

    fn stays(&self, lease: Duration) -> Option<Moment> {
        self.expires_after
            .map(|after| Moment::In(lease.saturating_add(after)))
    }

    fn draft(&self, running: Option<BegunNumber>, version: Version) -> StreamDraft {
        StreamDraft {
            version,
            token: TokenRule::Keep,
            last: LastChange::Keep,
            running,
            attempt_id: self.attempt_id,
            lease: Moment::Keep,
            expires: self.expires_after.map(|_| Moment::Keep),
        }
    }
}
