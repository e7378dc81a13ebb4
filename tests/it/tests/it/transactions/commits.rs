//! The state after a commit, and the state after anything else.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::Poll,
    time::Duration,
};

use idempotent_runtime::{
    Idempotency, Status,
    store::OutcomeCache,
    testing::{Disconnect, Proxy},
};
use sqlx::Acquire;

use super::{
    PlaceError, Placed, ours, outside, place, place_in,
    shop::{MariaDbShop, PostgresShop, Remote, Shop},
    sold_out,
};
use crate::answers::is_reused;

on_every_database![
    g01_i14_record_and_rows_commit_together,
    g01_i14_record_and_rows_roll_back_together,
    g02_a_replay_does_nothing_in_the_database,
    g03_an_error_that_is_committed_is_recorded_without_its_rows,
    g03_an_error_that_is_rolled_back_leaves_nothing,
    mend_08_an_error_is_released_where_nothing_is_said_of_errors,
    g03_an_error_of_the_database_is_the_caller_s,
    g12_a_call_goes_with_its_savepoint,
    g13_a_transaction_that_is_dropped_leaves_nothing,
    g13_a_panic_leaves_nothing,
    a_call_that_is_dropped_at_any_await_leaves_nothing,
    a_call_inside_the_body_commits_with_it,
    a_store_behind_copies_takes_part,
];

async fn g01_i14_record_and_rows_commit_together(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());

    assert_eq!(place(&shop, &idem, "k", 7).await.ok(), Some(7));

    assert_eq!(shop.orders().await, [7]);
    assert_eq!(outside(&idem, "k", 7).await.ok(), Some(7));
}

async fn g01_i14_record_and_rows_roll_back_together(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    let mut transaction = shop.begin().await.expect("a transaction");
    let placed = place_in(&shop, &idem, &mut transaction, "k", 7).await;
    assert_eq!(placed.ok(), Some(7));

    transaction.rollback().await.expect("it is rolled back");

    assert_eq!(shop.orders().await, [0_i64; 0]);
    assert_eq!(status(&idem).await, "unknown");
    assert_eq!(place(&shop, &idem, "k", 7).await.ok(), Some(7));
    assert_eq!(shop.orders().await, [7]);
}

async fn g02_a_replay_does_nothing_in_the_database(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    for _ in 0..3 {
        assert_eq!(place(&shop, &idem, "k", 7).await.ok(), Some(7));
    }
    assert_eq!(shop.orders().await, [7]);

    let other = ours(place(&shop, &idem, "k", 8).await);
    assert!(is_reused(&other), "{other:?}");
    assert_eq!(shop.orders().await, [7]);
}

async fn g03_an_error_that_is_committed_is_recorded_without_its_rows(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    let mut transaction = shop.begin().await.expect("a transaction");
    let placed = sold_out(&shop, &idem, &mut transaction).await;
    assert!(matches!(placed, Err(PlaceError::SoldOut)), "{placed:?}");

    transaction.commit().await.expect("it is committed");

    assert_eq!(shop.orders().await, [0_i64; 0]);
    let again = place(&shop, &idem, "k", 7).await;
    assert!(matches!(again, Err(PlaceError::SoldOut)), "{again:?}");
    assert_eq!(shop.orders().await, [0_i64; 0]);
}

async fn g03_an_error_that_is_rolled_back_leaves_nothing(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    let mut transaction = shop.begin().await.expect("a transaction");
    let placed = sold_out(&shop, &idem, &mut transaction).await;
    assert!(matches!(placed, Err(PlaceError::SoldOut)), "{placed:?}");

    transaction.rollback().await.expect("it is rolled back");

    assert_eq!(place(&shop, &idem, "k", 7).await.ok(), Some(7));
    assert_eq!(shop.orders().await, [7]);
}

async fn mend_08_an_error_is_released_where_nothing_is_said_of_errors(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    let mut transaction = shop.begin().await.expect("a transaction");
    let call = idem.call("orders.place").key("k").arguments(&7_i64);
    let failed = call.run_in(&mut *transaction, async |transaction| {
        shop.order(transaction, 7).await?;
        Err(PlaceError::SoldOut)
    });
    let failed: Placed = failed.await;
    assert!(matches!(failed, Err(PlaceError::SoldOut)), "{failed:?}");
    transaction.commit().await.expect("it is committed");

    assert_eq!(place(&shop, &idem, "k", 7).await.ok(), Some(7));
    assert_eq!(shop.orders().await, [7]);
}

/// On Postgres nothing can be written after that, the record included.
async fn g03_an_error_of_the_database_is_the_caller_s<S: Shop>(shop: S) {
    let idem = Idempotency::new(shop.store());
    let mut transaction = shop.begin().await.expect("a transaction");
    let call = idem.call("orders.place").key("k").arguments(&7_i64);
    let placed: Placed = call
        .record_errors()
        .run_in(&mut *transaction, async |transaction| {
            S::run(transaction, "INSERT INTO nowhere VALUES (1)".to_owned()).await?;
            Ok(7)
        })
        .await;
    assert!(
        matches!(&placed, Err(PlaceError::Database(error)) if error.contains("nowhere")),
        "{placed:?}"
    );
    drop(transaction);

    assert_eq!(place(&shop, &idem, "k", 7).await.ok(), Some(7));
    assert_eq!(shop.orders().await, [7]);
}

async fn g12_a_call_goes_with_its_savepoint(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    let mut transaction = shop.begin().await.expect("a transaction");
    shop.order(&mut transaction, 1).await.expect("an order");
    {
        let mut savepoint = transaction.begin().await.expect("a savepoint");
        let placed = place_in(&shop, &idem, &mut savepoint, "k", 7).await;
        assert_eq!(placed.ok(), Some(7));
        savepoint.rollback().await.expect("it is rolled back");
    }
    {
        let mut savepoint = transaction.begin().await.expect("a savepoint");
        let placed = place_in(&shop, &idem, &mut savepoint, "k", 8).await;
        assert_eq!(
            placed.ok(),
            Some(8),
            "another payload, as nothing was recorded"
        );
        savepoint.commit().await.expect("it is kept");
    }
    transaction.commit().await.expect("it is committed");

    assert_eq!(shop.orders().await, [1, 8]);
    assert_eq!(outside(&idem, "k", 8).await.ok(), Some(8));
}

async fn g13_a_transaction_that_is_dropped_leaves_nothing(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    let mut transaction = shop.begin().await.expect("a transaction");
    let placed = place_in(&shop, &idem, &mut transaction, "k", 7).await;
    assert_eq!(placed.ok(), Some(7));

    drop(transaction);

    assert_eq!(place(&shop, &idem, "k", 8).await.ok(), Some(8));
    assert_eq!(shop.orders().await, [8]);
}

async fn g13_a_panic_leaves_nothing<S: Shop>(shop: S) {
    let shop = Arc::new(shop);
    let idem = Idempotency::new(shop.store());
    let (dying, its) = (Arc::clone(&shop), idem.clone());
    let died = tokio::spawn(async move {
        let mut transaction = dying.begin().await.expect("a transaction");
        let call = its.call("orders.place").key("k").arguments(&7_i64);
        let placing = call
            .record_errors()
            .run_in(&mut *transaction, async |transaction| {
                dying.order(transaction, 7).await?;
                panic!("it dies");
            });
        let _: Placed = placing.await;
    });
    assert!(died.await.is_err(), "its body ran");

    assert_eq!(place(&*shop, &idem, "k", 8).await.ok(), Some(8));
    assert_eq!(shop.orders().await, [8]);
}

/// Polls a future until it is ready, or until it was polled so many times since it `has_begun`.
async fn ready_within<F: Future>(
    polls: u32,
    has_begun: impl Fn() -> bool,
    future: F,
) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    loop {
        if has_begun() {
            left = left.checked_sub(1)?;
        }
        let polled = std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context)));
        if let Poll::Ready(output) = polled.await {
            return Some(output);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn a_call_that_is_dropped_at_any_await_leaves_nothing<S: Shop>(shop: S) {
    let idem = Idempotency::new(shop.store());
    let mut stopped = 0;
    // From the first poll of the call, and from the first of its body.
    'ends: for in_body in [false, true] {
        for polls in 0.. {
            // It is closed with the call: sqlx may have fallen out of step with MariaDB.
            let pooled = shop.pool().acquire().await.expect("a connection");
            let mut connection = pooled.detach();
            let mut transaction = S::begin_on(&mut connection).await.expect("a transaction");
            let call = idem.call("orders.place").key("k").arguments(&7_i64);
            let runs = AtomicU32::new(0);
            let placing = call
                .record_errors()
                .run_in(&mut *transaction, async |transaction| {
                    runs.fetch_add(1, Ordering::SeqCst);
                    shop.order(transaction, 7).await?;
                    tokio::task::yield_now().await;
                    Ok(7)
                });
            let runs = || runs.load(Ordering::SeqCst) > 0;
            let placed: Option<Placed> = ready_within(polls, || !in_body || runs(), placing).await;
            if placed.is_some() && in_body {
                assert_eq!(placed.and_then(Result::ok), Some(7));
                transaction.commit().await.expect("it is committed");
                break 'ends;
            }
            stopped += u32::from(runs());
            drop(transaction);
            drop(connection);
            assert_eq!(shop.orders().await, [0_i64; 0], "after {polls} polls");
            if placed.is_some() || runs() && !in_body {
                break;
            }
        }
    }
    assert!(stopped > 1, "in the body");
    assert_eq!(shop.orders().await, [7]);
    assert_eq!(outside(&idem, "k", 7).await.ok(), Some(7));
}

async fn status(idem: &Idempotency) -> &'static str {
    match idem.lookup("orders.place", None::<&str>, "k").await {
        Ok(Status::Unknown) => "unknown",
        Ok(Status::Processing { .. }) => "processing",
        Ok(Status::Completed { .. }) => "completed",
        other => panic!("{other:?}"),
    }
}

async fn a_call_inside_the_body_commits_with_it(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    for commits in [false, true] {
        let mut transaction = shop.begin().await.expect("a transaction");
        let outer = idem.call("orders.place").key("outer").arguments(&7_i64);
        let placed: Placed = outer
            .record_errors()
            .run_in(&mut *transaction, async |connection| {
                shop.order(connection, 1).await?;
                let inner = idem.call("orders.place").key("inner").arguments(&7_i64);
                inner
                    .record_errors()
                    .run_in(connection, async |connection| {
                        shop.order(connection, 7).await?;
                        Ok::<_, PlaceError>(7)
                    })
                    .await
            })
            .await;
        assert_eq!(placed.ok(), Some(7));
        if commits {
            transaction.commit().await.expect("it is committed");
        } else {
            transaction.rollback().await.expect("it is rolled back");
        }
    }
    assert_eq!(shop.orders().await, [1, 7]);
    for key in ["outer", "inner"] {
        assert_eq!(outside(&idem, key, 7).await.ok(), Some(7), "{key}");
    }
}

async fn a_store_behind_copies_takes_part(shop: impl Shop) {
    let copies = OutcomeCache::new(16);
    let idem = Idempotency::new(copies.in_front_of(shop.store()));
    let mut transaction = shop.begin().await.expect("a transaction");
    let placed = place_in(&shop, &idem, &mut transaction, "k", 7).await;
    assert_eq!(placed.ok(), Some(7));
    transaction.rollback().await.expect("it is rolled back");
    assert_eq!(outside(&idem, "other", 1).await.ok(), Some(-1));

    assert_eq!(place(&shop, &idem, "k", 8).await.ok(), Some(8));
    for _ in 0..2 {
        assert_eq!(outside(&idem, "k", 8).await.ok(), Some(8));
        assert_eq!(place(&shop, &idem, "k", 8).await.ok(), Some(8));
    }
    assert_eq!(shop.orders().await, [8]);
}

/// The answer to the commit is lost, and the call tells whether it was committed.
async fn resolves_a_commit_whose_answer_is_lost<S: Remote>() {
    let server = crate::servers::address(&crate::servers::url(S::URL));
    let proxy = Proxy::to(server).await.expect("a proxy");
    let shop = S::through(proxy.address()).await;
    let idem = Idempotency::new(shop.store());
    for (item, cut) in [
        (1, Disconnect::BeforeRequest),
        (2, Disconnect::BeforeAnswer),
    ] {
        let key = format!("{cut:?}");
        let mut transaction = shop.begin().await.expect("a transaction");
        let placed = place_in(&shop, &idem, &mut transaction, &key, item).await;
        assert_eq!(placed.ok(), Some(item));
        proxy.cut_next(cut);
        let committed = transaction.commit().await;
        assert!(committed.is_err(), "{cut:?}");

        assert_eq!(place(&shop, &idem, &key, item).await.ok(), Some(item));
    }
    assert_eq!(shop.orders().await, [1, 2]);
    shop.pool().close().await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn g10_i14_a_commit_to_postgres_whose_answer_is_lost_is_resolved() {
    crate::harness::in_time(resolves_a_commit_whose_answer_is_lost::<PostgresShop>()).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn g10_i14_a_commit_to_mariadb_whose_answer_is_lost_is_resolved() {
    crate::harness::in_time(resolves_a_commit_whose_answer_is_lost::<MariaDbShop>()).await;
}
