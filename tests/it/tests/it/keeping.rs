//! How long records stay, and how they are deleted.

use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};

use idempotent_runtime::{
    Builder, CallOutcome, Error, Observer, OnExpired, Purged, Status, StoreError, StoreErrorKind,
    idempotent,
    identity::RecordId,
    store::Store,
    testing::{Fault, Gate, On, StoreOperation},
};
use tokio::sync::watch;

use crate::harness::{Owner, World, claim};

on_every_store![
    what_is_kept_answers_nobody_and_is_found,
    what_is_kept_goes_when_the_key_is_used_again,
    what_is_kept_refuses_its_key_where_a_call_says_so,
    only_an_outcome_refuses_an_expired_key,
    a_purger_purges_at_once_and_at_every_turn,
    a_purger_goes_on_until_a_batch_is_not_full,
    a_purger_rests_for_as_long_as_a_batch_took,
    a_purger_that_rests_ends_at_once,
    a_purge_that_is_dropped_while_it_rests_can_be_called_again,
    a_purger_tells_of_an_error_and_tries_again,
    a_purger_survives_a_store_that_panics,
    a_purger_that_is_dropped_purges_no_more,
    a_purger_that_is_stopped_finishes_its_batch,
    a_purger_ends_with_the_shutdown_of_its_handle,
    a_purger_does_not_keep_its_handle,
    purgers_of_two_handles_run_beside_calls,
];

const HOUR: Duration = Duration::from_secs(60 * 60);

#[idempotent(name = "keeping.charge", key = key, ttl = "1h", skip(world))]
async fn charge(world: &World, key: &str) -> Result<usize, Error> {
    world.happened(key);
    Ok(world.runs(key))
}

/// How a purge ended.
type Ended = (u64, Option<StoreErrorKind>);

/// The report of every purge of an owner.
#[derive(Clone, Default)]
struct Purges(Arc<watch::Sender<Vec<Ended>>>);

impl Observer for Purges {
    fn purged(&self, purged: &Purged<'_>) {
        let failure = purged.failure.map(StoreError::kind);
        self.0
            .send_modify(|all| all.push((purged.deleted, failure)));
    }
}

impl Purges {
    /// All reports, once there are so many.
    async fn after(&self, count: usize) -> Vec<Ended> {
        let mut reported = self.0.subscribe();
        let enough = reported.wait_for(|all| all.len() >= count).await;
        enough.expect("the sender lives here").clone()
    }

    fn all(&self) -> Vec<Ended> {
        self.0.borrow().clone()
    }
}

/// An owner that keeps what has expired for two hours.
async fn keeps(world: &World) -> Owner {
    let keeps = |builder: Builder| builder.audit_retention("2h");
    world.owner_with(keeps).await
}

async fn watched(world: &World) -> (Owner, Purges) {
    let purges = Purges::default();
    let told = purges.clone();
    let owner = world.owner_with(|builder| builder.observer(told)).await;
    (owner, purges)
}

/// Leaves records that are expired and that no store forgets by itself: abandoned ones.
async fn abandoned(world: &World, count: u32) {
    let store = world.store().await;
    for number in 0..count {
        let mut id = [0xb7; 32];
        id[28..].copy_from_slice(&number.to_be_bytes());
        let swap = store.swap(&RecordId::from_bytes(id), None, &claim()).await;
        swap.expect("a claim is answered");
    }
    world.advance_store(HOUR).await;
}

async fn what_is_kept_answers_nobody_and_is_found(world: World) {
    let owner = keeps(&world).await;
    assert_eq!(owner.enter(charge(&world, "k")).await, Ok(1));
    world.advance(HOUR).await;
    assert_eq!(owner.idem.purge().await, Ok(0));

    let status = owner.idem.lookup("keeping.charge", None::<&str>, "k").await;
    let Ok(Status::Expired { since, last, .. }) = status else {
        panic!("{status:?}");
    };
    assert_eq!(since, world.record().await.expires);
    assert!(
        matches!(&*last, Status::Completed(kept) if kept.decode::<usize>().ok() == Some(1)),
        "{last:?}"
    );

    world.advance(HOUR).await;
    assert_eq!(owner.idem.purge().await, Ok(0));
    world.advance(HOUR).await;
    assert_eq!(owner.idem.purge().await, Ok(world.to_purge(1)));
    let status = owner.idem.lookup("keeping.charge", None::<&str>, "k").await;
    assert!(matches!(status, Ok(Status::Unknown)), "{status:?}");
}

async fn what_is_kept_goes_when_the_key_is_used_again(world: World) {
    let owner = keeps(&world).await;
    assert_eq!(owner.enter(charge(&world, "k")).await, Ok(1));
    world.advance(HOUR).await;

    assert_eq!(owner.enter(charge(&world, "k")).await, Ok(2));

    assert_eq!(world.records().await.len(), 1);
    let status = owner.idem.lookup("keeping.charge", None::<&str>, "k").await;
    assert!(
        matches!(&status, Ok(Status::Completed(kept)) if kept.decode::<usize>().ok() == Some(2)),
        "{status:?}"
    );
}

/// A charge that is not to be repeated while anything is known of it.
async fn refusing(owner: &Owner, key: &str, amount: u32) -> Result<u32, Error> {
    let call = owner.call("keeping.refuses").key(key).ttl("1h");
    let call = call.arguments(&amount).on_expired(OnExpired::Refuse);
    call.run(|_| async move { Ok(amount) }).await
}

async fn what_is_kept_refuses_its_key_where_a_call_says_so(world: World) {
    let owner = keeps(&world).await;
    assert_eq!(refusing(&owner, "k", 1).await, Ok(1));
    assert_eq!(refusing(&owner, "k", 1).await, Ok(1), "it replays");

    world.advance(HOUR).await;
    let expired = refusing(&owner, "k", 1).await;
    assert!(matches!(expired, Err(Error::Expired { .. })), "{expired:?}");
    assert_eq!(owner.log.answers().last(), Some(&CallOutcome::Expired));
    let reused = refusing(&owner, "k", 2).await;
    assert!(matches!(reused, Err(Error::KeyReused { .. })), "{reused:?}");

    // The record is not purged yet, and refuses no call any more.
    world.advance(2 * HOUR).await;
    assert_eq!(refusing(&owner, "k", 2).await, Ok(2));
}

async fn only_an_outcome_refuses_an_expired_key(world: World) {
    let owner = keeps(&world).await;
    let call = owner.call("keeping.refuses").key("k").ttl("1h");
    let released = call.arguments(&1_u32).release_errors();
    let released = released.run(|_| async { Err::<u32, _>(Error::AlreadyInstalled) });
    assert_eq!(released.await, Err(Error::AlreadyInstalled));
    let (dead, gate) = (world.owner().await, Gate::new());
    let (call, held) = (dead.call("keeping.refuses"), gate.clone());
    let call = call.key("abandoned").ttl("1h").arguments(&1_u32);
    let abandoned = tokio::spawn(call.run(|_| async move {
        held.pass().await;
        Ok::<u32, Error>(1)
    }));
    gate.arrived(1).await;
    dead.die_in(abandoned).await;

    world.advance(HOUR + HOUR / 2).await;

    for key in ["k", "abandoned"] {
        let answer = refusing(&owner, key, 2).await;
        assert_eq!(answer, Ok(2), "nothing is known of {key:?}");
    }
}

async fn a_purger_purges_at_once_and_at_every_turn(world: World) {
    let (owner, purges) = watched(&world).await;
    abandoned(&world, 2).await;

    let _purger = owner.idem.purge_every("10m").expect("a duration");
    assert_eq!(purges.after(1).await, [(2, None)]);
    owner.timer.await_sleepers(1).await;
    owner.timer.advance(Duration::from_secs(599));
    assert_eq!(owner.store.calls(StoreOperation::Purge), 1);
    abandoned(&world, 3).await;
    owner.timer.advance(Duration::from_secs(1));

    assert_eq!(purges.after(2).await, [(2, None), (3, None)]);
    assert_eq!(world.records().await.len(), 0);
}

async fn a_purger_goes_on_until_a_batch_is_not_full(world: World) {
    let (owner, purges) = watched(&world).await;
    abandoned(&world, 251).await;

    let _purger = owner.idem.purge_every("10m").expect("a duration");

    assert_eq!(purges.after(1).await, [(251, None)]);
    assert_eq!(owner.store.calls(StoreOperation::Purge), 2);
}

async fn a_purger_rests_for_as_long_as_a_batch_took(world: World) {
    const NANOSECOND: Duration = Duration::from_nanos(1);
    let half_a_second = Duration::from_millis(500);
    // A batch that takes longer has waited for something else than its work.
    for (took, rest) in [(half_a_second, half_a_second), (HOUR, 2 * half_a_second)] {
        let (owner, purges) = watched(&world).await;
        let slow = slow_batch(&world, &owner).await;
        let _purger = owner.idem.purge_every(HOUR).expect("a duration");
        rests(&owner, &slow, took).await;

        owner.timer.advance(rest - NANOSECOND);
        assert_eq!(owner.timer.sleepers(), 1, "it rests");
        assert_eq!(owner.store.calls(StoreOperation::Purge), 1);
        owner.timer.advance(NANOSECOND);

        assert_eq!(purges.after(1).await, [(251, None)]);
        assert_eq!(owner.store.calls(StoreOperation::Purge), 2);
    }
}

/// Holds the first batch of two at a gate, so that it takes as long as it should.
async fn slow_batch(world: &World, owner: &Owner) -> Gate {
    abandoned(world, 251).await;
    owner.delays(StoreOperation::Purge, On::Call(1))
}

/// Resolves when the purge rests after that batch, which took this long.
async fn rests(owner: &Owner, slow: &Gate, took: Duration) {
    slow.arrived(1).await;
    owner.timer.advance(took);
    slow.open();
    owner.timer.await_sleepers(1).await;
}

async fn a_purger_that_rests_ends_at_once(world: World) {
    for is_stopped in [true, false] {
        let (owner, purges) = watched(&world).await;
        let slow = slow_batch(&world, &owner).await;
        let purger = owner.idem.purge_every(HOUR).expect("a duration");
        rests(&owner, &slow, HOUR).await;

        if is_stopped {
            purger.stop().await;
        } else {
            owner.settled().await;
        }

        assert_eq!(purges.all(), [(250, None)]);
        assert_eq!(owner.store.calls(StoreOperation::Purge), 1);
        assert_eq!(owner.timer.sleepers(), 0, "nothing of it is left");
        assert_eq!(owner.idem.purge().await, Ok(1));
    }
}

async fn a_purge_that_is_dropped_while_it_rests_can_be_called_again(world: World) {
    let owner = world.owner().await;
    let slow = slow_batch(&world, &owner).await;
    let idem = owner.idem.clone();
    let purging = tokio::spawn(async move { idem.purge().await });
    rests(&owner, &slow, HOUR).await;

    purging.abort();
    assert!(purging.await.is_err_and(|ended| ended.is_cancelled()));

    assert_eq!(owner.timer.sleepers(), 0, "nothing of it is left");
    assert_eq!(world.records().await.len(), 1);
    assert_eq!(owner.idem.purge().await, Ok(1));
}

/// Has the first purge meet this fault, reported as this kind, and the next one go well.
async fn fails_once(world: &World, fault: Fault, kind: StoreErrorKind) {
    let (owner, purges) = watched(world).await;
    abandoned(world, 2).await;
    owner.fault(StoreOperation::Purge, On::Call(1), fault);

    let _purger = owner.idem.purge_every(HOUR).expect("a duration");
    let failed = (0, Some(kind));
    assert_eq!(purges.after(1).await, [failed]);
    owner.timer.await_sleepers(1).await;
    owner.timer.advance(HOUR);

    assert_eq!(purges.after(2).await, [failed, (2, None)]);
}

async fn a_purger_tells_of_an_error_and_tries_again(world: World) {
    let away = StoreErrorKind::Unavailable;
    fails_once(&world, Fault::Fail(away), away).await;
}

async fn a_purger_survives_a_store_that_panics(world: World) {
    fails_once(&world, Fault::Panic, StoreErrorKind::Other).await;
}

async fn a_purger_that_is_dropped_purges_no_more(world: World) {
    let (owner, purges) = watched(&world).await;
    let purger = owner.idem.purge_every(HOUR).expect("a duration");
    purges.after(1).await;
    owner.timer.await_sleepers(1).await;

    drop(purger);

    // The shutdown waits for nothing but the task.
    owner.settled().await;
    assert_eq!(owner.timer.sleepers(), 0);
    owner.timer.advance(HOUR);
    assert_eq!(owner.store.calls(StoreOperation::Purge), 1);
}

async fn a_purger_that_is_stopped_finishes_its_batch(world: World) {
    let (owner, purges) = watched(&world).await;
    let gate = slow_batch(&world, &owner).await;
    let purger = owner.idem.purge_every(HOUR).expect("a duration");
    gate.arrived(1).await;

    let mut stopping = pin!(purger.stop());
    let begun = poll_fn(|context| Poll::Ready(stopping.as_mut().poll(context)));
    assert!(begun.await.is_pending(), "the batch is under way");
    gate.open();
    stopping.await;

    assert_eq!(purges.all(), [(250, None)]);
    assert_eq!(world.records().await.len(), 1);
    assert_eq!(owner.store.calls(StoreOperation::Purge), 1);
    assert_eq!(owner.timer.sleepers(), 0, "nothing of it is left");
}

async fn a_purger_ends_with_the_shutdown_of_its_handle(world: World) {
    let (owner, purges) = watched(&world).await;
    let purger = owner.idem.purge_every(HOUR).expect("a duration");
    purges.after(1).await;

    owner.settled().await;

    owner.timer.advance(HOUR);
    assert_eq!(owner.store.calls(StoreOperation::Purge), 1);
    assert!(
        format!("{purger:?}").contains("is_over: true"),
        "{purger:?}"
    );
    let _again = owner.idem.purge_every(HOUR).expect("a duration");
    assert_eq!(purges.after(2).await.len(), 2, "a handle can be used again");
}

async fn a_purger_does_not_keep_its_handle(world: World) {
    let (owner, purges) = watched(&world).await;
    let (timer, purger) = (owner.timer.clone(), owner.idem.purge_every(HOUR));
    let _purger = purger.expect("a duration");
    purges.after(1).await;
    timer.await_sleepers(1).await;
    abandoned(&world, 1).await;

    drop(owner);
    timer.advance(HOUR);

    assert_eq!(purges.after(2).await, [(0, None), (1, None)]);
}

async fn purgers_of_two_handles_run_beside_calls(world: World) {
    let ((a, purged_by_a), (b, purged_by_b)) = (watched(&world).await, watched(&world).await);
    abandoned(&world, 300).await;

    let _purgers = [&a, &b].map(|owner| owner.idem.purge_every(HOUR).expect("a duration"));
    for number in 0..30 {
        let key = format!("k{number}");
        let (first, second) =
            tokio::join!(a.enter(charge(&world, &key)), b.enter(charge(&world, &key)));
        assert_eq!((first, second), (Ok(1), Ok(1)));
    }

    let purged = [purged_by_a.after(1).await, purged_by_b.after(1).await].concat();
    assert!(
        purged.iter().all(|(_, failure)| failure.is_none()),
        "{purged:?}"
    );
    assert_eq!(purged.iter().map(|(deleted, _)| deleted).sum::<u64>(), 300);
    assert_eq!(world.records().await.len(), 30, "no outcome was lost");
}

#[tokio::test]
async fn a_purger_refuses_what_is_no_pause() {
    let idem = idempotent_runtime::Idempotency::memory();
    for every in ["0ms", "soon", ""] {
        let refused = idem.purge_every(every);
        assert!(matches!(refused, Err(Error::InvalidPolicy(_))), "{every}");
    }
    let builder = idempotent_runtime::Idempotency::builder(idempotent_runtime::MemoryStore::new());
    assert!(builder.audit_retention("9999w").build().is_err());
}
