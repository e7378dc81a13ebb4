//! Interleavings of the memory store and of its waiters, as shuttle's schedulers choose them.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};

use ::shuttle::{future::block_on, thread};

use super::*;
use crate::{
    policy::OnCrash,
    protocol::{Claim, ClaimDecision, Ending, Holding, Meaning, decide, first, sample},
    record::{AttemptId, RawOutcome, State, Time},
    store::Stamp,
};

const SCHEDULES: usize = 5000;
const ONE: RecordId = RecordId::from_bytes([1; 32]);

/// Time stands still: nothing that happens here may depend on it.
#[derive(Debug)]
struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Time {
        Time::from_micros(1_000_000)
    }
}

fn claim(number: u128) -> Claim {
    sample::claim(AttemptId::from_u128(number), OnCrash::Rerun)
}

fn swap(store: &MemoryStore, seen: Option<Version>, draft: &Draft) -> Swap {
    block_on(store.swap(&ONE, seen, draft)).expect("memory does not fail")
}

/// One call from its first swap to an outcome, as the driver makes it.
fn call(
    store: &MemoryStore,
    number: u128,
    inside: &AtomicUsize,
    bodies: &AtomicUsize,
) -> Arc<Record> {
    let claim = claim(number);
    let mut seen = None;
    let mut draft = first(&claim, Version::random());
    let snapshot = loop {
        let snapshot = match swap(store, seen, &draft) {
            Swap::Applied(stamp) => {
                run(store, &claim, stamp, inside, bodies);
                block_on(store.load(&ONE)).expect("memory does not fail")
            }
            Swap::Refused(snapshot) => snapshot,
        };
        match decide(&claim, &snapshot, Version::random) {
            ClaimDecision::Write {
                seen: version,
                draft: next,
                ..
            } => (seen, draft) = (version, next),
            ClaimDecision::InProgress(record, _) => {
                if let Some(waiter) = store.waiter(&ONE, record.version) {
                    block_on(waiter);
                }
                (seen, draft) = (None, first(&claim, Version::random()));
            }
            ClaimDecision::Replay(record) => break record,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(snapshot.state, State::Done);
    snapshot
}

/// The body, with a heartbeat in its middle.
fn run(
    store: &MemoryStore,
    claim: &Claim,
    stamp: Stamp,
    inside: &AtomicUsize,
    bodies: &AtomicUsize,
) {
    assert_eq!(
        inside.fetch_add(1, Ordering::SeqCst),
        0,
        "two holders at a time"
    );
    bodies.fetch_add(1, Ordering::SeqCst);
    let holding = Holding::new(claim, 1, OnCrash::Rerun, Meaning::Fresh);
    let Swap::Applied(beat) = swap(
        store,
        Some(stamp.version),
        &holding.heartbeat(Version::random()),
    ) else {
        panic!("a heartbeat of the holder was refused");
    };
    thread::yield_now();
    inside.fetch_sub(1, Ordering::SeqCst);
    let ending = Ending::Done(RawOutcome::value(vec![7]));
    let Swap::Applied(_) = swap(
        store,
        Some(beat.version),
        &holding.end(&ending, Version::random()),
    ) else {
        panic!("the completion of the holder was refused");
    };
}

fn duplicates_of_one_call() {
    let store = Arc::new(MemoryStore::with_clock(Stopped));
    let (inside, bodies) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let calls: Vec<_> = (0..3)
        .map(|number| {
            let (store, inside, bodies) =
                (Arc::clone(&store), Arc::clone(&inside), Arc::clone(&bodies));
            thread::spawn(move || call(&store, number, &inside, &bodies))
        })
        .collect();
    let outcomes: Vec<_> = calls
        .into_iter()
        .map(|call| call.join().expect("no panic").outcome.clone())
        .collect();
    assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]));
    assert_eq!(bodies.load(Ordering::SeqCst), 1);
    assert_eq!(store.shard(&ONE).waiters.count(), 0);
}

#[test]
fn i1_duplicates_have_one_holder_at_a_time_and_all_of_them_end() {
    ::shuttle::check_random(duplicates_of_one_call, SCHEDULES);
    ::shuttle::check_pct(duplicates_of_one_call, SCHEDULES, 3);
}

/// A waiter that looked before the completion wakes by it, however the two are interleaved: shuttle
/// reports a deadlock where the wake-up is lost.
fn wait_beside_a_completion() {
    let store = Arc::new(MemoryStore::with_clock(Stopped));
    let claim = claim(1);
    let Swap::Applied(begun) = swap(&store, None, &first(&claim, Version::random())) else {
        panic!("refused")
    };
    let waiters: Vec<_> = (0..2)
        .map(|_| {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                if let Some(waiter) = store.waiter(&ONE, begun.version) {
                    block_on(waiter);
                }
                let moved = block_on(store.load(&ONE))
                    .expect("memory does not fail")
                    .record
                    .expect("it stands");
                assert_eq!(moved.state, State::Done);
            })
        })
        .collect();
    let holding = Holding::new(&claim, 1, OnCrash::Rerun, Meaning::Fresh);
    swap(
        &store,
        Some(begun.version),
        &holding.end(&Ending::Done(RawOutcome::value(vec![7])), Version::random()),
    );
    for waiter in waiters {
        waiter.join().expect("no panic");
    }
    assert_eq!(store.shard(&ONE).waiters.count(), 0);
}

#[test]
fn no_wake_up_is_lost() {
    ::shuttle::check_pct(wait_beside_a_completion, SCHEDULES, 3);
    ::shuttle::check_random(wait_beside_a_completion, SCHEDULES);
}

#[test]
fn a_dropped_waiter_neither_leaks_nor_takes_a_wake_up_with_it() {
    let schedule = || {
        let store = Arc::new(MemoryStore::with_clock(Stopped));
        let claim = claim(1);
        let Swap::Applied(begun) = swap(&store, None, &first(&claim, Version::random())) else {
            panic!("refused")
        };
        let mut dropped = store.waiter(&ONE, begun.version).expect("it stands");
        let kept = store.waiter(&ONE, begun.version).expect("it stands");
        let gives_up = thread::spawn(move || {
            let polled = Pin::new(&mut dropped).poll(&mut Context::from_waker(Waker::noop()));
            drop(dropped);
            matches!(polled, Poll::Ready(()))
        });
        let stays = thread::spawn(move || block_on(kept));
        let holding = Holding::new(&claim, 1, OnCrash::Rerun, Meaning::Fresh);
        swap(
            &store,
            Some(begun.version),
            &holding.heartbeat(Version::random()),
        );
        stays.join().expect("no panic");
        gives_up.join().expect("no panic");
        assert_eq!(store.shard(&ONE).waiters.count(), 0);
    };
    ::shuttle::check_pct(schedule, SCHEDULES, 3);
    ::shuttle::check_random(schedule, SCHEDULES);
}
