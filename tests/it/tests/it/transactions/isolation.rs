//! Transactions that see what stood when they began.

use idempotent_runtime::{Error, Idempotency};

use super::{
    PlaceError, Placed, place, place_in,
    shop::{MariaDbShop, PostgresShop, Shop, SqliteShop},
};

/// A transaction of this isolation looks around, then somebody else places the order, then it does. What it gets, and the orders
/// that stand after its commit.
async fn late<S: Shop>(shop: S, set: Option<&str>) -> (Placed, Vec<i64>) {
    let idem = Idempotency::new(shop.store());
    let mut transaction = match set {
        // Where a transaction begins by itself, no lock is taken before it writes.
        None => shop.pool().begin().await,
        Some(_) => shop.begin().await,
    }
    .expect("a transaction");
    if let Some(set) = set {
        S::run(&mut transaction, set.to_owned())
            .await
            .expect("the isolation is set");
    }
    let looking = format!("SELECT item FROM {}orders", shop.prefix());
    let seen = S::numbers(&mut transaction, looking).await;
    assert_eq!(seen.expect("nothing yet"), [0_i64; 0]);
    assert_eq!(place(&shop, &idem, "k", 7).await.ok(), Some(7));

    let placed = place_in(&shop, &idem, &mut transaction, "k", 7).await;
    if placed.is_ok() {
        transaction.commit().await.expect("it is committed");
    } else {
        drop(transaction);
        // Tried again from the beginning, it is answered.
        assert_eq!(place(&shop, &idem, "k", 7).await.ok(), Some(7));
    }
    let orders = shop.orders().await;
    (placed, orders)
}

fn is_to_be_tried_again(placed: &Placed) -> bool {
    matches!(placed, Err(PlaceError::Idempotency(error @ Error::Store(_))) if error.is_retryable())
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn g07_i14_postgres_replays_or_says_to_try_again_in_any_isolation() {
    for (level, replays) in [
        ("READ COMMITTED", true),
        ("REPEATABLE READ", false),
        ("SERIALIZABLE", false),
    ] {
        let set = format!("SET TRANSACTION ISOLATION LEVEL {level}");
        let (placed, orders) = late(PostgresShop::new().await, Some(&set)).await;
        match replays {
            true => assert_eq!(placed.ok(), Some(7), "{level}"),
            false => assert!(is_to_be_tried_again(&placed), "{level}: {placed:?}"),
        }
        assert_eq!(orders, [7], "{level}");
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn g07_i14_mariadb_replays_in_the_isolation_of_its_own() {
    let (placed, orders) = late(MariaDbShop::new().await, None).await;
    assert_eq!(placed.ok(), Some(7));
    assert_eq!(orders, [7]);
}

#[tokio::test]
async fn g07_i14_sqlite_says_to_try_again_where_a_transaction_began_without_a_lock() {
    let (placed, orders) = late(SqliteShop::new().await, None).await;
    assert!(is_to_be_tried_again(&placed), "{placed:?}");
    assert_eq!(orders, [7]);
}
