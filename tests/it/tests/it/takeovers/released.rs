//! Takeovers whose body says that nothing happened: it speaks for itself, and not for the holder
//! before it.

use idempotent_runtime::{RawEnding, RawOutcome, testing::Gate};

use super::{
    unbegun::{check, ends_while_a_heartbeat_is_under_way, left},
    *,
};

on_every_store![
    d21_a_takeover_that_releases_leaves_what_it_found,
    d21_what_a_paused_body_does_belongs_to_its_own_arguments,
    d21_a_waiter_takes_over_what_a_takeover_released,
    d21_takeovers_that_release_use_up_no_budget,
    d21_a_takeover_that_releases_is_not_prolonged_afterwards,
    d21_a_takeover_that_releases_and_hears_nothing_of_it_has_released,
    d22_a_body_that_is_run_again_and_releases_frees_its_key,
];

/// Calls, and says that nothing happened. Its answer tells whether an earlier holder vanished.
async fn releases(owner: &Owner) -> RawOutcome {
    let call = owner.call("charge").key("k").arguments(&1);
    let body = |attempt: Attempt| async move { RawEnding::Release(says(&attempt)) };
    call.run_raw(body).await.expect("its own").0
}

fn says(attempt: &Attempt) -> RawOutcome {
    RawOutcome::value(format!("a takeover: {}", attempt.is_takeover()))
}

async fn a_client_vanished(world: &World) -> Owner {
    lapsed(world, Mode::Rerun).await;
    world.owner().await
}

/// A body that looks up what the one before it may have done has to be told that there was one.
async fn d21_a_takeover_that_releases_leaves_what_it_found(world: World) {
    let owner = a_client_vanished(&world).await;

    for _ in 0..2 {
        assert_eq!(
            releases(&owner).await,
            RawOutcome::value("a takeover: true")
        );
        assert_eq!(left(&world, "k").await, Some((State::Running, 1)));
    }

    let steps = [RecordChange::TakenOver, RecordChange::Stopped];
    assert_eq!(owner.log.steps(), [steps, steps].concat());
    check(&world, "k", Mode::Rerun, "charged").await;
}

/// A body that was paused beyond its lease, and not dead, does what it was called for after the
/// takeover has said that nothing happened.
async fn d21_what_a_paused_body_does_belongs_to_its_own_arguments(world: World) {
    let (first, second) = (world.owner().await, world.owner().await);
    let (paused, gate) = Charge::of(&world, &first).begun().await;
    world.advance_store(LEASE).await;
    releases(&second).await;

    is_told(&Charge::of(&world, &second).amount(2), is_reused).await;
    loses_behind(&gate, paused).await;
    check(&world, "k", Mode::Rerun, "charged").await;
}

async fn d21_a_waiter_takes_over_what_a_takeover_released(world: World) {
    let owner = a_client_vanished(&world).await;
    let inside = Gate::new();
    let waits = inside.clone();
    let call = owner.call("charge").key("k").arguments(&1);
    let call = tokio::spawn(call.run_raw(|_| async move {
        waits.pass().await;
        RawEnding::Release(RawOutcome::value("not now"))
    }));
    inside.arrived(1).await;
    let waiter = Charge::of(&world, &owner).spawn();
    owner.log.await_step(RecordChange::Waiting).await;

    inside.open();

    assert!(call.await.expect("no panic").is_ok());
    assert_eq!(waiter.await.expect("no panic"), Ok("charged".into()));
}

async fn d21_takeovers_that_release_use_up_no_budget(world: World) {
    let owner = a_client_vanished(&world).await;

    for _ in 0..7 {
        releases(&owner).await;
    }

    check(&world, "k", Mode::Rerun, "charged").await;
    assert_eq!(left(&world, "k").await, Some((State::Done, 2)));
}

async fn d21_a_takeover_that_releases_is_not_prolonged_afterwards(world: World) {
    let not_now = RawEnding::Release(RawOutcome::value("not now"));
    let owner = ends_while_a_heartbeat_is_under_way(&world, not_now).await;
    owner.assert_steps(&[RecordChange::TakenOver, RecordChange::Stopped]);
    check(&world, "k", Mode::Rerun, "charged").await;
}

async fn d21_a_takeover_that_releases_and_hears_nothing_of_it_has_released(world: World) {
    let owner = a_client_vanished(&world).await;
    owner.fault(StoreOperation::Ending, On::Call(1), Fault::LoseAnswer);

    let own = releases(&owner).await;
    owner.settled().await;

    assert_eq!(own, RawOutcome::value("a takeover: true"));
    assert_eq!(left(&world, "k").await, Some((State::Running, 1)));
    owner.assert_steps(&[
        RecordChange::TakenOver,
        RecordChange::NotYetRecorded,
        RecordChange::Stopped,
    ]);
    check(&world, "k", Mode::Rerun, "charged").await;
}

/// A reconciliation has found out that the holder before it did nothing.
async fn d22_a_body_that_is_run_again_and_releases_frees_its_key(world: World) {
    lapsed(&world, Mode::Reconcile(Found::Nothing)).await;
    let owner = world.owner().await;
    let call = owner.call("charge").key("k").arguments(&1);
    let call = call.release_errors().reconcile(
        |_| async { Reconciled::RunAgain },
        |_| async { Err::<String, _>(Error::InvalidPolicy("not now")) },
    );
    assert_eq!(call.await, Err(Error::InvalidPolicy("not now")));
    assert_eq!(left(&world, "k").await, Some((State::Released, 2)));

    let other = Charge::of(&world, &owner).amount(2);

    other.charges().await;
}
