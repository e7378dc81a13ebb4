//! Gauges, as samplers set them.

use std::time::Duration;

use idempotent_runtime::{
    Error, StoreErrorKind,
    store::{ListOrder, Store as _},
    testing::{Fault, Gate, On, StoreOperation},
};

use super::{Scrape, owner};
use crate::harness::{Owner, World};

on_every_store![
    what_needs_somebody_is_shown,
    one_process_shows_what_it_reads,
    a_reading_that_is_too_old_is_not_a_number,
    a_store_that_is_silent_keeps_no_old_reading_on_show,
    a_store_that_panics_once_ends_no_sampler,
];

const EVERY: Duration = Duration::from_secs(15);

async fn leave_uncertain(owner: &Owner, key: &str) {
    let call = owner.call("pay").key(key).uncertain_errors();
    let left = call.run(async |_| Err::<u32, _>(Error::AlreadyInstalled));
    assert!(left.await.is_err());
}

/// Whether the store has an index of the records that need somebody.
async fn lists_attention(owner: &Owner) -> bool {
    let lists = owner.store.lists().expect("it lists records");
    let page = lists.list(ListOrder::Attention, None, 1).await;
    page.expect("the store answers").is_some()
}

/// Waits until this sample has such a value.
pub(super) async fn until(scrape: &Scrape, sample: &str, is_so: impl Fn(Option<f64>) -> bool) {
    while !is_so(scrape.get(sample)) {
        tokio::task::yield_now().await;
    }
}

async fn what_needs_somebody_is_shown(world: World) {
    let (owner, scrape) = owner(&world).await;
    leave_uncertain(&owner, "a").await;
    world.advance(Duration::from_secs(60)).await;
    leave_uncertain(&owner, "b").await;
    let sampler = owner
        .idem
        .sampler()
        .every(EVERY)
        .start()
        .expect("it starts");
    if !lists_attention(&owner).await {
        until(&scrape, "idempotent_clock_skew_seconds", |it| it.is_some()).await;
        assert_eq!(
            scrape.get(r#"idempotent_attention{kind="uncertain"}"#),
            None
        );
        return;
    }
    let uncertain = r#"idempotent_attention{kind="uncertain"}"#;
    until(&scrape, uncertain, |it| it == Some(2.0)).await;
    scrape.assert(r#"idempotent_attention{kind="parked"}"#, 0.0);
    scrape.assert("idempotent_attention_is_capped", 0.0);
    let age = r#"idempotent_attention_oldest_age_seconds{kind="uncertain"}"#;
    let age = scrape.get(age).expect("it is shown");
    assert!((60.0..90.0).contains(&age), "{age}");
    assert!(scrape.get("idempotent_clock_skew_seconds").is_some());

    leave_uncertain(&owner, "c").await;
    world.advance(EVERY).await;
    until(&scrape, uncertain, |it| it == Some(3.0)).await;
    sampler.stop().await;
    assert!(scrape.get(uncertain).is_some_and(f64::is_nan));
}

async fn one_process_shows_what_it_reads(world: World) {
    let skew = "idempotent_clock_skew_seconds";
    let ((first, shown), (second, hidden)) = (owner(&world).await, owner(&world).await);
    let sampler = first
        .idem
        .sampler()
        .every(EVERY)
        .start()
        .expect("it starts");
    until(&shown, skew, |it| it.is_some()).await;
    let loads = second.store.calls(StoreOperation::Load);
    let _other = second
        .idem
        .sampler()
        .every(EVERY)
        .start()
        .expect("it starts");
    while second.store.calls(StoreOperation::Load) == loads {
        tokio::task::yield_now().await;
    }
    world.advance(EVERY).await;
    assert_eq!(hidden.get(skew), None);

    // It gives its turn back, and the other one takes it.
    sampler.stop().await;
    assert!(shown.get(skew).is_some_and(f64::is_nan));
    world.advance(EVERY).await;
    until(&hidden, skew, |it| it.is_some()).await;
}

async fn a_reading_that_is_too_old_is_not_a_number(world: World) {
    let skew = "idempotent_clock_skew_seconds";
    let (owner, scrape) = owner(&world).await;
    let _sampler = owner
        .idem
        .sampler()
        .every(EVERY)
        .start()
        .expect("it starts");
    until(&scrape, skew, |it| it.is_some()).await;
    owner.store.outage(StoreErrorKind::Unavailable);
    for _ in 0..4 {
        assert!(scrape.get(skew).is_some());
        world.advance(EVERY).await;
        tokio::task::yield_now().await;
    }
    until(&scrape, skew, |it| it.is_some_and(f64::is_nan)).await;
    owner.store.heal();
    // After a failure it leaves one turn to others.
    while scrape.get(skew).is_none_or(f64::is_nan) {
        world.advance(EVERY).await;
        tokio::task::yield_now().await;
    }
}

async fn a_store_that_is_silent_keeps_no_old_reading_on_show(world: World) {
    let skew = "idempotent_clock_skew_seconds";
    let (owner, scrape) = owner(&world).await;
    let sampler = owner.idem.sampler().every(EVERY);
    let _sampler = sampler.start().expect("it starts");
    until(&scrape, skew, |it| it.is_some()).await;
    let gate = Gate::new();
    let silent = Fault::Delay(gate.clone());
    owner.store.fault(StoreOperation::Load, On::Every, silent);
    world.advance(EVERY).await;
    gate.arrived(1).await;
    assert!(scrape.get(skew).is_some_and(|it| !it.is_nan()));
    world.advance(EVERY * 2).await;
    until(&scrape, skew, |it| it.is_some_and(f64::is_nan)).await;
}

async fn a_store_that_panics_once_ends_no_sampler(world: World) {
    let skew = "idempotent_clock_skew_seconds";
    let (owner, scrape) = owner(&world).await;
    owner
        .store
        .fault(StoreOperation::Load, On::Next, Fault::Panic);
    let sampler = owner.idem.sampler().every(EVERY);
    let _sampler = sampler.start().expect("it starts");
    while scrape.get(skew).is_none_or(f64::is_nan) {
        world.advance(EVERY).await;
        tokio::task::yield_now().await;
    }
}
