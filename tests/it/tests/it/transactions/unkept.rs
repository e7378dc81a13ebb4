//! Errors that cannot be recorded, in a transaction: nothing stands of the call, so its key is
//! free.

use std::sync::atomic::{AtomicU32, Ordering};

use idempotent_runtime::{
    Error, Idempotency,
    consumer::{DeadLetterReason, Disposition},
    sequence::Decision,
    transaction::SqlDatabase,
};
use serde::{Deserialize, Serialize};

use super::shop::Shop;

on_every_database![
    mend_04_an_error_that_cannot_be_read_back_leaves_the_key_free,
    mend_04_an_error_behind_a_failed_statement_leaves_the_key_free,
    mend_04_an_error_that_is_too_long_leaves_the_key_free,
    mend_04_a_message_whose_error_cannot_be_recorded_comes_again,
    mend_04_a_number_whose_error_cannot_be_recorded_stays,
];

#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
enum OrderError {
    #[error(transparent)]
    Ours(#[from] Error),
    #[error("the database")]
    #[serde(skip)]
    Database(#[from] sqlx::Error),
    #[error("a reason that does not come back: {0:?}")]
    Unread(#[serde(skip_serializing)] Option<u8>),
    #[error("{0}")]
    Long(String),
}

/// How a body fails.
#[derive(Clone, Copy, Debug)]
enum Fails {
    Unread,
    Statement,
    Long,
}

/// Writes an order, and fails the first two times.
async fn ends<S: Shop>(
    shop: &S,
    tx: &mut <S::Database as sqlx::Database>::Connection,
    fails: Fails,
    runs: &AtomicU32,
) -> Result<i64, OrderError> {
    shop.order(tx, 7).await?;
    if runs.fetch_add(1, Ordering::SeqCst) >= 2 {
        return Ok(7);
    }
    match fails {
        Fails::Unread => Err(OrderError::Unread(Some(1))),
        Fails::Long => Err(OrderError::Long("x".repeat(5_000))),
        Fails::Statement => {
            S::run(tx, "INSERT INTO nowhere VALUES (1)".to_owned()).await?;
            Ok(0)
        }
    }
}

fn idem(shop: &impl Shop) -> Idempotency {
    let builder = Idempotency::builder(shop.store()).max_outcome(1_000);
    builder.build().expect("a handle")
}

/// Two calls fail, and a third one runs, in each form.
async fn is_free_after<S: Shop<Database: SqlDatabase>>(shop: &S, fails: Fails) {
    let idem = idem(shop);
    let runs = AtomicU32::new(0);
    for is_last in [false, false, true] {
        let call = idem.call("orders.place").key("own").arguments(&7_i64);
        let own = call.transact(shop.pool(), async |tx| ends(shop, tx, fails, &runs).await);
        let own: Result<i64, OrderError> = own.await;
        assert_eq!(own.is_ok(), is_last, "{fails:?}: {own:?}");
    }
    let runs = AtomicU32::new(0);
    for is_last in [false, false, true] {
        let mut tx = shop.begin().await.expect("a transaction");
        let call = idem.call("orders.place").key("joined").arguments(&7_i64);
        let joined = call
            .record_errors()
            .run_in(&mut *tx, async |tx| ends(shop, tx, fails, &runs).await);
        let joined: Result<i64, OrderError> = joined.await;
        assert_eq!(joined.is_ok(), is_last, "{fails:?}: {joined:?}");
        tx.commit().await.expect("it is committed");
    }
    assert_eq!(shop.orders().await, [7, 7]);
}

async fn mend_04_an_error_that_cannot_be_read_back_leaves_the_key_free<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    is_free_after(&shop, Fails::Unread).await;
}

async fn mend_04_an_error_behind_a_failed_statement_leaves_the_key_free<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    is_free_after(&shop, Fails::Statement).await;
}

async fn mend_04_an_error_that_is_too_long_leaves_the_key_free<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    is_free_after(&shop, Fails::Long).await;
}

async fn mend_04_a_message_whose_error_cannot_be_recorded_comes_again<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let builder = idem(&shop).consumer("orders").broker_retention("3d");
    let consumer = builder.max_deliveries(4).build().expect("a consumer");
    for fails in [Fails::Long, Fails::Statement] {
        let runs = AtomicU32::new(0);
        let mut came = Vec::new();
        for delivery in 1..=4 {
            let id = format!("{fails:?}");
            let message = consumer.message(&id).without_payload().delivery(delivery);
            let message = message.record_errors();
            let handled =
                message.transact(shop.pool(), async |tx| ends(&shop, tx, fails, &runs).await);
            came.push(match handled.await {
                Disposition::Ack { replayed } => format!("ack {replayed}"),
                Disposition::Retry { .. } => "retry".to_owned(),
                other => format!("{other:?}"),
            });
        }
        assert_eq!(came, ["retry", "retry", "ack false", "ack true"]);
        let forever = AtomicU32::new(0);
        let message = consumer.message("last").without_payload().delivery(4);
        let handled = message.record_errors().transact(shop.pool(), async |tx| {
            ends(&shop, tx, fails, &forever).await
        });
        let exhausted = handled.await;
        assert!(
            matches!(
                exhausted,
                Disposition::DeadLetter {
                    reason: DeadLetterReason::Exhausted,
                    ..
                }
            ),
            "{exhausted:?}"
        );
    }
    assert_eq!(shop.orders().await, [7, 7]);
}

async fn mend_04_a_number_whose_error_cannot_be_recorded_stays<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    let idem = idem(&shop);
    let stream = || idem.sequence("orders", "customer-7").first(1);
    for (number, fails) in [(1, Fails::Unread), (2, Fails::Statement), (3, Fails::Long)] {
        let runs = AtomicU32::new(0);
        for is_last in [false, false, true] {
            let call = stream().number(number).record_errors();
            let applied =
                call.transact(shop.pool(), async |tx| ends(&shop, tx, fails, &runs).await);
            let applied = applied.await;
            assert_eq!(
                matches!(applied, Ok(Decision::Applied(7))),
                is_last,
                "{fails:?}: {applied:?}"
            );
        }
        let position = stream().position().await.expect("the store answers");
        assert_eq!(position.last, Some(number));
    }
    assert_eq!(shop.orders().await, [7, 7, 7]);
}
