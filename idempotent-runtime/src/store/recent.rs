//! Which records this process has seen done lately.
//!
//! It is a guess that only saves work: a call whose record is likely to be done asks for it, where it would else carry
//! everything that a claim writes, to be refused. A guess that is wrong costs that call a round trip.

use std::{
    array, fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{
    identity::RecordId,
    record::{Draft, State},
    store::{Snapshot, Swap},
};

/// How many records are remembered at most: half a megabyte a store. Of two that share a place, the later one is.
const PLACES: usize = 1 << 16;

/// Remembers a part of each id, in the place that another part of it names.
pub(crate) struct Recent(Box<[AtomicU64]>);

impl Recent {
    pub(crate) fn is_likely(&self, id: &RecordId) -> bool {
        let (place, part) = self.place(id);
        place.is_some_and(|place| place.load(Ordering::Relaxed) == part)
    }

    /// Notes what stands under the id.
    pub(crate) fn saw(&self, id: &RecordId, snapshot: &Snapshot) {
        let state = snapshot.record.as_ref().map(|record| record.state);
        self.note(id, state);
    }

    /// Notes what a write came to.
    pub(crate) fn wrote(&self, id: &RecordId, next: &Draft, swap: &Swap) {
        match swap {
            Swap::Applied(_) => self.note(id, Some(next.state)),
            Swap::Refused(snapshot) => self.saw(id, snapshot),
        }
    }

    fn note(&self, id: &RecordId, state: Option<State>) {
        let (place, part) = self.place(id);
        let Some(place) = place else { return };
        if state == Some(State::Done) {
            place.store(part, Ordering::Relaxed);
        } else if place.load(Ordering::Relaxed) == part {
            place.store(0, Ordering::Relaxed);
        }
    }

    /// Every part of an id is evenly spread: it is a digest.
    fn place(&self, id: &RecordId) -> (Option<&AtomicU64>, u64) {
        let [a, b, c, d, part @ ..] = *id.as_bytes();
        let place = u32::from_le_bytes([a, b, c, d]) as usize % PLACES;
        let part = array::from_fn(|at| part[at]);
        (self.0.get(place), u64::from_le_bytes(part))
    }
}

impl Default for Recent {
    fn default() -> Self {
        Self((0..PLACES).map(|_| AtomicU64::new(0)).collect())
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

    fn id(number: u64) -> RecordId {
        let digest = <sha2::Sha256 as sha2::Digest>::digest(number.to_be_bytes());
        RecordId::from_bytes(digest.into())
    }

    #[test]
    fn what_is_done_is_likely_until_it_is_seen_otherwise() {
        let recent = Recent::default();
        assert!(!recent.is_likely(&id(1)));
        for seen in [None, Some(State::Running), Some(State::Uncertain)] {
            recent.note(&id(1), Some(State::Done));
            assert!(recent.is_likely(&id(1)));
            assert!(!recent.is_likely(&id(2)));
            recent.note(&id(1), seen);
            assert!(!recent.is_likely(&id(1)), "{seen:?}");
        }
    }

    #[test]
    fn of_two_that_share_a_place_the_later_one_is_likely() {
        let recent = Recent::default();
        let at = |id: &RecordId| recent.place(id).0.map(std::ptr::from_ref);
        let mut others = (2..).map(id).filter(|other| at(other) == at(&id(1)));
        let other = others.next().expect("some other id");
        recent.note(&id(1), Some(State::Done));

        recent.note(&other, None);
        assert!(recent.is_likely(&id(1)), "nothing is known of it");
        recent.note(&other, Some(State::Done));

        assert!(recent.is_likely(&other));
        assert!(!recent.is_likely(&id(1)));
    }

    #[test]
    fn every_place_is_used() {
        let recent = Recent::default();
        let mut seen = (0..PLACES as u64).filter(|number| {
            recent.note(&id(*number), Some(State::Done));
            recent.is_likely(&id(*number))
        });
        assert_eq!(seen.by_ref().count(), PLACES);
        let kept = (0..PLACES as u64).filter(|number| recent.is_likely(&id(*number)));
        // Of so many balls in as many urns, about 63 % of the urns are not empty.
        assert!(kept.count() > PLACES / 2);
    }
}
