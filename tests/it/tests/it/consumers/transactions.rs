//! Messages whose effect is rows, in the transaction of their record.

use std::{
    sync::Arc,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use idempotent_runtime::{
    Error, Idempotency,
    consumer::{Consumer, DeadLetterReason, Disposition},
    sequence::Decision,
    testing::deliver,
    transaction::{SqlDatabase, Transact},
};

use tokio::time::timeout;

use super::{assert_ack, assert_dead, assert_retry};
use crate::transactions::{
    PlaceError,
    shop::{PostgresShop, Shop, SqliteShop},
};

on_every_database![
    i01_i03_a_message_commits_its_rows_once,
    i04_a_message_whose_handler_fails_leaves_no_rows,
    i05_copies_at_once_have_one_effect,
    i14_a_message_that_was_delivered_too_often_does_not_run,
    i14_an_open_transaction_may_still_have_the_effect,
    a_staged_message_is_settled_by_its_commit,
    a_staged_message_whose_statement_failed_is_no_acknowledgement,
    a_staged_message_of_a_nested_transaction_is_no_acknowledgement,
    a_conflict_is_tried_again_before_the_message_is,
    mend_06_an_older_record_is_no_proof_of_a_commit,
    mend_06_a_replay_of_what_is_not_committed_is_no_acknowledgement,
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i18_shuffled_copies_leave_what_single_deliveries_leave() {
    let items: Vec<i64> = (1..=20).collect();
    for seed in 0..3 {
        let orders = deliver(
            &items,
            3,
            seed,
            async || {
                let shop = SqliteShop::new().await;
                let consumer = consumer(&shop);
                (shop, consumer)
            },
            async |(shop, consumer), item, delivery| place(shop, consumer, *item, delivery).await,
            async |(shop, _)| shop.orders().await,
        )
        .await;
        assert_eq!(orders, items);
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum OrderError {
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error("sold out")]
    SoldOut,
}

fn consumer<S: Shop>(shop: &S) -> Consumer {
    let idem = Idempotency::new(shop.store());
    let consumer = idem.consumer("orders").broker_retention("3d");
    consumer.max_deliveries(3).build().expect("a consumer")
}

/// Places an order by a message of its own transaction.
pub(super) async fn place<S: Shop<Database: SqlDatabase>>(
    shop: &S,
    consumer: &Consumer,
    item: i64,
    delivery: u32,
) -> Disposition {
    let message = consumer.message(&item).payload(&item).delivery(delivery);
    message
        .transact(shop.pool(), async |tx| {
            shop.order(tx, item).await?;
            if item == 0 {
                return Err(OrderError::SoldOut);
            }
            Ok(())
        })
        .await
}

async fn i01_i03_a_message_commits_its_rows_once<S: Shop<Database: SqlDatabase>>(shop: S) {
    for delivery in 1..4 {
        let disposition = place(&shop, &consumer(&shop), 7, delivery).await;
        assert_ack(disposition, delivery > 1);
    }
    assert_eq!(shop.orders().await, [7]);
}

async fn i04_a_message_whose_handler_fails_leaves_no_rows<S: Shop<Database: SqlDatabase>>(shop: S) {
    let consumer = consumer(&shop);
    for delivery in 1..3 {
        assert_retry(place(&shop, &consumer, 0, delivery).await);
    }
    let exhausted = place(&shop, &consumer, 0, 3).await;
    assert_dead(exhausted, DeadLetterReason::Exhausted);
    assert_eq!(shop.orders().await, [0_i64; 0]);
}

async fn i05_copies_at_once_have_one_effect<S: Shop<Database: SqlDatabase>>(shop: S) {
    let shop = Arc::new(shop);
    let copies = (0..8).map(|_| {
        let (shop, consumer) = (Arc::clone(&shop), consumer(&*shop));
        tokio::spawn(async move {
            let mut delivery = 0;
            loop {
                delivery += 1;
                match place(&*shop, &consumer, 7, delivery.min(2)).await {
                    Disposition::Ack { replayed } => return replayed,
                    Disposition::Retry { .. } => tokio::task::yield_now().await,
                    other => panic!("{other:?}"),
                }
            }
        })
    });
    let mut first = 0;
    for copy in copies.collect::<Vec<_>>() {
        first += u32::from(!copy.await.expect("no panic"));
    }
    assert_eq!(first, 1);
    assert_eq!(shop.orders().await, [7]);
}

/// A consumer that crashes in a transaction leaves no record that could count.
async fn i14_a_message_that_was_delivered_too_often_does_not_run<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    let consumer = consumer(&shop);
    let exhausted = place(&shop, &consumer, 7, 4).await;
    assert_dead(exhausted, DeadLetterReason::Exhausted);
    assert_eq!(shop.orders().await, [0_i64; 0]);

    assert_ack(place(&shop, &consumer, 7, 3).await, false);
    assert_ack(place(&shop, &consumer, 7, 4).await, true);
    assert_eq!(shop.orders().await, [7]);
}

/// The broker cannot know that an earlier delivery is about to commit.
async fn i14_an_open_transaction_may_still_have_the_effect<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    let consumer = consumer(&shop);
    let mut tx = shop.begin().await.expect("a transaction");
    let message = consumer.message(&7_i64).payload(&7_i64).delivery(3);
    let staged = message.run_in(&mut *tx, async |tx| shop.order(tx, 7).await);
    let staged = staged.await;

    let mut beyond = Box::pin(place(&shop, &consumer, 7, 4));
    let early = timeout(Duration::from_millis(100), &mut beyond).await;
    assert!(early.is_err(), "{early:?} before the transaction has ended");
    assert_ack(staged.commit(tx).await, false);
    let mut disposition = beyond.await;
    if let Disposition::Retry { .. } = disposition {
        disposition = place(&shop, &consumer, 7, 5).await;
    }
    assert_ack(disposition, true);
    assert_eq!(shop.orders().await, [7]);
}

async fn a_staged_message_is_settled_by_its_commit<S: Shop<Database: SqlDatabase>>(shop: S) {
    let consumer = consumer(&shop);
    for (delivery, answer, replayed) in [
        (1, Err(OrderError::SoldOut), None),
        (2, Ok(()), Some(false)),
        (3, Ok(()), Some(true)),
    ] {
        let mut tx = shop.begin().await.expect("a transaction");
        let message = consumer.message("m").without_payload().delivery(delivery);
        let staged = message.run_in(&mut *tx, async |tx| {
            shop.order(tx, 7).await?;
            answer
        });
        let staged = staged.await;
        let disposition = staged.commit(tx).await;
        match replayed {
            None => drop(assert_retry(disposition)),
            Some(replayed) => assert_ack(disposition, replayed),
        }
    }
    assert_eq!(shop.orders().await, [7]);
}

async fn a_staged_message_of_a_nested_transaction_is_no_acknowledgement<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let consumer = consumer(&shop);
    let mut outer = shop.begin().await.expect("a transaction");
    let mut inner = sqlx::Connection::begin(&mut *outer)
        .await
        .expect("a savepoint");
    let message = consumer.message("m").without_payload().delivery(1);
    let staged = message.run_in(&mut *inner, async |tx| shop.order(tx, 7).await);
    let staged = staged.await;
    assert_retry(staged.commit(inner).await);
    outer.rollback().await.expect("it rolls back");
    assert_eq!(shop.orders().await, [0_i64; 0]);
}

/// The record of an earlier delivery, which was released, stands meanwhile.
async fn mend_06_an_older_record_is_no_proof_of_a_commit<S: Shop<Database: SqlDatabase>>(shop: S) {
    let consumer = consumer(&shop);
    let mut failed = shop.begin().await.expect("a transaction");
    let message = consumer.message("m").without_payload().delivery(1);
    let released = message.run_in(&mut *failed, async |_| Err::<(), _>(OrderError::SoldOut));
    drop(released.await);
    failed.commit().await.expect("it is committed");

    let mut outer = shop.begin().await.expect("a transaction");
    let mut inner = sqlx::Connection::begin(&mut *outer)
        .await
        .expect("a savepoint");
    let message = consumer.message("m").without_payload().delivery(2);
    let staged = message.run_in(&mut *inner, async |tx| shop.order(tx, 7).await);
    let staged = staged.await;
    assert_retry(staged.commit(inner).await);
    outer.rollback().await.expect("it rolls back");
    assert_eq!(shop.orders().await, [0_i64; 0]);
}

/// Both copies, and both calls of the number, are in one transaction that is rolled back.
async fn mend_06_a_replay_of_what_is_not_committed_is_no_acknowledgement<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let (consumer, idem) = (consumer(&shop), Idempotency::new(shop.store()));
    let mut outer = shop.begin().await.expect("a transaction");
    for delivery in 1..=2 {
        let inner = sqlx::Connection::begin(&mut *outer).await;
        let mut inner = inner.expect("a savepoint");
        let message = consumer.message("m").without_payload();
        let message = message.delivery(delivery);
        let staged = message.run_in(&mut *inner, async |tx| shop.order(tx, 7).await);
        let staged = staged.await;
        assert_retry(staged.commit(inner).await);

        let inner = sqlx::Connection::begin(&mut *outer).await;
        let mut inner = inner.expect("a savepoint");
        let number = idem.sequence("orders", "customer-7").first(1).number(1);
        let staged = number.run_in(&mut *inner, async |tx| {
            shop.order(tx, 8).await?;
            Ok::<_, PlaceError>(8_i64)
        });
        let ended = staged.await.commit(inner).await;
        assert!(
            matches!(
                ended,
                Err(PlaceError::Idempotency(Error::TransactionEnded { .. }))
            ),
            "{delivery}: {ended:?}"
        );
    }
    outer.rollback().await.expect("it rolls back");
    assert_eq!(shop.orders().await, [0_i64; 0]);
}

/// Another process has the message and the number between a savepoint and the commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_06_the_record_of_another_process_is_no_proof_of_a_commit() {
    let shop = PostgresShop::new().await;
    let (consumer, idem) = (consumer(&shop), Idempotency::new(shop.store()));
    let stream = || idem.sequence("orders", "customer-7").first(1);
    for is_number in [false, true] {
        let mut tx = shop.begin().await.expect("a transaction");
        let savepoint = "SAVEPOINT before_it".to_owned();
        PostgresShop::run(&mut tx, savepoint)
            .await
            .expect("a place");
        let message = consumer.message(&7_i64).payload(&7_i64).delivery(1);
        let staged = message.run_in(&mut *tx, async |tx| shop.order(tx, 7).await);
        let staged = staged.await;
        let applied = stream().number(1).run_in(&mut *tx, async |tx| {
            shop.order(tx, 8).await?;
            Ok::<_, PlaceError>(8_i64)
        });
        let applied = applied.await;
        let back = "ROLLBACK TO before_it".to_owned();
        PostgresShop::run(&mut tx, back)
            .await
            .expect("it goes back");
        match is_number {
            false => {
                assert_ack(place(&shop, &consumer, 7, 2).await, false);
                assert_retry(staged.commit(tx).await);
            }
            true => {
                drop(staged);
                let other = stream().number(1).transact(shop.pool(), async |tx| {
                    shop.order(tx, 9).await?;
                    Ok::<_, PlaceError>(9_i64)
                });
                assert!(matches!(other.await, Ok(Decision::Applied(9))));
                let ended = applied.commit(tx).await;
                assert!(
                    matches!(
                        ended,
                        Err(PlaceError::Idempotency(Error::TransactionEnded { .. }))
                    ),
                    "{ended:?}"
                );
            }
        }
    }
    assert_eq!(shop.orders().await, [7, 9]);
}

/// Postgres answers the commit of such a transaction as if all was well, and rolls it back.
async fn a_staged_message_whose_statement_failed_is_no_acknowledgement<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let consumer = consumer(&shop);
    let mut tx = shop.begin().await.expect("a transaction");
    let message = consumer.message("m").without_payload().delivery(1);
    let staged = message.run_in(&mut *tx, async |tx| shop.order(tx, 7).await);
    let staged = staged.await;
    let ignored = S::run(&mut tx, "SELECT * FROM no_such_table".to_owned()).await;
    assert!(ignored.is_err());
    let disposition = staged.commit(tx).await;
    let rows = shop.orders().await;
    match disposition {
        Disposition::Ack { .. } => assert_eq!(rows, [7]),
        disposition => {
            assert_retry(disposition);
            assert_eq!(rows, [0_i64; 0]);
        }
    }
}

async fn a_conflict_is_tried_again_before_the_message_is<S: Shop<Database: SqlDatabase>>(shop: S) {
    let runs = AtomicU32::new(0);
    let how = Transact::new(shop.pool()).retry_if(|error| matches!(error, OrderError::SoldOut));
    let consumer = consumer(&shop);
    let message = consumer.message("m").without_payload().delivery(1);
    let disposition = message
        .transact(how, async |tx| {
            shop.order(tx, 7).await?;
            match runs.fetch_add(1, Ordering::SeqCst) {
                0 => Err(OrderError::SoldOut),
                _ => Ok(()),
            }
        })
        .await;
    assert_ack(disposition, false);
    assert_eq!(runs.into_inner(), 2);
    assert_eq!(shop.orders().await, [7]);
}
