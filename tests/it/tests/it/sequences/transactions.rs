//! Numbers whose effect is rows, in the transaction of their record.

use std::{sync::Arc, time::Duration};

use idempotent_runtime::{
    Error, Idempotency, InFlight,
    sequence::{Decision, FromFirst, Sequence},
    testing::Gate,
    transaction::SqlDatabase,
};

use super::{Decided, assert_applied, assert_decided, position};
use crate::transactions::{PlaceError, shop::Shop};

on_every_database![
    numbers_commit_with_their_rows_in_order,
    a_number_whose_body_fails_leaves_no_rows_and_stays,
    a_recorded_error_moves_the_number_and_leaves_no_rows,
    copies_and_shuffled_numbers_at_once_leave_each_row_once,
    a_number_that_waits_for_a_gap_holds_no_connection,
    smaller_numbers_are_answered_while_a_transaction_is_open,
    a_number_that_vanished_outside_is_taken_over_inside,
    no_error_of_the_application_is_made_of_a_number_out_of_order,
    a_number_that_fails_over_an_expired_stream_is_shown_and_skipped,
];

pub(super) type Placed = Result<Decision<i64>, PlaceError>;

pub(super) fn stream<S: Shop>(shop: &S) -> Sequence<FromFirst> {
    let idem = Idempotency::new(shop.store());
    idem.sequence("orders", "customer-7").first(1)
}

pub(super) async fn place<S: Shop<Database: SqlDatabase>>(
    shop: &S,
    stream: &Sequence<FromFirst>,
    number: u64,
) -> Placed {
    let item = i64::try_from(number).expect("a small one");
    let call = stream.clone().number(number).arguments(&item);
    call.transact(shop.pool(), async |tx| {
        shop.order(tx, item).await?;
        Ok(item)
    })
    .await
}

pub(super) fn plain(placed: Placed) -> Decided {
    placed
        .map(|decision| match decision {
            Decision::Applied(item) => Decision::Applied(item.unsigned_abs() * 10),
            Decision::Replayed(item) => Decision::Replayed(item.unsigned_abs() * 10),
            Decision::Past { last } => Decision::Past { last },
            Decision::Gap { expected, got } => Decision::Gap { expected, got },
        })
        .map_err(|error| panic!("{error}: {error:?}"))
}

async fn numbers_commit_with_their_rows_in_order<S: Shop<Database: SqlDatabase>>(shop: S) {
    let stream = stream(&shop);
    for number in 1..=3 {
        let gap = Decision::Gap {
            expected: number,
            got: number + 1,
        };
        assert_decided(plain(place(&shop, &stream, number + 1).await), gap);
        assert_applied(plain(place(&shop, &stream, number).await), number);
        let replayed = Decision::Replayed(number * 10);
        assert_decided(plain(place(&shop, &stream, number).await), replayed);
    }
    assert_decided(
        plain(place(&shop, &stream, 1).await),
        Decision::Past { last: 3 },
    );
    assert_eq!(shop.orders().await, [1, 2, 3]);
}

async fn a_number_whose_body_fails_leaves_no_rows_and_stays<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    let stream = stream(&shop);
    for number in 1..=2 {
        let call = stream.clone().number(number);
        let failed = call.transact(shop.pool(), async |tx| {
            shop.order(tx, -1).await?;
            Err::<i64, _>(PlaceError::SoldOut)
        });
        assert!(matches!(failed.await, Err(PlaceError::SoldOut)));
        assert_applied(plain(place(&shop, &stream, number).await), number);
    }
    assert_eq!(shop.orders().await, [1, 2]);
}

async fn a_recorded_error_moves_the_number_and_leaves_no_rows<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    let stream = stream(&shop);
    for _ in 0..2 {
        let call = stream.clone().number(1).record_errors();
        let failed = call.transact(shop.pool(), async |tx| {
            shop.order(tx, -1).await?;
            Err::<i64, _>(PlaceError::SoldOut)
        });
        assert!(matches!(failed.await, Err(PlaceError::SoldOut)));
    }
    assert_applied(plain(place(&shop, &stream, 2).await), 2);
    assert_eq!(shop.orders().await, [2]);
}

async fn copies_and_shuffled_numbers_at_once_leave_each_row_once<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    const LAST: u64 = 12;
    let shop = Arc::new(shop);
    let workers = (0..4).map(|worker| {
        let (shop, stream) = (Arc::clone(&shop), stream(&*shop));
        tokio::spawn(async move {
            let mut applied = Vec::new();
            let mut left: Vec<u64> = (1..=LAST).collect();
            // Each worker begins elsewhere, and goes its own way.
            left.rotate_left(worker * 3);
            while let Some(number) = left.pop() {
                match place(&*shop, &stream, number).await {
                    Ok(Decision::Applied(_)) => applied.push(number),
                    Ok(Decision::Replayed(_) | Decision::Past { .. }) => {}
                    Ok(Decision::Gap { .. }) => left.insert(0, number),
                    Err(PlaceError::Idempotency(error)) if error.is_retryable() => {
                        left.insert(0, number);
                    }
                    Err(error) => panic!("{error:?}"),
                }
            }
            applied
        })
    });
    let mut applied = Vec::new();
    for worker in workers.collect::<Vec<_>>() {
        let its = worker.await.expect("no panic");
        assert!(its.is_sorted(), "{its:?}");
        applied.extend(its);
    }
    applied.sort_unstable();
    let orders: Vec<_> = shop.orders().await;
    assert_eq!(
        orders,
        (1..=i64::try_from(LAST).expect("small")).collect::<Vec<_>>()
    );
    // A commit whose answer is lost is found out as a replay.
    assert!(applied.len() <= orders.len());
    applied.dedup();
    assert!(applied.is_sorted());
}

async fn a_number_that_waits_for_a_gap_holds_no_connection<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    let shop = Arc::new(shop);
    let waiting = (2..=20).map(|number| {
        let (shop, stream) = (Arc::clone(&shop), stream(&*shop).wait_for_gap("30s"));
        let stream = stream.in_flight(InFlight::Wait(Duration::from_secs(30)));
        tokio::spawn(async move { place(&*shop, &stream, number).await })
    });
    let waiting: Vec<_> = waiting.collect();
    assert_applied(plain(place(&*shop, &stream(&*shop), 1).await), 1);
    for (number, task) in (2..=20).zip(waiting) {
        assert_applied(plain(task.await.expect("no panic")), number);
    }
    assert_eq!(shop.orders().await, (1..=20).collect::<Vec<_>>());
}

async fn smaller_numbers_are_answered_while_a_transaction_is_open<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let shop = Arc::new(shop);
    let idem = Idempotency::new(shop.store());
    let stream = move || idem.sequence("orders", "customer-7").first(1);
    for number in 1..=2 {
        assert_applied(plain(place(&*shop, &stream(), number).await), number);
    }
    let gate = Gate::new();
    let (its, slow, shop_) = (gate.clone(), stream(), Arc::clone(&shop));
    let task = tokio::spawn(async move {
        let call = slow.number(3).arguments(&3_i64);
        call.transact(shop_.pool(), async |tx| {
            shop_.order(tx, 3).await?;
            its.pass().await;
            Ok::<_, PlaceError>(3_i64)
        })
        .await
    });
    gate.arrived(1).await;
    let past = plain(place(&*shop, &stream(), 1).await);
    assert_decided(past, Decision::Past { last: 2 });
    let replayed = plain(place(&*shop, &stream(), 2).await);
    assert_decided(replayed, Decision::Replayed(20));
    gate.open();
    assert_applied(plain(task.await.expect("no panic")), 3);
}

async fn a_number_that_vanished_outside_is_taken_over_inside<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    assert_applied(plain(place(&shop, &stream(&shop), 1).await), 1);
    let gate = Gate::new();
    let (its, slow) = (gate.clone(), stream(&shop));
    let dropped = tokio::spawn(async move {
        let call = slow.number(2).arguments(&2_i64);
        call.run(async |_| {
            its.pass().await;
            Ok::<_, Error>(2_i64)
        })
        .await
    });
    gate.arrived(1).await;
    dropped.abort();
    assert!(dropped.await.is_err());
    assert_applied(plain(place(&shop, &stream(&shop), 2).await), 2);
    assert_applied(plain(place(&shop, &stream(&shop), 3).await), 3);
    assert_eq!(shop.orders().await, [1, 2, 3]);
}

/// An error that is made of no refusal.
#[derive(Debug, thiserror::Error)]
#[error("made of {0}")]
struct Untouched(#[source] sqlx::Error);

impl From<Error> for Untouched {
    fn from(error: Error) -> Self {
        panic!("an application sees `{error}`");
    }
}

async fn no_error_of_the_application_is_made_of_a_number_out_of_order<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let stream = stream(&shop);
    for number in 1..=2 {
        assert_applied(plain(place(&shop, &stream, number).await), number);
    }
    let gap = Decision::Gap {
        expected: 3,
        got: 9,
    };
    let waits = stream.clone().wait_for_gap(Duration::from_millis(100));
    for (number, decision) in [(1, Decision::Past { last: 2 }), (9, gap)] {
        for stream in [&stream, &waits] {
            let call = || stream.clone().number(number);
            let outside = call().run(|_| async { Ok::<_, Untouched>(0_u64) });
            assert_eq!(outside.await.expect("a decision"), decision);
            let own = async |_: &mut _| Ok::<_, Untouched>(0_u64);
            let own = call().transact(shop.pool(), own);
            assert_eq!(own.await.expect("a decision"), decision);
        }
        let mut tx = shop.begin().await.expect("a transaction");
        let staged = stream.clone().number(number);
        let staged = staged.run_in(&mut *tx, async |_| Ok::<_, Untouched>(0_u64));
        let committed = staged.await.commit(tx).await;
        assert_eq!(committed.expect("a decision"), decision);
    }
}

async fn a_number_that_fails_over_an_expired_stream_is_shown_and_skipped<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let brief = stream(&shop).expires_after("1ms");
    assert_applied(plain(place(&shop, &brief, 1).await), 1);
    tokio::time::sleep(Duration::from_millis(20)).await;
    let stream = stream(&shop);
    for attempts in 1..=2 {
        let call = stream.clone().number(1);
        let failed = call.transact(shop.pool(), async |_| Err::<i64, _>(PlaceError::SoldOut));
        assert!(matches!(failed.await, Err(PlaceError::SoldOut)));
        let position = position(&stream).await;
        let failing = position.failing.expect("it fails");
        assert_eq!((failing.number, failing.attempts), (1, attempts));
        assert_eq!(position.last, None, "the stream begins anew");
    }
    stream.skip(1).await.expect("it fails");
    assert_eq!(position(&stream).await.last, Some(1));
}
