//! The attribute's `tx`: an annotated function joins the transaction of its caller.

use std::{
    ops::DerefMut,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    CallOutcome, Error, Idempotency, InFlight, Verdict, idempotent, store::SqlConnection,
};
use sqlx::{Database, Transaction};

use super::{PlaceError, Placed, is_refused, ours, outside, shop::Shop};
use crate::{answers::is_reused, harness::Log};

pub(super) type Connection<S> = <<S as Shop>::Database as Database>::Connection;

on_every_database![
    g01_i14_an_annotated_function_commits_with_its_rows,
    g01_i14_an_annotated_function_rolls_back_with_its_rows,
    g02_a_replay_of_an_annotated_function_runs_no_body,
    g03_an_error_of_an_annotated_function_is_recorded_where_the_caller_commits,
    mend_08_an_error_is_released_whatever_the_caller_does,
    mend_08_observers_hear_of_an_outcome_that_is_staged,
    g04_a_duplicate_of_an_annotated_function_waits_for_the_commit,
    g12_a_transaction_type_is_joined_as_its_connection_is,
    g13_an_annotated_function_that_is_dropped_leaves_nothing,
    no_transaction_is_open_where_an_annotated_function_is_called,
    the_handle_s_own_defaults_of_leases_count_for_nothing,
];

#[idempotent(name = "orders.place", key = key, tx = tx, commits_errors, handle = idem, skip(idem, shop))]
pub(super) async fn place<S: Shop>(
    idem: &Idempotency,
    shop: &S,
    tx: &mut Connection<S>,
    key: &str,
    item: i64,
) -> Placed {
    shop.order(tx, item).await?;
    if item < 0 {
        std::future::pending::<()>().await;
    }
    if item == 0 {
        return Err(PlaceError::SoldOut);
    }
    Ok(item)
}

/// The same, and commits it.
async fn place_and_commit<S: Shop>(idem: &Idempotency, shop: &S, key: &str, item: i64) -> Placed {
    let mut transaction = shop.begin().await?;
    let placed = place(idem, shop, &mut transaction, key, item).await?;
    transaction.commit().await?;
    Ok(placed)
}

async fn g01_i14_an_annotated_function_commits_with_its_rows(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());

    assert_eq!(place_and_commit(&idem, &shop, "k", 7).await.ok(), Some(7));

    assert_eq!(shop.orders().await, [7]);
    let other = ours(outside(&idem, "k", 7).await);
    assert!(is_reused(&other), "it names its arguments: {other:?}");
}

async fn g01_i14_an_annotated_function_rolls_back_with_its_rows(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    let mut transaction = shop.begin().await.expect("a transaction");
    let placed = place(&idem, &shop, &mut transaction, "k", 7).await;
    assert_eq!(placed.ok(), Some(7));

    transaction.rollback().await.expect("it is rolled back");

    assert_eq!(shop.orders().await, [0_i64; 0]);
    assert_eq!(place_and_commit(&idem, &shop, "k", 7).await.ok(), Some(7));
    assert_eq!(shop.orders().await, [7]);
}

async fn g02_a_replay_of_an_annotated_function_runs_no_body(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    for _ in 0..3 {
        assert_eq!(place_and_commit(&idem, &shop, "k", 7).await.ok(), Some(7));
    }
    assert_eq!(shop.orders().await, [7]);

    let other = ours(place_and_commit(&idem, &shop, "k", 8).await);
    assert!(is_reused(&other), "{other:?}");
    assert_eq!(shop.orders().await, [7]);
}

async fn g03_an_error_of_an_annotated_function_is_recorded_where_the_caller_commits(
    shop: impl Shop,
) {
    let idem = Idempotency::new(shop.store());
    for _ in 0..2 {
        let mut transaction = shop.begin().await.expect("a transaction");
        let placed = place(&idem, &shop, &mut transaction, "k", 0).await;
        assert!(matches!(placed, Err(PlaceError::SoldOut)), "{placed:?}");
        transaction.commit().await.expect("it is committed");
    }
    assert_eq!(shop.orders().await, [0_i64; 0], "its rows are undone");
}

/// The caller commits after an error, or rolls back: the next call runs, and its rows stand once.
async fn mend_08_an_error_is_released_whatever_the_caller_does(shop: impl Shop) {
    #[idempotent(name = "orders.released", key = key, tx = tx, handle = idem, skip(idem, shop, runs))]
    async fn place<S: Shop>(
        idem: &Idempotency,
        shop: &S,
        runs: &AtomicU32,
        tx: &mut Connection<S>,
        key: &str,
    ) -> Placed {
        shop.order(tx, 7).await?;
        match runs.fetch_add(1, Ordering::SeqCst) {
            0 => Err(PlaceError::SoldOut),
            _ => Ok(7),
        }
    }
    let builder = Idempotency::builder(shop.store());
    let idem = builder.on_error(Verdict::Replay).build().expect("a handle");
    for (key, commits) in [("commits", true), ("rolls back", false)] {
        let runs = AtomicU32::new(0);
        for expected in [None, Some(7), Some(7)] {
            let mut transaction = shop.begin().await.expect("a transaction");
            let placed = place(&idem, &shop, &runs, &mut transaction, key).await;
            assert_eq!(placed.as_ref().ok(), expected.as_ref(), "{key}: {placed:?}");
            match commits || placed.is_ok() {
                true => transaction.commit().await.expect("it is committed"),
                false => transaction.rollback().await.expect("it is rolled back"),
            }
        }
        assert_eq!(runs.into_inner(), 2, "{key}");
    }
    assert_eq!(shop.orders().await, [7, 7]);
}

async fn mend_08_observers_hear_of_an_outcome_that_is_staged(shop: impl Shop) {
    let log = Log::new();
    let builder = Idempotency::builder(shop.store()).observer(log.clone());
    let idem = builder.build().expect("a handle");
    for (key, item) in [("value", 7), ("error", 0)] {
        let mut transaction = shop.begin().await.expect("a transaction");
        let _placed = place(&idem, &shop, &mut transaction, key, item).await;
        transaction.rollback().await.expect("it is rolled back");
    }
    let steps: Vec<String> = log.steps().iter().map(|step| format!("{step:?}")).collect();
    assert_eq!(steps, ["Claimed", "Staged", "Claimed", "Staged"]);
    assert_eq!(log.answers(), [CallOutcome::ExecutedInTransaction; 2]);
}

async fn g04_a_duplicate_of_an_annotated_function_waits_for_the_commit(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    let shop = Arc::new(shop);
    let callers = (0..8).map(|_| {
        let (idem, shop) = (idem.clone(), Arc::clone(&shop));
        tokio::spawn(async move { place_and_commit(&idem, &*shop, "k", 7).await })
    });
    for caller in callers.collect::<Vec<_>>() {
        let placed = caller.await.expect("no panic");
        assert_eq!(placed.ok(), Some(7));
    }
    assert_eq!(shop.orders().await, [7]);
}

async fn g12_a_transaction_type_is_joined_as_its_connection_is<S: Shop>(shop: S)
where
    for<'c> Transaction<'c, S::Database>: SqlConnection,
{
    #[idempotent(name = "orders.place", key = key, tx = tx, handle = idem, skip(idem, shop))]
    async fn place<S: Shop>(
        idem: &Idempotency,
        shop: &S,
        mut tx: &mut Transaction<'_, S::Database>,
        key: &str,
    ) -> Placed
    where
        for<'c> Transaction<'c, S::Database>: SqlConnection,
        for<'c> Transaction<'c, S::Database>: DerefMut<Target = Connection<S>>,
    {
        shop.order(tx, 7).await?;
        let again = &mut tx;
        shop.order(again, 8).await?;
        Ok(7)
    }
    let idem = Idempotency::new(shop.store());
    for _ in 0..2 {
        let mut transaction = shop.begin().await.expect("a transaction");
        let placed = place(&idem, &shop, &mut transaction, "k").await;
        assert_eq!(placed.ok(), Some(7));
        transaction.commit().await.expect("it is committed");
    }
    assert_eq!(shop.orders().await, [7, 8]);
}

async fn g13_an_annotated_function_that_is_dropped_leaves_nothing(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    let mut transaction = shop.begin().await.expect("a transaction");
    let call = place(&idem, &shop, &mut transaction, "k", -1);
    let limit = Duration::from_millis(200);
    assert!(tokio::time::timeout(limit, call).await.is_err());
    drop(transaction);

    let placed = place_and_commit(&idem, &shop, "k", 7).await;
    assert_eq!(ours(placed), Ok(7));
    assert_eq!(shop.orders().await, [7]);
}

async fn no_transaction_is_open_where_an_annotated_function_is_called(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    let mut connection = shop.pool().acquire().await.expect("a connection");

    let placed = place(&idem, &shop, &mut connection, "k", 7).await;

    assert!(is_refused(&placed), "{placed:?}");
    assert_eq!(shop.orders().await, [0_i64; 0]);
}

async fn the_handle_s_own_defaults_of_leases_count_for_nothing(shop: impl Shop) {
    let idem = Idempotency::builder(shop.store())
        .in_flight(InFlight::Reject)
        .lease("1s")
        .build();
    let idem = idem.expect("a handle");
    let placed = place_and_commit(&idem, &shop, "k", 7).await;
    assert_eq!(placed.ok(), Some(7));
    let other: Result<i64, Error> = ours(place_and_commit(&idem, &shop, "k", 7).await);
    assert_eq!(other.ok(), Some(7));
}
