//! The body runs behind a savepoint: the caller's own rows stand, whatever becomes of the body's.

use idempotent_runtime::{
    CallOutcome, Error, Idempotency, StoreErrorKind,
    testing::{Fault, FaultyStore, On, StoreOperation},
};

use super::{
    PlaceError, Placed, assert_ended, ours, place, place_in,
    shop::{PostgresShop, Shop},
    sold_out,
};
use crate::harness::Log;

on_every_database![
    g03_the_rows_before_a_call_that_fails_stand,
    g03_the_rows_before_a_statement_that_fails_stand,
    g03_a_record_that_cannot_be_written_undoes_the_rows_of_its_body_alone,
    a_body_that_rolls_back_by_itself_is_told_so,
    a_call_inside_the_body_that_fails_undoes_its_own_rows,
];

async fn g03_the_rows_before_a_call_that_fails_stand(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    let mut transaction = shop.begin().await.expect("a transaction");
    shop.order(&mut transaction, 1).await.expect("an order");
    let placed = sold_out(&shop, &idem, &mut transaction).await;
    assert!(matches!(placed, Err(PlaceError::SoldOut)), "{placed:?}");
    shop.order(&mut transaction, 2).await.expect("an order");
    transaction.commit().await.expect("it is committed");

    assert_eq!(shop.orders().await, [1, 2]);
}

/// Postgres takes no more statements after one that failed, until the savepoint is gone back to.
async fn g03_the_rows_before_a_statement_that_fails_stand<S: Shop>(shop: S) {
    let idem = Idempotency::new(shop.store());
    let mut transaction = shop.begin().await.expect("a transaction");
    shop.order(&mut transaction, 1).await.expect("an order");
    let call = idem.call("orders.place").key("k").arguments(&7_i64);
    let placed: Placed = call
        .record_errors()
        .run_in(&mut *transaction, async |connection| {
            shop.order(connection, 7).await?;
            S::run(connection, "INSERT INTO nowhere VALUES (1)".to_owned()).await?;
            Ok(7)
        })
        .await;
    assert!(matches!(placed, Err(PlaceError::Database(_))), "{placed:?}");
    shop.order(&mut transaction, 2).await.expect("an order");
    transaction.commit().await.expect("it is committed");

    assert_eq!(shop.orders().await, [1, 2]);
}

async fn g03_a_record_that_cannot_be_written_undoes_the_rows_of_its_body_alone(shop: impl Shop) {
    let faulty = FaultyStore::new(shop.store());
    let idem = Idempotency::new(faulty.clone());
    let fault = Fault::Fail(StoreErrorKind::Full);
    faulty.fault(StoreOperation::Ending, On::Next, fault);
    let mut transaction = shop.begin().await.expect("a transaction");
    shop.order(&mut transaction, 1).await.expect("an order");
    let placed = ours(place_in(&shop, &idem, &mut transaction, "k", 7).await);
    assert!(matches!(placed, Err(Error::Store(_))), "{placed:?}");
    transaction.commit().await.expect("it is committed");
    assert_eq!(shop.orders().await, [1]);

    assert_eq!(place(&shop, &idem, "k", 7).await.ok(), Some(7));
    assert_eq!(shop.orders().await, [1, 7]);
}

async fn a_body_that_rolls_back_by_itself_is_told_so<S: Shop>(shop: S) {
    let log = Log::new();
    let idem = Idempotency::builder(shop.store()).observer(log.clone());
    let idem = idem.build().expect("a handle");
    let mut connection = shop.pool().acquire().await.expect("one").detach();
    let mut transaction = S::begin_on(&mut connection).await.expect("a transaction");
    let call = idem.call("orders.place").key("k").arguments(&7_i64);
    let placed: Placed = call
        .record_errors()
        .run_in(&mut *transaction, async |connection| {
            shop.order(connection, 7).await?;
            S::run(connection, "ROLLBACK".to_owned()).await?;
            Ok(7)
        })
        .await;
    assert_ended(placed);
    assert_eq!(log.answers(), [CallOutcome::TransactionEnded]);
    drop(transaction);
    drop(connection);

    assert_eq!(place(&shop, &idem, "k", 7).await.ok(), Some(7));
    assert_eq!(shop.orders().await, [7]);
}

async fn a_call_inside_the_body_that_fails_undoes_its_own_rows(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    let mut transaction = shop.begin().await.expect("a transaction");
    let outer = idem.call("orders.place").key("outer").arguments(&7_i64);
    let placed: Placed = outer
        .record_errors()
        .run_in(&mut *transaction, async |connection| {
            shop.order(connection, 1).await?;
            let inner = sold_out(&shop, &idem, connection).await;
            assert!(matches!(inner, Err(PlaceError::SoldOut)), "{inner:?}");
            shop.order(connection, 2).await?;
            Ok(7)
        })
        .await;
    assert_eq!(placed.ok(), Some(7));
    transaction.commit().await.expect("it is committed");
    assert_eq!(shop.orders().await, [1, 2]);
}

/// A failed statement of the body, whose error it hands on or swallows.
async fn after_a_failed_statement(swallows: bool) {
    let shop = PostgresShop::new().await;
    let idem = Idempotency::new(shop.store());
    let mut transaction = shop.begin().await.expect("a transaction");
    shop.order(&mut transaction, 1).await.expect("an order");
    let call = idem.call("orders.place").key("k").arguments(&7_i64);
    let placed: Placed = call
        .record_errors()
        .run_in(&mut *transaction, async |connection| {
            shop.order(connection, 7).await?;
            let nowhere = "INSERT INTO nowhere VALUES (1)".to_owned();
            let failed = PostgresShop::run(connection, nowhere).await;
            if swallows {
                Ok(7)
            } else {
                failed.map(|()| 7).map_err(PlaceError::from)
            }
        })
        .await;
    if swallows {
        let placed = ours(placed);
        assert!(
            matches!(placed, Err(Error::TransactionEnded { .. })),
            "{placed:?}"
        );
    } else {
        assert!(matches!(placed, Err(PlaceError::Database(_))), "{placed:?}");
    }
    transaction.commit().await.expect("it is committed");
    assert_eq!(shop.orders().await, [1]);

    let again = place(&shop, &idem, "k", 7).await;
    assert_eq!(again.ok(), Some(7), "the key is free");
    assert_eq!(shop.orders().await, [1, 7]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn an_error_that_aborts_a_transaction_of_postgres_is_never_recorded() {
    crate::harness::in_time(after_a_failed_statement(false)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_body_that_swallows_what_aborts_a_transaction_of_postgres_is_told_so() {
    crate::harness::in_time(after_a_failed_statement(true)).await;
}
