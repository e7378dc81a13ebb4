//! The invariants of what is recorded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::*;
use crate::{
    answers::{is_not_replayable, is_parked, is_reused},
    charge::vanished_under,
};

on_every_store![
    v02_one_recorded_outcome_until_it_expires,
    v06_mismatch_is_found_in_every_state_that_binds,
    v07_first_value_equals_replayed_value,
    v07_what_does_not_survive_encoding_is_not_run_again,
    v12_purge_removes_only_what_nobody_needs,
];

async fn v02_one_recorded_outcome_until_it_expires(world: World) {
    let mut zombies = Vec::new();
    for name in ["first", "second", "third"] {
        let owner = world.owner().await;
        let begun = Charge::of(&world, &owner).answers(name).begun().await;
        zombies.push((owner, begun));
        world.advance_store(LEASE).await;
    }
    let owner = world.owner().await;
    Charge::of(&world, &owner).answers("last").charges().await;
    let recorded = world.record().await;

    for (owner, (call, gate)) in zombies {
        gate.open();
        assert_eq!(call.await.expect("no panic"), Ok("last".into()));
        assert_eq!(owner.log.steps().last(), Some(&RecordChange::LeaseLost));
        assert_eq!(world.record().await, recorded);
    }
    world.advance(DAY).await;
    Charge::of(&world, &owner).answers("anew").charges().await;
}

async fn v06_mismatch_is_found_in_every_state_that_binds(world: World) {
    let owner = world.owner().await;
    let charge = |key: &str| Charge::of(&world, &owner).key(key);
    assert!(charge("done").call().await.is_ok());
    let (running, gate) = charge("running").begun().await;
    for (key, mode) in [
        ("over", Mode::Rerun),
        ("uncertain", Mode::Uncertain),
        ("parked", Mode::Rerun),
    ] {
        vanished_under(&world, key, mode).await;
    }
    world.advance_store(LEASE).await;
    owner.timer.advance(LEASE / 3);
    owner.log.await_step(RecordChange::Heartbeat).await;
    is_told(&charge("uncertain"), is_uncertain).await;
    let strict = world.owner_with(|builder| builder.max_takeovers(0)).await;
    is_told(&Charge::of(&world, &strict).key("parked"), is_parked).await;

    for key in ["done", "running", "over", "uncertain", "parked"] {
        let before = world.runs(key);
        is_told(&charge(key).amount(2), is_reused).await;
        assert_eq!(world.runs(key), before, "{key}");
    }

    let call = owner.call("charge").key("released").arguments(&1);
    let released = call.release_errors();
    let released = released.run(|_| async { Err::<(), _>(Error::InvalidPolicy("released")) });
    assert!(released.await.is_err());
    charge("released").amount(2).charges().await;
    charges_behind(&gate, running).await;
}

/// A value that comes back from its encoding as another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    amount: f64,
    #[serde(skip)]
    cached: u32,
    nested: Option<Option<u8>>,
}

async fn v07_first_value_equals_replayed_value(world: World) {
    let owner = world.owner().await;
    let call = || {
        owner.call("charge").key("k").run(|_| async {
            let (amount, cached, nested) = (0.1 + 0.2, 7, Some(Some(7)));
            Ok::<_, Error>(Receipt {
                amount,
                cached,
                nested,
            })
        })
    };
    let first = call().await.expect("it runs");
    assert_eq!(
        first.cached, 0,
        "the first caller is given what every later one is"
    );
    for _replay in 0..3 {
        assert_eq!(call().await, Ok(first.clone()));
    }
}

async fn v07_what_does_not_survive_encoding_is_not_run_again(world: World) {
    let owner = world.owner().await;
    let not_a_number = || {
        let world = world.clone();
        owner.call("charge").key("nan").run(move |_| async move {
            world.happened("nan");
            Ok::<_, Error>(f64::NAN)
        })
    };
    let no_text_key = || {
        let world = world.clone();
        owner.call("charge").key("map").run(move |_| async move {
            world.happened("map");
            Ok::<_, Error>(BTreeMap::from([((1, 2), 3)]))
        })
    };
    assert!(
        not_a_number().await.is_ok_and(f64::is_nan),
        "the first caller gets it"
    );
    assert_eq!(no_text_key().await, Ok(BTreeMap::from([((1, 2), 3)])));
    for _duplicate in 0..2 {
        let answer = not_a_number().await;
        assert!(is_not_replayable(&answer), "{answer:?}");
        let answer = no_text_key().await;
        assert!(is_not_replayable(&answer), "{answer:?}");
    }
    assert_eq!((world.runs("nan"), world.runs("map")), (1, 1));
    assert_eq!(owner.log.count(RecordChange::RecordedNotReplayable), 2);
}

async fn v12_purge_removes_only_what_nobody_needs(world: World) {
    let owner = world.owner().await;
    let (running, gate) = Charge::of(&world, &owner).key("running").begun().await;
    for (key, mode) in [
        ("vanished", Mode::Rerun),
        ("once", Mode::Uncertain),
        ("asks", Mode::Reconcile(Found::Unknown)),
        ("parked", Mode::Rerun),
    ] {
        vanished_under(&world, key, mode).await;
    }
    assert!(Charge::of(&world, &owner).key("done").call().await.is_ok());
    world.advance_store(LEASE).await;
    let strict = world.owner_with(|builder| builder.max_takeovers(0)).await;
    is_told(&Charge::of(&world, &strict).key("parked"), is_parked).await;
    owner.timer.advance(LEASE / 3);
    owner.log.await_step(RecordChange::Heartbeat).await;
    assert_eq!(owner.idem.purge().await, Ok(0), "nothing is old enough");

    world.advance_store(DAY + LEASE).await;
    owner.timer.advance(LEASE / 3);
    owner.log.await_steps(RecordChange::Heartbeat, 2).await;
    let abandoned = 1;
    assert_eq!(owner.idem.purge().await, Ok(world.to_purge(1) + abandoned));

    let left = world.record_keys().await;
    assert_eq!(left, ["asks", "once", "parked", "running"]);
    charges_behind(&gate, running).await;
}
