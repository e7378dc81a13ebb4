//! A store that is out of reach for longer than a lease, and a process that lives on: it knows what
//! became of its body.

use std::{task::Poll, time::Duration};

use idempotent_runtime::{
    Error, NotSettled, RecordChange,
    record::State,
    testing::{Fault, On, StoreOperation},
};

use tokio::task::yield_now;

use crate::{
    after_the_body::declined,
    answers::is_in_progress,
    charge::{Charge, LEASE, MODES, Mode, is_told, settle},
    harness::{Owner, World, not_settled},
};

on_every_store![
    a_duplicate_gets_what_could_not_be_recorded,
    what_could_not_be_recorded_is_not_settled_otherwise,
    an_outcome_is_written_once_a_heartbeat_gets_through,
    duplicates_do_not_press_a_store_that_takes_no_writes,
    who_never_ends_is_taken_over,
    a_body_that_still_runs_is_taken_over_here_as_from_anywhere_else,
    a_panic_after_the_body_is_written_before_its_key_is_taken_over_here,
];

/// Nothing that this owner writes is taken.
fn cut_off(owner: &Owner) {
    for operation in [StoreOperation::Ending, StoreOperation::Heartbeat] {
        owner.fault(operation, On::Every, Fault::LoseRequest);
    }
}

async fn a_duplicate_gets_what_could_not_be_recorded(world: World) {
    for (number, mode) in MODES.into_iter().enumerate() {
        let key = format!("k{number}");
        let owner = world.owner().await;
        let charge = Charge::of(&world, &owner).key(&*key).mode(mode);
        cut_off(&owner);
        charge.charges().await;
        world.advance_store(LEASE * 2).await;
        owner.log.await_step(RecordChange::NotYetRecorded).await;

        owner.store.heal();
        charge.charges().await;
        assert_eq!(world.runs(&key), 1, "{mode:?}");
    }
}

async fn what_could_not_be_recorded_is_not_settled_otherwise(world: World) {
    for (key, mode) in [("rerun", Mode::Rerun), ("once", Mode::Uncertain)] {
        let owner = world.owner_with(|builder| builder.max_takeovers(0)).await;
        let charge = Charge::of(&world, &owner).key(key).mode(mode);
        cut_off(&owner);
        charge.charges().await;
        world.advance_store(LEASE * 2).await;
        owner.log.await_step(RecordChange::NotYetRecorded).await;
        owner.store.heal();

        let settled = settle(&owner, key).with_value(&"not so").await;
        // The handle records what it knows as soon as it is asked.
        let is_told = |reason| {
            matches!(
                reason,
                Some(NotSettled::StillRunning | NotSettled::AlreadySettled)
            )
        };
        assert!(is_told(not_settled(settled)), "{mode:?}");
        // It may have looked just before that was written: then it finds a record that is not
        // parked.
        let resumed = not_settled(settle(&owner, key).resume().await);
        let is_not_parked = resumed == Some(NotSettled::NotParked);
        assert!(is_not_parked || is_told(resumed), "{mode:?}: {resumed:?}");

        charge.charges().await;
        assert_eq!(world.runs(key), 1, "{mode:?}");
    }
}

/// The heartbeat shows that the store takes writes again. So duplicates of what is known here, and
/// a shutdown, need not wait for the next try in turn.
async fn an_outcome_is_written_once_a_heartbeat_gets_through(world: World) {
    let owner = world.owner().await;
    let charge = Charge::of(&world, &owner);
    let beats = owner.delays(StoreOperation::Heartbeat, On::Every);
    owner.fault(StoreOperation::Ending, On::Every, Fault::LoseRequest);
    charge.charges().await;
    beats.arrived(1).await;
    while owner.store.calls(StoreOperation::Ending) < 2 {
        yield_now().await;
    }

    owner.store.heal();
    beats.open();

    // Time stands still, so that no try of the ending's own ever comes.
    owner.settled().await;
    assert_eq!(world.record().await.state, State::Done);
    charge.charges().await;
    assert_eq!(world.runs("k"), 1);
}

async fn duplicates_do_not_press_a_store_that_takes_no_writes(world: World) {
    let owner = world.owner().await;
    let charge = Charge::of(&world, &owner);
    cut_off(&owner);
    charge.charges().await;
    world.advance_store(LEASE * 2).await;
    owner.log.await_step(RecordChange::NotYetRecorded).await;
    let tries = owner.store.calls(StoreOperation::Ending);

    for _ in 0..100 {
        is_told(&charge.clone().rejecting(), is_in_progress).await;
    }

    // Time stands still: there is one try of the call's own, the first one in the background, and
    // one for all of these.
    let tries = owner.store.calls(StoreOperation::Ending) - tries;
    assert!(tries <= 2, "{tries} tries for a hundred duplicates");
}

/// A call that hangs with an outcome that is never written must not keep its key for ever, not even
/// for its own handle.
async fn who_never_ends_is_taken_over(world: World) {
    let owner = world.owner_with(|builder| builder.max_run_time("1m")).await;
    let charge = Charge::of(&world, &owner);
    let held = owner.delays(StoreOperation::Ending, On::Call(1));
    let mut hangs = charge.call();
    std::future::poll_fn(|context| {
        assert!(hangs.as_mut().poll(context).is_pending());
        match held.arrivals() {
            0 => Poll::Pending,
            _ => Poll::Ready(()),
        }
    })
    .await;
    let rejecting = charge.clone().answers("again").rejecting();
    world.advance_store(LEASE * 2).await;
    is_told(&rejecting, is_in_progress).await;

    owner.timer.advance(Duration::from_secs(61));
    world.advance_store(LEASE * 2).await;

    assert_eq!(rejecting.call().await, Ok("again".into()));
    held.open();
    assert_eq!(hangs.await, Ok("again".into()));
}

/// It is unknown what becomes of the body, even to the handle that runs it.
async fn a_body_that_still_runs_is_taken_over_here_as_from_anywhere_else(world: World) {
    let owner = world.owner().await;
    owner.fault(StoreOperation::Heartbeat, On::Every, Fault::LoseRequest);
    let charge = Charge::of(&world, &owner);
    let (runs, gate) = charge.clone().begun().await;
    world.advance_store(LEASE * 2).await;

    charge.clone().answers("again").rejecting().charges().await;
    gate.open();
    let runs = runs.await.expect("no panic");
    assert_eq!(runs, Ok("again".into()), "what stands answers both");
}

/// The body has returned, whatever the application's own code does with its error.
async fn a_panic_after_the_body_is_written_before_its_key_is_taken_over_here(world: World) {
    let owner = world.owner().await;
    cut_off(&owner);
    let first = tokio::spawn(declined(world.clone(), owner.clone())).await;
    assert!(first.is_err_and(|ended| ended.is_panic()));
    for operation in [StoreOperation::Ending, StoreOperation::Heartbeat] {
        while owner.store.calls(operation) == 0 {
            yield_now().await;
        }
    }
    world.advance_store(LEASE * 2).await;

    owner.store.heal();
    let again = declined(world.clone(), owner).await;

    assert!(matches!(again, Err(Error::Uncertain { .. })), "{again:?}");
    assert_eq!(world.runs("k"), 1);
}
