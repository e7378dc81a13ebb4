//! The end of each call, as observers hear of it.

use std::{
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::FutureExt as _;
use idempotent_runtime::{
    CallEvent, CallOutcome, Error, Observer, RecordChange, StoreErrorKind,
    testing::{On, StoreOperation},
};

use super::{LEASE, held, inside, open};
use crate::harness::{Owner, World};

on_every_store![
    a_body_that_is_released_or_left_uncertain_says_so,
    a_call_that_has_no_answer_has_an_end,
    a_future_that_is_never_polled_is_no_call,
    an_end_names_how_long_it_waited_and_the_attempt,
    an_end_names_the_kind_of_the_store_s_error,
];

/// What an end says besides the operation and the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    outcome: CallOutcome,
    waited: Duration,
    attempt: Option<u32>,
    store_error: Option<StoreErrorKind>,
}

const fn end(outcome: CallOutcome, attempt: Option<u32>) -> End {
    End {
        outcome,
        waited: Duration::ZERO,
        attempt,
        store_error: None,
    }
}

#[derive(Clone, Default)]
struct Ends(Arc<Mutex<Vec<End>>>);

impl Observer for Ends {
    fn answered(&self, event: &CallEvent<'_>) {
        let end = End {
            outcome: event.outcome,
            waited: event.waited,
            attempt: event.attempt,
            store_error: event.store_error,
        };
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(end);
    }
}

impl Ends {
    async fn of(world: &World) -> (Owner, Self) {
        let ends = Self::default();
        let observer = ends.clone();
        let owner = world.owner_with(|builder| builder.observer(observer));
        (owner.await, ends)
    }

    fn take(&self) -> Vec<End> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn a_body_that_is_released_or_left_uncertain_says_so(world: World) {
    let (owner, ends) = Ends::of(&world).await;
    let call = |name: &str| owner.call(name).key("k");
    let fails = async |_| Err::<u32, _>(Error::AlreadyInstalled);

    let released = call("observed.released").release_errors().run(fails);
    assert!(released.await.is_err());
    assert_eq!(ends.take(), [end(CallOutcome::Released, Some(1))]);
    let again = call("observed.released").release_errors();
    assert_eq!(again.run(async |_| Ok::<_, Error>(1)).await, Ok(1));
    assert_eq!(ends.take(), [end(CallOutcome::Executed, Some(1))]);

    for outcome in [CallOutcome::LeftUncertain, CallOutcome::Uncertain] {
        let uncertain = call("observed.uncertain").uncertain_errors().run(fails);
        assert!(uncertain.await.is_err());
        let attempt = (outcome == CallOutcome::LeftUncertain).then_some(1);
        assert_eq!(ends.take(), [end(outcome, attempt)]);
    }
}

async fn a_call_that_has_no_answer_has_an_end(world: World) {
    let (owner, ends) = Ends::of(&world).await;
    // Dropped while its body runs, and while another call waits for it.
    let (runs, gate) = inside(&world, &owner, "k").await;
    let waits = owner.spawn(held(world.clone(), open(), "k".into(), 1));
    owner.log.await_step(RecordChange::Waiting).await;
    waits.abort();
    assert!(waits.await.is_err_and(|stopped| stopped.is_cancelled()));
    assert_eq!(ends.take(), [end(CallOutcome::Dropped, None)]);
    runs.abort();
    assert!(runs.await.is_err_and(|stopped| stopped.is_cancelled()));
    assert_eq!(ends.take(), [end(CallOutcome::Dropped, Some(1))]);
    drop(gate);

    let call = owner.call("observed.panics").key("k");
    let panics = async |_| -> Result<(), Error> { panic!("a planned panic") };
    let panicked = AssertUnwindSafe(call.run(panics)).catch_unwind().await;
    assert!(panicked.is_err());
    assert_eq!(ends.take(), [end(CallOutcome::Panicked, Some(1))]);
}

async fn a_future_that_is_never_polled_is_no_call(world: World) {
    let (owner, ends) = Ends::of(&world).await;
    drop(owner.enter(held(world.clone(), open(), "k".into(), 1)));
    let call = owner.call("observed.unpolled").key("k");
    drop(call.run(async |_| Ok::<_, Error>(1)));
    assert_eq!(ends.take(), []);
}

async fn an_end_names_how_long_it_waited_and_the_attempt(world: World) {
    let (owner, ends) = Ends::of(&world).await;
    let (first, gate) = inside(&world, &owner, "k").await;
    let second = owner.spawn(held(world.clone(), open(), "k".into(), 1));
    owner.log.await_step(RecordChange::Waiting).await;
    world.advance(Duration::from_secs(5)).await;
    gate.open();
    for call in [first, second] {
        assert_eq!(call.await.expect("it does not panic"), Ok(1));
    }
    let mut both = ends.take();
    both.sort_by_key(|end| end.waited);
    let waited = End {
        waited: Duration::from_secs(5),
        ..end(CallOutcome::ReplayedAfterWait, Some(1))
    };
    assert_eq!(both, [end(CallOutcome::Executed, Some(1)), waited]);

    // A second attempt, and its replay.
    let zombie = world.owner().await;
    let unavailable = StoreErrorKind::Unavailable;
    zombie.fails(StoreOperation::Heartbeat, On::Every, unavailable);
    let (_stale, _gate) = inside(&world, &zombie, "stale").await;
    world.advance(LEASE).await;
    for outcome in [CallOutcome::ExecutedAfterTakeover, CallOutcome::Replayed] {
        let mut call = pin!(owner.enter(held(world.clone(), open(), "stale".into(), 1)));
        assert_eq!(call.as_mut().await, Ok(1));
        assert_eq!(ends.take(), [end(outcome, Some(2))]);
    }
}

async fn an_end_names_the_kind_of_the_store_s_error(world: World) {
    let (owner, ends) = Ends::of(&world).await;
    owner.fails(StoreOperation::Claim, On::Next, StoreErrorKind::Denied);
    let refused = owner.enter(held(world.clone(), open(), "claim".into(), 1));
    assert!(matches!(refused.await, Err(Error::Store(_))));
    let refused = End {
        store_error: Some(StoreErrorKind::Denied),
        ..end(CallOutcome::StoreFailed, None)
    };
    assert_eq!(ends.take(), [refused]);

    owner.fails(StoreOperation::Ending, On::Next, StoreErrorKind::Full);
    let executed = owner.enter(held(world.clone(), open(), "ending".into(), 1));
    assert_eq!(executed.await, Ok(1));
    let executed = End {
        store_error: Some(StoreErrorKind::Full),
        ..end(CallOutcome::Executed, Some(1))
    };
    assert_eq!(ends.take(), [executed]);
}
