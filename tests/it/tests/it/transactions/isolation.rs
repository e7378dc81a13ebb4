//! Transactions that see what stood when they began.

use std::{sync::Arc, time::Duration};

use idempotent_runtime::{Error, Idempotency, OnCrash, testing::Gate};
use sqlx::Database;

use crate::harness::in_time;

use super::{
    PlaceError, Placed, begin_outside, is_refused, place, place_in,
    shop::{MariaDbShop, PostgresShop, Shop, SqliteShop},
};

/// A transaction of this isolation looks around, then another call places the order, then the
/// transaction does. Gives its answer, and the orders that stand after its commit.
async fn late<S: Shop>(shop: S, set: Option<&str>) -> (Placed, Vec<i64>) {
    let idem = Idempotency::new(shop.store());
    let mut transaction = match set {
        // A transaction that begins by itself takes no lock before it writes.
        None => shop.pool().begin().await,
        Some(_) => shop.begin().await,
    }
    .expect("a transaction");
    looks_around(&shop, &mut transaction, set, &[]).await;
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

/// Begins to look around in this isolation, and sees these orders.
async fn looks_around<S: Shop>(
    shop: &S,
    connection: &mut <S::Database as Database>::Connection,
    set: Option<&str>,
    orders: &[i64],
) {
    if let Some(set) = set {
        let set = S::run(connection, set.to_owned()).await;
        set.expect("the isolation is set");
    }
    let looking = format!("SELECT item FROM {}orders", shop.prefix());
    let seen = S::numbers(connection, looking).await;
    assert_eq!(seen.expect("the orders are read"), orders);
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

/// A handle with a short lease, whose bodies run at most once.
fn at_most_once(shop: &impl Shop) -> Idempotency {
    let short = Idempotency::builder(shop.store()).lease("200ms");
    let short = short.on_crash(OnCrash::Uncertain);
    short.build().expect("a handle")
}

/// A transaction of this isolation looks around while a holder outside runs the call. The holder
/// then ends, and its lease would be over. Gives the answer that the transaction gets then.
async fn late_for_one_that_ran<S: Shop>(shop: S, set: &str) -> Placed {
    let idem = at_most_once(&shop);
    let (gate, running) = begin_outside(&idem).await;
    let mut transaction = shop.pool().begin().await.expect("a transaction");
    looks_around(&shop, &mut transaction, Some(set), &[]).await;
    gate.open();
    assert_eq!(running.await.expect("no panic").ok(), Some(1));
    // Longer than the lease that is seen there.
    tokio::time::sleep(Duration::from_millis(400)).await;

    let placed = place_in(&shop, &idem, &mut transaction, "k", 7).await;
    drop(transaction);
    assert_eq!(place(&shop, &idem, "k", 7).await.ok(), Some(1));
    placed
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn what_is_long_over_is_never_uncertain_on_postgres() {
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let set = format!("SET TRANSACTION ISOLATION LEVEL {level}");
        let placed = late_for_one_that_ran(PostgresShop::new().await, &set).await;
        assert!(is_to_be_tried_again(&placed), "{level}: {placed:?}");
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn what_is_long_over_is_never_uncertain_on_mariadb() {
    let placed = late_for_one_that_ran(MariaDbShop::new().await, "DO 0").await;
    assert_eq!(placed.ok(), Some(1));
}

#[tokio::test]
async fn what_is_long_over_is_never_uncertain_on_sqlite() {
    let placed = late_for_one_that_ran(SqliteShop::new().await, "SELECT 0").await;
    assert!(is_to_be_tried_again(&placed), "{placed:?}");
}

/// A transaction that is shown writes that others have not committed takes none of them for an
/// outcome: they may be rolled back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn what_nobody_committed_is_no_outcome_on_mariadb() {
    let set = "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED";
    let shop = Arc::new(MariaDbShop::new().await);
    let idem = Idempotency::new(shop.store());
    let mut first = shop.begin().await.expect("a transaction");
    let placed = place_in(&*shop, &idem, &mut first, "k", 7).await;
    assert_eq!(placed.ok(), Some(7));
    let (its, handle) = (Arc::clone(&shop), idem.clone());
    let duplicate = tokio::spawn(async move {
        let mut connection = its.pool().acquire().await?;
        MariaDbShop::run(&mut connection, set.to_owned()).await?;
        let mut transaction = MariaDbShop::begin_on(&mut connection).await?;
        let placed = place_in(&*its, &handle, &mut transaction, "k", 7).await?;
        transaction.commit().await?;
        Placed::Ok(placed)
    });
    // Time for the duplicate to come. If it does not, the test says less, and nothing that is
    // wrong.
    tokio::time::sleep(Duration::from_millis(100)).await;

    first.rollback().await.expect("it is rolled back");

    let placed = in_time(duplicate).await.expect("no panic");
    assert_eq!(placed.ok(), Some(7));
    assert_eq!(shop.orders().await, [7], "that of the duplicate");
}

/// A claim that waits for a completion sees it, although it began earlier.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn what_completes_meanwhile_is_never_uncertain_on_postgres() {
    let shop = PostgresShop::new().await;
    let idem = at_most_once(&shop);
    let records = shop.prefix().to_owned();
    let mut side = shop.pool().acquire().await.expect("a connection");
    let slow = format!(
        "CREATE FUNCTION {records}slow() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN
             IF NEW.finished IS NOT NULL THEN PERFORM pg_sleep(1); END IF; RETURN NULL; END $f$;
         CREATE TRIGGER slow AFTER UPDATE ON {records}records FOR EACH ROW EXECUTE FUNCTION {records}slow()"
    );
    let run = PostgresShop::run(&mut side, slow).await;
    run.expect("the server does it");
    let handle = idem.clone();
    let running = tokio::spawn(async move {
        let call = handle.call("orders.place").key("k").arguments(&7_i64);
        call.run(async |_| Ok::<_, PlaceError>(1)).await
    });
    let completing = format!(
        "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%{records}records%'"
    );
    while PostgresShop::numbers(&mut side, completing.clone())
        .await
        .expect("the server says who sleeps")
        == [0]
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Longer than the lease that is seen there, and shorter than the completion takes.
    tokio::time::sleep(Duration::from_millis(400)).await;

    let placed = place(&shop, &idem, "k", 7).await;

    assert_eq!(running.await.expect("no panic").ok(), Some(1));
    assert_eq!(placed.ok(), Some(1));
}

/// A transaction still sees what has expired and was purged since.
async fn late_for_one_that_was_purged<S: Shop>(shop: S, set: &str) -> Placed {
    let short = Idempotency::builder(shop.store()).ttl("20ms");
    let idem = short.build().expect("a handle");
    assert_eq!(place(&shop, &idem, "k", 7).await.ok(), Some(7));
    let mut transaction = shop.pool().begin().await.expect("a transaction");
    looks_around(&shop, &mut transaction, Some(set), &[7]).await;
    while shop.store().purge(1, Duration::ZERO).await != Ok(1) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    let placed = place_in(&shop, &idem, &mut transaction, "k", 8).await;
    if placed.is_ok() {
        transaction.commit().await.expect("it is committed");
        assert_eq!(shop.orders().await, [7, 8]);
    }
    placed
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn what_was_purged_is_placed_again_on_mariadb() {
    let placed = in_time(late_for_one_that_was_purged(
        MariaDbShop::new().await,
        "DO 0",
    ))
    .await;
    assert_eq!(placed.ok(), Some(8));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn what_was_purged_is_placed_again_on_postgres() {
    let set = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
    let placed = in_time(late_for_one_that_was_purged(PostgresShop::new().await, set)).await;
    assert_eq!(placed.ok(), Some(8));
}

#[tokio::test]
async fn what_was_purged_is_to_be_tried_again_on_sqlite() {
    let placed = in_time(late_for_one_that_was_purged(
        SqliteShop::new().await,
        "SELECT 0",
    ))
    .await;
    assert!(is_to_be_tried_again(&placed), "{placed:?}");
}

/// The later of two transactions that wait for each other is undone whole. Sent again, its claim
/// would stand outside it.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn g07_a_claim_that_a_deadlock_undid_is_not_sent_again() {
    let shop = Arc::new(MariaDbShop::new().await);
    let idem = Idempotency::new(shop.store());
    let stock = format!("{}stock", shop.prefix());
    let contended = format!("UPDATE {stock} SET item = item + 1");
    let mut side = shop.pool().acquire().await.expect("a connection");
    for statement in [
        format!("CREATE TABLE {stock} (item BIGINT NOT NULL)"),
        format!("INSERT INTO {stock} VALUES (1)"),
    ] {
        let run = MariaDbShop::run(&mut side, statement).await;
        run.expect("the server does it");
    }
    let gate = Gate::new();
    let first = {
        let (shop, idem, gate) = (Arc::clone(&shop), idem.clone(), gate.clone());
        let contended = contended.clone();
        tokio::spawn(async move {
            let mut transaction = shop.begin().await?;
            let call = idem.call("orders.place").key("k").arguments(&7_i64);
            let placed: Placed = call
                .record_errors()
                .run_in(&mut *transaction, async |connection| {
                    // The one that wrote less is undone.
                    for _ in 0..100 {
                        shop.order(connection, 7).await?;
                    }
                    gate.pass().await;
                    MariaDbShop::run(connection, contended).await?;
                    Ok(7)
                })
                .await;
            transaction.commit().await?;
            placed
        })
    };
    gate.arrived(1).await;
    let mut transaction = shop.begin().await.expect("a transaction");
    let locked = MariaDbShop::run(&mut transaction, contended).await;
    locked.expect("the row is locked");

    gate.open();
    let second = place_in(&*shop, &idem, &mut transaction, "k", 7).await;

    assert!(is_to_be_tried_again(&second), "{second:?}");
    let other = place_in(&*shop, &idem, &mut transaction, "other", 8).await;
    assert!(is_refused(&other), "{other:?}");
    drop(transaction);
    assert_eq!(first.await.expect("no panic").ok(), Some(7));
    assert_eq!(place(&*shop, &idem, "k", 7).await.ok(), Some(7));
}
