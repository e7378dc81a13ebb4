//! Transactions that are in each other's way, and that the library tries again.

use std::sync::Arc;

use idempotent_runtime::{
    Error, Idempotency,
    transaction::{Isolation, SqlDatabase, Transact},
};

use super::Connection;
use crate::transactions::shop::Shop;

on_every_database![
    g07_transfers_in_opposite_order_are_each_applied_once,
    g07_increments_in_serializable_transactions_all_count,
    every_isolation_gives_the_same_results,
];

/// An error that shows its cause, though a transparent wrapper stands in front of it.
#[derive(Debug, thiserror::Error)]
enum LedgerError {
    #[error(transparent)]
    Idempotency(#[from] Error),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Locks both orders, the first one first.
async fn swap<S: Shop<Database: SqlDatabase>>(
    shop: &S,
    tx: &mut Connection<S>,
    (from, to): (usize, usize),
) -> sqlx::Result<()> {
    let orders = shop.prefix();
    for (account, change) in [(from, -1), (to, 1)] {
        let update =
            format!("UPDATE {orders}accounts SET cents = cents + {change} WHERE id = {account}");
        S::run(tx, update).await?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

pub(super) async fn accounts<S: Shop>(shop: &S) {
    let prefix = shop.prefix();
    let mut connection = shop.pool().acquire().await.expect("a connection");
    let create =
        format!("CREATE TABLE {prefix}accounts (id BIGINT PRIMARY KEY, cents BIGINT NOT NULL)");
    S::run(&mut connection, create).await.expect("a table");
    let values: Vec<String> = (0..8).map(|id| format!("({id}, 100)")).collect();
    let fill = format!("INSERT INTO {prefix}accounts VALUES {}", values.join(", "));
    S::run(&mut connection, fill).await.expect("accounts");
}

async fn cents<S: Shop>(shop: &S) -> Vec<i64> {
    let query = format!("SELECT cents FROM {}accounts ORDER BY id", shop.prefix());
    let mut connection = shop.pool().acquire().await.expect("a connection");
    S::numbers(&mut connection, query)
        .await
        .expect("the accounts are read")
}

async fn g07_transfers_in_opposite_order_are_each_applied_once<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    accounts(&shop).await;
    let (idem, shop) = (Idempotency::new(shop.store()), Arc::new(shop));
    let mut expected = vec![100_i64; 8];
    let callers: Vec<_> = (0..64_usize)
        .map(|number| {
            let (low, high) = (number % 8, (number + 1 + number / 8 % 7) % 8);
            let pair = if number % 2 == 0 {
                (low, high)
            } else {
                (high, low)
            };
            expected[pair.0] -= 1;
            expected[pair.1] += 1;
            let (shop, idem) = (Arc::clone(&shop), idem.clone());
            tokio::spawn(async move {
                let how = || Transact::new(shop.pool()).tries(50);
                for _ in 0..2 {
                    let call = idem.call("ledger.swap").key(&number);
                    let swapped: Result<i64, LedgerError> = call
                        .release_errors()
                        .transact(how(), async |tx| {
                            swap(&*shop, tx, pair).await?;
                            Ok(1)
                        })
                        .await;
                    assert_eq!(swapped.expect("it is applied"), 1, "{number}");
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("no panic");
    }
    assert_eq!(cents(&*shop).await, expected);
}

async fn g07_increments_in_serializable_transactions_all_count<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    accounts(&shop).await;
    let (idem, shop) = (Idempotency::new(shop.store()), Arc::new(shop));
    let callers = (0..16_u32).map(|number| {
        let (shop, idem) = (Arc::clone(&shop), idem.clone());
        tokio::spawn(async move {
            let how = Transact::new(shop.pool()).tries(100);
            let prefix = shop.prefix();
            let call = idem.call("ledger.increment").key(&number);
            let counted: Result<i64, LedgerError> = call
                .release_errors()
                .transact(how.isolation(Isolation::Serializable), async |tx| {
                    let read = format!("SELECT cents FROM {prefix}accounts WHERE id = 0");
                    let read = S::numbers(tx, read).await?;
                    tokio::task::yield_now().await;
                    let next = read[0] + 1;
                    S::run(
                        tx,
                        format!("UPDATE {prefix}accounts SET cents = {next} WHERE id = 0"),
                    )
                    .await?;
                    Ok(next)
                })
                .await;
            counted.expect("it is counted");
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.expect("no panic");
    }
    assert_eq!(cents(&*shop).await[0], 116);
}

async fn every_isolation_gives_the_same_results<S: Shop<Database: SqlDatabase>>(shop: S) {
    let handles: [_; 4] = std::array::from_fn(|_| Idempotency::new(shop.store()));
    let shop = Arc::new(shop);
    let levels = [
        Isolation::ReadCommitted,
        Isolation::RepeatableRead,
        Isolation::Serializable,
    ];
    for (item, level) in (1_i64..).zip(levels) {
        let place = |caller: usize, item: i64| {
            let (shop, idem) = (Arc::clone(&shop), handles[caller % 4].clone());
            tokio::spawn(async move {
                let how = Transact::new(shop.pool()).tries(50).isolation(level);
                let call = idem.call("orders.place").key(&format!("{level:?}"));
                let placed: Result<i64, LedgerError> = call
                    .arguments(&item)
                    .release_errors()
                    .transact(how, async |tx| {
                        shop.order(tx, item).await?;
                        Ok(item)
                    })
                    .await;
                placed
            })
        };
        let callers: Vec<_> = (0..16).map(|caller| place(caller, item)).collect();
        for caller in callers {
            let placed = caller.await.expect("no panic");
            assert_eq!(placed.expect("an answer"), item, "{level:?}");
        }
        let other = place(0, -item).await.expect("no panic");
        assert!(
            matches!(
                other,
                Err(LedgerError::Idempotency(Error::KeyReused { .. }))
            ),
            "{level:?}: {other:?}"
        );
    }
    assert_eq!(shop.orders().await, [1, 2, 3]);
}
