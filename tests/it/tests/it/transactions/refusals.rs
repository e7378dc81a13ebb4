//! A call that cannot be a part of a transaction is refused before anything is written.

use std::sync::atomic::{AtomicU32, Ordering};

use idempotent_runtime::{
    CallBuilder, Error, Idempotency, InFlight, OnCrash, OnOutage, StoreErrorKind,
    store::{MemoryStore, Store},
};
use sqlx::Connection;

use super::{
    PlaceError, Placed, is_refused, place_in,
    shop::{MariaDbShop, Shop, SqliteShop},
};

on_every_database![
    a_connection_without_a_transaction_is_refused,
    a_store_that_has_no_transactions_is_refused,
    what_has_no_meaning_in_a_transaction_is_refused,
    a_call_without_protection_only_runs,
];

async fn a_connection_without_a_transaction_is_refused(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    let mut connection = shop.pool().acquire().await.expect("a connection");
    let placed = place_in(&shop, &idem, &mut connection, "k", 7).await;
    assert!(is_refused(&placed), "{placed:?}");
    assert_eq!(shop.orders().await, [0_i64; 0]);
}

/// Each statement of a call would stand by itself.
async fn no_call_joins_what_the_database_ended<S: Shop>(shop: S, ends: &str) {
    let idem = Idempotency::new(shop.store());
    let mut transaction = shop.begin().await.expect("a transaction");
    let placed = place_in(&shop, &idem, &mut transaction, "first", 7).await;
    assert_eq!(placed.ok(), Some(7));
    let ended = S::run(
        &mut transaction,
        ends.replace("orders", &format!("{}orders", shop.prefix())),
    );
    let _ = ended.await;

    let placed = place_in(&shop, &idem, &mut transaction, "second", 8).await;

    assert!(is_refused(&placed), "{placed:?}");
    drop(transaction);
    assert!(!shop.orders().await.contains(&8));
}

#[tokio::test]
async fn g07_no_call_joins_a_transaction_that_sqlite_ended() {
    let fails = "INSERT OR ROLLBACK INTO orders VALUES (NULL)";
    no_call_joins_what_the_database_ended(SqliteShop::new().await, fails).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn g07_no_call_joins_a_transaction_that_mariadb_ended() {
    let commits = "ALTER TABLE orders COMMENT 'of today'";
    no_call_joins_what_the_database_ended(MariaDbShop::new().await, commits).await;
}

/// The store is not one of the transaction's database: the body does not run.
async fn refused<S: Shop>(shop: &S, store: impl Store) {
    let idem = Idempotency::new(store);
    let runs = AtomicU32::new(0);
    let mut transaction = shop.begin().await.expect("a transaction");
    let call = idem.call("orders.place").key("k").arguments(&7_i64);
    let placed: Placed = call
        .record_errors()
        .run_in(&mut *transaction, async |_| {
            runs.fetch_add(1, Ordering::SeqCst);
            Ok(7)
        })
        .await;
    let Err(PlaceError::Idempotency(Error::Store(error))) = placed else {
        panic!("{placed:?}")
    };
    assert_eq!(error.kind(), StoreErrorKind::Configuration);
    let why = std::error::Error::source(&error).expect("it says why");
    assert!(why.to_string().contains("transaction"), "{why}");
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

async fn a_store_that_has_no_transactions_is_refused(shop: impl Shop) {
    refused(&shop, MemoryStore::new()).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_store_of_another_kind_of_database_is_refused() {
    use super::shop::PostgresShop;

    let (sqlite, postgres, mariadb) = (
        SqliteShop::new().await,
        PostgresShop::new().await,
        MariaDbShop::new().await,
    );
    refused(&sqlite, postgres.store()).await;
    refused(&postgres, mariadb.store()).await;
    refused(&mariadb, sqlite.store()).await;
}

async fn what_has_no_meaning_in_a_transaction_is_refused(shop: impl Shop) {
    type Call =
        CallBuilder<idempotent_runtime::__private::Recorded, idempotent_runtime::__private::Whole>;

    let idem = Idempotency::new(shop.store());
    let meaningless: [fn(Call) -> Call; 6] = [
        |call| call.lease("10s"),
        |call| call.in_flight(InFlight::Reject),
        |call| call.on_crash(OnCrash::Uncertain),
        |call| call.on_outage(OnOutage::Open),
        |call| call.also_accept_name("orders.put"),
        |call| call.also_accept_key("old"),
    ];
    for meaningless in meaningless {
        let mut transaction = shop.begin().await.expect("a transaction");
        let call = idem.call("orders.place").key("k").arguments(&7_i64);
        let placed: Placed = meaningless(call)
            .run_in(&mut *transaction, async |transaction| {
                shop.order(transaction, 7).await?;
                Ok(7)
            })
            .await;
        assert!(is_refused(&placed), "{placed:?}");
        transaction.commit().await.expect("there is nothing in it");
    }
    assert_eq!(shop.orders().await, [0_i64; 0]);
}

async fn a_call_without_protection_only_runs(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    for _ in 0..2 {
        let mut transaction = shop.begin().await.expect("a transaction");
        let call = idem.call("orders.place").key("k").arguments(&7_i64);
        let placed: Placed = call
            .unprotected()
            .run_in(&mut *transaction, async |transaction| {
                shop.order(transaction, 7).await?;
                Ok(7)
            })
            .await;
        assert_eq!(placed.ok(), Some(7));
        transaction.commit().await.expect("it is committed");
    }
    assert_eq!(shop.orders().await, [7, 7]);
    let mut connection = shop.pool().acquire().await.expect("a connection");
    connection.ping().await.expect("it is in order");
}

/// Its thread rolls back later, and counts it until then.
#[tokio::test]
async fn a_transaction_of_sqlite_that_was_dropped_is_none() {
    for _ in 0..32 {
        let shop = SqliteShop::new().await;
        let idem = Idempotency::new(shop.store());
        let mut connection = shop.pool().acquire().await.expect("a connection");
        drop(connection.begin().await.expect("a transaction"));
        let placed = place_in(&shop, &idem, &mut connection, "k", 7).await;
        assert!(is_refused(&placed), "{placed:?}");
        assert_eq!(shop.orders().await, [0_i64; 0]);
    }
}
