//! Dead letters that are kept, of messages whose effect is rows.

use idempotent_runtime::{
    Idempotency, StoreErrorKind,
    consumer::DeadLetterReason,
    testing::{Fault, FaultyStore, On, StoreOperation},
    transaction::SqlDatabase,
};

use super::{
    assert_ack, assert_dead,
    transactions::{OrderError, place},
};
use crate::transactions::shop::Shop;

on_every_database![
    a_dead_letter_that_rolled_back_leaves_a_record,
    a_dead_letter_over_an_expired_record_lets_a_redrive_run,
    a_dead_letter_that_is_committed_is_one_although_it_is_not_kept,
];

/// In a transaction of the call's, and in one of the caller's.
async fn a_dead_letter_that_rolled_back_leaves_a_record<S: Shop<Database: SqlDatabase>>(shop: S) {
    let idem = Idempotency::new(shop.store());
    let consumer = idem.consumer("orders").broker_retention("3d");
    let consumer = consumer.max_deliveries(1).keep_dead_letters("30d");
    let consumer = consumer.build().expect("a consumer");
    let dead = place(&shop, &consumer, 0, 1).await;
    assert_dead(dead, DeadLetterReason::Exhausted);

    let mut tx = shop.begin().await.expect("a transaction");
    let message = consumer.message(&1).without_payload().delivery(1);
    let staged = message.run_in(&mut *tx, async |_| Err::<(), _>("sold out"));
    let dead = staged.await.commit(tx).await;
    assert_dead(dead, DeadLetterReason::Exhausted);

    for item in [0, 1] {
        let row = consumer.lookup(&item).await.expect("the store answers");
        let note = row.expect("it is kept").note.expect("a note");
        assert_eq!(&*note.text, "dead letter: exhausted");
    }
    assert!(shop.orders().await.is_empty());
}

/// The transaction rolls back, so that the old record still stands when the dead letter is kept.
async fn a_dead_letter_over_an_expired_record_lets_a_redrive_run<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    let idem = Idempotency::builder(shop.store()).audit_retention("30d");
    let idem = idem.build().expect("a handle");
    let keeps = idem.consumer("orders").broker_retention("3d");
    let keeps = keeps.max_deliveries(1).keep_dead_letters("30d");
    let keeps = keeps.build().expect("a consumer");
    let message = keeps.message(&0).payload(&0).delivery(1);
    let done = message.transact(shop.pool(), async |_| Ok::<_, OrderError>(()));
    assert_ack(done.await, false);
    let expire = format!("UPDATE {} SET expires = 1", shop.records());
    let mut connection = shop.pool().acquire().await.expect("a connection");
    S::run(&mut connection, expire).await.expect("it expires");
    drop(connection);

    assert_dead(
        place(&shop, &keeps, 0, 1).await,
        DeadLetterReason::Exhausted,
    );
    let message = keeps.message(&0).payload(&0).delivery(1);
    let redrive = message.transact(shop.pool(), async |tx| {
        shop.order(tx, 7).await?;
        Ok::<_, OrderError>(())
    });
    assert_ack(redrive.await, false);
    assert_eq!(shop.orders().await, [7]);
}

async fn a_dead_letter_that_is_committed_is_one_although_it_is_not_kept<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let store = FaultyStore::new(shop.store());
    let fails = Fault::Fail(StoreErrorKind::Denied);
    // The first look asks whether the record stands.
    store.fault(StoreOperation::Load, On::Call(2), fails);
    let consumer = Idempotency::new(store).consumer("orders");
    let consumer = consumer.broker_retention("3d").max_deliveries(1);
    let consumer = consumer.keep_dead_letters("30d").build();
    let consumer = consumer.expect("a consumer");
    let mut tx = shop.begin().await.expect("a transaction");
    let message = consumer.message(&1).without_payload().delivery(1);
    let staged = message.run_in(&mut *tx, async |_| Err::<(), _>("sold out"));
    let staged = staged.await;
    shop.order(&mut tx, 13).await.expect("the dead letter");
    let dead = staged.commit(tx).await;
    assert_dead(dead, DeadLetterReason::Exhausted);
    assert_eq!(shop.orders().await, [13]);
}
