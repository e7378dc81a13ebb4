//! The heartbeat thread beside a store that panics or hangs: nothing of it is lost for good.

use std::time::Duration;

use idempotent_runtime::{
    CallOutcome, RecordChange,
    clock::Timer,
    record::State,
    store::StoreErrorKind,
    testing::{Fault, On, StoreOperation},
};

use crate::{
    answers::is_not_replayable,
    charge::{Charge, LEASE, charges_behind, is_told},
    harness::{Owner, World, said_during, said_in_the_background},
};

on_every_store![
    heartbeats_survive_a_panic_while_they_connect,
    heartbeats_survive_a_panic_in_one_of_them,
    an_outcome_survives_a_panic_in_the_background,
    an_outcome_survives_a_write_that_hangs_in_the_background,
    an_outcome_is_recorded_while_a_heartbeat_is_under_way,
    an_outcome_is_recorded_by_a_store_that_takes_longer_than_a_short_lease,
    an_outcome_that_the_store_never_takes_is_recorded_as_happened,
    an_outcome_that_the_store_denies_is_not_left_out,
    an_outcome_that_the_store_denies_for_good_is_recorded_as_happened,
    an_outcome_is_recorded_by_a_store_that_was_full_for_longer_than_a_lease,
    an_outcome_is_recorded_by_a_store_that_denied_for_longer_than_a_lease,
    an_outcome_is_recorded_by_a_store_that_was_out_of_reach_for_longer_than_a_lease,
];

/// Lets time go on until `done`, from sleep to sleep, and only while nothing else is waited for. To
/// a holder, a write that is under way while a lease goes by is one that hangs. As many calls of
/// the store as `held` are held at a gate.
async fn pass_time(world: &World, owner: &Owner, held: u64, done: impl Fn(&Owner) -> bool) {
    while !done(owner) {
        let next = owner.timer.until_next().unwrap_or_default();
        if !next.is_zero() && next <= LEASE && owner.store.under_way() <= held {
            world.advance(next).await;
        }
        tokio::task::yield_now().await;
    }
}

/// Asserts that the next call is answered with what is recorded once everything is written.
async fn is_kept(world: &World, owner: &Owner) {
    owner.settled().await;
    Charge::of(world, owner).charges().await;
    assert_eq!(world.runs("k"), 1);
}

fn recorded(owner: &Owner) -> bool {
    owner.log.count(RecordChange::Recorded) > 0
}

async fn heartbeats_survive_a_panic_while_they_connect(world: World) {
    let owner = world.owner().await;
    owner.fault(StoreOperation::ForHeartbeats, On::Every, Fault::Panic);

    let (call, gate) = Charge::of(&world, &owner).begun().await;
    for beat in 1..=4 {
        world.advance(LEASE / 3).await;
        owner.log.await_steps(RecordChange::Heartbeat, beat).await;
    }

    charges_behind(&gate, call).await;
    owner.settled().await;
    owner.assert_steps(&[RecordChange::Claimed, RecordChange::Recorded]);
}

async fn heartbeats_survive_a_panic_in_one_of_them(world: World) {
    let owner = world.owner().await;
    owner.fault(StoreOperation::Heartbeat, On::Call(1), Fault::Panic);

    let (call, gate) = Charge::of(&world, &owner).begun().await;
    world.advance(LEASE / 3).await;
    while owner.store.calls(StoreOperation::Heartbeat) == 0 {
        tokio::task::yield_now().await;
    }
    // The next try comes sooner than after a heartbeat that went well.
    world.advance(LEASE / 12).await;
    owner.log.await_step(RecordChange::Heartbeat).await;
    world.advance(LEASE / 3).await;
    owner.log.await_steps(RecordChange::Heartbeat, 2).await;

    charges_behind(&gate, call).await;
    owner.settled().await;
    owner.assert_steps(&[RecordChange::Claimed, RecordChange::Recorded]);
}

async fn an_outcome_survives_a_panic_in_the_background(world: World) {
    let owner = world.owner().await;
    owner.fails(
        StoreOperation::Ending,
        On::Call(1),
        StoreErrorKind::Unavailable,
    );
    // The next ones are in the background.
    for nth in 2..=3 {
        owner.fault(StoreOperation::Ending, On::Call(nth), Fault::Panic);
    }

    Charge::of(&world, &owner).charges().await;
    owner.assert_steps(&[RecordChange::Claimed, RecordChange::NotYetRecorded]);

    pass_time(&world, &owner, 0, recorded).await;
    is_kept(&world, &owner).await;
    assert!(owner.store.calls(StoreOperation::Ending) >= 4);
}

async fn an_outcome_survives_a_write_that_hangs_in_the_background(world: World) {
    let owner = world.owner().await;
    owner.fails(
        StoreOperation::Ending,
        On::Call(1),
        StoreErrorKind::Unavailable,
    );
    let hanging = owner.delays(StoreOperation::Ending, On::Call(2));

    Charge::of(&world, &owner).charges().await;
    hanging.arrived(1).await;
    // It is given up after a lease, and meanwhile the lease is kept.
    owner.log.await_step(RecordChange::Heartbeat).await;
    for beat in 2..=3 {
        world.advance(LEASE / 3).await;
        owner.log.await_steps(RecordChange::Heartbeat, beat).await;
        assert_eq!(owner.store.calls(StoreOperation::Ending), 2);
        assert_eq!(world.record().await.state, State::Running);
    }

    let given_up = |owner: &Owner| owner.store.calls(StoreOperation::Ending) > 2;
    pass_time(&world, &owner, 1, given_up).await;
    pass_time(&world, &owner, 0, recorded).await;
    owner.settled().await;
    assert!(owner.store.calls(StoreOperation::Ending) >= 3);
    assert!(
        owner.log.count(RecordChange::Heartbeat) < 10,
        "given up after a lease"
    );
    Charge::of(&world, &owner).charges().await;
    owner.assert_answers(&[CallOutcome::Executed, CallOutcome::Replayed]);
    assert_eq!(world.runs("k"), 1);
}

/// As when the lease is a tenth of a second, and the store has a slow moment.
async fn an_outcome_is_recorded_by_a_store_that_takes_longer_than_a_short_lease(world: World) {
    const SHORT: Duration = Duration::from_millis(100);
    let owner = world.owner_with(|builder| builder.lease(SHORT)).await;
    owner.fails(
        StoreOperation::Ending,
        On::Call(1),
        StoreErrorKind::Unavailable,
    );
    let slow = owner.delays(StoreOperation::Ending, On::Every);
    Charge::of(&world, &owner).charges().await;
    slow.arrived(1).await;

    for beat in 1..=20 {
        owner.log.await_steps(RecordChange::Heartbeat, beat).await;
        world.advance(SHORT / 3).await;
    }
    assert_eq!(
        owner.store.calls(StoreOperation::Ending),
        2,
        "it is under way"
    );
    slow.open();

    owner.log.await_step(RecordChange::Recorded).await;
    owner.settled().await;
    Charge::of(&world, &owner).charges().await;
}

/// The thread waits for what wakes it, also when a lease that is worth a look is being prolonged
/// already.
async fn an_outcome_is_recorded_while_a_heartbeat_is_under_way(world: World) {
    let owner = world.owner().await;
    let slow = owner.delays(StoreOperation::Heartbeat, On::Call(1));
    owner.fails(
        StoreOperation::Ending,
        On::Call(1),
        StoreErrorKind::Unavailable,
    );

    let (call, gate) = Charge::of(&world, &owner).begun().await;
    world.advance(LEASE / 3).await;
    slow.arrived(1).await;
    charges_behind(&gate, call).await;

    owner.log.await_step(RecordChange::Recorded).await;
    slow.open();
    owner.settled().await;
}

async fn an_outcome_that_the_store_never_takes_is_recorded_as_happened(world: World) {
    let owner = world.owner().await;
    // For a lease it is tried as it is, and then without it, too.
    is_recorded_as_happened(&world, &owner, StoreErrorKind::Full, LEASE).await;
}

/// Asserts that an outcome which the store refuses so is left out, and no sooner.
async fn is_recorded_as_happened(
    world: &World,
    owner: &Owner,
    refusal: StoreErrorKind,
    no_sooner: Duration,
) {
    owner.fails(StoreOperation::Outcome, On::Every, refusal);
    Charge::of(world, owner).charges().await;

    let began = owner.timer.now();
    let left_out = |owner: &Owner| owner.log.count(RecordChange::RecordedNotReplayable) > 0;
    pass_time(world, owner, 0, left_out).await;
    assert!(owner.timer.now() > began + no_sooner);
    owner.settled().await;

    is_told(&Charge::of(world, owner), is_not_replayable).await;
    assert_eq!(world.runs("k"), 1);
}

/// The second write may go to another server than the first, as when a primary was read-only until
/// another one took over.
async fn an_outcome_that_the_store_denies_is_not_left_out(world: World) {
    let owner = world.owner().await;
    owner.fails(StoreOperation::Outcome, On::Every, StoreErrorKind::Denied);
    Charge::of(&world, &owner).charges().await;

    let began = owner.timer.now();
    let for_two_leases = |owner: &Owner| owner.timer.now() > began + 2 * LEASE;
    pass_time(&world, &owner, 0, for_two_leases).await;
    assert_eq!(world.record().await.state, State::Running);
    owner.store.heal();
    pass_time(&world, &owner, 0, recorded).await;
    is_kept(&world, &owner).await;
}

/// A rule of the database may deny it, if the rule depends on what is written.
async fn an_outcome_that_the_store_denies_for_good_is_recorded_as_happened(world: World) {
    let owner = world
        .owner_with(|builder| builder.max_run_time(LEASE * 2))
        .await;
    is_recorded_as_happened(&world, &owner, StoreErrorKind::Denied, LEASE * 2).await;
}

/// An operator who reads it finds the record, and why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_in_the_background_names_the_call_and_the_cause() {
    let world = World::memory().await;
    let owner = world.owner().await;
    owner.fails(StoreOperation::Heartbeat, On::Every, StoreErrorKind::Denied);
    owner.fails(StoreOperation::Outcome, On::Every, StoreErrorKind::Full);
    let (answer, aloud) = said_during(Charge::of(&world, &owner).call()).await;
    assert_eq!(answer, Ok("charged".into()));
    pass_time(&world, &owner, 0, |owner| {
        owner.log.count(RecordChange::RecordedNotReplayable) > 0
    })
    .await;
    owner.settled().await;

    let (id, _) = world.records().await.remove(0);
    let said = said_in_the_background();
    let refused = said
        .lines()
        .find(|line| line.contains("the store refuses an outcome"));
    let refused = refused.unwrap_or_else(|| panic!("{said}"));
    assert!(refused.contains("charge"), "{refused}");
    assert!(refused.contains(&id.to_string()), "{refused}");
    // Of an outage it is one line for all calls, wherever it was met first.
    let mut lines = aloud.lines().chain(said.lines());
    let outage = lines.find(|line| line.contains("the store fails"));
    let outage = outage.unwrap_or_else(|| panic!("{aloud}{said}"));
    assert!(outage.contains("charge"), "{outage}");
    let causes = ["the store has no room left", "the store may not be written"];
    assert!(
        causes.iter().any(|cause| outage.contains(cause)),
        "{outage}"
    );
}

/// As when the disk was full for a while: the outcome itself was not the reason.
async fn an_outcome_is_recorded_by_a_store_that_was_full_for_longer_than_a_lease(world: World) {
    is_recorded_once_the_store_takes_writes(&world, StoreErrorKind::Full).await;
}

/// As when a primary was read-only for a while, because another one takes over.
async fn an_outcome_is_recorded_by_a_store_that_denied_for_longer_than_a_lease(world: World) {
    is_recorded_once_the_store_takes_writes(&world, StoreErrorKind::Denied).await;
}

/// As many outcomes in a row as the library tries to write in more than two leases.
const REFUSED: u64 = 40;

async fn is_recorded_once_the_store_takes_writes(world: &World, refusal: StoreErrorKind) {
    let owner = world.owner().await;
    let refuses = || Fault::Fail(refusal);
    for nth in 1..=REFUSED {
        owner.fault(StoreOperation::Outcome, On::Call(nth), refuses());
    }
    owner.fault(StoreOperation::NotReplayable, On::Every, refuses());
    let began = owner.timer.now();
    Charge::of(world, &owner).charges().await;

    pass_time(world, &owner, 0, recorded).await;
    let took = owner.timer.now().saturating_sub(began);
    assert!(took > 2 * LEASE, "{took:?}");
    is_kept(world, &owner).await;
}

/// A try that got no answer says nothing against the outcome, however long there was none. The
/// outcome is not left out of the record.
async fn an_outcome_is_recorded_by_a_store_that_was_out_of_reach_for_longer_than_a_lease(
    world: World,
) {
    let owner = world.owner().await;
    let unanswered = || Fault::Fail(StoreErrorKind::Unavailable);
    owner.fault(StoreOperation::Ending, On::Every, unanswered());
    Charge::of(&world, &owner).charges().await;
    let began = owner.timer.now();
    let for_two_leases = |owner: &Owner| owner.timer.now() > began + 2 * LEASE;
    pass_time(&world, &owner, 0, for_two_leases).await;

    owner.store.heal();
    owner.fault(StoreOperation::Outcome, On::Next, unanswered());
    pass_time(&world, &owner, 0, |owner| {
        recorded(owner) || owner.log.count(RecordChange::RecordedNotReplayable) > 0
    })
    .await;
    is_kept(&world, &owner).await;
}
