//! Transactions that are in each other's way, and that the library tries again.

use std::sync::Arc;

use idempotent_runtime::{
    Error, Idempotency,
    consumer::Disposition,
    step_in,
    transaction::{Isolation, SqlDatabase, Transact, transaction},
};

use super::Connection;
use crate::transactions::shop::Shop;

on_every_database![
    g07_transfers_in_opposite_order_are_each_applied_once,
    g07_increments_in_serializable_transactions_all_count,
    every_isolation_gives_the_same_results,
    mend_19_sixteen_increments_of_one_row_all_count,
    mend_19_steps_in_each_other_s_way_are_all_applied,
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
                for _ in 0..2 {
                    let call = idem.call("ledger.swap").key(&number);
                    let swapped: Result<i64, LedgerError> = call
                        .release_errors()
                        .transact(shop.pool(), async |tx| {
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
            let how = Transact::new(shop.pool());
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
                let how = Transact::new(shop.pool()).isolation(level);
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

/// The forms in which the library owns a transaction whose isolation can be chosen.
#[derive(Clone, Copy, Debug)]
enum Form {
    Own,
    Around,
    Message,
}

/// Increments the first account in a transaction that sees what stood when it began.
async fn increment<S: Shop<Database: SqlDatabase>>(
    shop: &S,
    idem: &Idempotency,
    form: Form,
    number: u32,
) -> bool {
    let how = Transact::new(shop.pool()).isolation(Isolation::RepeatableRead);
    let accounts = format!("{}accounts", shop.prefix());
    let body = async |tx: &mut Connection<S>| -> Result<i64, LedgerError> {
        S::numbers(tx, format!("SELECT cents FROM {accounts} WHERE id = 0")).await?;
        tokio::task::yield_now().await;
        let increment = format!("UPDATE {accounts} SET cents = cents + 1 WHERE id = 0");
        S::run(tx, increment).await?;
        Ok(1)
    };
    match form {
        Form::Own => {
            let call = idem.call("ledger.increment").key(&number).release_errors();
            call.transact(how, body).await.is_ok()
        }
        Form::Around => transaction(how, body).await.is_ok(),
        Form::Message => {
            let consumer = idem.consumer("ledger").broker_retention("3d");
            let consumer = consumer.build().expect("a consumer");
            let message = consumer.message(&number).without_payload().delivery(1);
            matches!(message.transact(how, body).await, Disposition::Ack { .. })
        }
    }
}

async fn mend_19_sixteen_increments_of_one_row_all_count<S: Shop<Database: SqlDatabase>>(shop: S) {
    accounts(&shop).await;
    let (idem, shop) = (Idempotency::new(shop.store()), Arc::new(shop));
    for (form, expected) in [(Form::Own, 116), (Form::Around, 132), (Form::Message, 148)] {
        let callers = (0..16_u32).map(|number| {
            let (shop, idem) = (Arc::clone(&shop), idem.clone());
            tokio::spawn(async move { increment(&*shop, &idem, form, number).await })
        });
        for caller in callers.collect::<Vec<_>>() {
            assert!(caller.await.expect("no panic"), "{form:?}");
        }
        assert_eq!(cents(&*shop).await[0], expected, "{form:?}");
    }
}

/// Steps that lock two accounts, half of them in the other order. Postgres takes a second to see
/// each deadlock, so no more than four steps lock the same two.
async fn mend_19_steps_in_each_other_s_way_are_all_applied<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    accounts(&shop).await;
    let (idem, shop) = (Idempotency::new(shop.store()), Arc::new(shop));
    let callers = (0..16_usize).map(|number| {
        let (shop, idem) = (Arc::clone(&shop), idem.clone());
        let low = number % 4 * 2;
        let pair = match number < 8 {
            true => (low, low + 1),
            false => (low + 1, low),
        };
        tokio::spawn(async move {
            let call = idem.call("ledger.post").key(&number).release_errors();
            let posted: Result<i64, LedgerError> = call
                .run(async |_| {
                    step_in("swap", shop.pool(), async |tx, _| {
                        swap(&*shop, tx, pair).await?;
                        Ok(1)
                    })
                    .await
                })
                .await;
            posted
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        let posted = caller.await.expect("no panic");
        assert_eq!(posted.expect("it is applied"), 1);
    }
    assert_eq!(cents(&*shop).await, [100; 8]);
}
