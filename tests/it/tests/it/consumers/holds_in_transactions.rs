//! The broker's hold on a message whose handler runs in a transaction.

use std::sync::Arc;

use idempotent_runtime::{
    Idempotency, consumer::Consumer, current, testing::ManualClock, transaction::SqlDatabase,
};

use super::assert_retry;
use crate::{harness::while_time_goes_on, transactions::shop::Shop};

on_every_database![
    mend_20_a_lost_hold_tells_a_handler_in_its_own_transaction,
    mend_20_a_lost_hold_tells_a_handler_in_a_transaction_of_yours,
];

/// A consumer, and its clock.
fn consumer<S: Shop>(shop: &S) -> (ManualClock, Consumer) {
    let clock = ManualClock::new();
    let idem = Idempotency::builder(shop.store()).timer(clock.clone());
    let idem = idem.build().expect("a handle");
    let consumer = idem.consumer("billing").broker_retention("3d");
    (clock, consumer.build().expect("a consumer"))
}

/// Places an order once the attempt is told that the hold is lost.
async fn place_when_lost<S: Shop>(
    shop: &S,
    tx: &mut <S::Database as sqlx::Database>::Connection,
) -> sqlx::Result<()> {
    let attempt = current();
    attempt.lost().await;
    assert!(attempt.is_lost());
    shop.order(tx, 7).await
}

async fn mend_20_a_lost_hold_tells_a_handler_in_its_own_transaction<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let (clock, consumer) = consumer(&shop);
    let shop = Arc::new(shop);
    let its = Arc::clone(&shop);
    let handled = async move {
        let message = consumer.message("m").without_payload().delivery(1);
        let message = message.keep_alive("30ms", || async { Err("no answer".into()) });
        message
            .transact(its.pool(), async |tx| place_when_lost(&*its, tx).await)
            .await
    };
    let lost = while_time_goes_on(&clock, handled).await;
    assert!(assert_retry(lost).is_none());
    assert_eq!(shop.orders().await, [7], "the next delivery is a duplicate");
}

async fn mend_20_a_lost_hold_tells_a_handler_in_a_transaction_of_yours<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let (clock, consumer) = consumer(&shop);
    let shop = Arc::new(shop);
    let its = Arc::clone(&shop);
    let handled = async move {
        let mut tx = its.begin().await.expect("a transaction");
        let message = consumer.message("m").without_payload().delivery(1);
        let message = message.keep_alive("30ms", || async { Err("no answer".into()) });
        let staged = message
            .run_in(&mut *tx, async |tx| place_when_lost(&*its, tx).await)
            .await;
        staged.commit(tx).await
    };
    let lost = while_time_goes_on(&clock, handled).await;
    assert!(assert_retry(lost).is_none());
    assert_eq!(shop.orders().await, [0_i64; 0], "the message comes again");
}
