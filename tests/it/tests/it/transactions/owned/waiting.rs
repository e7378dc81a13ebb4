//! Calls that wait for a transaction, and transactions that others wait for.

use std::{sync::Arc, time::Duration};

use idempotent_runtime::{
    Error, Idempotency, InFlight, idempotent,
    testing::Gate,
    transaction::{SqlDatabase, transaction},
};
use sqlx::{Connection, SqliteConnection};

use super::{Placed, is_refused, ours, outside, place};
use crate::{
    harness::{in_time, said_during},
    transactions::{
        place as place_inside, place_in,
        shop::{Shop, SqliteShop},
    },
};

on_every_database![
    duplicates_in_this_process_leave_the_pool_to_others,
    a_duplicate_that_may_not_wait_is_refused_without_a_connection,
    g20_a_body_that_takes_long_is_named_once,
];

/// A call whose body runs until the gate is open.
async fn place_at<S: Shop<Database: SqlDatabase>>(
    shop: &S,
    idem: &Idempotency,
    gate: &Gate,
) -> Placed {
    let call = idem.call("orders.place").key("k").arguments(&7_i64);
    call.transact(shop.pool(), async |tx| {
        shop.order(tx, 7).await?;
        gate.pass().await;
        Ok(7)
    })
    .await
}

/// Takes all connections of the pool but this many.
async fn leave<S: Shop>(shop: &S, connections: u32) -> Vec<impl Send + use<S>> {
    let most = shop.pool().options().get_max_connections();
    let mut taken = Vec::new();
    for _ in connections..most {
        taken.push(shop.pool().acquire().await.expect("a connection"));
    }
    taken
}

async fn duplicates_in_this_process_leave_the_pool_to_others<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    let (idem, shop, gate) = (Idempotency::new(shop.store()), Arc::new(shop), Gate::new());
    let _taken = leave(&*shop, 2).await;
    let callers = (0..8).map(|_| {
        let (shop, idem, gate) = (Arc::clone(&shop), idem.clone(), gate.clone());
        tokio::spawn(async move { ours(place_at(&*shop, &idem, &gate).await) })
    });
    let callers: Vec<_> = callers.collect();
    gate.arrived(1).await;
    tokio::time::sleep(Duration::from_millis(50)).await;

    let free = tokio::time::timeout(Duration::from_secs(5), shop.pool().acquire()).await;
    assert!(free.is_ok_and(|free| free.is_ok()), "one has a connection");

    gate.open();
    for caller in callers {
        assert_eq!(caller.await.expect("no panic"), Ok(7));
    }
    assert_eq!(shop.orders().await, [7]);
}

async fn a_duplicate_that_may_not_wait_is_refused_without_a_connection<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let (idem, gate) = (Idempotency::new(shop.store()), Gate::new());
    let _taken = leave(&shop, 1).await;
    let (first, ()) = tokio::join!(place_at(&shop, &idem, &gate), async {
        gate.arrived(1).await;
        let call = idem.call("orders.place").key("k").arguments(&7_i64);
        let call = call.in_flight(InFlight::Reject);
        let refused = ours(call.transact(shop.pool(), async |_| Ok(2)).await);
        assert!(
            matches!(refused, Err(Error::InProgress { .. })),
            "{refused:?}"
        );
        gate.open();
    });
    assert_eq!(ours(first), Ok(7));
}

async fn g20_a_body_that_takes_long_is_named_once<S: Shop<Database: SqlDatabase>>(shop: S) {
    let idem = Idempotency::builder(shop.store()).transaction_warning("20ms");
    let idem = idem.build().expect("a handle");
    let (item, slow) = (7_i64, Duration::from_millis(60));
    let call = || idem.call("orders.place").arguments(&item);
    let (placed, said) = said_during(async {
        let owned = call().key("owned").transact(shop.pool(), async |_| {
            tokio::time::sleep(slow).await;
            Ok(7)
        });
        let owned = ours(owned.await);
        let mut tx = shop.begin().await.expect("a transaction");
        let joined = call().key("joined").run_in(&mut *tx, async |_| {
            tokio::time::sleep(slow).await;
            Ok(7)
        });
        let joined = ours(joined.await);
        tx.commit().await.expect("it is committed");
        (owned, joined)
    })
    .await;
    assert_eq!(placed, (Ok(7), Ok(7)));
    let warnings: Vec<_> = said.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(warnings.len(), 2, "{said}");
    for warning in warnings {
        assert!(warning.contains("open for long"), "{warning}");
        assert!(warning.contains("orders.place"), "{warning}");
    }
}

#[idempotent(name = "orders.place", key = key, tx = tx, handle = idem, skip(idem, inside))]
async fn joined(
    idem: &Idempotency,
    tx: &mut SqliteConnection,
    key: &str,
    inside: impl AsyncFnOnce() -> Placed,
) -> Placed {
    assert!(tx.is_in_transaction());
    inside().await
}

/// It would wait for a lock that its own task holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_over_another_connection_of_sqlite_is_refused_at_once() {
    let shop = SqliteShop::new().await;
    let idem = Idempotency::new(shop.store());
    let inside = async || {
        let plain = outside(&idem, "plain", 7).await;
        assert!(is_refused(&plain), "{plain:?}");
        let owned = place(&shop, &idem, "owned", 7).await;
        assert!(is_refused(&owned), "{owned:?}");
        Ok(7)
    };
    in_time(async {
        let call = idem.call("orders.place").key("a").arguments(&7_i64);
        let owned: Placed = call.transact(shop.pool(), async |_| inside().await).await;
        assert_eq!(ours(owned), Ok(7));
        let around: Placed = transaction(shop.pool(), async |tx| {
            joined(&idem, tx, "b", inside).await?;
            place_in(&shop, &idem, tx, "c", 7).await
        })
        .await;
        assert_eq!(ours(around), Ok(7));
    })
    .await;
    assert_eq!(ours(outside(&idem, "plain", 7).await), Ok(-1));
    assert_eq!(ours(place_inside(&shop, &idem, "c", 7).await), Ok(7));
    assert_eq!(shop.orders().await, [7]);
}
