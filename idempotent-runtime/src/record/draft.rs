//! The write that a caller asks of a store.

use std::{sync::Arc, time::Duration};

use super::{
    AttemptId, FencingToken, Holder, Note, RawOutcome, Record, State, Subject, Time, TokenRule,
    Version, WHILE_UNDOS_ARE_OPEN,
};
use crate::policy::OnCrash;

/// The next version of a record, as a caller asks a store to write it. Everything that depends on
/// the store's clock is said relative to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Draft {
    /// Names the version that is written.
    pub version: Version,
    /// The subject of a record that begins, which sets `created`; `None` keeps both.
    pub subject: Option<Arc<Subject>>,
    /// The state that the call will have. Every state except running sets `finished`.
    pub state: State,
    /// The token.
    pub token: TokenRule,
    /// The attempt number.
    pub attempt: u32,
    /// The attempt whose claim it is.
    pub attempt_id: AttemptId,
    /// The holder that writes, for people.
    pub holder: Holder,
    /// The crash policy: what becomes of it when its holder vanishes.
    pub on_crash: OnCrash,
    /// The end of the lease.
    pub lease: Moment,
    /// When the record may stop binding calls.
    pub expires: Moment,
    /// How long the record stays from then on, for audits. It is no part of the record: it is for a
    /// store that forgets by itself, and a purge is told it [again](crate::Store::purge).
    pub keep: Duration,
    /// The outcome that stands afterwards.
    pub outcome: Option<RawOutcome>,
    /// The note about the version that is written.
    pub note: Option<Arc<Note>>,
}

impl Draft {
    /// Makes the record that stands after this draft was written over `previous` at `now`. This
    /// gives every field its meaning, once, for every store that keeps records in memory.
    #[must_use]
    pub fn apply(&self, previous: Option<&Record>, now: Time) -> Record {
        let moment = |moment: Moment, kept: Option<Time>| match moment {
            Moment::Keep => kept.unwrap_or(now),
            Moment::In(duration) => now.plus(duration),
        };
        let (subject, created) = match (&self.subject, previous) {
            (Some(subject), _) => (Arc::clone(subject), now),
            (None, Some(previous)) => (Arc::clone(&previous.subject), previous.created),
            (None, None) => (Arc::new(Subject::unknown()), now),
        };
        Record {
            subject,
            state: self.state,
            version: self.version,
            token: match self.token {
                TokenRule::Keep => {
                    previous.map_or(FencingToken::from_u64(0), |record| record.token)
                }
                TokenRule::Above(floor) => floor.next(now),
            },
            attempt: self.attempt,
            attempt_id: self.attempt_id,
            holder: self.holder.clone(),
            on_crash: self.on_crash,
            lease_end: moment(self.lease, previous.map(|record| record.lease_end)),
            created,
            finished: (self.state != State::Running).then_some(now),
            expires: moment(self.expires, previous.map(|record| record.expires)),
            outcome: self.outcome.clone(),
            note: self.note.clone(),
        }
    }

    pub(crate) fn noted(self, note: Option<Arc<Note>>) -> Self {
        Self { note, ..self }
    }

    pub(crate) fn kept(self, keep: Duration) -> Self {
        Self { keep, ..self }
    }

    /// The same for a record whose steps have open undos: it does not expire.
    #[must_use]
    pub fn with_open_undos(mut self) -> Self {
        if let Moment::In(kept) = &mut self.expires {
            *kept = kept.saturating_add(WHILE_UNDOS_ARE_OPEN);
        }
        self
    }

    /// Whether it says that undos are open.
    pub(crate) fn has_open_undos(&self) -> bool {
        matches!(self.expires, Moment::In(kept) if kept >= WHILE_UNDOS_ARE_OPEN)
    }

    /// How many bytes of outcome, key and scope it has.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) fn bytes(&self) -> usize {
        let outcome = self.outcome.as_ref();
        let subject = self.subject.as_deref();
        outcome.map_or(0, |outcome| outcome.bytes.len())
            + subject.map_or(0, |subject| subject.scope.len() + subject.key.len())
    }

    /// Whether the draft only says how the attempt of `previous` ended. Everything else in it
    /// stands there already, because a version never changes, and need not be written again over
    /// this one.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
    pub(crate) fn only_completes(&self, previous: &Record) -> bool {
        self.state == State::Done
            && self.subject.is_none()
            && self.token == TokenRule::Keep
            && self.lease == Moment::Keep
            && self.expires != Moment::Keep
            && self.attempt == previous.attempt
            && self.attempt_id == previous.attempt_id
            && self.holder == previous.holder
            && self.on_crash == previous.on_crash
            && self.note.is_none()
            && previous.note.is_none()
    }
}

/// How a draft says a moment of the store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// As it stands.
    Keep,
    /// This long after the write.
    In(Duration),
}

#[cfg(all(test, any(feature = "_sql", feature = "redis")))]
pub(crate) mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::fingerprint::{ArgumentDigests, Fingerprint, Fingerprinted};

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// The draft of a first call under `key`.
    pub(crate) fn claim(key: &[u8]) -> Draft {
        Draft {
            version: Version::random(),
            subject: Some(Arc::new(Subject {
                operation: "test.charge".into(),
                scope: b"tenant".to_vec(),
                key: key.to_vec(),
                fingerprint: Fingerprinted::stored(
                    Fingerprint::from_bytes([1; 32]),
                    ArgumentDigests::default(),
                ),
            })),
            state: State::Running,
            token: TokenRule::Above(FencingToken::from_u64(0)),
            attempt: 1,
            attempt_id: AttemptId::random(),
            holder: Holder {
                label: "host:1".into(),
                trace_parent: None,
            },
            on_crash: OnCrash::Rerun,
            lease: Moment::In(DAY),
            expires: Moment::In(DAY),
            keep: Duration::ZERO,
            outcome: None,
            note: None,
        }
    }

    /// The draft that ends this call with a value.
    pub(crate) fn completion(of: &Draft, outcome: impl Into<Bytes>) -> Draft {
        Draft {
            version: Version::random(),
            subject: None,
            state: State::Done,
            token: TokenRule::Keep,
            lease: Moment::Keep,
            outcome: Some(RawOutcome::value(outcome)),
            ..of.clone()
        }
    }

    #[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
    #[test]
    fn a_draft_that_says_anything_new_is_no_mere_completion() {
        let begun = claim(b"key");
        let running = begun.apply(None, Time::from_micros(1_000_000));
        let completion = completion(&begun, "receipt");
        assert!(completion.only_completes(&running));
        let without_outcome = Draft {
            outcome: None,
            ..completion.clone()
        };
        assert!(without_outcome.only_completes(&running));

        let others: [fn(Draft) -> Draft; 9] = [
            |draft| Draft {
                subject: claim(b"key").subject,
                ..draft
            },
            |draft| Draft {
                state: State::Uncertain,
                ..draft
            },
            |draft| Draft {
                token: TokenRule::Above(FencingToken::from_u64(0)),
                ..draft
            },
            |draft| Draft {
                attempt: 2,
                ..draft
            },
            |draft| Draft {
                attempt_id: AttemptId::random(),
                ..draft
            },
            |draft| Draft {
                holder: Holder {
                    label: "host:2".into(),
                    trace_parent: None,
                },
                ..draft
            },
            |draft| Draft {
                on_crash: OnCrash::Uncertain,
                ..draft
            },
            |draft| Draft {
                lease: Moment::In(DAY),
                ..draft
            },
            |draft| Draft {
                expires: Moment::Keep,
                ..draft
            },
        ];
        for other in others {
            let other = other(completion.clone());
            assert!(!other.only_completes(&running), "{other:?}");
        }
    }
}
