//! Callers that go alone, callers that wait, and the answer to each of them.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    sync::atomic::{AtomicBool, Ordering},
    task::Poll,
};

use tokio::{
    runtime::{Builder, Runtime},
    sync::Semaphore,
    task::JoinHandle,
};

use super::*;
use crate::{
    record::{Time, draft::tests::claim},
    store::Snapshot,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// A store whose batches wait until a test lets them pass.
struct Gated {
    lanes: Lanes,
    /// The ids of each batch.
    batches: Mutex<Vec<Vec<u8>>>,
    passes: Semaphore,
    leaves_out: AtomicBool,
    panics: AtomicBool,
}

fn forced() -> Lanes {
    Lanes {
        is_forced: true,
        ..as_it_is()
    }
}

/// However slow the machine is, no caller leaves its queue.
fn as_it_is() -> Lanes {
    Lanes {
        longest_queued: 100 * PATIENCE,
        ..Lanes::new()
    }
}

fn id(number: u8) -> RecordId {
    RecordId::from_bytes([number; 32])
}

impl DoTogether for Gated {
    fn lanes(&self) -> Option<&Lanes> {
        Some(&self.lanes)
    }

    fn longest(&self) -> Duration {
        PATIENCE
    }

    async fn do_together(&self, _: Kind, jobs: &[Job]) -> Vec<Option<Answer>> {
        let ids = jobs.iter().map(|job| job.id.as_bytes()[0]).collect();
        lock(&self.batches).push(ids);
        self.passes.acquire().await.expect("it is open").forget();
        assert!(!self.panics.load(Ordering::SeqCst), "the store panics");
        let leaves_out = self.leaves_out.load(Ordering::SeqCst);
        let answer = |_: &Job| (!leaves_out).then(|| Ok(Swap::Refused(nothing())));
        jobs.iter().map(answer).collect()
    }
}

fn nothing() -> Snapshot {
    Snapshot {
        now: Time::from_micros(0),
        record: None,
    }
}

impl Gated {
    fn new(lanes: Lanes) -> Arc<Self> {
        Arc::new(Self {
            lanes,
            batches: Mutex::default(),
            passes: Semaphore::new(0),
            leaves_out: AtomicBool::default(),
            panics: AtomicBool::default(),
        })
    }

    /// A caller, in a task of its own.
    fn calls(self: &Arc<Self>, kind: Kind, number: u8) -> JoinHandle<Called> {
        let store = Arc::clone(self);
        tokio::spawn(async move { called(&store, kind, number).await })
    }

    /// Waits until so many batches were sent.
    async fn sends(&self, batches: usize) {
        while lock(&self.batches).len() < batches {
            yield_now().await;
        }
    }

    /// Waits until so many callers of this lane wait.
    async fn queues(&self, kind: Kind, callers: usize) {
        let lane = self.lanes.of(kind);
        let queued = || -> usize { lock(&lane.parties).iter().map(Party::queued).sum() };
        while queued() < callers {
            yield_now().await;
        }
    }

    fn batches(&self) -> Vec<Vec<u8>> {
        lock(&self.batches).clone()
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Called {
    Together,
    Alone,
    Failed,
}

async fn called(store: &Arc<Gated>, kind: Kind, number: u8) -> Called {
    let work = || match kind {
        Kind::Look => Work::Look,
        _ => Work::Claim {
            next: claim(&[number]),
            known: None,
        },
    };
    match pass(store, kind, &id(number), work).await {
        Passed::Answered(Ok(_)) => Called::Together,
        Passed::Answered(Err(_)) => Called::Failed,
        Passed::Alone(_) => Called::Alone,
    }
}

/// Callers that go their own way, and hold their places.
async fn direct(store: &Arc<Gated>, count: usize) -> Vec<Passed<'_>> {
    let mut places = Vec::new();
    for _ in 0..count {
        let passed = pass(store, Kind::Look, &id(0), || Work::Look).await;
        assert!(matches!(passed, Passed::Alone(_)));
        places.push(passed);
    }
    places
}

#[tokio::test]
async fn a_few_go_their_own_way_and_the_next_one_waits() {
    let store = Gated::new(as_it_is());
    let places = direct(&store, 4).await;
    let waits = store.calls(Kind::Look, 1);
    store.sends(1).await;
    store.passes.add_permits(1);
    assert_eq!(waits.await.expect("no panic"), Called::Together);
    drop(places);
    assert_eq!(called(&store, Kind::Look, 2).await, Called::Alone);
    assert_eq!(store.batches(), [[1]]);
}

#[tokio::test]
async fn what_comes_while_a_batch_is_under_way_is_the_next_batch() {
    let store = Gated::new(forced());
    let first = store.calls(Kind::Complete, 9);
    store.sends(1).await;
    let others = [3, 1, 2, 1].map(|number| store.calls(Kind::Complete, number));
    store.queues(Kind::Complete, 4).await;
    store.passes.add_permits(3);
    for caller in others.into_iter().chain([first]) {
        assert_eq!(caller.await.expect("no panic"), Called::Together);
    }
    // In the order of the ids, and each id once.
    assert_eq!(store.batches(), [vec![9], vec![1, 2, 3], vec![1]]);
}

#[tokio::test]
async fn looks_at_one_record_are_one_batch() {
    let store = Gated::new(forced());
    let first = store.calls(Kind::Look, 9);
    store.sends(1).await;
    let others = [5; 3].map(|number| store.calls(Kind::Look, number));
    store.queues(Kind::Look, 3).await;
    store.passes.add_permits(2);
    for caller in others.into_iter().chain([first]) {
        assert_eq!(caller.await.expect("no panic"), Called::Together);
    }
    assert_eq!(store.batches(), [vec![9], vec![5, 5, 5]]);
}

#[tokio::test]
async fn a_crowd_waits_until_it_is_none_any_more() {
    let store = Gated::new(as_it_is());
    let places = direct(&store, 4).await;
    let first = store.calls(Kind::Look, 200);
    store.sends(1).await;
    let crowd: Vec<_> = (1..=40).map(|it| store.calls(Kind::Look, it)).collect();
    store.queues(Kind::Look, 40).await;
    store.passes.add_permits(100);
    for caller in crowd.into_iter().chain([first]) {
        assert_eq!(caller.await.expect("no panic"), Called::Together);
    }
    drop(places);
    assert_eq!(called(&store, Kind::Look, 1).await, Called::Together);
    let mut lonely = 1;
    while called(&store, Kind::Look, 1).await == Called::Together {
        lonely += 1;
    }
    assert!(lonely < 8, "{lonely}");
}

#[tokio::test]
async fn what_a_batch_left_out_goes_alone_and_so_do_others_on_its_record() {
    let store = Gated::new(forced());
    store.leaves_out.store(true, Ordering::SeqCst);
    store.passes.add_permits(1);
    let left_out = pass(&store, Kind::Look, &id(1), || Work::Look).await;
    assert!(matches!(left_out, Passed::Alone(Some(_))));
    assert_eq!(called(&store, Kind::Look, 1).await, Called::Alone);
    let other = store.calls(Kind::Look, 2);
    store.sends(2).await;
    drop(left_out);
    store.leaves_out.store(false, Ordering::SeqCst);
    store.passes.add_permits(2);
    assert_eq!(called(&store, Kind::Look, 1).await, Called::Together);
    assert_eq!(other.await.expect("no panic"), Called::Together);
    assert_eq!(store.batches(), [[1], [2], [1]]);
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_the_queue() {
    let store = Gated::new(forced());
    let first = store.calls(Kind::Claim, 1);
    store.sends(1).await;
    let goes_away = store.calls(Kind::Claim, 2);
    store.queues(Kind::Claim, 1).await;
    goes_away.abort();
    goes_away.await.expect_err("it is gone");
    store.passes.add_permits(9);
    assert_eq!(first.await.expect("no panic"), Called::Together);
    assert_eq!(store.batches(), [[1]]);
}

#[tokio::test]
async fn a_batch_goes_on_without_the_caller_that_began_it() {
    let store = Gated::new(forced());
    let began = store.calls(Kind::Claim, 1);
    store.sends(1).await;
    let waits = store.calls(Kind::Claim, 2);
    store.queues(Kind::Claim, 1).await;
    began.abort();
    store.passes.add_permits(2);
    assert_eq!(waits.await.expect("no panic"), Called::Together);
    assert_eq!(store.batches(), [[1], [2]]);
}

#[tokio::test]
async fn if_a_store_panics_its_callers_know_nothing_and_the_others_go_alone() {
    let store = Gated::new(forced());
    store.panics.store(true, Ordering::SeqCst);
    let fails = store.calls(Kind::Claim, 1);
    store.sends(1).await;
    let waits = store.calls(Kind::Claim, 2);
    store.queues(Kind::Claim, 1).await;
    store.passes.add_permits(1);
    assert_eq!(fails.await.expect("no panic"), Called::Failed);
    let waits = timeout(PATIENCE, waits).await;
    let waits = waits.expect("it waits for no task that is gone");
    assert_eq!(waits.expect("no panic"), Called::Alone);
    store.panics.store(false, Ordering::SeqCst);
    store.passes.add_permits(1);
    // The task that stopped may still be counted.
    let mut next = Called::Alone;
    while next == Called::Alone {
        next = called(&store, Kind::Claim, 3).await;
    }
    assert_eq!(next, Called::Together);
}

/// A runtime with one worker.
fn one_worker() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build();
    runtime.expect("a runtime")
}

#[test]
fn a_runtime_that_ends_keeps_no_other_waiting() {
    let store = Gated::new(forced());
    let (ends, stays) = (one_worker(), one_worker());
    let lost = ends.spawn({
        let store = Arc::clone(&store);
        async move { called(&store, Kind::Claim, 1).await }
    });
    stays.block_on(store.sends(1));
    let waits = stays.spawn({
        let store = Arc::clone(&store);
        async move { called(&store, Kind::Claim, 2).await }
    });
    stays.block_on(store.sends(2));
    drop(ends);
    store.passes.add_permits(2);
    assert_eq!(stays.block_on(waits).expect("no panic"), Called::Together);
    assert!(stays.block_on(lost).is_err(), "its runtime is gone");
    assert_eq!(store.batches(), [[1], [2]]);
}

#[test]
fn a_caller_whose_task_is_kept_from_running_goes_alone() {
    let store = Gated::new(Lanes {
        longest_queued: LONGEST_QUEUED,
        ..forced()
    });
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let (blocks, is_blocked) = std::sync::mpsc::channel();
    let (goes_on, waits) = std::sync::mpsc::channel::<()>();
    // A task that it spawns is the next one of its own worker, and no other takes it.
    let first = runtime.spawn({
        let store = Arc::clone(&store);
        async move {
            let mut first = Box::pin(called(&store, Kind::Claim, 1));
            poll_fn(|context| Poll::Ready(first.as_mut().poll(context).is_pending())).await;
            blocks.send(()).expect("the test waits");
            let _ = waits.recv_timeout(PATIENCE);
            first.await
        }
    });
    is_blocked.recv_timeout(PATIENCE).expect("it is polled");
    let alone = runtime.spawn({
        let store = Arc::clone(&store);
        async move { called(&store, Kind::Claim, 2).await }
    });
    assert_eq!(runtime.block_on(alone).expect("no panic"), Called::Alone);
    goes_on.send(()).expect("it waits");
    store.passes.add_permits(1);
    let first = runtime.block_on(first).expect("no panic");
    assert!(
        matches!(first, Called::Together | Called::Alone),
        "{first:?}"
    );
}

#[test]
fn the_callers_of_runtimes_that_are_gone_are_forgotten() {
    let store = Gated::new(as_it_is());
    let mut seen = BTreeMap::new();
    for number in 0..5 {
        let passed = one_worker().block_on(called(&store, Kind::Look, 1));
        assert_eq!(passed, Called::Alone);
        seen.insert(number, lock(&store.lanes.of(Kind::Look).parties).len());
    }
    assert!(seen.values().all(|parties| *parties == 1), "{seen:?}");
}

#[tokio::test]
async fn a_batch_has_no_more_than_fits() {
    let store = Gated::new(forced());
    let first = store.calls(Kind::Look, 200);
    store.sends(1).await;
    let many: Vec<_> = (0..100).map(|it| store.calls(Kind::Look, it)).collect();
    store.queues(Kind::Look, 100).await;
    store.passes.add_permits(3);
    for caller in many.into_iter().chain([first]) {
        assert_eq!(caller.await.expect("no panic"), Called::Together);
    }
    let sizes: Vec<_> = store.batches().iter().map(Vec::len).collect();
    assert_eq!(sizes, [1, 64, 36]);
}

#[tokio::test]
async fn a_kind_that_no_statement_does_for_many_goes_alone() {
    let store = Gated::new(forced());
    store.lanes.turn_off(Kind::Claim);
    assert_eq!(called(&store, Kind::Claim, 1).await, Called::Alone);
    store.passes.add_permits(1);
    assert_eq!(called(&store, Kind::Look, 1).await, Called::Together);
}
