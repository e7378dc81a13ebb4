//! Claims whose answers were lost: they are given up, and never left to be uncertain.

use idempotent_runtime::{record::State, testing::Gate};

use super::*;
use crate::{
    charge::{charges_behind, lapsed},
    harness::Event,
};

on_every_store![
    a_claim_whose_answers_were_all_lost_is_given_up,
    a_claim_that_never_arrived_is_told_to_nobody,
    a_claim_whose_answer_was_lost_is_given_up_although_the_next_try_fails,
    claims_are_given_up_one_at_a_time_beside_heartbeats,
    claims_whose_leases_are_over_are_not_given_up,
    a_claim_is_given_up_although_the_store_hangs_on_the_one_before,
    a_takeover_that_is_given_up_is_told_under_one_number,
];

async fn a_claim_whose_answers_were_all_lost_is_given_up(world: World) {
    for (key, mode) in [("rerun", Mode::Rerun), ("once", Mode::Uncertain)] {
        let owner = world.owner().await;
        owner.fault(StoreOperation::Claim, On::Every, Fault::LoseAnswer);
        let answer = during(&owner, &Charge::of(&world, &owner).key(key).mode(mode)).await;
        assert!(is_store_error(&answer), "{answer:?}");

        owner.log.await_step(RecordChange::Released).await;
        owner.assert_steps(&[RecordChange::Claimed, RecordChange::Released]);

        owner.store.heal();
        let charge = Charge::of(&world, &owner).key(key).mode(mode).rejecting();
        let answer = charge.call().await;
        assert_eq!(answer, Ok("charged".into()), "{mode:?}: it had never begun");
        assert_eq!(world.runs(key), 1);
    }
    lapsed(&world, Mode::Uncertain).await;
    let owner = world.owner().await;
    is_told(&Charge::of(&world, &owner), is_uncertain).await;
    let mut states = world.states().await;
    states.retain(|state| *state == State::Uncertain);
    assert_eq!(states.len(), 1);
}

/// A count of beginnings and ends finds neither.
async fn a_claim_that_never_arrived_is_told_to_nobody(world: World) {
    let owner = world.owner().await;
    owner.fault(StoreOperation::Claim, On::Every, Fault::LoseRequest);

    let answer = during(&owner, &Charge::of(&world, &owner)).await;
    assert!(is_store_error(&answer), "{answer:?}");
    owner.store.heal();
    let settled = owner.clone();
    while_time_goes_on(&owner.timer, async move { settled.settled().await }).await;

    assert_eq!(owner.log.steps(), []);
}

/// The reason why a try failed says nothing about the try before it.
async fn a_claim_whose_answer_was_lost_is_given_up_although_the_next_try_fails(world: World) {
    for (key, mode) in [("rerun", Mode::Rerun), ("once", Mode::Uncertain)] {
        let owner = world.owner().await;
        let full = Fault::Fail(StoreErrorKind::Full);
        owner.fault(StoreOperation::Claim, On::Call(1), Fault::LoseAnswer);
        owner.fault(StoreOperation::Claim, On::Call(2), full);
        let charge = Charge::of(&world, &owner).key(key).mode(mode);
        let answer = during(&owner, &charge).await;
        assert!(is_store_error(&answer), "{answer:?}");

        owner.log.await_step(RecordChange::Released).await;

        let answer = charge.rejecting().call().await;
        assert_eq!(answer, Ok("charged".into()), "{mode:?}: it had never begun");
        assert_eq!(world.runs(key), 1);
    }
}

/// Loses the answers to so many claims, and holds the named looks at the store meanwhile and from
/// then on. Returns their gate once the first one is held there.
async fn given_up(world: &World, owner: &Owner, claims: u32, which: On) -> Gate {
    let looks = owner.delays(StoreOperation::Load, which);
    owner.fault(StoreOperation::Claim, On::Every, Fault::LoseAnswer);
    for number in 0..claims {
        let charge = Charge::of(world, owner).key(format!("lost-{number}"));
        let call = charge.mode(Mode::Uncertain).spawn();
        while !call.is_finished() {
            // Time moves only from one try to the next: a lease does not go by meanwhile.
            let pause = owner.timer.until_next().filter(|next| *next < LEASE / 30);
            owner.timer.advance(pause.unwrap_or_default());
            tokio::task::yield_now().await;
        }
        let answer = call.await.expect("no panic");
        assert!(is_store_error(&answer), "{answer:?}");
    }
    looks.arrived(1).await;
    looks
}

/// An outage leaves one such claim for each call that came meanwhile. A heartbeat that stood in
/// line behind all of them would come too late.
async fn claims_are_given_up_one_at_a_time_beside_heartbeats(world: World) {
    let owner = world.owner().await;
    let (call, gate) = Charge::of(&world, &owner).begun().await;

    let looks = given_up(&world, &owner, 8, On::Every).await;
    world.advance(LEASE / 3).await;
    owner.log.await_step(RecordChange::Heartbeat).await;

    assert_eq!(looks.arrivals(), 1);
    owner.store.heal();
    looks.open();
    charges_behind(&gate, call).await;
    owner.settled().await;
    assert_eq!(owner.log.count(RecordChange::Released), 8);
}

async fn claims_whose_leases_are_over_are_not_given_up(world: World) {
    let owner = world.owner().await;

    let looks = given_up(&world, &owner, 8, On::Every).await;
    // The first one hangs for as long as it may.
    world.advance(LEASE).await;
    owner.store.heal();
    let settled = owner.clone();
    while_time_goes_on(&owner.timer, async move { settled.settled().await }).await;

    assert_eq!(looks.arrivals(), 1);
    assert_eq!(owner.log.count(RecordChange::Released), 0);
}

/// This is as over a connection that a firewall forgot. The claims in line behind it would be
/// uncertain, although no body of them has begun.
async fn a_claim_is_given_up_although_the_store_hangs_on_the_one_before(world: World) {
    let owner = world.owner().await;

    given_up(&world, &owner, 2, On::Call(1)).await;
    world.advance(LEASE / 2).await;
    let settled = owner.clone();
    while_time_goes_on(&owner.timer, async move { settled.settled().await }).await;

    assert_eq!(owner.log.count(RecordChange::Released), 2);
}

/// A count of beginnings and ends finds both.
async fn a_takeover_that_is_given_up_is_told_under_one_number(world: World) {
    lapsed(&world, Mode::Rerun).await;
    let owner = world.owner().await;
    // The first one is refused by the record that stands.
    for nth in 2..=4 {
        owner.fault(StoreOperation::Claim, On::Call(nth), Fault::LoseAnswer);
    }

    let answer = during(&owner, &Charge::of(&world, &owner)).await;
    assert!(is_store_error(&answer), "{answer:?}");
    owner.log.await_step(RecordChange::Stopped).await;

    let told = owner
        .log
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::RecordChange { step, attempt, .. } => Some((step, attempt)),
            Event::CallOutcome { .. } => None,
        });
    let told: Vec<_> = told.collect();
    assert_eq!(
        told,
        [(RecordChange::TakenOver, 2), (RecordChange::Stopped, 2)]
    );
}
