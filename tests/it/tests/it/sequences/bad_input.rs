//! Bad input: a typed error before anything is written.

use idempotent_runtime::{Error, Idempotency, OnCrash, OnOutage, StoreErrorKind};

use super::{ApplyError, account, apply};
use crate::harness::{World, while_time_goes_on};

on_every_store![
    a_sequence_that_makes_no_sense_is_refused_and_writes_nothing,
    an_outage_is_no_reason_to_apply_a_number_unprotected,
];

async fn a_sequence_that_makes_no_sense_is_refused_and_writes_nothing(world: World) {
    let owner = world.owner().await;
    let named = |name: &str, key: &str| owner.idem.sequence(name, key).first(1);
    let policies = [
        named("", "k"),
        named("  ", "k"),
        named("s", "k").lease("0s"),
        named("s", "k").lease("soon"),
        named("s", "k").wait_for_gap("never"),
        named("s", "k").expires_after("0s"),
        named("s", "k").expires_after("1000000d"),
        named("s", "k").on_crash(OnCrash::Reconcile),
    ];
    for sequence in policies {
        let said = format!("{sequence:?}");
        let call = sequence.number(1);
        let refused = call.run(async |_| Ok::<u64, ApplyError>(0)).await;
        let refused = refused.expect_err(&said).ours();
        assert!(
            matches!(refused, Error::InvalidPolicy(_)),
            "{said}: {refused:?}"
        );
    }
    let long = "k".repeat(100_000);
    for (sequence, expected) in [
        (named("s", ""), "key"),
        (named("s", &long), "key"),
        (named("s", "k").scope(""), "scope"),
        (named("s", "k").scope(&long), "scope"),
    ] {
        let looked = sequence.position().await.expect_err("no key");
        let call = sequence.number(1);
        let refused = call.run(async |_| Ok::<u64, ApplyError>(0)).await;
        for refused in [looked, refused.expect_err("no key").ours()] {
            assert!(
                matches!(refused, Error::InvalidKey { part, .. } if part == expected),
                "{refused:?}"
            );
        }
    }
    let taken = owner.call("sequence:accounts").key("account-7");
    let taken = taken.run(async |_| Ok::<u64, Error>(0)).await;
    assert!(matches!(taken, Err(Error::InvalidPolicy(_))), "{taken:?}");
    assert!(world.records().await.is_empty());
}

async fn an_outage_is_no_reason_to_apply_a_number_unprotected(world: World) {
    let owner = world
        .owner_with(|builder| builder.on_outage(OnOutage::Open))
        .await;
    owner.store.outage(StoreErrorKind::Unavailable);
    let (its, world_) = (account(&owner), world.clone());
    let refused = async move { apply(&world_, &its, 1).await };
    let refused = while_time_goes_on(&owner.timer, refused).await;
    let refused = refused.expect_err("the store is away").ours();
    assert!(refused.is_retryable(), "{refused:?}");
    assert_eq!(world.runs("1"), 0);
}

#[tokio::test]
async fn a_handle_that_is_switched_off_applies_every_number() {
    let idem = Idempotency::builder(idempotent_runtime::MemoryStore::new()).enabled(false);
    let idem = idem.build().expect("a handle");
    for number in [3, 1, 3] {
        let call = idem
            .sequence("accounts", "account-7")
            .first(1)
            .number(number);
        let applied = call.run(async |_| Ok::<_, Error>(number)).await;
        assert_eq!(applied.expect("it runs").into_value(), Some(number));
    }
}
