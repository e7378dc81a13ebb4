//! Duplicates that come while a transaction is open.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{Error, Idempotency, testing::Gate};
use tokio::task::JoinSet;

use super::{PlaceError, Placed, begin_outside, ours, outside, place, place_in, shop::Shop};
use crate::answers::is_in_progress;

on_every_database![
    g04_i14_a_duplicate_waits_for_the_commit,
    g04_a_duplicate_runs_after_a_roll_back,
    g04_a_call_outside_waits_for_the_commit,
    g06_of_sixty_four_duplicates_one_places_the_order,
    one_that_runs_outside_is_in_progress,
    the_same_call_inside_its_own_body_is_refused,
    the_same_call_inside_is_recursive_also_where_no_store_joins_it,
    mend_35_the_same_call_over_another_store_is_no_recursion,
];

/// A transaction whose body has begun, and ends as it is told once the gate is open.
async fn first<S: Shop>(
    shop: &Arc<S>,
    idem: &Idempotency,
    commits: bool,
) -> (Gate, tokio::task::JoinHandle<Placed>) {
    let gate = Gate::new();
    let (shop, idem, its) = (Arc::clone(shop), idem.clone(), gate.clone());
    let placing = tokio::spawn(async move {
        let mut transaction = shop.begin().await?;
        let call = idem.call("orders.place").key("k").arguments(&7_i64);
        let placed: Placed = call
            .record_errors()
            .run_in(&mut *transaction, async |transaction| {
                shop.order(transaction, 7).await?;
                its.pass().await;
                Ok(7)
            })
            .await;
        if commits {
            transaction.commit().await?;
        } else {
            transaction.rollback().await?;
        }
        placed
    });
    gate.arrived(1).await;
    (gate, placing)
}

/// Time for a duplicate to come and wait. If it does not, the test says less, and nothing that is
/// wrong.
async fn a_while() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

async fn g04_i14_a_duplicate_waits_for_the_commit(shop: impl Shop) {
    let shop = Arc::new(shop);
    let idem = Idempotency::new(shop.store());
    let (gate, placing) = first(&shop, &idem, true).await;
    let (its, handle) = (Arc::clone(&shop), idem.clone());
    let duplicate = tokio::spawn(async move { place(&*its, &handle, "k", 7).await });
    a_while().await;
    assert!(!duplicate.is_finished());

    gate.open();

    for placed in [placing, duplicate] {
        assert_eq!(placed.await.expect("no panic").ok(), Some(7));
    }
    assert_eq!(shop.orders().await, [7]);
}

async fn g04_a_duplicate_runs_after_a_roll_back(shop: impl Shop) {
    let shop = Arc::new(shop);
    let idem = Idempotency::new(shop.store());
    let (gate, placing) = first(&shop, &idem, false).await;
    let (its, handle) = (Arc::clone(&shop), idem.clone());
    let duplicate = tokio::spawn(async move { place(&*its, &handle, "k", 7).await });
    a_while().await;
    assert!(!duplicate.is_finished());

    gate.open();

    assert_eq!(placing.await.expect("no panic").ok(), Some(7));
    assert_eq!(duplicate.await.expect("no panic").ok(), Some(7));
    assert_eq!(shop.orders().await, [7], "that of the duplicate");
}

async fn g04_a_call_outside_waits_for_the_commit(shop: impl Shop) {
    let shop = Arc::new(shop);
    let idem = Idempotency::new(shop.store());
    let (gate, placing) = first(&shop, &idem, true).await;
    let handle = idem.clone();
    let duplicate = tokio::spawn(async move { outside(&handle, "k", 7).await });
    a_while().await;
    assert!(!duplicate.is_finished());

    gate.open();

    for placed in [placing, duplicate] {
        assert_eq!(placed.await.expect("no panic").ok(), Some(7));
    }
}

async fn g06_of_sixty_four_duplicates_one_places_the_order(shop: impl Shop) {
    let shop = Arc::new(shop);
    let idem = Idempotency::new(shop.store());
    let mut placing = JoinSet::new();
    for _ in 0..64 {
        let (shop, idem) = (Arc::clone(&shop), idem.clone());
        placing.spawn(async move {
            loop {
                match place(&*shop, &idem, "k", 7).await {
                    // A deadlock, or a serialization failure: the whole transaction is tried again.
                    Err(PlaceError::Idempotency(error)) if error.is_retryable() => {}
                    placed => break placed,
                }
            }
        });
    }
    for placed in placing.join_all().await {
        assert_eq!(placed.ok(), Some(7));
    }
    assert_eq!(shop.orders().await, [7]);
}

async fn one_that_runs_outside_is_in_progress(shop: impl Shop) {
    let shop = Arc::new(shop);
    let idem = Idempotency::new(shop.store());
    let (gate, running) = begin_outside(&idem).await;

    let placed = ours(place(&*shop, &idem, "k", 7).await);
    assert!(is_in_progress(&placed), "{placed:?}");
    gate.open();
    assert_eq!(running.await.expect("no panic").ok(), Some(1));
    assert_eq!(place(&*shop, &idem, "k", 7).await.ok(), Some(1));
    assert_eq!(shop.orders().await, [0_i64; 0]);
}

/// It would wait for its own transaction for ever.
async fn the_same_call_inside_its_own_body_is_refused(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    let runs = AtomicU32::new(0);
    let mut transaction = shop.begin().await.expect("a transaction");
    let call = idem.call("orders.place").key("k").arguments(&7_i64);
    let placed: Placed = call
        .record_errors()
        .run_in(&mut *transaction, async |connection| {
            runs.fetch_add(1, Ordering::SeqCst);
            let call = idem.call("orders.place").key("k").arguments(&7_i64);
            let inside: Placed = call
                .record_errors()
                .run_in(connection, async |_| panic!("it runs already"))
                .await;
            for nested in [inside, outside(&idem, "k", 7).await] {
                let nested = ours(nested);
                assert!(matches!(nested, Err(Error::Recursive { .. })), "{nested:?}");
            }
            Ok(7)
        })
        .await;
    assert_eq!(placed.ok(), Some(7));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

async fn the_same_call_inside_is_recursive_also_where_no_store_joins_it(shop: impl Shop) {
    let idem = Idempotency::memory();
    let call = || idem.call("orders.place").key("k").arguments(&7_i64);
    let mut transaction = shop.begin().await.expect("a transaction");
    let around = call().run(async |_| {
        let inside: Placed = call().run_in(&mut *transaction, async |_| Ok(7)).await;
        let nested = ours(inside);
        assert!(matches!(nested, Err(Error::Recursive { .. })), "{nested:?}");
        Ok::<_, Error>(7)
    });
    assert_eq!(around.await, Ok(7));
}

async fn mend_35_the_same_call_over_another_store_is_no_recursion(shop: impl Shop) {
    let (idem, other) = (Idempotency::new(shop.store()), Idempotency::memory());
    let call = other.call("orders.place").key("k").arguments(&7_i64);
    let placed: Placed = call.run(async |_| place(&shop, &idem, "k", 7).await).await;
    assert_eq!(placed.ok(), Some(7));
    assert_eq!(shop.orders().await, [7]);
}

/// They meet in the index, and nowhere else.
async fn calls_of_other_keys_do_not_wait<S: Shop>(shop: S) {
    let shop = Arc::new(shop);
    let idem = Idempotency::new(shop.store());
    let (gate, placing) = first(&shop, &idem, true).await;
    for item in 0..16 {
        let key = format!("other {item}");
        assert_eq!(place(&*shop, &idem, &key, item).await.ok(), Some(item));
    }
    gate.open();
    assert_eq!(placing.await.expect("no panic").ok(), Some(7));
}

/// A transaction that asks again and again keeps no holder from prolonging a lease.
async fn one_that_runs_outside_is_not_taken_over_while_it_lives<S: Shop>(shop: S) {
    let short = Idempotency::builder(shop.store()).lease("600ms").build();
    let idem = short.expect("a handle");
    let (gate, running) = begin_outside(&idem).await;
    let mut transaction = shop.begin().await.expect("a transaction");
    for _ in 0..8 {
        let placed = ours(place_in(&shop, &idem, &mut transaction, "k", 7).await);
        assert!(is_in_progress(&placed), "{placed:?}");
        a_while().await;
    }
    drop(transaction);
    gate.open();
    assert_eq!(running.await.expect("no panic").ok(), Some(1));
    assert_eq!(place(&shop, &idem, "k", 7).await.ok(), Some(1));
}

/// They lock nothing.
async fn replays_do_not_wait_for_each_other<S: Shop>(shop: S) {
    let idem = Idempotency::new(shop.store());
    for key in ["a", "b"] {
        assert_eq!(place(&shop, &idem, key, 7).await.ok(), Some(7));
    }
    let mut one = shop.begin().await.expect("a transaction");
    let mut other = shop.begin().await.expect("a transaction");
    for key in ["a", "b"] {
        for transaction in [&mut one, &mut other] {
            let placed = place_in(&shop, &idem, transaction, key, 7).await;
            assert_eq!(placed.ok(), Some(7));
        }
    }
}

/// A call that waited may have a lock on the record for as long as its transaction goes on.
async fn a_replay_that_waited_keeps_no_other_one_waiting<S: Shop>(shop: S) {
    let shop = Arc::new(shop);
    let idem = Idempotency::new(shop.store());
    let (gate, placing) = first(&shop, &idem, true).await;
    let (its, handle) = (Arc::clone(&shop), idem.clone());
    let waits = tokio::spawn(async move {
        let mut transaction = its.begin().await.expect("a transaction");
        let placed = place_in(&*its, &handle, &mut transaction, "k", 7).await;
        (placed, transaction)
    });
    a_while().await;
    gate.open();
    assert_eq!(placing.await.expect("no panic").ok(), Some(7));
    let (placed, transaction) = waits.await.expect("no panic");
    assert_eq!(placed.ok(), Some(7));

    assert_eq!(place(&*shop, &idem, "k", 7).await.ok(), Some(7));

    transaction.commit().await.expect("it is committed");
    assert_eq!(shop.orders().await, [7]);
}

/// Makes a test of each of these on each server. On SQLite, a transaction that has begun to write
/// keeps all others from it.
macro_rules! on_every_server {
    ($($test:ident),* $(,)?) => {
        on_every_server! { @on servers_postgres PostgresShop [$($test)*] }
        on_every_server! { @on servers_mariadb MariaDbShop [$($test)*] }
    };
    (@on $name:ident $shop:ident [$($test:ident)*]) => {
        mod $name {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                #[ignore = "needs a server: cargo xtask test"]
                async fn $test() {
                    let shop = crate::transactions::shop::$shop::new().await;
                    crate::harness::in_time(super::$test(shop)).await;
                }
            )*
        }
    };
}

on_every_server![
    calls_of_other_keys_do_not_wait,
    one_that_runs_outside_is_not_taken_over_while_it_lives,
    replays_do_not_wait_for_each_other,
    a_replay_that_waited_keeps_no_other_one_waiting,
];
