//! Cancellation: the caller goes away, the body panics or the runtime ends, at every await there
//! is.
//!
//! Afterwards, and without any time passing, the next call is answered: it runs, replays, or is
//! told *uncertain*.

mod dropped;

use std::{
    pin::Pin,
    sync::{Arc, mpsc},
    task::Poll,
    time::Duration,
};

use async_trait::async_trait;
use idempotent_runtime::{
    Error, Idempotency, OnCrash, RecordChange, Store, StoreError, current,
    identity::RecordId,
    record::{Draft, Record, State, Version},
    store::{Snapshot, Swap},
    testing::ManualClock,
};
use tokio::{sync::oneshot, task::yield_now};

use crate::{
    answers::{is_in_progress, is_uncertain},
    charge::{Answer, Charge, Found, MODES, Mode, charges_behind},
    harness::{Owner, World, runtime},
};

on_every_store![
    a_call_dropped_at_every_await,
    a_waiter_dropped_at_every_await,
    a_panic_at_every_await,
    a_panic_while_the_body_is_made,
    a_runtime_that_ends_at_every_await,
    a_heartbeat_thread_ends_with_its_handle,
    a_detached_call_dropped_once_it_is_claimed,
];

const AWAITS: usize = 3;

const DROPPED: &str = "dropped";

type Call = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// A store that is not done at once, neither before it takes effect nor after. It tells when its
/// last user is gone.
#[derive(Debug)]
struct Yielding {
    store: Arc<dyn Store>,
    gone: Option<oneshot::Sender<()>>,
}

impl Drop for Yielding {
    fn drop(&mut self) {
        if let Some(gone) = self.gone.take() {
            let _nobody_asks = gone.send(());
        }
    }
}

async fn slowly<T>(call: impl Future<Output = T> + Send) -> T {
    yield_now().await;
    let answer = call.await;
    yield_now().await;
    answer
}

#[async_trait]
impl Store for Yielding {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        slowly(self.store.load(id)).await
    }
    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        slowly(self.store.swap(id, seen, next)).await
    }
    async fn wait(
        &self,
        id: &RecordId,
        seen: Version,
        at_most: Duration,
    ) -> Result<(), StoreError> {
        slowly(self.store.wait(id, seen, at_most)).await
    }
    async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        slowly(self.store.purge(limit, keep)).await
    }
    async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        slowly(self.store.scan(after, limit)).await
    }
}

/// A handle of the process that goes away, and what resolves when nothing of it is left.
async fn mortal(world: &World) -> (Idempotency, oneshot::Receiver<()>) {
    let (gone, is_gone) = oneshot::channel();
    let store = Yielding {
        store: world.store().await,
        gone: Some(gone),
    };
    let built = Idempotency::builder(store).timer(ManualClock::new());
    let built = built.build();
    (built.expect("the set-up is sound"), is_gone)
}

/// Polls a call at most `polls` times; `None` where it was not done by then.
pub(crate) async fn polled<F: Future + ?Sized>(
    call: &mut Pin<Box<F>>,
    polls: usize,
) -> Option<F::Output> {
    let mut left = polls;
    std::future::poll_fn(|context| {
        left -= 1;
        match call.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Nothing of the process is left: no write, no heartbeat, no thread.
async fn is_gone(handle: Idempotency, gone: oneshot::Receiver<()>) {
    assert!(
        handle.shutdown(Duration::MAX).await,
        "everything is written"
    );
    drop(handle);
    gone.await
        .expect("the store is dropped, and so is its thread");
}

async fn state_of(world: &World, key: &str) -> Option<State> {
    let record = world.record_of(key).await;
    record.map(|record| record.state)
}

/// Checks what a call left that went away while it was under way, and that the next one is answered
/// at once.
async fn check(world: &World, key: &str, mode: Mode, what: &str) {
    let began = world.runs(key);
    let left = state_of(world, key).await;
    let next = world.owner().await;
    let charge = Charge::of(world, &next).key(key).mode(mode).rejecting();

    let answer = charge.call().await;

    assert!(
        !is_in_progress(&answer),
        "{what}: left {left:?}, {answer:?}"
    );
    let runs = world.runs(key);
    let expected = match (began, left, mode) {
        // It had not begun: whatever the mode, the next call is the first.
        (0, None | Some(State::Released), _) => answer == Ok("charged".into()) && runs == 1,
        // It was through: its outcome is recorded.
        (1, Some(State::Done), _) => answer == Ok("charged".into()) && runs == 1,
        (1, Some(State::Running), Mode::Rerun | Mode::Detach) => {
            answer == Ok("charged".into()) && runs == 2
        }
        (1, Some(State::Uncertain), Mode::Uncertain | Mode::Reconcile(Found::Unknown)) => {
            is_uncertain(&answer) && runs == 1
        }
        (1, Some(State::Uncertain), Mode::Reconcile(Found::Happened)) => {
            answer == Ok("found".into()) && runs == 1
        }
        (1, Some(State::Uncertain), Mode::Reconcile(Found::Nothing)) => {
            answer == Ok("charged".into()) && runs == 2
        }
        _ => false,
    };
    assert!(
        expected,
        "{what}: it began {began} times and left {left:?}; then {answer:?} after {runs} runs"
    );
    assert_eq!(
        charge.call().await,
        answer,
        "{what}: later answers are equal"
    );
}

/// Has calls go away in every mode, each after one poll more, until one is answered before that.
async fn goes_away_at_every_await(
    world: &World,
    how: &str,
    go_away: impl AsyncFn(Call, usize) -> Option<Answer>,
) {
    for (number, mode) in MODES.into_iter().enumerate() {
        for polls in 1.. {
            let key = format!("k{number}-{polls}");
            let (handle, gone) = mortal(world).await;
            let owner = world.owner().await;
            let charge = Charge::of(world, &owner).key(key.as_str()).mode(mode);
            let call = charge.awaits(AWAITS).call_with(&handle);

            let answer = go_away(call, polls).await;

            let what = format!("{mode:?}, {how} after {polls} polls");
            is_gone(handle, gone).await;
            check(world, &key, mode, &what).await;
            if mode == Mode::Detach && how == DROPPED {
                assert_eq!(world.runs(&key), 1, "{what}: what has begun runs on");
            }
            if let Some(answer) = answer {
                assert_eq!(answer, Ok("charged".into()));
                assert!(
                    polls > 1 || mode == Mode::Detach,
                    "there were awaits to go away at"
                );
                break;
            }
        }
    }
}

async fn a_call_dropped_at_every_await(world: World) {
    let drops = async |mut call: Call, polls| polled(&mut call, polls).await;
    goes_away_at_every_await(&world, DROPPED, drops).await;
}

async fn a_waiter_dropped_at_every_await(world: World) {
    let holder = world.owner().await;
    let (first, gate) = Charge::of(&world, &holder).begun().await;
    let before = world.record().await;
    for polls in 1..12 {
        let (handle, gone) = mortal(&world).await;
        let mut waiter = Charge::of(&world, &holder).call_with(&handle);

        // It waits by a clock that stands still, so that it may never be woken again.
        let waiting = tokio::time::timeout(Duration::from_millis(50), polled(&mut waiter, polls));
        assert!(!matches!(waiting.await, Ok(Some(_))), "it waits");
        drop(waiter);

        is_gone(handle, gone).await;
        assert_eq!(world.record().await, before, "it changed nothing");
    }
    charges_behind(&gate, first).await;
    assert_eq!(world.runs("k"), 1);
}

/// The code that makes the body is the application's, too. It sees its attempt, and may have done
/// something when it panics.
async fn a_panic_while_the_body_is_made(world: World) {
    let (first, next) = (world.owner().await, world.owner().await);
    let pay = |owner: &Owner| owner.call("pay").key("k").on_crash(OnCrash::Uncertain);

    let panicked = first.spawn(pay(&first).run(|_| {
        let number = current().number();
        assert_ne!(number, 1, "a planned panic");
        async move { Ok::<_, Error>(number) }
    }));

    assert!(panicked.await.is_err_and(|ended| ended.is_panic()));
    first.settled().await;
    let answer = pay(&next).run(async |_| Ok::<_, Error>(2)).await;
    assert!(matches!(answer, Err(Error::Uncertain { .. })), "{answer:?}");
}

async fn a_panic_at_every_await(world: World) {
    for (number, mode) in MODES.into_iter().enumerate() {
        for at in 0..AWAITS {
            let key = format!("k{number}-{at}");
            let (handle, gone) = mortal(&world).await;
            let owner = world.owner().await;
            let charge = Charge::of(&world, &owner).key(key.as_str()).mode(mode);
            let call = charge.awaits(AWAITS).panics_at(at).call_with(&handle);

            let panicked = tokio::spawn(call).await;

            let what = format!("{mode:?}, panic at {at}");
            let panicked = panicked.expect_err("the panic goes on").into_panic();
            assert_eq!(panicked.downcast_ref(), Some(&"a planned panic"), "{what}");
            is_gone(handle, gone).await;
            assert_ne!(
                state_of(&world, &key).await,
                Some(State::Released),
                "{what}"
            );
            check(&world, &key, mode, &what).await;
        }
    }
}

async fn a_runtime_that_ends_at_every_await(world: World) {
    let ends = async |mut call: Call, polls| {
        let on_its_own = std::thread::spawn(move || {
            let runtime = runtime(1);
            let (reached, is_reached) = mpsc::channel();
            runtime.spawn(async move {
                let answer = polled(&mut call, polls).await;
                reached.send(answer).expect("the runtime waits");
                std::future::pending::<()>().await;
            });
            let answer = is_reached.recv().expect("the call is polled");
            drop(runtime);
            answer
        });
        let joined = tokio::task::spawn_blocking(move || on_its_own.join()).await;
        joined.expect("no panic").expect("no panic")
    };
    goes_away_at_every_await(&world, "the runtime ended", ends).await;
}

async fn a_heartbeat_thread_ends_with_its_handle(world: World) {
    let (handle, gone) = mortal(&world).await;
    let owner = world.owner().await;
    let charge = Charge::of(&world, &owner);
    for key in ["a", "b", "c"] {
        let answer = charge.clone().key(key).call_with(&handle).await;
        assert_eq!(answer, Ok("charged".into()));
    }
    is_gone(handle, gone).await;
}

/// Its caller goes away as soon as the key is claimed. From then on the call has a task of its own,
/// so that it runs on and is recorded, also if its body had not been polled yet.
async fn a_detached_call_dropped_once_it_is_claimed(world: World) {
    let owner = world
        .owner_with(|builder| builder.on_crash(OnCrash::Uncertain))
        .await;
    let charge = Charge::of(&world, &owner).mode(Mode::Detach).awaits(AWAITS);

    let mut call = charge.call();
    std::future::poll_fn(|context| {
        let polled = call.as_mut().poll(context);
        if owner.log.count(RecordChange::Claimed) == 0 {
            assert!(polled.is_pending(), "it is not answered before it claims");
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
    drop(call);

    charge.charges().await;
    // The outcome stands in the store a moment before its own task tells of it.
    owner.settled().await;
    assert_eq!(owner.log.count(RecordChange::Recorded), 1);
    assert_eq!(world.runs("k"), 1);
}
