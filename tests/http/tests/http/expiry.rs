//! A8: keys whose time is over.

use std::time::Duration;

use idempotent_runtime::{
    Error, Idempotency, OnExpired, RawEnding, RawOutcome,
    http::{IdempotencyLayer, Rules},
    testing::{Fault, Gate, On, StoreOperation},
};

use crate::harness::{Shop, by_caller, by_one_clock, charge, on_a_clock, receipt};

#[tokio::test]
async fn s_110_s_111_after_its_time_a_key_is_new_purged_or_not() {
    let (shop, gate, clock) = on_a_clock(Rules::ietf().ttl("36h"));
    gate.open();
    let first = shop.send(charge()).await;
    clock.advance(Duration::from_secs(36 * 60 * 60 - 1));
    shop.send(charge()).await.replays(&first);

    clock.advance(Duration::from_secs(1));

    let second = shop.send(charge()).await;
    second.is_fresh();
    assert_eq!(second.body, "receipt 2");
    shop.send(charge()).await.replays(&second);
}

#[tokio::test]
async fn s_110_a_key_whose_time_is_over_is_refused_where_that_is_said() {
    let (store, idem, clock) = by_one_clock(|handle| handle.audit_retention("10h"));
    let rules = Rules::ietf().ttl("36h").on_expired(OnExpired::Refuse);
    let shop = Shop::over(store, idem, rules, |run, _| async move { receipt(run) });
    let hours = |hours: u64| Duration::from_secs(hours * 60 * 60);
    let first = shop.send(charge()).await;
    clock.advance(hours(36) - Duration::from_secs(1));
    shop.send(charge()).await.replays(&first);

    clock.advance(Duration::from_secs(1));

    for _ in 0..2 {
        shop.send(charge()).await.is_problem(409, "result_expired");
    }
    let other = shop.send(charge().body("amount=13")).await;
    other.is_problem(422, "key_reused");
    let call = shop
        .idem
        .call("http")
        .scope(&("caller", "A"))
        .key("k")
        .on_expired(OnExpired::Refuse);
    let refused = call.run_raw(|_| std::future::pending()).await;
    assert!(
        matches!(refused, Err(Error::KeyReused { .. })),
        "{refused:?}"
    );
    assert_eq!(shop.runs(), 1);
    // It is not purged yet.
    clock.advance(hours(10));
    let second = shop.send(charge().body("amount=13")).await;
    assert_eq!(second.body, "receipt 2");
    let contract = shop.layer.contract().to_markdown();
    let told =
        "| a request with the key after that | is refused with 409 `idempotency-result-expired` |";
    assert!(contract.contains(told), "{contract}");
}

#[tokio::test]
async fn s_110_a_key_under_which_nothing_was_done_is_new_whatever_is_said() {
    let (store, idem, clock) = by_one_clock(|handle| handle.audit_retention("900h"));
    store.fault(StoreOperation::Heartbeat, On::Every, Fault::LoseRequest);
    let call = |amount: u32| {
        let call = idem.call("mail.send").key("k").arguments(&amount);
        call.on_expired(OnExpired::Refuse)
    };
    let gate = Gate::new();
    let inside = gate.clone();
    let vanishes = call(1).run_raw_detached(move |_| async move {
        inside.pass().await;
        RawEnding::Record(RawOutcome::value("too late"))
    });
    let vanishes = tokio::spawn(vanishes);
    gate.arrived(1).await;
    clock.advance(Duration::from_secs(30 * 60 * 60));

    let released = call(2).run_raw(|_| async { RawEnding::Release(RawOutcome::value("later")) });

    assert_eq!(
        released.await.expect("it runs").0,
        RawOutcome::value("later")
    );
    clock.advance(Duration::from_secs(30 * 60 * 60));
    let sent = call(3).run_raw(|_| async { RawEnding::Record(RawOutcome::value("sent")) });
    assert_eq!(sent.await.expect("it runs").0, RawOutcome::value("sent"));
    clock.advance(Duration::from_secs(30 * 60 * 60));
    let expired = call(3).run_raw(|_| std::future::pending()).await;
    assert!(matches!(expired, Err(Error::Expired { .. })), "{expired:?}");
    vanishes.abort();
}

#[tokio::test]
async fn s_110_a_refusal_that_would_never_come_is_a_mistake() {
    let idem = Idempotency::memory();
    let layer = IdempotencyLayer::builder(idem.clone())
        .scope("caller", by_caller)
        .rules(Rules::ietf().on_expired(OnExpired::Refuse))
        .build();
    assert!(matches!(layer, Err(Error::InvalidPolicy(_))), "{layer:?}");
    let call = idem
        .call("mail.send")
        .key("k")
        .on_expired(OnExpired::Refuse);
    let refused = call.run_raw(|_| std::future::pending()).await;
    assert!(
        matches!(refused, Err(Error::InvalidPolicy(_))),
        "{refused:?}"
    );
}
