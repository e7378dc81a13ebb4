mod waits;

use std::hash::BuildHasher as _;
use std::{
    collections::HashSet,
    sync::atomic::{AtomicI64, Ordering},
};

use super::{cells::FIRST_SWEEP, hasher::IdHasher, *};
use crate::{
    fingerprint::Arguments,
    policy::OnCrash,
    protocol::{Claim, Ending, Holding, Meaning, first, sample},
    record::{AttemptId, RawOutcome, State, Subject, Time, micros},
    store::Stamp,
};

const TTL: Duration = Duration::from_secs(3600);
const ONE: RecordId = RecordId::from_bytes([1; 32]);

#[derive(Clone, Debug)]
struct Hands(Arc<AtomicI64>);

impl Hands {
    fn at(seconds: i64) -> Self {
        Self(Arc::new(AtomicI64::new(seconds * 1_000_000)))
    }
    fn turn(&self, by: Duration) {
        self.0.fetch_add(micros(by), Ordering::SeqCst);
    }
    fn turn_back(&self, by: Duration) {
        self.0.fetch_sub(micros(by), Ordering::SeqCst);
    }
}

impl Clock for Hands {
    fn now(&self) -> Time {
        Time::from_micros(self.0.load(Ordering::SeqCst))
    }
}

fn claim(on_crash: OnCrash) -> Claim {
    sample::claim(AttemptId::random(), on_crash)
}

/// A record as a first claim leaves it.
pub(crate) fn record(version: Version) -> Record {
    first(&claim(OnCrash::Rerun), version).apply(None, Time::from_micros(0))
}

fn done(claim: &Claim) -> Draft {
    let holding = Holding::new(claim, 1, claim.on_crash, Meaning::Fresh);
    holding.end(&Ending::Done(RawOutcome::value(vec![1])), Version::random())
}

fn id(number: u64) -> RecordId {
    let mut bytes = [0; 32];
    // Spread over the shards as a hash would.
    bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    RecordId::from_bytes(bytes)
}

async fn swapped(store: &MemoryStore, id: &RecordId, seen: Option<Version>, next: &Draft) -> Swap {
    let swapped = store.swap(id, seen, next).await;
    swapped.expect("memory does not fail")
}

async fn applied(store: &MemoryStore, id: &RecordId, seen: Option<Version>, next: &Draft) -> Stamp {
    match swapped(store, id, seen, next).await {
        Swap::Applied(stamp) => stamp,
        Swap::Refused(snapshot) => panic!("refused because of {snapshot:?}"),
    }
}

async fn refused(
    store: &MemoryStore,
    id: &RecordId,
    seen: Option<Version>,
    next: &Draft,
) -> Snapshot {
    match swapped(store, id, seen, next).await {
        Swap::Refused(snapshot) => snapshot,
        Swap::Applied(stamp) => panic!("applied with {stamp:?}"),
    }
}

async fn stands(store: &MemoryStore, id: &RecordId) -> Option<Arc<Record>> {
    store.load(id).await.expect("memory does not fail").record
}

/// Claims.
async fn begin(store: &MemoryStore, id: &RecordId) -> Stamp {
    let draft = first(&claim(OnCrash::Rerun), Version::random());
    applied(store, id, None, &draft).await
}

/// A claim where something else stands, or a version is asked for that does not.
async fn claim_refused(store: &MemoryStore, seen: Option<Version>) -> Snapshot {
    let draft = first(&claim(OnCrash::Rerun), Version::random());
    refused(store, &ONE, seen, &draft).await
}

/// How many it deletes.
async fn purged(store: &MemoryStore, limit: u32) -> u64 {
    let purged = store.purge(limit, Duration::ZERO).await;
    purged.expect("memory does not fail")
}

/// A store whose clock is turned by hand.
fn by_hand() -> (Hands, MemoryStore) {
    let hands = Hands::at(100);
    (hands.clone(), MemoryStore::with_clock(hands))
}

/// Claims and completes.
async fn finish(store: &MemoryStore, id: &RecordId) -> Stamp {
    let claim = claim(OnCrash::Rerun);
    let begun = applied(store, id, None, &first(&claim, Version::random())).await;
    applied(store, id, Some(begun.version), &done(&claim)).await
}

#[tokio::test]
async fn the_newest_come_first_also_after_a_clock_that_was_set_back() {
    let (hands, store) = by_hand();
    let mut bytes = *ONE.as_bytes();
    bytes[31] += 1;
    let later = RecordId::from_bytes(bytes);
    begin(&store, &ONE).await;
    hands.turn_back(Duration::from_secs(50));
    begin(&store, &later).await;
    let record = stands(&store, &ONE).await.expect("it stands");

    let cells = store.shard(&ONE).lock();
    let newest = cells.newest.of(&record.subject.operation, None);
    assert!(newest.map(|(_, id)| id).eq([ONE, later]));
}

#[tokio::test]
async fn a_swap_is_applied_only_over_the_version_that_it_saw() {
    let store = MemoryStore::with_clock(Hands::at(100));
    let claim = claim(OnCrash::Rerun);
    let begun = applied(&store, &ONE, None, &first(&claim, Version::random())).await;

    let snapshot = claim_refused(&store, None).await;
    assert_eq!(
        snapshot.record.map(|record| record.version),
        Some(begun.version)
    );
    assert_eq!(snapshot.now, Time::from_micros(100_000_000));
    refused(&store, &ONE, Some(Version::random()), &done(&claim)).await;

    let ended = applied(&store, &ONE, Some(begun.version), &done(&claim)).await;
    let record = stands(&store, &ONE).await.expect("it stands");
    assert_eq!(
        (record.state, record.version, record.token),
        (State::Done, ended.version, begun.token)
    );
}

#[tokio::test]
async fn a_swap_over_a_version_is_refused_where_nothing_stands() {
    let store = MemoryStore::new();

    let snapshot = claim_refused(&store, Some(Version::random())).await;

    assert!(snapshot.record.is_none());
}

#[tokio::test]
async fn a_draft_without_a_subject_never_begins_a_record() {
    let store = MemoryStore::new();

    refused(&store, &ONE, None, &done(&claim(OnCrash::Rerun))).await;

    assert!(stands(&store, &ONE).await.is_none());
}

#[tokio::test]
async fn an_expired_record_still_stands() {
    let (hands, store) = by_hand();
    let ended = finish(&store, &ONE).await;
    hands.turn(TTL * 2);

    let snapshot = claim_refused(&store, None).await;

    let record = snapshot.record.expect("it stands");
    assert!(record.version == ended.version && record.is_expired(snapshot.now));
}

#[tokio::test]
async fn a_purge_deletes_what_is_expired_and_no_more_than_it_is_told_to() {
    let (hands, store) = by_hand();
    for number in 0..200 {
        finish(&store, &id(number)).await;
    }
    hands.turn(TTL * 2);
    for number in 200..210 {
        finish(&store, &id(number)).await;
    }

    // However many each of its shards holds, which is about three.
    for _ in 0..75 {
        assert_eq!(purged(&store, 2).await, 2);
    }
    assert_eq!(purged(&store, 150).await, 50);
    assert_eq!(purged(&store, 150).await, 0);
    for number in 200..210 {
        assert!(stands(&store, &id(number)).await.is_some());
    }
}

#[tokio::test]
async fn v12_neither_purge_nor_sweep_removes_what_is_not_expired() {
    let (hands, store) = by_hand();
    let strict = claim(OnCrash::Uncertain);
    for number in 0..1000 {
        applied(
            &store,
            &id(number),
            None,
            &first(&strict, Version::random()),
        )
        .await;
    }
    hands.turn(TTL * 1000);

    let heartbeat =
        Holding::new(&strict, 1, OnCrash::Rerun, Meaning::Fresh).heartbeat(Version::random());
    let alive = stands(&store, &id(0)).await.expect("it stands");
    applied(&store, &id(0), Some(alive.version), &heartbeat).await;
    for number in 1000..3000 {
        finish(&store, &id(number)).await;
    }
    assert_eq!(purged(&store, u32::MAX).await, 0);

    for number in 0..1000 {
        assert!(stands(&store, &id(number)).await.is_some(), "{number}");
    }
}

#[tokio::test]
async fn i4_tokens_grow_over_a_purge_even_when_the_clock_steps_back() {
    let (hands, store) = by_hand();
    let before = finish(&store, &ONE).await;
    hands.turn(TTL * 2);
    assert_eq!(purged(&store, 1).await, 1);
    hands.turn_back(TTL * 3);

    let after = finish(&store, &ONE).await;

    assert!(after.token > before.token, "{after:?} {before:?}");
}

#[tokio::test]
async fn new_records_sweep_expired_ones_so_that_memory_stays_bounded() {
    let (hands, store) = by_hand();
    for number in 0..100_000 {
        finish(&store, &id(number)).await;
        hands.turn(TTL / 1000);
    }

    let standing = store
        .scan(None, u32::MAX)
        .await
        .expect("memory does not fail")
        .len();

    // A thousand are needed; no shard sweeps before it has sixty-four.
    assert!(
        (1000..=SHARDS * FIRST_SWEEP).contains(&standing),
        "{standing}"
    );
}

#[tokio::test]
async fn a_scan_lists_every_record_once_in_the_order_of_ids() {
    let store = MemoryStore::new();
    for number in 0..1000 {
        finish(&store, &id(number)).await;
    }

    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = store.scan(after, 77).await.expect("memory does not fail");
        assert!(page.len() <= 77);
        let Some((last, _)) = page.last() else { break };
        after = Some(*last);
        listed.extend(page.into_iter().map(|(id, _)| id));
    }

    assert!(listed.is_sorted());
    let distinct: HashSet<_> = listed.iter().collect();
    assert_eq!((listed.len(), distinct.len()), (1000, 1000));
}

#[test]
fn ids_are_spread_over_all_buckets() {
    let hasher = IdHasher::default();

    let same_byte: HashSet<_> = (0..=255)
        .map(|byte| hasher.hash_one(RecordId::from_bytes([byte; 32])))
        .collect();
    let counted: HashSet<_> = (0..4096)
        .map(|number| hasher.hash_one(id(number)) % 4096)
        .collect();

    assert_eq!(same_byte.len(), 256);
    // 4096 balls into 4096 bins leave about 63 % of them filled.
    assert!(counted.len() > 2200, "{}", counted.len());
}

#[tokio::test]
async fn long_arguments_take_no_memory() {
    let store = MemoryStore::with_clock(Hands::at(0));
    let mut stands = None;
    for note in ["a", "b"] {
        let mut arguments = Arguments::new();
        arguments.argument("note", &note.repeat(2 * LONGEST_HELD));
        let fingerprint = arguments.finish(None).expect("they are encoded");
        let digests = fingerprint.digests();
        let begun = claim(OnCrash::Rerun);
        let subject = Arc::new(Subject {
            fingerprint,
            ..Subject::clone(&begun.subject)
        });
        let given = Arc::downgrade(&subject);
        let claim = Claim { subject, ..begun };
        let version = Version::random();

        applied(&store, &ONE, stands, &first(&claim, version)).await;
        drop(claim);

        assert!(given.upgrade().is_none(), "it holds what was encoded");
        let record = Arc::clone(&store.shard(&ONE).lock().records[&ONE].record);
        assert_eq!(record.version, version);
        assert_eq!(record.subject.fingerprint.digests(), digests);
        stands = Some(version);
    }
}
