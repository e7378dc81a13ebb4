//! Calls with a number: hands a record over to the rules of its stream, and back.

use std::{sync::Arc, time::Duration};

use super::{
    Claim, ClaimDecision, Ending, Holding, Meaning, Refusal, decide, first,
    sequence::{
        self, Applied, CopyAnswer, Damaged, Gaps, LastValue, StoredStream, StreamClaim,
        StreamDecision, StreamDraft, StreamEnding, StreamHolding, StreamMeaning, StreamRefusal,
    },
};
use crate::{
    fingerprint::{ArgumentDigests, Fingerprint, Fingerprinted},
    policy::OnCrash,
    record::answers::Snapshot,
    record::{Draft, Moment, OutcomeKind, RawOutcome, Record, State, Subject, Time, Version},
};

/// All that a call of a stream says beside its claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallNumber {
    /// Its number.
    pub number: u64,
    /// Which numbers may be missing.
    pub gaps: Gaps,
    /// How long it waits for a number that is missing.
    pub patience: Duration,
    /// How long the stream binds calls after a number; `None` for ever.
    pub expires_after: Option<Duration>,
}

/// The next step of a call, with a number or without.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is taken apart where it is made"
)]
pub enum Next {
    /// A step that calls without a number know, too.
    Decided(ClaimDecision),
    /// As [`StreamDecision::Past`].
    Past(u64),
    /// As [`StreamDecision::Gap`].
    Gap(u64),
    /// As [`StreamDecision::AwaitGap`].
    AwaitGap(u64),
    /// As [`StreamDecision::Overtaken`].
    Overtaken(Arc<Record>),
    /// The call is refused: the record is no stream that this build can read.
    Damaged,
}

impl Claim {
    /// Decides about a snapshot. `version` draws the version of the draft, if there is one.
    #[must_use]
    pub fn next(&self, snapshot: &Snapshot, version: impl FnOnce() -> Version) -> Next {
        let Some(numbered) = self.numbered else {
            return Next::Decided(decide(self, snapshot, version));
        };
        let stored = match read(snapshot.record.as_deref()) {
            Ok(stored) => stored,
            Err(_) => return Next::Damaged,
        };
        let stream = stored.as_ref().map(|it| &it.stream);
        let claim = self.of_stream(&numbered);
        let decision = sequence::decide(&claim, stream, snapshot.now, version());
        let (Some(record), Some(stored)) = (&snapshot.record, &stored) else {
            return self.write(None, decision);
        };
        let stands = || Arc::clone(record);
        Next::Decided(match decision {
            StreamDecision::Mine => ClaimDecision::Mine(stands()),
            StreamDecision::Replay(_) => ClaimDecision::Replay(answer(record, stored)),
            StreamDecision::KeyReused => {
                ClaimDecision::KeyReused(about(record, stored, numbered.number))
            }
            StreamDecision::InProgress(_, left) => ClaimDecision::InProgress(stands(), left),
            StreamDecision::Uncertain(_) => ClaimDecision::Uncertain(stands()),
            StreamDecision::Parked(_) => ClaimDecision::Parked(stands()),
            StreamDecision::Overtaken(_) => return Next::Overtaken(stands()),
            other => return self.write(Some((record, stored)), other),
        })
    }

    /// The step that needs no record to stand.
    fn write(
        &self,
        stands: Option<(&Arc<Record>, &StoredStream)>,
        decision: StreamDecision,
    ) -> Next {
        match decision {
            StreamDecision::Past { last } => Next::Past(last),
            StreamDecision::Gap { expected } => Next::Gap(expected),
            StreamDecision::AwaitGap { expected } => Next::AwaitGap(expected),
            StreamDecision::Write {
                seen,
                draft,
                meaning,
            } => Next::Decided(ClaimDecision::Write {
                seen,
                draft: self.draft(stands, &draft),
                meaning: Meaning::from(meaning),
            }),
            _ => Next::Damaged,
        }
    }

    /// The draft of the record. A call that only leaves a number to be settled keeps the holder of
    /// that number.
    fn draft(&self, stands: Option<(&Arc<Record>, &StoredStream)>, draft: &StreamDraft) -> Draft {
        let is_mine = draft.attempt_id == self.attempt_id;
        let stood = stands.and_then(|(_, stored)| stored.stream.running);
        let number = draft.running.map(|running| running.number);
        let begins = is_mine && number != stood.map(|running| running.number);
        let subject = (begins || stands.is_none()).then(|| Arc::clone(&self.subject));
        let holder = match stands {
            Some((record, _)) if !is_mine => &record.holder,
            _ => &self.holder,
        };
        let before = stands.map(|(_, stored)| stored);
        StoredStream::draft(before, draft, subject, holder.clone(), LastValue::default())
            .kept(self.keep)
    }

    /// The draft to try before it has looked, where that would be right over nothing.
    #[must_use]
    pub fn opening(&self, version: Version) -> Option<Draft> {
        let Some(numbered) = self.numbered else {
            return Some(first(self, version));
        };
        let claim = self.of_stream(&numbered);
        match sequence::decide(&claim, None, Time::from_micros(0), version) {
            StreamDecision::Write { draft, .. } => Some(self.draft(None, &draft)),
            _ => None,
        }
    }

    /// Whether its first write is wrong over nothing.
    #[must_use]
    pub fn looks_first(&self) -> bool {
        self.numbered.is_some() && self.opening(Version::from_u128(0)).is_none()
    }

    /// As [`Claim::renew`], for any claim.
    #[must_use]
    pub fn renewal(&self, record: &Record, version: Version) -> Draft {
        match (self.numbered, StoredStream::read(record)) {
            (Some(numbered), Ok(stored)) => {
                let draft = self.of_stream(&numbered).renew(&stored.stream, version);
                StoredStream::draft(
                    Some(&stored),
                    &draft,
                    None,
                    self.holder.clone(),
                    LastValue::default(),
                )
                .kept(self.keep)
            }
            _ => self.renew(record, version),
        }
    }

    /// As [`Claim::give_up`], for any claim.
    #[must_use]
    pub fn abandon(
        &self,
        seen: Option<Version>,
        snapshot: &Snapshot,
        version: Version,
    ) -> Option<(Option<Version>, Draft)> {
        let Some(numbered) = self.numbered else {
            return self.give_up(seen, snapshot, version);
        };
        let stored = read(snapshot.record.as_deref()).ok()?;
        let stream = stored.as_ref().map(|it| &it.stream);
        let (over, mut draft) = self.of_stream(&numbered).give_up(seen, stream, version)?;
        if stream.is_none() {
            // It says nothing that is asked for later.
            draft.expires = Some(Moment::In(self.lease));
        }
        let stands = snapshot.record.as_ref().zip(stored.as_ref());
        Some((over, self.draft(stands, &draft)))
    }

    /// Begins to hold what this claim won. `stream` is the stream of the version that stands.
    #[must_use]
    pub fn hold(
        &self,
        attempt: u32,
        on_crash: OnCrash,
        meaning: Meaning,
        stream: Option<&StoredStream>,
    ) -> Holding {
        let holding = Holding::new(self, attempt, on_crash, meaning);
        let held = self.numbered.zip(stream).and_then(|(numbered, stored)| {
            let claim = self.of_stream(&numbered);
            Some(HeldNumber {
                holding: StreamHolding::standing(&claim, &stored.stream)?,
                before: stored.clone(),
            })
        });
        holding.of_number(held)
    }

    fn of_stream(&self, numbered: &CallNumber) -> StreamClaim {
        StreamClaim {
            number: numbered.number,
            fingerprint: self.subject.fingerprint.fingerprint(),
            attempt_id: self.attempt_id,
            gaps: numbered.gaps,
            on_crash: self.on_crash,
            lease: self.lease,
            expires_after: numbered.expires_after,
            max_takeovers: self.max_takeovers,
        }
    }
}

impl From<StreamMeaning> for Meaning {
    fn from(meaning: StreamMeaning) -> Self {
        match meaning {
            StreamMeaning::Fresh => Self::Fresh,
            StreamMeaning::Takeover => Self::Takeover,
            StreamMeaning::LeaveUncertain => Self::LeaveUncertain,
            StreamMeaning::Park => Self::Park,
        }
    }
}

/// Reads the stream of a record, where one stands.
pub(crate) fn read(record: Option<&Record>) -> Result<Option<StoredStream>, Damaged> {
    record.map(StoredStream::read).transpose()
}

/// A number that is held, with the stream as its claim found it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct HeldNumber {
    holding: StreamHolding,
    before: StoredStream,
}

impl HeldNumber {
    pub(super) fn heartbeat(&self, plain: &Draft) -> Draft {
        self.draft(
            plain,
            &self.holding.heartbeat(plain.version),
            LastValue::default(),
        )
    }

    /// The draft that ends it. `plain` is that of a call without a number.
    pub(super) fn end(&self, ending: &Ending, plain: &Draft) -> Draft {
        let (ending, moved) = of_stream(ending);
        self.draft(plain, &self.holding.end(&ending, plain.version), moved)
    }

    fn draft(&self, plain: &Draft, draft: &StreamDraft, moved: LastValue) -> Draft {
        StoredStream::draft(Some(&self.before), draft, None, plain.holder.clone(), moved)
            .kept(plain.keep)
    }

    pub(super) fn refused(&self, ending: &Ending, snapshot: &Snapshot) -> Refusal {
        let Ok(stored) = read(snapshot.record.as_deref()) else {
            return Refusal::Lost(snapshot.record.clone());
        };
        let (ending, _) = of_stream(ending);
        let stream = stored.as_ref().map(|it| &it.stream);
        match (self.holding.refused(&ending, stream), &snapshot.record) {
            (StreamRefusal::Again(version), _) => Refusal::Again(version),
            (StreamRefusal::Stands, Some(record)) => Refusal::Stands(Arc::clone(record)),
            (_, record) => Refusal::Lost(record.clone()),
        }
    }

    /// The record as the answer to this number; `None` where it has none.
    pub(super) fn answer(&self, record: &Arc<Record>) -> Option<Arc<Record>> {
        let stored = StoredStream::read(record).ok()?;
        let last = stored.stream.last.filter(|last| {
            last.number == self.holding.number() && last.fingerprint == self.holding.fingerprint()
        });
        last.map(|_| answer(record, &stored))
    }

    pub(super) fn passes(&self) -> bool {
        self.holding.passes()
    }
}

fn of_stream(ending: &Ending) -> (StreamEnding, LastValue) {
    let ending = match ending {
        Ending::Done(outcome) | Ending::Undo(outcome) | Ending::LeftToUndo(outcome) => {
            let value = LastValue {
                schema: outcome.schema,
                bytes: outcome.bytes.clone(),
            };
            return (StreamEnding::Done(outcome.kind), value);
        }
        // A number has no steps.
        Ending::Release | Ending::GiveBack => StreamEnding::Release,
        Ending::Uncertain => StreamEnding::Uncertain,
        Ending::Unpolled => StreamEnding::Unpolled,
        Ending::Stopped | Ending::NotUndone | Ending::Left => StreamEnding::Stopped,
    };
    (ending, LastValue::default())
}

/// The record, as one of a plain call that ended as the last number did.
fn answer(record: &Record, stored: &StoredStream) -> Arc<Record> {
    let kind = match stored.stream.last.map(|last| last.answer) {
        Some(CopyAnswer::Recorded(kind)) => kind,
        _ => OutcomeKind::NotReplayable,
    };
    let mut answer = record.clone();
    answer.state = State::Done;
    answer.outcome = Some(RawOutcome {
        kind,
        schema: stored.value.schema,
        bytes: stored.value.bytes.clone(),
    });
    if let Some(Applied { fingerprint, .. }) = stored.stream.last {
        answer.subject = subject(record, fingerprint);
    }
    Arc::new(answer)
}

/// The part of the record that is about `number`: for another number than the record's, it tells no
/// more than the fingerprint.
fn about(record: &Arc<Record>, stored: &StoredStream, number: u64) -> Arc<Record> {
    match stored.stream.last {
        Some(last) if last.number == number => answer(record, stored),
        _ => Arc::clone(record),
    }
}

fn subject(record: &Record, fingerprint: Fingerprint) -> Arc<Subject> {
    if record.subject.fingerprint.fingerprint() == fingerprint {
        return Arc::clone(&record.subject);
    }
    Arc::new(Subject {
        fingerprint: Fingerprinted::stored(fingerprint, ArgumentDigests::default()),
        ..(*record.subject).clone()
    })
}

#[cfg(test)]
mod tests;
