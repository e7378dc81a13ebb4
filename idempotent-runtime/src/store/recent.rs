//! The records that this process has written or seen lately, but for their outcomes.
//!
//! A version of a record never changes. So a call whose record is known to be done asks only for the outcome, and whether that
//! version still stands; else it would send everything that a claim writes, to be refused and to be told what is known here. And
//! a completion over a version that is known says only what is new. The store says whether what is known still holds: where it
//! does not, the first costs one more round trip, and the second is refused as every write over another version. What is known must
//! be exact, therefore: it is noted only from what the store answered.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use bytes::Bytes;

use crate::{
    identity::RecordId,
    record::{Draft, RawOutcome, Record, State, Time, Version},
    store::{Snapshot, Stamp, Swap, moment::Moment},
};

/// How many records are known at most. Of two that share a place, the later one is.
const PLACES: usize = 1 << 13;

/// How many bytes of scope and key a record may have that is known: most have fewer than a hundred.
const LONGEST: usize = 512;

/// Knows a record in the place that a part of its id names. There is no room for any until there is one.
#[derive(Default)]
pub(crate) struct Recent(OnceLock<Box<[Place]>>);

type Place = Mutex<Option<Arc<Known>>>;

/// A version of a record, as it stood when it was written or seen.
#[derive(Debug)]
pub(crate) struct Known {
    id: RecordId,
    /// Its outcome has no bytes here.
    record: Record,
    /// When it stood, by the store's clock.
    stood: Time,
    /// When it was asked for or written: no later than that.
    sent: Moment,
    /// How long it stays after it expires, where that is known.
    keep: Option<Duration>,
}

impl Recent {
    /// The record under this id, where it is known to be done, and cannot have expired yet.
    pub(crate) fn done(&self, id: &RecordId) -> Option<Arc<Known>> {
        self.done_at(id, Moment::now())
    }

    fn done_at(&self, id: &RecordId, now: Moment) -> Option<Arc<Known>> {
        let known = self
            .place(id)?
            .as_ref()
            .filter(|known| known.id == *id)?
            .clone();
        let lives = known.record.state == State::Done && known.now_at(now) < known.record.expires;
        lives.then_some(known)
    }

    /// Notes what stands under the id, by an answer to what was sent at this moment.
    pub(crate) fn saw(&self, id: &RecordId, snapshot: &Snapshot, sent: Moment) {
        match &snapshot.record {
            Some(record) => {
                let keep = self
                    .version(id, Some(record.version))
                    .and_then(|known| known.keep);
                self.note(id, Record::clone(record), keep, snapshot.now, sent);
            }
            None => self.forget(id),
        }
    }

    /// Notes what a write came to that was sent at this moment.
    pub(crate) fn wrote(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
        swap: &Swap,
        sent: Moment,
    ) {
        let stamp = match swap {
            Swap::Applied(stamp) => stamp,
            Swap::Refused(snapshot) => return self.saw(id, snapshot, sent),
        };
        let before = self.version(id, seen);
        if next.subject.is_none() && before.is_none() {
            // What it keeps of the version before it is not known.
            return self.forget(id);
        }
        let before = before.as_deref().map(|known| &known.record);
        let mut record = stamped(next.apply(before, stamp.now), stamp);
        if let Some(begun) = &next.subject {
            record.subject = Arc::new(begun.as_stored());
        }
        self.note(id, record, Some(next.keep), stamp.now, sent);
    }

    /// What is known of this version of the record.
    pub(crate) fn version(&self, id: &RecordId, version: Option<Version>) -> Option<Arc<Known>> {
        let known = self.place(id)?.clone()?;
        (known.id == *id && Some(known.record.version) == version).then_some(known)
    }

    fn note(
        &self,
        id: &RecordId,
        mut record: Record,
        keep: Option<Duration>,
        stood: Time,
        sent: Moment,
    ) {
        let subject = &record.subject;
        if subject.scope.len() + subject.key.len() > LONGEST {
            return self.forget(id);
        }
        if let Some(outcome) = &mut record.outcome {
            outcome.bytes = Bytes::new();
        }
        let known = Known {
            id: *id,
            record,
            stood,
            sent,
            keep,
        };
        let places = || (0..PLACES).map(|_| Mutex::default()).collect();
        self.0.get_or_init(places);
        if let Some(mut place) = self.place(id) {
            *place = Some(Arc::new(known));
        }
    }

    fn forget(&self, id: &RecordId) {
        if let Some(mut place) = self.place(id)
            && place.as_ref().is_some_and(|known| known.id == *id)
        {
            *place = None;
        }
    }

    /// Every part of an id is evenly spread, as it is a digest.
    fn place(&self, id: &RecordId) -> Option<MutexGuard<'_, Option<Arc<Known>>>> {
        let [a, b, ..] = *id.as_bytes();
        let place = &self.0.get()?[usize::from(u16::from_le_bytes([a, b])) % PLACES];
        Some(place.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Known {
    pub(crate) fn version(&self) -> Version {
        self.record.version
    }

    /// Its outcome has no bytes.
    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    pub(crate) fn expires(&self) -> Time {
        self.record.expires
    }

    /// The whole record, of which the store has just said that it stands, with the bytes of its outcome; `None` where the store
    /// holds none and there must be some.
    pub(crate) fn with(&self, outcome: Option<Vec<u8>>) -> Option<Arc<Record>> {
        let outcome = match (&self.record.outcome, outcome) {
            (Some(known), Some(bytes)) => Some(RawOutcome {
                bytes: bytes.into(),
                ..*known
            }),
            (None, _) => None,
            (Some(_), None) => return None,
        };
        Some(Arc::new(Record {
            outcome,
            ..self.record.clone()
        }))
    }

    /// Whether the record is gone when it has expired, in a store that forgets by itself.
    #[cfg(feature = "redis")]
    pub(crate) fn vanishes(&self) -> bool {
        self.keep == Some(Duration::ZERO)
    }

    /// The latest that it can be by the store's clock, where the record has not expired.
    #[cfg(feature = "redis")]
    pub(crate) fn now(&self) -> Time {
        let last = Time::from_micros(self.expires().as_micros() - 1);
        self.now_at(Moment::now()).min(last)
    }

    /// The latest that it can be by the store's clock, if its clock and the ones here go at the same pace: the store read it
    /// after it was asked.
    fn now_at(&self, now: Moment) -> Time {
        self.stood.plus(now.since(self.sent))
    }
}

/// The record with the moments and the token that the store resolved.
fn stamped(record: Record, stamp: &Stamp) -> Record {
    Record {
        version: stamp.version,
        token: stamp.token,
        lease_end: stamp.lease_end,
        expires: stamp.expires,
        ..record
    }
}

impl fmt::Debug for Recent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recent").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fingerprint::Arguments,
        record::{FencingToken, Subject, TokenRule, draft::tests::claim},
    };

    const NOW: Time = Time::from_micros(1_000_000);
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn id(number: u64) -> RecordId {
        let digest = <sha2::Sha256 as sha2::Digest>::digest(number.to_be_bytes());
        RecordId::from_bytes(digest.into())
    }

    fn completion(of: &Draft) -> Draft {
        Draft {
            version: Version::random(),
            subject: None,
            state: State::Done,
            token: TokenRule::Keep,
            outcome: Some(RawOutcome::value("receipt")),
            ..of.clone()
        }
    }

    /// Notes that a draft was written over `before`, and gives the record that stands then.
    fn wrote(recent: &Recent, id: &RecordId, before: Option<&Record>, next: &Draft) -> Record {
        let record = next.apply(before, NOW);
        let swap = Swap::Applied(Stamp::from_record(&record, NOW));
        let seen = before.map(|record| record.version);
        recent.wrote(id, seen, next, &swap, Moment::now());
        record
    }

    /// Notes a call from its claim to its outcome, and gives the record that stands then.
    fn called(recent: &Recent, id: &RecordId, key: &[u8]) -> Record {
        let claim = claim(key);
        let running = wrote(recent, id, None, &claim);
        assert!(recent.done(id).is_none(), "it is not done yet");
        wrote(recent, id, Some(&running), &completion(&claim))
    }

    fn seen(record: Option<Record>) -> Snapshot {
        let record = record.map(Arc::new);
        Snapshot { now: NOW, record }
    }

    #[test]
    fn what_was_called_here_is_known_but_for_its_outcome() {
        let recent = Recent::default();
        let record = called(&recent, &id(1), b"key");

        let known = recent.done(&id(1)).expect("it is known");
        assert_eq!(known.with(Some(b"receipt".to_vec())), Some(record.into()));
        assert_eq!(known.with(None), None, "there must be an outcome");
        assert!(recent.done(&id(2)).is_none());
    }

    #[test]
    fn what_was_seen_is_known_until_it_is_seen_otherwise() {
        let recent = Recent::default();
        let record = called(&Recent::default(), &id(1), b"key");
        recent.saw(&id(1), &seen(Some(record.clone())), Moment::now());
        assert!(recent.done(&id(1)).is_some());

        let released = Record {
            state: State::Released,
            ..record.clone()
        };
        recent.saw(&id(1), &seen(Some(released)), Moment::now());
        assert!(recent.done(&id(1)).is_none());

        recent.saw(&id(1), &seen(Some(record)), Moment::now());
        recent.saw(&id(1), &seen(None), Moment::now());
        assert!(recent.done(&id(1)).is_none());
    }

    #[test]
    fn what_was_written_over_something_unknown_is_not_known() {
        let recent = Recent::default();
        let (old, unknown) = (claim(b"key"), claim(b"key"));
        called(&recent, &id(1), b"key");

        let before = unknown.apply(None, NOW);
        wrote(&recent, &id(1), Some(&before), &completion(&old));

        assert!(recent.done(&id(1)).is_none());
    }

    #[test]
    fn what_can_have_expired_is_not_asked_for() {
        let recent = Recent::default();
        let record = called(&Recent::default(), &id(1), b"key");
        let asked = Duration::from_secs(1);
        recent.saw(&id(1), &seen(Some(record)), Moment::at(asked, asked));
        let (early, over) = (asked + DAY / 2, asked + DAY);

        assert!(recent.done_at(&id(1), Moment::at(early, early)).is_some());
        assert!(recent.done_at(&id(1), Moment::at(over, over)).is_none());
        let woken = recent.done_at(&id(1), Moment::at(early, over));
        assert!(woken.is_none(), "the machine was suspended");
    }

    #[test]
    fn what_the_store_resolved_is_known_as_it_said() {
        let recent = Recent::default();
        let claim = claim(b"key");
        let resolved = Stamp {
            token: FencingToken::from_u64(u64::MAX),
            lease_end: NOW.plus(2 * DAY),
            expires: NOW.plus(3 * DAY),
            ..Stamp::from_record(&claim.apply(None, NOW), NOW)
        };
        let applied = Swap::Applied(resolved);
        recent.wrote(&id(1), None, &claim, &applied, Moment::now());

        let known = recent.version(&id(1), Some(claim.version));
        let known = known.expect("it is known");
        assert_eq!(Stamp::from_record(known.record(), NOW), resolved);
    }

    #[test]
    fn the_store_s_time_goes_on_from_the_question() {
        let recent = Recent::default();
        let claim = claim(b"key");
        let record = claim.apply(None, NOW);
        let swap = Swap::Applied(Stamp::from_record(&record, NOW));
        let second = Duration::from_secs(1);
        recent.wrote(&id(1), None, &claim, &swap, Moment::at(second, second));

        let known = recent
            .version(&id(1), Some(claim.version))
            .expect("it is known");
        let later = known.now_at(Moment::at(4 * second, 4 * second));
        assert_eq!(later, NOW.plus(3 * second));
    }

    #[test]
    fn of_two_that_share_a_place_the_later_one_is_known() {
        let recent = Recent::default();
        let place = |id: &RecordId| {
            let [a, b, ..] = *id.as_bytes();
            usize::from(u16::from_le_bytes([a, b])) % PLACES
        };
        let mut others = (2..).map(id).filter(|other| place(other) == place(&id(1)));
        let other = others.next().expect("some other id");
        called(&recent, &id(1), b"key");

        recent.saw(&other, &seen(None), Moment::now());
        assert!(recent.done(&id(1)).is_some(), "nothing is known of it");
        called(&recent, &other, b"key");

        assert!(recent.done(&other).is_some());
        assert!(recent.done(&id(1)).is_none());
    }

    #[test]
    fn the_places_are_used_evenly() {
        let recent = Recent::default();
        let ids = || (0..PLACES as u64).map(id);
        for id in ids() {
            called(&recent, &id, b"key");
        }
        let known = ids().filter(|id| recent.done(id).is_some()).count();
        // Of as many urns as balls, about 63 % are not empty.
        assert!(known > PLACES / 2, "{known}");
    }

    #[test]
    fn long_names_take_no_memory() {
        let recent = Recent::default();
        called(&recent, &id(1), b"key");
        called(&recent, &id(1), &[b'k'; LONGEST]);
        assert!(recent.done(&id(1)).is_none());
    }

    #[test]
    fn the_arguments_take_no_memory() {
        let mut arguments = Arguments::new();
        arguments.argument("note", &"of any length");
        let fingerprint = arguments.finish(None).expect("they are encoded");
        let digests = fingerprint.digests();
        let begun = claim(b"key");
        let subject = Subject {
            fingerprint,
            ..begun.subject.as_deref().expect("it begins").clone()
        };
        let subject = Arc::new(subject);
        let given = Arc::downgrade(&subject);
        let claim = Draft {
            subject: Some(subject),
            ..begun
        };
        let recent = Recent::default();
        let running = wrote(&recent, &id(1), None, &claim);
        wrote(&recent, &id(1), Some(&running), &completion(&claim));
        drop((claim, running));

        assert!(given.upgrade().is_none(), "it holds what was encoded");
        let known = recent.done(&id(1)).expect("it is known");
        assert_eq!(known.record.subject.fingerprint.digests(), digests);
    }

    #[test]
    #[cfg(feature = "redis")]
    fn only_what_is_known_not_to_be_kept_vanishes_when_it_expires() {
        let recent = Recent::default();
        let record = called(&recent, &id(1), b"key");
        let vanishes = || recent.done(&id(1)).is_some_and(|known| known.vanishes());
        assert!(vanishes());
        recent.saw(&id(1), &seen(Some(record.clone())), Moment::now());
        assert!(vanishes(), "it is the same version");

        let kept = Draft {
            keep: DAY,
            ..completion(&claim(b"key"))
        };
        wrote(&recent, &id(1), Some(&record), &kept);
        assert!(!vanishes());

        let elsewhere = called(&Recent::default(), &id(1), b"key");
        recent.saw(&id(1), &seen(Some(elsewhere)), Moment::now());
        assert!(!vanishes(), "nobody knows how long it is kept");
    }

    #[test]
    #[cfg(feature = "redis")]
    fn what_stands_has_not_expired_whatever_the_clocks_say() {
        let draft = Draft {
            expires: crate::record::Moment::In(Duration::ZERO),
            ..completion(&claim(b"key"))
        };
        let known = Known {
            id: id(1),
            record: draft.apply(None, NOW),
            stood: NOW,
            sent: Moment::now(),
            keep: None,
        };
        assert!(known.now() < known.expires());
    }
}
