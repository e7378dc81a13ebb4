//! How heartbeats keep a lease, and how a lease ends without them.

use idempotent_runtime::{Builder, CallOutcome as Outcome};
use tokio::task::yield_now;

use super::*;

on_every_store![
    d12_heartbeat_keeps,
    d12_a_body_that_outlasts_the_ttl_is_not_forgotten_when_its_holder_vanishes,
    d13_heartbeat_stops,
    d14_heartbeat_error_transient,
    d15_heartbeat_error_lasting,
    d15_a_lease_is_given_up_when_it_ends_and_tried_for_further,
    d15_a_slow_heartbeat_counts_from_when_it_was_sent,
    d15_a_store_that_hangs_is_noticed_when_the_lease_ends,
    d16_extend_unknown_or_finished,
    a_body_that_outstays_the_maximum_hold_is_told,
    a_heartbeat_goes_on_while_the_outcome_is_being_written,
    a_heartbeat_beside_its_own_ending_loses_nothing,
    a_heartbeat_under_way_prolongs_nothing_that_was_dropped,
    a_heartbeat_whose_answer_was_lost_prolongs_the_lease,
];

async fn d12_heartbeat_keeps(world: World) {
    let (first, second) = (world.owner().await, world.owner().await);
    let (call, gate) = Charge::of(&world, &first).begun().await;

    for beat in 1..=15 {
        world.advance(LEASE / 3).await;
        first.log.await_steps(RecordChange::Heartbeat, beat).await;
        let answer = Charge::of(&world, &second).rejecting().call().await;
        assert!(
            is_in_progress(&answer),
            "after {beat} thirds of a lease: {answer:?}"
        );
    }

    charges_behind(&gate, call).await;
    assert_eq!(world.runs("k"), 1);
    assert_eq!(first.log.count(RecordChange::LeaseLost), 0);
    // Each write was over the version that the one before it had made.
    assert_eq!(first.store.calls(StoreOperation::Heartbeat), 15);
    assert_eq!(first.store.calls(StoreOperation::Ending), 1);
}

/// Its key stays bound for the ttl, counted from its last sign of life.
async fn d12_a_body_that_outlasts_the_ttl_is_not_forgotten_when_its_holder_vanishes(world: World) {
    let short = |builder: Builder| builder.ttl(LEASE * 2);
    let (first, second) = (world.owner_with(short).await, world.owner_with(short).await);
    let (call, _gate) = Charge::of(&world, &first).begun().await;
    beats(&world, &first, 15).await;
    first.die_in(call).await;
    world.advance(LEASE).await;

    is_told(&Charge::of(&world, &second).amount(2), is_reused).await;
    Charge::of(&world, &second).charges().await;
    let answers = second.log.answers();
    assert_eq!(answers[1], Outcome::ExecutedAfterTakeover);
}

async fn d13_heartbeat_stops(world: World) {
    let owner = world.owner().await;
    let charge = |key: &str| Charge::of(&world, &owner).key(key);
    charge("value").call().await.expect("it is charged");
    let failed = owner.call("charge").key("error").release_errors();
    let failed = failed.run(|_| async { Err::<(), _>(Error::InvalidPolicy("nothing happened")) });
    assert!(failed.await.is_err());
    let panics = charge("panic").awaits(1).panics_at(0).spawn();
    assert!(panics.await.is_err());
    let (dropped, _gate) = charge("drop").begun().await;
    abort(dropped).await;
    owner.settled().await;
    let before = world.records().await;
    let beats = owner.store.calls(StoreOperation::Heartbeat);

    for _ in 0..9 {
        owner.timer.advance(LEASE / 3);
        owner.settled().await;
    }

    assert_eq!(owner.store.calls(StoreOperation::Heartbeat), beats);
    assert_eq!(world.records().await, before);
}

async fn d14_heartbeat_error_transient(world: World) {
    let owner = world.owner().await;
    let (call, gate) = Charge::of(&world, &owner).begun().await;
    owner.fault(StoreOperation::Heartbeat, On::Next, Fault::LoseRequest);

    world.advance(LEASE / 3).await;
    owner.log.await_step(RecordChange::HeartbeatFailed).await;
    world.advance(LEASE / 12).await;
    owner.log.await_step(RecordChange::Heartbeat).await;

    charges_behind(&gate, call).await;
    assert_eq!(owner.log.count(RecordChange::LeaseLost), 0);
    assert_eq!(world.record().await.state, State::Done);
}

async fn d15_heartbeat_error_lasting(world: World) {
    let owner = world.owner().await;
    let inside = Gate::new();
    let at_gate = inside.clone();
    let call = tokio::spawn(owner.call("charge").key("k").run(|attempt| async move {
        at_gate.pass().await;
        attempt.lost().await;
        Ok::<_, Error>(attempt.is_lost())
    }));
    inside.arrived(1).await;
    inside.open();
    owner.fault(StoreOperation::Heartbeat, On::Every, Fault::LoseRequest);

    for (twelfths, failures) in (4..12).zip(1..) {
        world
            .advance(if twelfths == 4 { LEASE / 3 } else { LEASE / 12 })
            .await;
        owner
            .log
            .await_steps(RecordChange::HeartbeatFailed, failures)
            .await;
        assert_eq!(
            owner.log.count(RecordChange::LeaseLost),
            0,
            "after {twelfths} twelfths"
        );
    }
    assert!(!call.is_finished());
    let other = world.owner().await;
    world.advance(LEASE / 12).await;
    owner.log.await_step(RecordChange::LeaseLost).await;

    // No call took over, so its version stands and its outcome is recorded all the same.
    assert_eq!(call.await.expect("no panic"), Ok(true));
    assert_eq!(world.record().await.state, State::Done);
    let replayed = other.call("charge").key("k");
    assert_eq!(
        replayed.run(|_| async { Ok::<_, Error>(false) }).await,
        Ok(true)
    );
}

async fn d15_a_lease_is_given_up_when_it_ends_and_tried_for_further(world: World) {
    let (owner, other) = (world.owner().await, world.owner().await);
    let (call, gate) = Charge::of(&world, &owner).begun().await;
    owner.fault(StoreOperation::Heartbeat, On::Every, Fault::LoseRequest);

    // This is not in step with the tries, which come every twelfth of a lease.
    world.advance(Duration::from_secs(11)).await;
    owner.log.await_step(RecordChange::HeartbeatFailed).await;
    world.advance(Duration::from_millis(17_500)).await;
    owner
        .log
        .await_steps(RecordChange::HeartbeatFailed, 2)
        .await;
    assert_eq!(owner.log.count(RecordChange::LeaseLost), 0);
    world.advance(Duration::from_millis(1_500)).await;
    owner.log.await_step(RecordChange::LeaseLost).await;

    // No call took over, so its version stands and can be prolonged, also by a slow store.
    owner.store.heal();
    let slow = owner.delays(StoreOperation::Heartbeat, On::Next);
    world.advance(LEASE / 12).await;
    slow.arrived(1).await;
    slow.open();
    owner.log.await_step(RecordChange::Heartbeat).await;
    is_told(&Charge::of(&world, &other).rejecting(), is_in_progress).await;
    charges_behind(&gate, call).await;
    assert_eq!(world.runs("k"), 1);
}

async fn d15_a_slow_heartbeat_counts_from_when_it_was_sent(world: World) {
    let owner = world.owner().await;
    let (call, gate) = Charge::of(&world, &owner).begun().await;
    let slow = owner.delays_answer(StoreOperation::Heartbeat, On::Call(1));
    world.advance(LEASE / 3).await;
    slow.arrived(1).await;
    world.advance(LEASE / 6).await;
    slow.open();
    owner.log.await_step(RecordChange::Heartbeat).await;
    owner.fault(StoreOperation::Heartbeat, On::Every, Fault::LoseRequest);

    world.advance(LEASE * 5 / 6 - Duration::from_secs(1)).await;
    owner.log.await_step(RecordChange::HeartbeatFailed).await;
    assert_eq!(owner.log.count(RecordChange::LeaseLost), 0);
    world.advance(Duration::from_secs(1)).await;
    owner.log.await_step(RecordChange::LeaseLost).await;

    owner.store.heal();
    charges_behind(&gate, call).await;
}

async fn d15_a_store_that_hangs_is_noticed_when_the_lease_ends(world: World) {
    let owner = world.owner().await;
    let (call, gate) = Charge::of(&world, &owner).begun().await;
    let hangs = owner.delays(StoreOperation::Heartbeat, On::Every);

    world.advance(LEASE / 3).await;
    hangs.arrived(1).await;
    world.advance(LEASE / 3).await;
    owner.log.await_step(RecordChange::HeartbeatFailed).await;
    world.advance(LEASE / 12).await;
    hangs.arrived(2).await;
    assert_eq!(owner.log.count(RecordChange::LeaseLost), 0);
    // The second one hangs until the lease is over, and not for another third of it.
    world.advance(LEASE / 4).await;
    owner.log.await_step(RecordChange::LeaseLost).await;

    owner.store.heal();
    charges_behind(&gate, call).await;
}

async fn d16_extend_unknown_or_finished(world: World) {
    let (owner, other) = (world.owner().await, world.owner().await);
    let (call, gate) = Charge::of(&world, &owner).begun().await;
    world
        .advance_store(LEASE + Duration::from_secs(24 * 60 * 60))
        .await;
    // A run that may be repeated is forgotten.
    assert_eq!(other.idem.purge().await, Ok(1));

    owner.timer.advance(LEASE / 3);
    owner.log.await_step(RecordChange::LeaseLost).await;

    assert!(
        world.records().await.is_empty(),
        "a heartbeat creates nothing"
    );
    gate.open();
    let answer = call.await.expect("no panic");
    assert!(
        matches!(&answer, Err(error @ Error::LeaseLost { .. }) if error.is_retryable()),
        "{answer:?}"
    );
    assert!(world.records().await.is_empty(), "nor does a completion");
}

async fn a_body_that_outstays_the_maximum_hold_is_told(world: World) {
    let owner = world
        .owner_with(|builder| builder.max_run_time("15s"))
        .await;
    let other = world.owner().await;
    let (call, gate) = Charge::of(&world, &owner).answers("A").begun().await;

    world.advance(LEASE / 3).await;
    owner.log.await_steps(RecordChange::Heartbeat, 1).await;
    world.advance(LEASE / 3).await;
    while owner.timer.until_next() != Some(LEASE * 2 / 3) {
        yield_now().await;
    }
    assert_eq!(owner.log.count(RecordChange::LeaseLost), 0);
    world.advance(LEASE * 2 / 3).await;
    owner.log.await_step(RecordChange::LeaseLost).await;

    Charge::of(&world, &other).answers("B").charges().await;
    gate.open();
    assert_eq!(call.await.expect("no panic"), Ok("B".into()));
}

async fn a_heartbeat_goes_on_while_the_outcome_is_being_written(world: World) {
    let (owner, other) = (world.owner().await, world.owner().await);
    let slow = owner.delays(StoreOperation::Ending, On::Call(1));
    owner.fails(
        StoreOperation::Ending,
        On::Call(1),
        StoreErrorKind::Unavailable,
    );
    let call = Charge::of(&world, &owner).spawn();
    slow.arrived(1).await;

    beats(&world, &owner, 6).await;
    is_told(&Charge::of(&world, &other).rejecting(), is_in_progress).await;
    charges_behind(&slow, call).await;
    owner.log.await_step(RecordChange::Recorded).await;
    Charge::of(&world, &other).charges().await;
    assert_eq!(world.runs("k"), 1);
}

/// A record that its own holder left uncertain refuses a heartbeat as any uncertain record does.
async fn a_heartbeat_beside_its_own_ending_loses_nothing(world: World) {
    let owner = world.owner().await;
    let unanswered = owner.delays_answer(StoreOperation::Ending, On::Call(1));
    let call = owner.call("charge").key("k").uncertain_errors();
    let call = call.run(|_| async { Err::<(), _>(Error::InvalidPolicy("who knows")) });
    let call = tokio::spawn(call);
    unanswered.arrived(1).await;

    world.advance(LEASE / 3).await;
    while owner.store.calls(StoreOperation::Heartbeat) == 0 || owner.store.under_way() > 1 {
        yield_now().await;
    }
    unanswered.open();

    let answer = call.await.expect("no panic");
    assert_eq!(answer, Err(Error::InvalidPolicy("who knows")));
    owner.settled().await;
    owner.assert_steps(&[RecordChange::Claimed, RecordChange::LeftUncertain]);
    assert_eq!(owner.log.answers(), [Outcome::LeftUncertain]);
}

async fn a_heartbeat_under_way_prolongs_nothing_that_was_dropped(world: World) {
    for (key, mode) in [("rerun", Mode::Rerun), ("once", Mode::Uncertain)] {
        let owner = world.owner().await;
        let (call, _gate) = Charge::of(&world, &owner).key(key).mode(mode).begun().await;
        let under_way = owner.delays(StoreOperation::Heartbeat, On::Call(1));
        world.advance(LEASE / 3).await;
        under_way.arrived(1).await;
        abort(call).await;
        owner.settled().await;
        let left = world.records().await;

        // It is refused by what its holder left, and stops there. The next work of the same thread
        // comes after it.
        under_way.open();
        for number in 0..3 {
            let after = Charge::of(&world, &owner).key(format!("{key} {number}"));
            let (after, _gate) = after.begun().await;
            abort(after).await;
            owner.settled().await;
        }

        assert_eq!(owner.store.calls(StoreOperation::Heartbeat), 1);
        assert_eq!(owner.log.count(RecordChange::LeaseLost), 0);
        let stands = world.records().await;
        assert!(left.iter().all(|record| stands.contains(record)));
    }
}

/// The next heartbeat finds it, and fails itself, as all later ones do.
async fn a_heartbeat_whose_answer_was_lost_prolongs_the_lease(world: World) {
    let owner = world.owner().await;
    owner.fault(StoreOperation::Heartbeat, On::Call(1), Fault::LoseAnswer);
    for call in 3..30 {
        let never_arrives = Fault::LoseRequest;
        owner.fault(StoreOperation::Heartbeat, On::Call(call), never_arrives);
    }
    let (call, gate) = Charge::of(&world, &owner).begun().await;
    world.advance(LEASE / 3).await;
    let failed = RecordChange::HeartbeatFailed;
    owner.log.await_steps(failed, 1).await;
    let is_lost = || owner.log.count(RecordChange::LeaseLost);
    for beat in 2..=12 {
        assert_eq!(is_lost(), 0, "before heartbeat {beat}");
        world.advance(LEASE / 12).await;
        owner.log.await_steps(failed, beat).await;
    }
    // The first heartbeat was sent a third of a lease after the claim, and prolonged it by a lease.
    world.advance(LEASE / 12).await;
    owner.log.await_step(RecordChange::LeaseLost).await;
    gate.open();
    drop(call.await.expect("no panic"));
}
