//! `transaction`: one that the library owns, around annotated functions.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    Error, Idempotency,
    store::SqlConnection,
    testing::{Disconnect, Proxy},
    transaction::{SqlDatabase, Transact, transaction},
};

use super::{
    PlaceError, Placed, assert_ended,
    attribute::{Connection, place},
    ours, outside,
    shop::{MariaDbShop, PostgresShop, Remote, Shop},
};
use crate::{answers::is_reused, cancellation::polled};

on_every_database![
    g01_i14_calls_inside_commit_together,
    g01_i14_an_error_rolls_all_of_them_back,
    g02_a_replay_inside_runs_no_body,
    g03_a_recorded_error_stands_where_the_body_gives_ok,
    g04_sixty_four_transactions_place_two_orders,
    g07_a_conflict_inside_is_tried_again,
    g08_a_conflict_at_every_try_is_the_caller_s,
    g13_a_transaction_that_is_dropped_at_any_await_leaves_nothing,
    an_end_that_the_body_swallows_is_told,
    half_of_a_call_is_not_committed,
];

/// Places both orders, or none.
async fn place_both<S: Shop<Database: SqlDatabase>>(
    shop: &S,
    idem: &Idempotency,
    key: &str,
    items: [i64; 2],
) -> Placed {
    transaction(shop.pool(), async |tx| {
        place(idem, shop, tx, &format!("{key}/a"), items[0]).await?;
        place(idem, shop, tx, &format!("{key}/b"), items[1]).await
    })
    .await
}

async fn g01_i14_calls_inside_commit_together<S: Shop<Database: SqlDatabase>>(shop: S) {
    let idem = Idempotency::new(shop.store());

    assert_eq!(ours(place_both(&shop, &idem, "k", [7, 8]).await), Ok(8));

    assert_eq!(shop.orders().await, [7, 8]);
    for key in ["k/a", "k/b"] {
        let other = ours(outside(&idem, key, 9).await);
        assert!(is_reused(&other), "it has a record: {other:?}");
    }
}

async fn g01_i14_an_error_rolls_all_of_them_back<S: Shop<Database: SqlDatabase>>(shop: S) {
    let idem = Idempotency::new(shop.store());

    let placed = place_both(&shop, &idem, "k", [7, 0]).await;

    assert!(matches!(placed, Err(PlaceError::SoldOut)), "{placed:?}");
    assert_eq!(shop.orders().await, [0_i64; 0]);
    assert_eq!(
        ours(place_both(&shop, &idem, "k", [8, 9]).await),
        Ok(9),
        "no key is taken"
    );
    assert_eq!(shop.orders().await, [8, 9]);
}

async fn g02_a_replay_inside_runs_no_body<S: Shop<Database: SqlDatabase>>(shop: S) {
    let idem = Idempotency::new(shop.store());
    for _ in 0..3 {
        assert_eq!(ours(place_both(&shop, &idem, "k", [7, 8]).await), Ok(8));
    }
    assert_eq!(shop.orders().await, [7, 8]);
}

async fn g03_a_recorded_error_stands_where_the_body_gives_ok<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    let idem = Idempotency::new(shop.store());
    let placed: Result<Placed, PlaceError> = transaction(shop.pool(), async |tx| {
        Ok(place(&idem, &shop, tx, "k", 0).await)
    })
    .await;
    assert!(matches!(placed, Ok(Err(PlaceError::SoldOut))), "{placed:?}");

    let other = ours(outside(&idem, "k", 9).await);
    assert!(is_reused(&other), "it has a record: {other:?}");
    assert_eq!(shop.orders().await, [0_i64; 0]);
}

async fn g04_sixty_four_transactions_place_two_orders<S: Shop<Database: SqlDatabase>>(shop: S) {
    let (idem, shop) = (Idempotency::new(shop.store()), Arc::new(shop));
    let callers = (0..64).map(|_| {
        let (shop, idem) = (Arc::clone(&shop), idem.clone());
        tokio::spawn(async move { ours(place_both(&*shop, &idem, "k", [7, 8]).await) })
    });
    for caller in callers.collect::<Vec<_>>() {
        assert_eq!(caller.await.expect("no panic"), Ok(8));
    }
    assert_eq!(shop.orders().await, [7, 8]);
}

/// Writes an order outside of every call, too, and is in conflict as often as said.
async fn place_after<S: Shop<Database: SqlDatabase>>(
    shop: &S,
    idem: &Idempotency,
    conflicts: u32,
    retry_for: Duration,
) -> (Placed, u32) {
    let runs = AtomicU32::new(0);
    let settings = Transact::new(shop.pool()).retry_for(retry_for);
    let settings = settings.retry_if(|error| matches!(error, PlaceError::SoldOut));
    let placed = transaction(settings, async |tx| {
        place(idem, shop, tx, "k", 7).await?;
        shop.order(tx, 8).await?;
        match runs.fetch_add(1, Ordering::SeqCst) < conflicts {
            true => Err(PlaceError::SoldOut),
            false => Ok(7),
        }
    });
    let placed = placed.await;
    (placed, runs.into_inner())
}

async fn g07_a_conflict_inside_is_tried_again<S: Shop<Database: SqlDatabase>>(shop: S) {
    let idem = Idempotency::new(shop.store());
    let (placed, runs) = place_after(&shop, &idem, 2, Duration::from_secs(10)).await;
    assert_eq!((ours(placed), runs), (Ok(7), 3));
    assert_eq!(shop.orders().await, [7, 8]);
}

async fn g08_a_conflict_at_every_try_is_the_caller_s<S: Shop<Database: SqlDatabase>>(shop: S) {
    let idem = Idempotency::new(shop.store());
    let (placed, runs) = place_after(&shop, &idem, 1, Duration::ZERO).await;
    assert!(matches!(placed, Err(PlaceError::SoldOut)), "{placed:?}");
    assert_eq!(runs, 1);
    assert_eq!(shop.orders().await, [0_i64; 0]);

    let (placed, _) = place_after(&shop, &idem, 0, Duration::ZERO).await;
    assert_eq!(ours(placed), Ok(7), "the key is free");
}

async fn g13_a_transaction_that_is_dropped_at_any_await_leaves_nothing<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let idem = Idempotency::new(shop.store());
    let mut completed = 0;
    let mut rounds = 0..;
    while completed < 3 {
        let round: i64 = rounds.next().expect("numbers go on");
        let (key, items) = (round.to_string(), [2 * round + 1, 2 * round + 2]);
        let mut call = Box::pin(place_both(&shop, &idem, &key, items));
        let answered = polled(&mut call, 1 + round as usize).await.is_some();
        drop(call);
        completed += u32::from(answered);
        let orders = shop.orders().await;
        let stands = items.map(|item| orders.contains(&item));
        assert_eq!(stands[0], stands[1], "both, or none");
        assert!(!answered || stands[0], "{round} was answered");
        let again = ours(place_both(&shop, &idem, &key, items).await);
        assert_eq!(again, Ok(items[1]));
    }
    assert_eq!(shop.orders().await, Vec::from_iter(1..=2 * rounds.start));
}

async fn an_end_that_the_body_swallows_is_told<S: Shop<Database: SqlDatabase>>(shop: S)
where
    Connection<S>: SqlConnection,
{
    let idem = Idempotency::new(shop.store());
    let placed: Placed = transaction(shop.pool(), async |tx| {
        place(&idem, &shop, tx, "k", 7).await?;
        S::run(tx, "ROLLBACK".to_owned()).await?;
        Ok(7)
    })
    .await;
    assert_ended(placed);
    assert_eq!(shop.orders().await, [0_i64; 0]);
}

/// A call is dropped in the middle, and its caller goes on.
async fn half_of_a_call_is_not_committed<S: Shop<Database: SqlDatabase>>(shop: S) {
    let idem = Idempotency::new(shop.store());
    let placed: Placed = transaction(shop.pool(), async |tx| {
        let half = place(&idem, &shop, tx, "k", -1);
        let limit = Duration::from_millis(300);
        assert!(tokio::time::timeout(limit, half).await.is_err());
        Ok(7)
    })
    .await;
    assert_ended(placed);
    assert_eq!(shop.orders().await, [0_i64; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn an_aborted_transaction_that_the_body_swallows_is_told() {
    let shop = PostgresShop::new().await;
    let idem = Idempotency::new(shop.store());
    let placed: Placed = transaction(shop.pool(), async |tx| {
        place(&idem, &shop, tx, "k", 7).await?;
        let _swallowed = PostgresShop::run(tx, "SELECT 1 / 0".to_owned()).await;
        Ok(7)
    })
    .await;
    assert_ended(placed);
    assert_eq!(shop.orders().await, [0_i64; 0]);
}

/// The connection is cut at each message, before the server has it and before its answer.
async fn tells_the_truth_whatever_is_cut<S: Remote + Shop<Database: SqlDatabase>>() {
    let server = crate::servers::address(&crate::servers::url(S::URL));
    let proxy = Proxy::to(server).await.expect("a proxy");
    let shop = S::through(proxy.address()).await;
    let idem = Idempotency::new(shop.store());
    let mut item = 0;
    for cut in [Disconnect::BeforeRequest, Disconnect::BeforeAnswer] {
        for message in 0..24 {
            item += 2;
            proxy.cut_after(message, cut);
            let placed = place_both(&shop, &idem, &item.to_string(), [item - 1, item]).await;
            let placed = ours(placed);
            assert_eq!(placed, Ok(item), "{cut:?} at message {message}");
        }
    }
    proxy.cancel_cut();
    assert_eq!(shop.orders().await, Vec::from_iter(1..=item));
    shop.pool().close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn g10_i14_a_transaction_of_postgres_that_is_cut_is_found_out() {
    crate::harness::in_time(tells_the_truth_whatever_is_cut::<PostgresShop>()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn g10_i14_a_transaction_of_mariadb_that_is_cut_is_found_out() {
    crate::harness::in_time(tells_the_truth_whatever_is_cut::<MariaDbShop>()).await;
}

/// No call inside has a record that could tell.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_commit_without_a_record_that_has_no_answer_stays_unknown() {
    let server = crate::servers::address(&crate::servers::url(PostgresShop::URL));
    let proxy = Proxy::to(server).await.expect("a proxy");
    let shop = PostgresShop::through(proxy.address()).await;
    let mut unknown = 0;
    for message in 0..6 {
        let cut = AtomicU32::new(0);
        let placed: Placed = transaction(shop.pool(), async |tx| {
            if cut.fetch_add(1, Ordering::SeqCst) == 0 {
                proxy.cut_after(message, Disconnect::BeforeAnswer);
            }
            shop.order(tx, message as i64).await?;
            Ok(7)
        })
        .await;
        if let Err(PlaceError::Idempotency(error)) = placed {
            assert!(matches!(error, Error::CommitUnknown { .. }), "{error:?}");
            assert!(!error.is_retryable());
            unknown += 1;
        }
    }
    assert_eq!(unknown, 1, "one of the messages is the commit");
}
