//! The test kit, as its users meet it.

use std::{fs, path::Path};

use idempotent_runtime::{
    Error, idempotent,
    testing::{EffectLog, assert_once, conformance},
};

use crate::harness::World;

on_every_store![l01_assert_runs_once, l01_assert_finds_what_runs_twice];

#[idempotent(name = "kit.charge", key = order, skip(effects))]
async fn charge(effects: &EffectLog, order: &str) -> Result<String, Error> {
    effects
        .record(order, 1, "charged")
        .expect("memory takes it");
    tokio::task::yield_now().await;
    Ok(format!("receipt for {order}"))
}

async fn l01_assert_runs_once(world: World) {
    let owner = world.owner().await;
    let effects = world.effects();

    let receipt = assert_once(
        10,
        || owner.enter(charge(effects, "order-1")),
        async || world.runs("order-1"),
    )
    .await;

    assert_eq!(receipt, Ok("receipt for order-1".into()));
}

async fn l01_assert_finds_what_runs_twice(world: World) {
    let off = world.owner_with(|builder| builder.enabled(false)).await;

    let check = tokio::spawn(async move {
        let effects = world.effects();
        let call = || off.enter(charge(effects, "order-1"));
        let _ = assert_once(2, call, async || world.runs("order-1")).await;
    });

    let stopped = check.await.expect_err("it ran twice");
    let panic = stopped.into_panic();
    let said = panic.downcast_ref::<String>().expect("a message");
    assert!(said.contains("happened 2 times"), "{said}");
}

/// Every scenario waits for events and moves time itself.
#[test]
fn l02_no_scenario_sleeps() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it")];
    let mut scenarios = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the tests are here") {
            let path = entry.expect("the folder is read").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let text = fs::read_to_string(&path).expect("it is text");
            if !text.contains(concat!("on_every_store", "![")) {
                continue;
            }
            scenarios += 1;
            for sleep in [concat!("sleep", "("), concat!("sleep_", "until(")] {
                assert!(!text.contains(sleep), "{} sleeps", path.display());
            }
        }
    }
    assert!(scenarios >= 20, "{scenarios} files hold scenarios");
}

/// The suite that other stores run has the cases in which a holder is stale.
#[test]
fn l04_the_store_contract_is_exported() {
    let cases: Vec<_> = conformance::cases()
        .iter()
        .map(conformance::Case::name)
        .collect();
    for case in [
        "a_stale_owner_cannot_complete",
        "a_stale_owner_cannot_prolong",
        "a_stale_owner_cannot_release",
        "a_refused_duplicate_deletes_nothing",
        "a_history_is_linearizable",
    ] {
        assert!(cases.contains(&case), "{cases:?}");
    }
}
