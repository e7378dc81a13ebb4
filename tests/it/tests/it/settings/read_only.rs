//! Connections that are left of before a failover, or that the server ended while a body ran.

use std::sync::atomic::{AtomicU32, Ordering};

use idempotent_runtime::{
    Error, Idempotency, step_in,
    transaction::{SqlDatabase, transaction},
};
use sqlx::Database;

use crate::transactions::shop::{MariaDbShop, PostgresShop, Shop};

macro_rules! on_both_servers {
    ($($test:ident),* $(,)?) => { $(
        mod $test {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs a server: cargo xtask test"]
            async fn postgres() {
                let shop = super::PostgresShop::new().await;
                crate::harness::in_time(super::$test(shop)).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs a server: cargo xtask test"]
            async fn mariadb() {
                let shop = super::MariaDbShop::new().await;
                crate::harness::in_time(super::$test(shop)).await;
            }
        }
    )* };
}
on_both_servers![
    mend_30_a_connection_that_may_only_read_is_closed,
    mend_30_a_body_that_met_such_a_connection_runs_again,
    mend_30_a_step_that_met_such_a_connection_closes_it,
    mend_30_a_body_whose_connection_was_ended_runs_again,
];

/// An error that shows its cause.
#[derive(Debug, thiserror::Error)]
enum OrderError {
    #[error(transparent)]
    Idempotency(#[from] Error),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// The refusals of a session that may only read.
struct Words {
    only_read: &'static str,
    is_only_read: &'static str,
    ends_soon: &'static str,
    id: &'static str,
    is_there: &'static str,
}

fn words<S: Shop>() -> Words {
    match <S::Database as Database>::NAME {
        "PostgreSQL" => Words {
            only_read: "SET default_transaction_read_only = on",
            is_only_read: "SELECT (current_setting('default_transaction_read_only') = 'on')::int::bigint",
            ends_soon: "SET LOCAL idle_in_transaction_session_timeout = '50ms'",
            id: "SELECT pg_backend_pid()::bigint",
            is_there: "SELECT count(*) FROM pg_stat_activity WHERE pid =",
        },
        _ => Words {
            only_read: "SET SESSION TRANSACTION READ ONLY",
            is_only_read: "SELECT CAST(@@SESSION.tx_read_only AS SIGNED)",
            ends_soon: "SET SESSION idle_transaction_timeout = 1",
            id: "SELECT CAST(CONNECTION_ID() AS SIGNED)",
            is_there: "SELECT COUNT(*) FROM information_schema.processlist WHERE id =",
        },
    }
}

/// How many connections are left of before: fewer than a call has tries.
const OLD: usize = 4;

/// Leaves connections in the pool to a server that may only be read. New ones may write.
async fn fail_over<S: Shop>(shop: &S) {
    let mut old = Vec::new();
    while old.len() < OLD {
        let mut connection = shop.pool().acquire().await.expect("a connection");
        let set = S::run(&mut connection, words::<S>().only_read.to_owned()).await;
        set.expect("it is set");
        old.push(connection);
    }
    drop(old);
    while shop.pool().num_idle() < OLD {
        tokio::task::yield_now().await;
    }
}

/// No connection of the pool's may only read.
async fn assert_healed<S: Shop>(shop: &S) {
    let mut open: Vec<_> = std::iter::from_fn(|| shop.pool().try_acquire()).collect();
    for connection in &mut open {
        let query = words::<S>().is_only_read.to_owned();
        let found = S::numbers(connection, query).await;
        assert_eq!(found.expect("a number"), [0], "it may write");
    }
}

/// Uses the pool as often as there are old connections, and once more.
async fn each_time(mut work: impl AsyncFnMut(i64)) {
    for item in 0..=i64::try_from(OLD).expect("a few") {
        work(item).await;
    }
}

async fn mend_30_a_connection_that_may_only_read_is_closed<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    let idem = Idempotency::new(shop.store());
    fail_over(&shop).await;
    each_time(async |item| {
        let call = idem.call("orders.place").key(&item).release_errors();
        let placed = call.transact(shop.pool(), async |tx| {
            shop.order(tx, item).await?;
            Ok::<_, OrderError>(item)
        });
        assert_eq!(placed.await.expect("it is placed"), item);
    })
    .await;
    assert_healed(&shop).await;
    assert_eq!(shop.orders().await, [0, 1, 2, 3, 4]);
}

async fn mend_30_a_body_that_met_such_a_connection_runs_again<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    fail_over(&shop).await;
    each_time(async |item| {
        let placed = transaction(shop.pool(), async |tx| {
            shop.order(tx, item).await?;
            Ok::<_, OrderError>(item)
        });
        assert_eq!(placed.await.expect("it is placed"), item);
    })
    .await;
    assert_healed(&shop).await;
    // A call without a record meets it in its body, too.
    let off = Idempotency::builder(shop.store()).enabled(false);
    let off = off.build().expect("a handle");
    fail_over(&shop).await;
    each_time(async |item| {
        let call = off.call("orders.place").key(&item);
        let placed = call.release_errors().transact(shop.pool(), async |tx| {
            shop.order(tx, 5 + item).await?;
            Ok::<_, OrderError>(item)
        });
        assert_eq!(placed.await.expect("it is placed"), item);
    })
    .await;
    assert_healed(&shop).await;
    assert_eq!(shop.orders().await, (0..10).collect::<Vec<_>>());
}

async fn mend_30_a_step_that_met_such_a_connection_closes_it<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    let idem = Idempotency::new(shop.store());
    fail_over(&shop).await;
    let refused = AtomicU32::new(0);
    each_time(async |item| {
        let call = idem.call("orders.place").key(&item).release_errors();
        let placed = call.run(async |_| {
            step_in("rows", shop.pool(), async |tx, _| {
                shop.order(tx, item).await?;
                Ok::<_, OrderError>(item)
            })
            .await
        });
        refused.fetch_add(u32::from(placed.await.is_err()), Ordering::SeqCst);
    })
    .await;
    assert!(refused.into_inner() <= 4, "each old connection refused one");
    assert_healed(&shop).await;
}

/// The server ends the session of the first run, which lies idle in its transaction.
async fn is_ended<S: Shop>(shop: &S, tx: &mut <S::Database as Database>::Connection) {
    let words = words::<S>();
    let id = S::numbers(tx, words.id.to_owned()).await.expect("a number")[0];
    S::run(tx, words.ends_soon.to_owned())
        .await
        .expect("it is set");
    let mut side = shop.pool().acquire().await.expect("a connection");
    let is_there = format!("{} {id}", words.is_there);
    while S::numbers(&mut side, is_there.clone())
        .await
        .expect("a number")
        != [0]
    {
        tokio::task::yield_now().await;
    }
}

async fn mend_30_a_body_whose_connection_was_ended_runs_again<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    let idem = Idempotency::new(shop.store());
    for meets_it in ["body", "library"] {
        let runs = AtomicU32::new(0);
        let body = async |tx: &mut <S::Database as Database>::Connection| {
            let is_first = runs.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
            if is_first {
                is_ended(&shop, tx).await;
            }
            if !is_first || meets_it == "body" {
                shop.order(tx, 1).await?;
            }
            Ok::<_, OrderError>(1)
        };
        let call = idem.call("orders.place").key(meets_it).release_errors();
        let placed = call.transact(shop.pool(), &body).await;
        assert_eq!(placed.expect("it is placed"), 1, "{meets_it}");
        assert_eq!(runs.load(Ordering::SeqCst), 2);
        let placed = transaction(shop.pool(), &body).await;
        assert_eq!(placed.expect("it is placed"), 1, "{meets_it}");
        assert_eq!(runs.into_inner(), 4);
    }
    assert_eq!(shop.orders().await, [1, 1, 1, 1]);
}
