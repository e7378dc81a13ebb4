//! Transactions that the library owns: `transact` begins, commits, tries again, and finds a lost
//! commit out.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    CallOutcome, Error, Idempotency, InFlight, RecordChange,
    testing::ManualClock,
    transaction::{SqlDatabase, Transact},
};
use sqlx::Database;

use super::{
    PlaceError, Placed, assert_ended, begin_outside, is_refused, ours, outside, shop::Shop,
};
use crate::{answers::is_reused, cancellation::polled, harness::Log};

on_every_database![
    g01_i14_a_call_commits_its_record_with_its_rows,
    g02_a_replay_runs_no_body,
    g03_an_error_is_recorded_and_its_rows_are_undone,
    g03_an_error_that_is_released_leaves_nothing,
    g04_sixty_four_duplicates_place_one_order,
    g04_a_call_outside_that_holds_the_key_is_waited_for,
    g07_an_error_that_hides_its_cause_is_tried_again_where_the_caller_says_so,
    g08_a_conflict_at_every_try_is_the_caller_s,
    g13_a_call_that_is_dropped_at_any_await_leaves_nothing,
    a_body_that_rolls_back_inside_is_told_that_its_transaction_ended,
    an_unprotected_call_commits_too,
    observers_are_told_once_and_after_the_commit,
    observers_are_told_that_a_transaction_was_rolled_back,
    what_a_transaction_does_itself_cannot_be_chosen,
    a_call_of_the_body_joins_its_transaction,
];

mod commit_faults;
mod conflicts;
mod costs;
mod cut;
mod deadline;
mod itself;
mod lost;
mod silent;
mod unprotected;
mod waiting;

type Connection<S> = <<S as Shop>::Database as Database>::Connection;

async fn place<S: Shop<Database: SqlDatabase>>(
    shop: &S,
    idem: &Idempotency,
    key: &str,
    item: i64,
) -> Placed {
    let call = idem.call("orders.place").key(key).arguments(&item);
    call.transact(shop.pool(), async |tx| {
        shop.order(tx, item).await?;
        Ok(item)
    })
    .await
}

async fn g01_i14_a_call_commits_its_record_with_its_rows<S: Shop<Database: SqlDatabase>>(shop: S) {
    let idem = Idempotency::new(shop.store());

    assert_eq!(ours(place(&shop, &idem, "k", 7).await), Ok(7));

    assert_eq!(shop.orders().await, [7]);
    assert_eq!(ours(outside(&idem, "k", 7).await), Ok(7));
}

async fn g02_a_replay_runs_no_body<S: Shop<Database: SqlDatabase>>(shop: S) {
    let idem = Idempotency::new(shop.store());
    for _ in 0..3 {
        assert_eq!(ours(place(&shop, &idem, "k", 7).await), Ok(7));
    }
    let other = ours(place(&shop, &idem, "k", 8).await);
    assert!(is_reused(&other), "{other:?}");
    assert_eq!(shop.orders().await, [7]);
}

async fn g03_an_error_is_recorded_and_its_rows_are_undone<S: Shop<Database: SqlDatabase>>(shop: S) {
    let idem = Idempotency::new(shop.store());
    let runs = AtomicU32::new(0);
    for _ in 0..2 {
        let call = idem.call("orders.place").key("k").arguments(&7_i64);
        let placed: Placed = call
            .transact(shop.pool(), async |tx| {
                runs.fetch_add(1, Ordering::SeqCst);
                shop.order(tx, 7).await?;
                Err(PlaceError::SoldOut)
            })
            .await;
        assert!(matches!(placed, Err(PlaceError::SoldOut)), "{placed:?}");
    }
    assert_eq!(runs.into_inner(), 1);
    assert_eq!(shop.orders().await, [0_i64; 0]);
}

async fn g03_an_error_that_is_released_leaves_nothing<S: Shop<Database: SqlDatabase>>(shop: S) {
    let idem = Idempotency::new(shop.store());
    let runs = AtomicU32::new(0);
    for answer in [None, Some(7)] {
        let call = idem.call("orders.place").key("k").arguments(&7_i64);
        let placed: Placed = call
            .release_errors()
            .transact(shop.pool(), async |tx| {
                runs.fetch_add(1, Ordering::SeqCst);
                shop.order(tx, 7).await?;
                answer.ok_or(PlaceError::SoldOut)
            })
            .await;
        assert_eq!(placed.ok(), answer);
    }
    assert_eq!(runs.into_inner(), 2);
    assert_eq!(shop.orders().await, [7]);
}

async fn g04_sixty_four_duplicates_place_one_order<S: Shop<Database: SqlDatabase>>(shop: S) {
    // Those of one handle wait for each other in the process, and the handles in the database.
    let handles: [_; 16] = std::array::from_fn(|_| Idempotency::new(shop.store()));
    let shop = Arc::new(shop);
    let callers = (0..64).map(|caller| {
        let (shop, idem) = (Arc::clone(&shop), handles[caller % 16].clone());
        tokio::spawn(async move { ours(place(&*shop, &idem, "k", 7).await) })
    });
    for caller in callers.collect::<Vec<_>>() {
        assert_eq!(caller.await.expect("no panic"), Ok(7));
    }
    assert_eq!(shop.orders().await, [7]);
}

async fn g04_a_call_outside_that_holds_the_key_is_waited_for<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    let idem = Idempotency::new(shop.store());
    let (gate, running) = begin_outside(&idem).await;
    let call = idem.call("orders.place").key("k").arguments(&7_i64);
    let refused: Placed = call
        .in_flight(InFlight::Reject)
        .transact(shop.pool(), async |_| Ok(2))
        .await;
    let refused = ours(refused);
    assert!(
        matches!(refused, Err(Error::InProgress { .. })),
        "{refused:?}"
    );

    let waiting = place(&shop, &idem, "k", 7);
    let (waited, ()) = tokio::join!(waiting, async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        gate.open();
    });
    assert_eq!(ours(waited), Ok(1), "the outcome of the other one");
    assert_eq!(running.await.expect("no panic").ok(), Some(1));
    assert_eq!(shop.orders().await, [0_i64; 0]);
}

async fn g07_an_error_that_hides_its_cause_is_tried_again_where_the_caller_says_so<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let idem = Idempotency::new(shop.store());
    let runs = AtomicU32::new(0);
    let how = Transact::new(shop.pool())
        .retry_if(|error: &PlaceError| matches!(error, PlaceError::SoldOut));
    let call = idem.call("orders.place").key("k").arguments(&7_i64);
    let placed: Placed = call
        .transact(how, async |tx| {
            shop.order(tx, 7).await?;
            match runs.fetch_add(1, Ordering::SeqCst) {
                0 | 1 => Err(PlaceError::SoldOut),
                _ => Ok(7),
            }
        })
        .await;
    assert_eq!(ours(placed), Ok(7));
    assert_eq!(runs.into_inner(), 3);
    assert_eq!(shop.orders().await, [7]);
}

async fn g08_a_conflict_at_every_try_is_the_caller_s<S: Shop<Database: SqlDatabase>>(shop: S) {
    let clock = ManualClock::new();
    let idem = Idempotency::builder(shop.store()).timer(clock.clone());
    let idem = idem.build().expect("a handle");
    let runs = AtomicU32::new(0);
    let how = Transact::new(shop.pool()).retry_if(|_: &PlaceError| true);
    let call = idem.call("orders.place").key("k").arguments(&7_i64);
    let placing = call.transact(how, async |tx| {
        runs.fetch_add(1, Ordering::SeqCst);
        shop.order(tx, 7).await?;
        // All the time that there is, from the first failure on.
        clock.advance(Duration::from_secs(10));
        Err(PlaceError::SoldOut)
    });
    let pauses_end = async {
        loop {
            tokio::task::yield_now().await;
            clock.advance(Duration::from_micros(10));
        }
    };
    let placed: Placed = tokio::select! {
        placed = placing => placed,
        () = pauses_end => unreachable!("it goes on"),
    };
    assert!(matches!(placed, Err(PlaceError::SoldOut)), "{placed:?}");
    assert_eq!(runs.into_inner(), 2);

    assert_eq!(
        ours(place(&shop, &idem, "k", 7).await),
        Ok(7),
        "the key is free"
    );
    assert_eq!(shop.orders().await, [7]);
}

async fn g13_a_call_that_is_dropped_at_any_await_leaves_nothing<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    let idem = Idempotency::new(shop.store());
    let mut completed = 0;
    let mut items = 0..;
    while completed < 3 || items.start < 20 {
        let item = items.next().expect("numbers go on");
        let key = item.to_string();
        let mut call = Box::pin(place(&shop, &idem, &key, item));
        let answered = polled(&mut call, 1 + item as usize).await.is_some();
        drop(call);
        completed += u32::from(answered);
        let stands = shop.orders().await.contains(&item);
        assert!(stands || !answered, "{item} was answered");
        assert_eq!(ours(place(&shop, &idem, &key, item).await), Ok(item));
    }
    assert_eq!(shop.orders().await, Vec::from_iter(0..items.start));
}

async fn a_body_that_rolls_back_inside_is_told_that_its_transaction_ended<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let idem = Idempotency::new(shop.store());
    let call = idem.call("orders.place").key("k").arguments(&7_i64);
    let placed: Placed = call
        .transact(shop.pool(), async |tx| {
            shop.order(tx, 7).await?;
            S::run(tx, "ROLLBACK".to_owned()).await?;
            Ok(7)
        })
        .await;
    assert_ended(placed);

    assert_eq!(ours(place(&shop, &idem, "k", 7).await), Ok(7));
    assert_eq!(shop.orders().await, [7]);
}

async fn an_unprotected_call_commits_too<S: Shop<Database: SqlDatabase>>(shop: S) {
    let idem = Idempotency::new(shop.store());
    for (answer, orders) in [(Err(PlaceError::SoldOut), 0), (Ok(7), 1), (Ok(7), 2)] {
        let expected = answer.as_ref().ok().copied();
        let answer = std::sync::Mutex::new(Some(answer));
        let call = idem
            .call("orders.place")
            .key("k")
            .arguments(&7_i64)
            .unprotected();
        let placed: Placed = call
            .transact(shop.pool(), async |tx| {
                shop.order(tx, 7).await?;
                answer
                    .lock()
                    .expect("no panic")
                    .take()
                    .expect("it runs once")
            })
            .await;
        assert_eq!(placed.ok(), expected);
        assert_eq!(shop.orders().await.len(), orders);
    }
}

async fn observers_are_told_once_and_after_the_commit<S: Shop<Database: SqlDatabase>>(shop: S) {
    let log = Log::new();
    let idem = Idempotency::builder(shop.store()).observer(log.clone());
    let idem = idem.build().expect("a handle");
    let runs = AtomicU32::new(0);
    let how = Transact::new(shop.pool()).retry_if(|_: &PlaceError| true);
    let call = idem.call("orders.place").key("k").arguments(&7_i64);
    let placed: Placed = call
        .transact(how, async |tx| {
            shop.order(tx, 7).await?;
            let is_first = runs.fetch_add(1, Ordering::SeqCst) == 0;
            if is_first {
                Err(PlaceError::SoldOut)
            } else {
                Ok(7)
            }
        })
        .await;
    assert_eq!(ours(placed), Ok(7));
    assert_eq!(ours(place(&shop, &idem, "k", 7).await), Ok(7));

    let steps: Vec<String> = log.steps().iter().map(|step| format!("{step:?}")).collect();
    assert_eq!(steps, ["TriedAgain", "Claimed", "Recorded"]);
    assert_eq!(
        log.answers(),
        [CallOutcome::Executed, CallOutcome::Replayed]
    );
}

async fn observers_are_told_that_a_transaction_was_rolled_back<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    let log = Log::new();
    let idem = Idempotency::builder(shop.store()).observer(log.clone());
    let idem = idem.build().expect("a handle");
    let call = || idem.call("orders.place").key("k").arguments(&7_i64);
    let fails = async |tx: &mut Connection<S>| {
        shop.order(tx, 7).await?;
        Err(PlaceError::SoldOut)
    };

    let released: Placed = call().release_errors().transact(shop.pool(), fails).await;
    assert!(matches!(released, Err(PlaceError::SoldOut)), "{released:?}");
    // A conflict at every try.
    let how = Transact::new(shop.pool()).retry_for(Duration::ZERO);
    let how = how.retry_if(|_: &PlaceError| true);
    let given_up: Placed = call().transact(how, fails).await;
    assert!(matches!(given_up, Err(PlaceError::SoldOut)), "{given_up:?}");

    assert_eq!(log.steps(), [RecordChange::RolledBack; 2]);
    assert_eq!(log.answers(), [CallOutcome::RolledBack; 2]);
    assert_eq!(shop.orders().await, [0_i64; 0]);
}

async fn what_a_transaction_does_itself_cannot_be_chosen<S: Shop<Database: SqlDatabase>>(shop: S) {
    let idem = Idempotency::new(shop.store());
    let call = || idem.call("orders.place").key("k").arguments(&7_i64);
    for call in [
        call().lease("30s"),
        call().on_crash(idempotent_runtime::OnCrash::Uncertain),
        call().on_outage(idempotent_runtime::OnOutage::Open),
        call().also_accept_name("orders.old"),
    ] {
        let placed: Placed = call.transact(shop.pool(), async |_| Ok(7)).await;
        assert!(is_refused(&placed), "{placed:?}");
    }
}

async fn a_call_of_the_body_joins_its_transaction<S: Shop<Database: SqlDatabase>>(shop: S) {
    let idem = Idempotency::new(shop.store());
    for _ in 0..2 {
        let outer = idem.call("orders.place").key("outer").arguments(&7_i64);
        let placed: Placed = outer
            .transact(shop.pool(), async |tx| {
                let inner = idem.call("orders.place").key("inner").arguments(&7_i64);
                inner
                    .record_errors()
                    .run_in(tx, async |tx| {
                        shop.order(tx, 7).await?;
                        Ok::<_, PlaceError>(7)
                    })
                    .await
            })
            .await;
        assert_eq!(ours(placed), Ok(7));
    }
    assert_eq!(shop.orders().await, [7]);
    assert_eq!(ours(outside(&idem, "inner", 7).await), Ok(7));
}
