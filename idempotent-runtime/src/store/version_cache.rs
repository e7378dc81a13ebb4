//! The records that this process has written or seen lately, without their outcomes.
//!
//! A version of a record never changes. So a call whose record is known to be done asks only for
//! the outcome, and whether that version still stands. Else it would send everything that a claim
//! writes, to be refused and to be told what is known here. And a completion over a known version
//! says only what is new. The store says whether the known facts still hold. If not, the first
//! costs one more round trip, and the second is refused as every write over another version. The
//! known facts must be exact, therefore: they are noted only from the store's answers.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::{
    identity::RecordId,
    record::{Draft, RawOutcome, Record, State, Time, Version},
    store::{Snapshot, Stamp, Swap, moment::Moment},
    value::{lock, opaque},
};

/// How many places there are for records. The later of two that share a place is kept.
const PLACES: usize = 1 << 16;

/// How many bytes the known records take up, at most.
const MOST_BYTES: usize = 16 << 20;

/// How many bytes a known record takes up beside its scope and its key, about.
const EACH: usize = size_of::<CachedVersion>() + 128;

/// How many bytes of scope and key a known record may have: most have fewer than a hundred.
const LONGEST: usize = 512;

/// Knows a record in the place that a part of its id names. There is no room for any until there is
/// one.
#[derive(Default)]
pub(crate) struct VersionCache {
    places: OnceLock<Box<[CacheSlot]>>,
    bytes: AtomicUsize,
    /// The place that is emptied next if they are too many.
    next: AtomicUsize,
}

type CacheSlot = Mutex<Option<Arc<CachedVersion>>>;

/// A version of a record, as it stood when it was written or seen.
#[derive(Debug)]
pub(crate) struct CachedVersion {
    id: RecordId,
    /// Its outcome has no bytes here.
    record: Record,
    /// When it stood, by the store's clock.
    stood: Time,
    /// When it was asked for or written: no later than that.
    sent_at: Moment,
    /// How long it stays after it expires, if that is known.
    keep: Option<Duration>,
    /// How many bytes its outcome has.
    #[cfg_attr(
        not(any(feature = "mysql", feature = "postgres")),
        expect(
            dead_code,
            reason = "only a store over a server of SQL shows many at once"
        )
    )]
    outcome: usize,
}

impl VersionCache {
    /// The record under this id, if it is known to be done, and cannot have expired yet.
    pub(crate) fn done(&self, id: &RecordId) -> Option<Arc<CachedVersion>> {
        self.done_at(id, Moment::now())
    }

    fn done_at(&self, id: &RecordId, now: Moment) -> Option<Arc<CachedVersion>> {
        let known = self
            .place(id)?
            .as_ref()
            .filter(|known| known.id == *id)?
            .clone();
        let lives = known.record.state == State::Done && known.now_at(now) < known.record.expires;
        lives.then_some(known)
    }

    /// Notes the record under the id, by an answer to a request that was sent at this moment.
    pub(crate) fn observe(&self, id: &RecordId, snapshot: &Snapshot, sent_at: Moment) {
        match &snapshot.record {
            Some(record) => {
                let keep = self
                    .version(id, Some(record.version))
                    .and_then(|known| known.keep);
                self.note(id, Record::clone(record), keep, snapshot.now, sent_at);
            }
            None => self.forget(id),
        }
    }

    /// Notes the result of a write that was sent at this moment.
    pub(crate) fn record_write(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
        swap: &Swap,
        sent_at: Moment,
    ) {
        let stamp = match swap {
            Swap::Applied(stamp) => stamp,
            Swap::Refused(snapshot) => return self.observe(id, snapshot, sent_at),
        };
        let before = self.version(id, seen);
        if next.subject.is_none() && before.is_none() {
            // The part that it keeps of the version before is not known.
            return self.forget(id);
        }
        let before = before.as_deref().map(|known| &known.record);
        let mut record = stamped(next.apply(before, stamp.now), stamp);
        if let Some(begun) = &next.subject {
            record.subject = Arc::new(begun.as_stored());
        }
        self.note(id, record, Some(next.keep), stamp.now, sent_at);
    }

    /// Notes a claim inside a transaction of the application's, for the completion in it. Whether
    /// that transaction commits does not matter: if a record is not done, only its version is asked
    /// for.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) fn record_claim_inside(&self, id: &RecordId, next: &Draft, swap: &Swap) {
        if next.state == State::Running && matches!(swap, Swap::Applied(_)) {
            self.record_write(id, None, next, swap, Moment::now());
        }
    }

    /// The known facts of this version of the record.
    pub(crate) fn version(
        &self,
        id: &RecordId,
        version: Option<Version>,
    ) -> Option<Arc<CachedVersion>> {
        let known = self.place(id)?.clone()?;
        (known.id == *id && Some(known.record.version) == version).then_some(known)
    }

    fn note(
        &self,
        id: &RecordId,
        mut record: Record,
        keep: Option<Duration>,
        stood: Time,
        sent_at: Moment,
    ) {
        let subject = &record.subject;
        if subject.scope.len() + subject.key.len() > LONGEST {
            return self.forget(id);
        }
        let outcome = record.outcome.as_mut();
        let outcome = outcome.map_or(0, |it| std::mem::take(&mut it.bytes).len());
        let known = CachedVersion {
            id: *id,
            record,
            stood,
            sent_at,
            keep,
            outcome,
        };
        let places = || (0..PLACES).map(|_| Mutex::default()).collect();
        let places = self.places.get_or_init(places);
        let mut bytes = self.bytes.fetch_add(known.bytes(), Ordering::Relaxed) + known.bytes();
        self.put(&places[place(id)], Some(Arc::new(known)));
        while bytes > MOST_BYTES {
            let next = self.next.fetch_add(1, Ordering::Relaxed) % PLACES;
            self.put(&places[next], None);
            bytes = self.bytes.load(Ordering::Relaxed);
        }
    }

    pub(crate) fn forget(&self, id: &RecordId) {
        let Some(places) = self.places.get() else {
            return;
        };
        let slot = &places[place(id)];
        let is_known = lock(slot).as_ref().is_some_and(|known| known.id == *id);
        if is_known {
            self.put(slot, None);
        }
    }

    /// Puts a record, whose bytes are counted, in the place of another one.
    fn put(&self, slot: &CacheSlot, known: Option<Arc<CachedVersion>>) {
        let before = std::mem::replace(&mut *lock(slot), known);
        if let Some(before) = before {
            self.bytes.fetch_sub(before.bytes(), Ordering::Relaxed);
        }
    }

    fn place(&self, id: &RecordId) -> Option<MutexGuard<'_, Option<Arc<CachedVersion>>>> {
        Some(lock(&self.places.get()?[place(id)]))
    }
}

/// Every part of an id is evenly spread, as it is a digest.
fn place(id: &RecordId) -> usize {
    let [a, b, ..] = *id.as_bytes();
    usize::from(u16::from_le_bytes([a, b])) % PLACES
}

impl CachedVersion {
    fn bytes(&self) -> usize {
        let (subject, record) = (&self.record.subject, &self.record);
        let note = record.note.as_deref();
        let note = note.map_or(0, |note| {
            note.text.len() + note.by.as_deref().map_or(0, str::len)
        });
        let trace = record.holder.trace_parent.as_deref().map_or(0, str::len);
        EACH + subject.scope.len() + subject.key.len() + subject.operation.len() + note + trace
    }

    pub(crate) fn version(&self) -> Version {
        self.record.version
    }

    /// Its outcome has no bytes.
    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// How many bytes its outcome has.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) fn outcome_bytes(&self) -> usize {
        self.outcome
    }

    pub(crate) fn expires(&self) -> Time {
        self.record.expires
    }

    /// The whole record, of which the store has just said that it stands, with the bytes of its
    /// outcome; `None` if the store holds none and there must be some.
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

    /// The latest that it can be by the store's clock, if the record has not expired.
    #[cfg(feature = "redis")]
    pub(crate) fn now(&self) -> Time {
        let last = Time::from_micros(self.expires().as_micros() - 1);
        self.now_at(Moment::now()).min(last)
    }

    /// The latest that it can be by the store's clock, if its clock and the ones here go at the
    /// same pace: the store read it after it was asked.
    fn now_at(&self, now: Moment) -> Time {
        self.stood.plus(now.since(self.sent_at))
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

opaque!(VersionCache);

#[cfg(test)]
mod tests;
