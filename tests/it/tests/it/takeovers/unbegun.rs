//! Takeovers that end before their body did anything: the holder before them may have begun
//! something.

use idempotent_runtime::{RawEnding, RawOutcome, testing::Gate};

use super::*;

on_every_store![
    d02_a_takeover_whose_body_was_never_polled_releases_nothing,
    d02_a_takeover_that_says_it_has_not_begun_releases_nothing,
    d02_a_takeover_that_has_not_begun_is_not_prolonged_afterwards,
    d21_takeovers_that_have_not_begun_use_up_no_budget,
    d21_a_takeover_that_has_not_begun_leaves_no_try_to_who_allows_none,
    d21_a_takeover_that_has_not_begun_and_hears_nothing_of_it_is_left_once,
];

/// The record under a key: its state, and its attempts so far.
pub(super) async fn left(world: &World, key: &str) -> Option<(State, u32)> {
    let record = world.record_of(key).await;
    record.map(|record| (record.state, record.attempt))
}

/// Checks that other arguments are still refused, and what the next call gets.
pub(super) async fn check(world: &World, key: &str, mode: Mode, expected: &str) {
    let owner = world.owner().await;
    let charge = Charge::of(world, &owner).key(key).mode(mode).rejecting();
    is_told(&charge.clone().amount(2), is_reused).await;
    assert_eq!(charge.call().await, Ok(expected.into()), "{mode:?}");
}

async fn d02_a_takeover_whose_body_was_never_polled_releases_nothing(world: World) {
    for (key, mode, leaves, then) in [
        ("rerun", Mode::Rerun, (State::Running, 1), "charged"),
        (
            "asks",
            Mode::Reconcile(Found::Happened),
            (State::Uncertain, 1),
            "found",
        ),
    ] {
        vanished_under(&world, key, mode).await;
        let owner = world.owner().await;
        world.advance(LEASE).await;
        // The first claim meets the record, the second one is the takeover: it stands, and no
        // answer says so.
        let unanswered = owner.delays_answer(StoreOperation::Claim, On::Call(2));
        let call = Charge::of(&world, &owner).key(key).mode(mode).spawn();
        unanswered.arrived(1).await;

        abort(call).await;
        owner.settled().await;

        assert_eq!(left(&world, key).await, Some(leaves), "{mode:?}");
        let told = [RecordChange::Stopped, RecordChange::LeftUncertain];
        let step = owner.log.steps().pop();
        assert!(step.is_some_and(|step| told.contains(&step)), "{step:?}");
        check(&world, key, mode, then).await;
    }
}

/// Calls, and says that the body has not begun.
async fn has_no_room(owner: &Owner) {
    let outcome = RawOutcome::value("no room");
    let ending = RawEnding::NotBegun(outcome.clone());
    let call = owner.call("charge").key("k").arguments(&1);
    let (answer, _) = call.run_raw(|_| async { ending }).await.expect("its own");
    assert_eq!(answer, outcome);
}

async fn d02_a_takeover_that_says_it_has_not_begun_releases_nothing(world: World) {
    lapsed(&world, Mode::Rerun).await;
    let owner = world.owner().await;

    has_no_room(&owner).await;

    assert_eq!(left(&world, "k").await, Some((State::Running, 1)));
    check(&world, "k", Mode::Rerun, "charged").await;
}

async fn d02_a_takeover_that_has_not_begun_is_not_prolonged_afterwards(world: World) {
    let no_room = RawEnding::NotBegun(RawOutcome::value("no room"));
    ends_while_a_heartbeat_is_under_way(&world, no_room).await;
    check(&world, "k", Mode::Rerun, "charged").await;
}

/// Takes over, and ends so. A heartbeat that is under way then finds a record that is its own, and
/// running.
pub(super) async fn ends_while_a_heartbeat_is_under_way(world: &World, ending: RawEnding) -> Owner {
    lapsed(world, Mode::Rerun).await;
    let owner = world.owner().await;
    let inside = Gate::new();
    let beating = owner.delays(StoreOperation::Heartbeat, On::Call(1));
    let call = owner.call("charge").key("k").arguments(&1);
    let waits = inside.clone();
    let call = tokio::spawn(call.run_raw(|_| async move {
        waits.pass().await;
        ending
    }));
    inside.arrived(1).await;
    world.advance(LEASE / 3).await;
    beating.arrived(1).await;

    inside.open();
    assert!(call.await.expect("no panic").is_ok());
    beating.open();
    while owner.store.under_way() > 0 {
        yield_now().await;
    }
    owner.settled().await;
    owner
}

/// They come as fast as clients try again, and no body of theirs has vanished.
async fn d21_takeovers_that_have_not_begun_use_up_no_budget(world: World) {
    lapsed(&world, Mode::Rerun).await;
    let owner = world.owner().await;

    for _ in 0..7 {
        has_no_room(&owner).await;
    }

    check(&world, "k", Mode::Rerun, "charged").await;
    assert_eq!(left(&world, "k").await, Some((State::Done, 2)));
}

async fn d21_a_takeover_that_has_not_begun_leaves_no_try_to_who_allows_none(world: World) {
    lapsed(&world, Mode::Rerun).await;
    has_no_room(&world.owner().await).await;

    let strict = world.owner_with(|builder| builder.max_takeovers(0)).await;
    is_told(&Charge::of(&world, &strict), is_parked).await;
    assert_eq!(world.runs("k"), 1);
}

/// A call that writes once more that it has not begun finds what it left. It does not find a claim
/// of its own that no call held before.
async fn d21_a_takeover_that_has_not_begun_and_hears_nothing_of_it_is_left_once(world: World) {
    lapsed(&world, Mode::Rerun).await;
    let owner = world.owner().await;
    owner.fault(StoreOperation::Ending, On::Call(1), Fault::LoseAnswer);

    has_no_room(&owner).await;
    owner.settled().await;

    assert_eq!(left(&world, "k").await, Some((State::Running, 1)));
    owner.assert_steps(&[
        RecordChange::TakenOver,
        RecordChange::NotYetRecorded,
        RecordChange::Stopped,
    ]);
    check(&world, "k", Mode::Rerun, "charged").await;
}
