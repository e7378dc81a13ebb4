use super::*;
use crate::{
    fingerprint::Arguments,
    record::{
        FencingToken, Subject,
        draft::tests::{self, claim},
    },
};

const NOW: Time = Time::from_micros(1_000_000);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn id(number: u64) -> RecordId {
    let digest = <sha2::Sha256 as sha2::Digest>::digest(number.to_be_bytes());
    RecordId::from_bytes(digest.into())
}

fn completion(of: &Draft) -> Draft {
    Draft {
        lease: of.lease,
        ..tests::completion(of, "receipt")
    }
}

/// Notes that a draft was written over `before`, and gives the record that stands then.
fn wrote(cache: &VersionCache, id: &RecordId, before: Option<&Record>, next: &Draft) -> Record {
    let record = next.apply(before, NOW);
    let swap = Swap::Applied(Stamp::from_record(&record, NOW));
    let seen = before.map(|record| record.version);
    cache.record_write(id, seen, next, &swap, Moment::now());
    record
}

/// Notes a call from its claim to its outcome, and gives the record that stands then.
fn called(cache: &VersionCache, id: &RecordId, key: &[u8]) -> Record {
    let claim = claim(key);
    let running = wrote(cache, id, None, &claim);
    assert!(cache.done(id).is_none(), "it is not done yet");
    wrote(cache, id, Some(&running), &completion(&claim))
}

fn seen(record: Option<Record>) -> Snapshot {
    let record = record.map(Arc::new);
    Snapshot { now: NOW, record }
}

#[test]
fn what_was_called_here_is_known_but_for_its_outcome() {
    let cache = VersionCache::default();
    let record = called(&cache, &id(1), b"key");

    let known = cache.done(&id(1)).expect("it is known");
    assert_eq!(known.with(Some(b"receipt".to_vec())), Some(record.into()));
    assert_eq!(known.with(None), None, "there must be an outcome");
    assert!(cache.done(&id(2)).is_none());
}

#[test]
fn what_was_seen_is_known_until_it_is_seen_otherwise() {
    let cache = VersionCache::default();
    let record = called(&VersionCache::default(), &id(1), b"key");
    cache.observe(&id(1), &seen(Some(record.clone())), Moment::now());
    assert!(cache.done(&id(1)).is_some());

    let released = Record {
        state: State::Released,
        ..record.clone()
    };
    cache.observe(&id(1), &seen(Some(released)), Moment::now());
    assert!(cache.done(&id(1)).is_none());

    cache.observe(&id(1), &seen(Some(record)), Moment::now());
    cache.observe(&id(1), &seen(None), Moment::now());
    assert!(cache.done(&id(1)).is_none());
}

#[test]
fn what_was_written_over_something_unknown_is_not_known() {
    let cache = VersionCache::default();
    let (old, unknown) = (claim(b"key"), claim(b"key"));
    called(&cache, &id(1), b"key");

    let before = unknown.apply(None, NOW);
    wrote(&cache, &id(1), Some(&before), &completion(&old));

    assert!(cache.done(&id(1)).is_none());
}

#[test]
fn what_can_have_expired_is_not_asked_for() {
    let cache = VersionCache::default();
    let record = called(&VersionCache::default(), &id(1), b"key");
    let asked = Duration::from_secs(1);
    cache.observe(&id(1), &seen(Some(record)), Moment::at(asked, asked));
    let (early, over) = (asked + DAY / 2, asked + DAY);

    assert!(cache.done_at(&id(1), Moment::at(early, early)).is_some());
    assert!(cache.done_at(&id(1), Moment::at(over, over)).is_none());
    let woken = cache.done_at(&id(1), Moment::at(early, over));
    assert!(woken.is_none(), "the machine was suspended");
}

#[test]
fn what_the_store_resolved_is_known_as_it_said() {
    let cache = VersionCache::default();
    let claim = claim(b"key");
    let resolved = Stamp {
        token: FencingToken::from_u64(u64::MAX),
        lease_end: NOW.plus(2 * DAY),
        expires: NOW.plus(3 * DAY),
        ..Stamp::from_record(&claim.apply(None, NOW), NOW)
    };
    let applied = Swap::Applied(resolved);
    cache.record_write(&id(1), None, &claim, &applied, Moment::now());

    let known = cache.version(&id(1), Some(claim.version));
    let known = known.expect("it is known");
    assert_eq!(Stamp::from_record(known.record(), NOW), resolved);
}

#[test]
fn the_store_s_time_goes_on_from_the_question() {
    let cache = VersionCache::default();
    let claim = claim(b"key");
    let record = claim.apply(None, NOW);
    let swap = Swap::Applied(Stamp::from_record(&record, NOW));
    let second = Duration::from_secs(1);
    cache.record_write(&id(1), None, &claim, &swap, Moment::at(second, second));

    let known = cache
        .version(&id(1), Some(claim.version))
        .expect("it is known");
    let later = known.now_at(Moment::at(4 * second, 4 * second));
    assert_eq!(later, NOW.plus(3 * second));
}

#[test]
fn of_two_that_share_a_place_the_later_one_is_known() {
    let cache = VersionCache::default();
    let mut others = (2..).map(id).filter(|other| place(other) == place(&id(1)));
    let other = others.next().expect("some other id");
    called(&cache, &id(1), b"key");

    cache.observe(&other, &seen(None), Moment::now());
    assert!(cache.done(&id(1)).is_some(), "nothing is known of it");
    called(&cache, &other, b"key");

    assert!(cache.done(&other).is_some());
    assert!(cache.done(&id(1)).is_none());
}

#[test]
fn the_places_are_used_evenly() {
    const COUNT: usize = PLACES / 8;
    let cache = VersionCache::default();
    let ids = || (0..COUNT as u64).map(id);
    for id in ids() {
        called(&cache, &id, b"key");
    }
    let known = ids().filter(|id| cache.done(id).is_some()).count();
    // With eight urns a ball, about 6 % of the balls fall on another one.
    assert!(known > COUNT * 9 / 10, "{known}");
}

#[test]
fn the_known_records_take_up_no_more_than_their_bytes() {
    let cache = VersionCache::default();
    let (count, long) = (MOST_BYTES / EACH, [b'k'; LONGEST - 64]);
    for number in 0..count as u64 {
        called(&cache, &id(number), &long);
    }
    cache.forget(&id(0));
    let places = cache.places.get().expect("there are some");
    let known = places.iter().filter_map(|slot| lock(slot).clone());
    let bytes: usize = known.map(|known| known.bytes()).sum();
    assert_eq!(bytes, cache.bytes.load(Ordering::Relaxed));
    assert!((MOST_BYTES / 2..=MOST_BYTES).contains(&bytes), "{bytes}");
}

#[test]
fn long_names_take_no_memory() {
    let cache = VersionCache::default();
    called(&cache, &id(1), b"key");
    called(&cache, &id(1), &[b'k'; LONGEST]);
    assert!(cache.done(&id(1)).is_none());
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
    let cache = VersionCache::default();
    let running = wrote(&cache, &id(1), None, &claim);
    wrote(&cache, &id(1), Some(&running), &completion(&claim));
    drop((claim, running));

    assert!(given.upgrade().is_none(), "it holds what was encoded");
    let known = cache.done(&id(1)).expect("it is known");
    assert_eq!(known.record.subject.fingerprint.digests(), digests);
}

#[test]
#[cfg(feature = "redis")]
fn only_what_is_known_not_to_be_kept_vanishes_when_it_expires() {
    let cache = VersionCache::default();
    let record = called(&cache, &id(1), b"key");
    let vanishes = || cache.done(&id(1)).is_some_and(|known| known.vanishes());
    assert!(vanishes());
    cache.observe(&id(1), &seen(Some(record.clone())), Moment::now());
    assert!(vanishes(), "it is the same version");

    let kept = Draft {
        keep: DAY,
        ..completion(&claim(b"key"))
    };
    wrote(&cache, &id(1), Some(&record), &kept);
    assert!(!vanishes());

    let elsewhere = called(&VersionCache::default(), &id(1), b"key");
    cache.observe(&id(1), &seen(Some(elsewhere)), Moment::now());
    assert!(!vanishes(), "nobody knows how long it is kept");
}

#[test]
#[cfg(feature = "redis")]
fn what_stands_has_not_expired_whatever_the_clocks_say() {
    let draft = Draft {
        expires: crate::record::Moment::In(Duration::ZERO),
        ..completion(&claim(b"key"))
    };
    let known = CachedVersion {
        id: id(1),
        record: draft.apply(None, NOW),
        stood: NOW,
        sent_at: Moment::now(),
        keep: None,
        outcome: 0,
    };
    assert!(known.now() < known.expires());
}
