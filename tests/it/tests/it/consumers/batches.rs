//! Many messages at once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use idempotent_runtime::{
    BoxError, Idempotency, StoreErrorKind,
    consumer::{Consumer, DeadLetterReason, Disposition},
};

use super::{assert_ack, assert_dead, assert_retry, consumer_with, is_ack};
use crate::harness::{World, while_time_goes_on};

on_every_store![
    each_item_of_a_batch_has_its_own_disposition,
    an_outage_in_a_batch_leaves_the_rest_untried,
];

/// An item: its id and its payload.
type Item = (String, i64);

fn items(items: &[(&str, i64)]) -> Vec<Item> {
    let owned = |(id, order): &(&str, i64)| ((*id).to_owned(), *order);
    items.iter().map(owned).collect()
}

/// Negative orders fail, and order 13 panics.
async fn process(world: World, consumer: Consumer, items: Vec<Item>) -> Vec<Disposition> {
    consumer
        .batch(
            items,
            |consumer, (id, order)| consumer.message(id).payload(order).delivery(1),
            |(id, order)| {
                let world = world.clone();
                async move {
                    world.happened(&id);
                    assert_ne!(order, 13, "a planned panic");
                    if order < 0 {
                        return Err::<(), BoxError>("sold out".into());
                    }
                    Ok(())
                }
            },
        )
        .await
}

async fn each_item_of_a_batch_has_its_own_disposition(world: World) {
    let owner = world.owner().await;
    let consumer = consumer_with(&owner, |builder| builder.concurrency(3));
    let batch = items(&[
        ("a", 1),
        ("b", -1),
        ("a", 1),
        ("panics", 13),
        ("a", 2),
        ("", 1),
        ("b", -1),
        ("c", 3),
    ]);
    let ended = process(world.clone(), consumer.clone(), batch).await;
    let [a, b, a_again, panics, a_other, invalid, b_again, c]: [Disposition; 8] =
        ended.try_into().expect("one for each item");
    assert_ack(a, false);
    assert_ack(a_again, true);
    assert_dead(a_other, DeadLetterReason::KeyReused);
    for failed in [b, b_again] {
        let error = assert_retry(failed).expect("it is told");
        assert_eq!(error.to_string(), "sold out");
    }
    assert!(assert_retry(panics).is_none());
    assert_dead(invalid, DeadLetterReason::InvalidMessage);
    assert_ack(c, false);
    for (id, runs) in [("a", 1), ("b", 1), ("panics", 1), ("c", 1)] {
        assert_eq!(world.runs(id), runs, "{id}");
    }
    owner.settled().await;
    let again = process(world.clone(), consumer, items(&[("c", 3), ("a", 1)])).await;
    assert!(again.iter().all(|disposition| is_ack(disposition, true)));
}

async fn an_outage_in_a_batch_leaves_the_rest_untried(world: World) {
    let owner = world.owner().await;
    let consumer = consumer_with(&owner, |builder| builder.concurrency(2));
    owner.store.outage(StoreErrorKind::Unavailable);
    let all: Vec<Item> = (0..50).map(|number| (number.to_string(), 1)).collect();
    let (its, timer) = (world.clone(), owner.timer.clone());
    let before = owner
        .store
        .calls(idempotent_runtime::testing::StoreOperation::Claim);
    let ended = while_time_goes_on(&timer, process(its, consumer, all)).await;
    assert_eq!(ended.len(), 50);
    let told = ended.into_iter().filter_map(assert_retry).count();
    assert!(told <= 2, "{told} were tried");
    let claims = owner
        .store
        .calls(idempotent_runtime::testing::StoreOperation::Claim)
        - before;
    assert!(claims < 50, "{claims} claims");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_batch_with_one_bad_item_processes_the_others() {
    let idem = Idempotency::memory();
    let consumer = idem.consumer("billing").broker_retention("3d").build();
    let (consumer, runs) = (consumer.expect("a consumer"), Arc::new(AtomicUsize::new(0)));
    let ended = consumer
        .batch(
            0..10_000_u32,
            |consumer, number| match number {
                7_000 => consumer.message("").without_payload(),
                number => consumer.message(number).without_payload(),
            },
            |_| {
                let runs = Arc::clone(&runs);
                async move {
                    runs.fetch_add(1, Ordering::SeqCst);
                    Ok::<_, BoxError>(())
                }
            },
        )
        .await;
    let acks = ended.iter().filter(|it| is_ack(it, false)).count();
    assert_eq!((acks, runs.load(Ordering::SeqCst)), (9_999, 9_999));
    let bad = ended.into_iter().nth(7_000).expect("one for each item");
    assert_dead(bad, DeadLetterReason::InvalidMessage);
}
