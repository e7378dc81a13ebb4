//! Heartbeats of several leases, one after the other and side by side, and after a failure.

use tokio::task::yield_now;

use super::*;

on_every_store![
    a_heartbeat_under_way_says_nothing_of_the_lease_that_comes_after,
    heartbeats_go_on_after_one_whose_answer_was_lost,
    heartbeats_come_in_time_for_a_lease_that_is_shorter_than_others,
    heartbeats_come_again_after_the_thread_has_ended,
];

/// A finished lease is prolonged no more. It may give its place to a call that has only begun.
async fn a_heartbeat_under_way_says_nothing_of_the_lease_that_comes_after(world: World) {
    let owner = world.owner().await;
    let charge = |key: &str| Charge::of(&world, &owner).key(key);
    let (first, ends) = charge("first").begun().await;
    let under_way = owner.delays(StoreOperation::Heartbeat, On::Call(1));
    world.advance(LEASE / 3).await;
    under_way.arrived(1).await;
    charges_behind(&ends, first).await;
    let (second, gate) = charge("second").begun().await;

    // It is refused, and no other comes after it.
    under_way.open();
    while owner.store.under_way() > 0 {
        yield_now().await;
    }
    beats(&world, &owner, 3).await;

    charges_behind(&gate, second).await;
    assert_eq!(owner.log.count(RecordChange::LeaseLost), 0);
}

/// The heartbeat was applied, so the next one meets a version that its holder has never heard of.
async fn heartbeats_go_on_after_one_whose_answer_was_lost(world: World) {
    let (owner, other) = (world.owner().await, world.owner().await);
    let (call, gate) = Charge::of(&world, &owner).begun().await;
    owner.fault(StoreOperation::Heartbeat, On::Call(1), Fault::LoseAnswer);
    world.advance(LEASE / 3).await;
    owner.log.await_step(RecordChange::HeartbeatFailed).await;
    world.advance(LEASE / 12).await;

    for beat in 1..=4 {
        owner.log.await_steps(RecordChange::Heartbeat, beat).await;
        world.advance(LEASE / 3).await;
    }

    is_told(&Charge::of(&world, &other).rejecting(), is_in_progress).await;
    charges_behind(&gate, call).await;
    assert_eq!(owner.log.count(RecordChange::LeaseLost), 0);
}

/// The thread sleeps until the first of its known leases is due. A call that begins meanwhile may
/// be due before.
async fn heartbeats_come_in_time_for_a_lease_that_is_shorter_than_others(world: World) {
    let owner = world.owner().await;
    let (long, ends) = Charge::of(&world, &owner).key("long").begun().await;
    while owner.timer.until_next() != Some(LEASE / 3) {
        yield_now().await;
    }
    let (gate, short) = (Gate::new(), owner.call("charge").key("short"));
    let inside = gate.clone();
    let short = tokio::spawn(short.lease(LEASE / 10).run(|_| async move {
        inside.pass().await;
        Ok::<_, Error>(())
    }));
    gate.arrived(1).await;

    for beat in 1..=6 {
        world.advance(LEASE / 30).await;
        owner.log.await_steps(RecordChange::Heartbeat, beat).await;
    }

    gate.open();
    ends.open();
    assert_eq!(short.await.expect("no panic"), Ok(()));
    assert_eq!(long.await.expect("no panic"), Ok("charged".into()));
}

async fn heartbeats_come_again_after_the_thread_has_ended(world: World) {
    let owner = world.owner().await;
    let charge = |key: &str| Charge::of(&world, &owner).key(key);
    charge("first").charges().await;
    // The thread stays for a while when nothing is held. After that, nothing sleeps on the timer.
    owner.timer.await_sleepers(1).await;
    let mut ended = 0;
    while ended < 100 {
        match owner.timer.sleepers() {
            0 => ended += 1,
            _ => {
                ended = 0;
                owner.timer.advance(LEASE);
            }
        }
        yield_now().await;
    }

    let (second, gate) = charge("second").begun().await;
    beats(&world, &owner, 3).await;

    charges_behind(&gate, second).await;
}
