//! Which records this process has seen done lately.
//!
//! It is a guess that only saves work: a call whose record is likely to be done asks for it, where it would else carry
//! everything that a claim writes, to be refused. A guess that is wrong costs that call a round trip.

use std::{
    fmt,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{
    clock::{SystemTimer, Timer},
    identity::RecordId,
    record::{Draft, State},
    store::{Snapshot, Swap},
};

/// How many records are remembered at most: half a megabyte a store. Of two that share a place, the later one is.
const PLACES: usize = 1 << 16;

/// Remembers a part of each id, in the place that another part of it names, and the second in which its record expires.
///
/// There is no room for any until there is one.
#[derive(Default)]
pub(crate) struct Recent(OnceLock<Box<[AtomicU64]>>);

impl Recent {
    pub(crate) fn is_likely(&self, id: &RecordId) -> bool {
        self.is_likely_at(id, SystemTimer.now())
    }

    /// Notes what stands under the id.
    pub(crate) fn saw(&self, id: &RecordId, snapshot: &Snapshot) {
        let done = snapshot.record.as_ref();
        let done = done.filter(|record| record.state == State::Done);
        let left = done.map(|record| record.expires.since(snapshot.now));
        self.note(id, left, SystemTimer.now());
    }

    /// Notes what a write came to.
    pub(crate) fn wrote(&self, id: &RecordId, next: &Draft, swap: &Swap) {
        match swap {
            Swap::Applied(stamp) => {
                let left = stamp.expires.since(stamp.now);
                let left = (next.state == State::Done).then_some(left);
                self.note(id, left, SystemTimer.now());
            }
            Swap::Refused(snapshot) => self.saw(id, snapshot),
        }
    }

    fn is_likely_at(&self, id: &RecordId, now: Duration) -> bool {
        let (place, part) = place(id);
        self.0.get().is_some_and(|places| {
            let (seen, expires) = split(places[place].load(Ordering::Relaxed));
            seen == part && now.as_secs() < expires.into()
        })
    }

    /// `left` is how long a record that is done stays; `None` where none is.
    fn note(&self, id: &RecordId, left: Option<Duration>, now: Duration) {
        let (place, part) = place(id);
        if let Some(left) = left {
            let expires = now.saturating_add(left).as_secs();
            let expires = u32::try_from(expires).unwrap_or(u32::MAX);
            let places = (0..PLACES).map(|_| AtomicU64::new(0));
            let places = self.0.get_or_init(|| places.collect());
            let noted = u64::from(part) << 32 | u64::from(expires);
            places[place].store(noted, Ordering::Relaxed);
        } else if let Some(places) = self.0.get()
            && split(places[place].load(Ordering::Relaxed)).0 == part
        {
            places[place].store(0, Ordering::Relaxed);
        }
    }
}

/// Where an id is remembered, and by what. Every part of it is evenly spread, as it is a digest.
fn place(id: &RecordId) -> (usize, u32) {
    let [a, b, c, d, e, f, g, h, ..] = *id.as_bytes();
    let place = u32::from_le_bytes([a, b, c, d]) as usize % PLACES;
    (place, u32::from_le_bytes([e, f, g, h]))
}

/// A part of an id, and the second in which the record expires.
fn split(place: u64) -> (u32, u32) {
    ((place >> 32) as u32, place as u32)
}

impl fmt::Debug for Recent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recent").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn id(number: u64) -> RecordId {
        let digest = <sha2::Sha256 as sha2::Digest>::digest(number.to_be_bytes());
        RecordId::from_bytes(digest.into())
    }

    #[test]
    fn what_is_done_is_likely_until_it_is_seen_otherwise() {
        let recent = Recent::default();
        assert!(!recent.is_likely_at(&id(1), NOW));

        recent.note(&id(1), Some(DAY), NOW);
        assert!(recent.is_likely_at(&id(1), NOW));
        assert!(!recent.is_likely_at(&id(2), NOW));

        recent.note(&id(1), None, NOW);
        assert!(!recent.is_likely_at(&id(1), NOW));
    }

    #[test]
    fn what_expires_is_likely_no_more() {
        let recent = Recent::default();
        recent.note(&id(1), Some(DAY), NOW);
        assert!(recent.is_likely_at(&id(1), NOW + DAY - Duration::from_millis(1)));
        assert!(!recent.is_likely_at(&id(1), NOW + DAY));

        recent.note(&id(2), Some(Duration::MAX), NOW);
        assert!(recent.is_likely_at(&id(2), NOW + 1_000 * DAY));
    }

    #[test]
    fn of_two_that_share_a_place_the_later_one_is_likely() {
        let recent = Recent::default();
        let mut others = (2..)
            .map(id)
            .filter(|other| place(other).0 == place(&id(1)).0);
        let other = others.next().expect("some other id");
        recent.note(&id(1), Some(DAY), NOW);

        recent.note(&other, None, NOW);
        assert!(recent.is_likely_at(&id(1), NOW), "nothing is known of it");
        recent.note(&other, Some(DAY), NOW);

        assert!(recent.is_likely_at(&other, NOW));
        assert!(!recent.is_likely_at(&id(1), NOW));
    }

    #[test]
    fn the_places_are_used_evenly() {
        let recent = Recent::default();
        let ids = || (0..PLACES as u64).map(id);
        for id in ids() {
            recent.note(&id, Some(DAY), NOW);
        }
        let kept = ids().filter(|id| recent.is_likely_at(id, NOW)).count();
        // Of as many urns as balls, about 63 % are not empty.
        assert!(kept > PLACES / 2, "{kept}");
    }
}
