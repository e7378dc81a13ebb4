//! The records that an operator may settle, and the consequence for a holder that was only paused.

use std::time::Duration;

use idempotent_runtime::{RawEnding, RawOutcome, Unrecorded, idempotent, testing::Gate};

use super::*;

on_every_store![
    d21_a_paused_holder_of_what_was_parked_has_lost,
    d21_a_paused_holder_of_what_was_resumed_has_lost,
    d21_a_paused_takeover_that_releases_is_not_told_what_other_arguments_were_settled_with,
    d21_what_must_be_asked_for_is_uncertain_when_it_is_resumed,
    d21_what_was_resumed_answers_for_as_long_as_its_call_chose,
    d21_what_was_resumed_is_tried_once_where_no_takeover_is_allowed,
    d23_only_what_nobody_holds_and_nothing_answers_can_be_settled,
    d23_what_a_vanished_holder_left_is_settled_before_any_call_comes,
    d23_a_paused_holder_of_what_was_settled_has_lost,
    d21_what_a_vanished_holder_left_is_tried_again_with_a_fresh_budget,
    d23_what_is_uncertain_already_is_told_of_once,
    d23_what_is_settled_has_the_version_that_its_function_reads,
    d23_an_error_is_settled_for_a_function_that_records_none,
];

#[idempotent(name = "settled.versioned", key = key, version = 1, on_error = uncertain)]
async fn versioned(key: u64) -> Result<u64, Error> {
    Err(Error::InvalidPolicy("the gateway did not answer"))
}

async fn d23_what_is_settled_has_the_version_that_its_function_reads(world: World) {
    let owner = world.owner().await;
    assert!(owner.enter(versioned(7)).await.is_err());

    let settle = owner.idem.settle("settled.versioned", None::<&str>, &7);
    let settled = settle.expect("a key").with_value(&99_u64).await;

    assert!(settled.is_ok(), "{settled:?}");
    assert_eq!(owner.enter(versioned(7)).await, Ok(99));
}

fn unrecorded(_: &Error) -> Unrecorded {
    Unrecorded::Uncertain
}

async fn d23_an_error_is_settled_for_a_function_that_records_none(world: World) {
    let owner = world.owner().await;
    let left = || Err::<u64, _>(Error::InvalidPolicy("no answer"));
    macro_rules! settled {
        ($key:literal, $records_none:ident($($classify:ident)?)) => {{
            let call = || owner.call("charge").key($key).$records_none($($classify)?);
            let in_doubt = owner.call("charge").key($key).uncertain_errors();
            assert!(in_doubt.run(|_| async { left() }).await.is_err());
            let settled = settle(&owner, $key).with_error(&"it did not happen").await;
            assert!(settled.is_ok());
            call().run(|_| async { Ok::<_, Error>(world.happened($key)) }).await
        }};
    }

    for answer in [
        settled!("released", release_errors()),
        settled!("uncertain", uncertain_errors()),
        settled!("classified", classify_errors(unrecorded)),
    ] {
        let Err(Error::Unreadable { source, .. }) = answer else {
            panic!("{answer:?}")
        };
        let why = source.to_string();
        assert!(
            why.contains("settled") && why.contains("`on_error`"),
            "{why}"
        );
    }
    assert_eq!(world.records().await.len(), 3);
}

async fn d21_a_paused_holder_of_what_was_parked_has_lost(world: World) {
    let holder = world.owner().await;
    let (paused, gate) = Charge::of(&world, &holder).begun().await;
    world.advance_store(LEASE).await;
    let owner = world.owner_with(|builder| builder.max_takeovers(0)).await;
    is_told(&Charge::of(&world, &owner), is_parked).await;
    let parked = world.record().await;

    loses_behind(&gate, paused).await;
    assert_eq!(world.record().await, parked, "somebody must look at it");
}

async fn d21_a_paused_takeover_that_releases_is_not_told_what_other_arguments_were_settled_with(
    world: World,
) {
    lapsed(&world, Mode::Rerun).await;
    let (paused, second) = (world.owner().await, world.owner().await);
    let waits = Gate::new();
    let its = waits.clone();
    let call = paused.call("charge").key("k").arguments(&1).ttl(LEASE * 2);
    let call = tokio::spawn(call.run_raw(|_| async move {
        its.pass().await;
        RawEnding::Release(RawOutcome::value("not now"))
    }));
    waits.arrived(1).await;
    // So long that its call is forgotten, and the key is another's.
    world.advance_store(LEASE * 4).await;
    let other = second.call("charge").key("k").arguments(&2);
    let left = |_| async { RawEnding::Uncertain(RawOutcome::value("")) };
    assert!(other.run_raw(left).await.is_ok());
    let settled = settle(&second, "k").with_value(&"another's").await;
    assert!(settled.is_ok());

    loses_behind(&waits, call).await;
}

async fn d21_a_paused_holder_of_what_was_resumed_has_lost(world: World) {
    let holder = world.owner().await;
    let (paused, gate) = Charge::of(&world, &holder).begun().await;
    world.advance_store(LEASE).await;
    let owner = world.owner_with(|builder| builder.max_takeovers(0)).await;
    assert!(Charge::of(&world, &owner).call().await.is_err());
    assert_eq!(settle(&owner, "k").resume().await, Ok(()));
    let resumed = world.record().await;

    loses_behind(&gate, paused).await;
    assert_eq!(world.record().await, resumed);
    let next = world.owner().await;
    Charge::of(&world, &next).answers("resumed").charges().await;
}

async fn d21_what_was_resumed_is_tried_once_where_no_takeover_is_allowed(world: World) {
    let owner = || world.owner_with(|builder| builder.max_takeovers(0));
    Charge::of(&world, &owner().await).vanishes().await;
    world.advance(LEASE).await;
    let next = owner().await;
    is_told(&Charge::of(&world, &next), is_parked).await;

    assert_eq!(settle(&next, "k").resume().await, Ok(()));
    Charge::of(&world, &owner().await).vanishes().await;
    world.advance(LEASE).await;

    assert_eq!(world.runs("k"), 2, "it was tried again");
    let answer = Charge::of(&world, &next).call().await;
    assert!(
        matches!(answer, Err(Error::Parked { attempts: 2, .. })),
        "{answer:?}"
    );
    assert_eq!(settle(&next, "k").resume().await, Ok(()));
    Charge::of(&world, &next).answers("resumed").charges().await;
}

async fn d21_what_must_be_asked_for_is_uncertain_when_it_is_resumed(world: World) {
    let mode = Mode::Reconcile(Found::Happened);
    lapsed(&world, mode).await;
    let owner = world.owner_with(|builder| builder.max_takeovers(0)).await;
    is_told(&Charge::of(&world, &owner).mode(mode), is_parked).await;

    assert_eq!(settle(&owner, "k").resume().await, Ok(()));

    assert_eq!(world.record().await.state, State::Uncertain);
    finds(&world, &owner).await;
    assert_eq!(world.runs("k"), 1);
}

async fn d21_what_was_resumed_answers_for_as_long_as_its_call_chose(world: World) {
    const MONTH: Duration = Duration::from_secs(30 * 24 * 60 * 60);
    for (key, mode, resumed) in [
        ("rerun", Mode::Rerun, State::Running),
        ("asks", Mode::Reconcile(Found::Unknown), State::Uncertain),
    ] {
        let dead = world.owner_with(|builder| builder.ttl(MONTH)).await;
        let charge = Charge::of(&world, &dead).key(key).mode(mode);
        charge.vanishes().await;
        world.advance(LEASE).await;
        let owner = world.owner_with(|builder| builder.max_takeovers(0)).await;
        is_told(&Charge::of(&world, &owner).key(key).mode(mode), is_parked).await;

        assert_eq!(settle(&owner, key).resume().await, Ok(()));

        let stands = world.record_of(key).await.expect("it stands");
        assert_eq!((stands.state, stands.ttl()), (resumed, MONTH), "{mode:?}");
    }
    let owner = world.owner().await;
    let settled = settle(&owner, "asks").with_value(&"settled").await;
    assert!(settled.is_ok());
    let settled = world.record_of("asks").await.expect("it stands");
    let finished = settled.finished.expect("it is done");
    assert_eq!(settled.expires.since(finished), MONTH);
}

async fn d23_only_what_nobody_holds_and_nothing_answers_can_be_settled(world: World) {
    const SHORT: Duration = Duration::from_secs(1);
    let owner = world.owner().await;
    let dead = world.owner_with(|builder| builder.ttl(SHORT)).await;
    Charge::of(&world, &dead).key("forgotten").vanishes().await;
    world.advance(LEASE + SHORT).await;
    let (running, gate) = Charge::of(&world, &owner).key("running").begun().await;
    assert!(Charge::of(&world, &owner).key("done").call().await.is_ok());
    let released = owner.call("charge").key("released").release_errors();
    let released = released.run(|_| async { Err::<(), _>(Error::InvalidPolicy("released")) });
    assert!(released.await.is_err());
    let before = world.records().await;
    assert_eq!(before.len(), 4);

    for (key, reason) in [
        ("missing", NotSettled::UnknownKey),
        ("forgotten", NotSettled::UnknownKey),
        ("running", NotSettled::StillRunning),
        ("done", NotSettled::AlreadySettled),
        ("released", NotSettled::UnknownKey),
    ] {
        let settle = || settle(&owner, key);
        let value = not_settled(settle().with_value(&"settled").await);
        let error = not_settled(settle().with_error(&"settled").await);
        let done = not_settled(settle().as_done().await);
        let resumed = not_settled(settle().resume().await);
        assert_eq!([value, error, done, resumed], [Some(reason); 4], "{key}");
    }
    let other = owner.idem.settle("chrage", None::<&str>, "done");
    let other = not_settled(other.expect("a key").as_done().await);
    assert_eq!(other, Some(NotSettled::UnknownOperation));
    assert_eq!(world.records().await, before);
    assert_eq!(owner.log.count(RecordChange::Settled), 0);
    charges_behind(&gate, running).await;

    // An uncertain record cannot be run again, either, whatever the call had chosen for a crash.
    let call = owner.call("charge").key("in doubt").uncertain_errors();
    let left = call.run(|_| async { Err::<(), _>(Error::InvalidPolicy("who knows")) });
    assert!(left.await.is_err());
    let resumed = settle(&owner, "in doubt").resume().await;
    assert_eq!(not_settled(resumed), Some(NotSettled::NotParked));
    assert_eq!(settle(&owner, "in doubt").as_done().await, Ok(()));
}

/// The client whose call it was may never come again.
async fn d23_what_a_vanished_holder_left_is_settled_before_any_call_comes(world: World) {
    let modes = [
        ("rerun", Mode::Rerun),
        ("asks", Mode::Reconcile(Found::Happened)),
        ("at most once", Mode::Uncertain),
    ];
    let owner = world.owner().await;
    for (key, mode) in modes {
        vanished_under(&world, key, mode).await;
        let settled = settle(&owner, key).as_done().await;
        let reason = not_settled(settled);
        assert_eq!(reason, Some(NotSettled::StillRunning), "{key}");
    }
    world.advance(LEASE).await;

    for (key, mode) in modes {
        let settled = settle(&owner, key).with_value(&"receipt").await;
        assert!(settled.is_ok(), "{key}");

        let answer = Charge::of(&world, &owner).key(key).mode(mode).call().await;
        assert_eq!(answer, Ok("receipt".into()), "{key}");
        assert_eq!(world.runs(key), 1);
        let again = settle(&owner, key).with_value(&"another").await;
        let reason = not_settled(again);
        assert_eq!(reason, Some(NotSettled::AlreadySettled), "{key}");
    }
    assert_eq!(owner.log.count(RecordChange::Settled), modes.len());
}

async fn d23_a_paused_holder_of_what_was_settled_has_lost(world: World) {
    for (key, mode) in [("rerun", Mode::Rerun), ("once", Mode::Uncertain)] {
        let (holder, owner) = (world.owner().await, world.owner().await);
        let charge = Charge::of(&world, &holder).key(key).mode(mode);
        let (paused, gate) = charge.begun().await;
        world.advance_store(LEASE).await;
        let settled = settle(&owner, key).with_value(&"receipt").await;
        assert!(settled.is_ok(), "{key}");

        gate.open();

        let answer = paused.await.expect("no panic");
        assert_eq!(answer, Ok("receipt".into()), "what every duplicate gets");
    }
}

async fn d21_what_a_vanished_holder_left_is_tried_again_with_a_fresh_budget(world: World) {
    lapsed(&world, Mode::Rerun).await;
    let strict = world.owner_with(|builder| builder.max_takeovers(0)).await;

    let patient = world.owner().await;
    let resumed = settle(&patient, "k").resume().await;
    // The next call would take over anyway.
    assert_eq!(not_settled(resumed), Some(NotSettled::NotParked));
    assert_eq!(settle(&strict, "k").resume().await, Ok(()));
    let again = settle(&strict, "k").resume().await;
    assert_eq!(not_settled(again), Some(NotSettled::NotParked));

    assert!(Charge::of(&world, &strict).call().await.is_ok());
    assert_eq!(world.runs("k"), 2);
}

async fn d23_what_is_uncertain_already_is_told_of_once(world: World) {
    let holder = world.owner().await;
    let charge = Charge::of(&world, &holder).mode(Mode::Uncertain);
    let (paused, _gate) = charge.begun().await;
    world.advance_store(LEASE).await;
    let owner = world.owner().await;
    is_told(&Charge::of(&world, &owner), is_uncertain).await;
    let left = world.record().await;

    abort(paused).await;
    holder.settled().await;

    assert_eq!(world.record().await, left);
    assert_eq!(world.log().count(RecordChange::LeftUncertain), 1);
}
