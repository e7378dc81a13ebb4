//! Numbers in transactions of the application's, which commits them.

use idempotent_runtime::{
    Error, InFlight,
    sequence::{Decision, FromFirst, Sequence, StagedNumber},
    transaction::SqlDatabase,
};

use super::{
    assert_applied, assert_decided,
    transactions::{Placed, place, plain, stream},
};
use crate::transactions::{PlaceError, shop::Shop};

on_every_database![
    a_staged_number_is_applied_by_its_commit,
    a_staged_number_behind_a_gap_rolls_back,
    a_staged_number_whose_statement_failed_is_not_applied,
    a_staged_number_of_a_nested_transaction_is_not_said_to_be_applied,
    a_staged_number_that_does_not_stand_is_not_said_to_be_applied,
    a_copy_of_a_number_with_a_recorded_error_commits,
    settings_without_a_meaning_in_a_transaction_are_refused,
];

/// Runs a number in a transaction of the test's, and writes a row beside it.
async fn stage<S: Shop>(
    shop: &S,
    call: Sequence<FromFirst>,
    number: u64,
) -> (
    StagedNumber<i64, PlaceError>,
    sqlx::Transaction<'static, S::Database>,
) {
    let item = i64::try_from(number).expect("a small one");
    let mut tx = shop.begin().await.expect("a transaction");
    shop.order(&mut tx, item + 100)
        .await
        .expect("a row beside it");
    let call = call.number(number).arguments(&item);
    let staged = call.run_in(&mut *tx, async |tx| {
        shop.order(tx, item).await?;
        Ok(item)
    });
    (staged.await, tx)
}

async fn a_staged_number_is_applied_by_its_commit<S: Shop<Database: SqlDatabase>>(shop: S) {
    let (staged, tx) = stage(&shop, stream(&shop), 1).await;
    assert!(matches!(staged.decision(), Ok(Decision::Applied(1))));
    tx.rollback().await.expect("it rolls back");
    assert_eq!(shop.orders().await, [0_i64; 0]);

    for number in 1..=2 {
        let (staged, tx) = stage(&shop, stream(&shop), number).await;
        assert_applied(plain(staged.commit(tx).await), number);
    }
    let (staged, tx) = stage(&shop, stream(&shop), 2).await;
    assert_decided(plain(staged.commit(tx).await), Decision::Replayed(20));
    assert_eq!(shop.orders().await, [1, 2, 101, 102, 102]);
}

async fn a_staged_number_behind_a_gap_rolls_back<S: Shop<Database: SqlDatabase>>(shop: S) {
    for (expected, got) in [(1, 2), (2, 3)] {
        let (staged, tx) = stage(&shop, stream(&shop), got).await;
        let gap = Decision::Gap { expected, got };
        assert_decided(plain(staged.commit(tx).await), gap);
        let (staged, tx) = stage(&shop, stream(&shop), expected).await;
        assert_applied(plain(staged.commit(tx).await), expected);
    }
    let (staged, tx) = stage(&shop, stream(&shop), 1).await;
    assert_decided(plain(staged.commit(tx).await), Decision::Past { last: 2 });
    assert_eq!(shop.orders().await, [1, 2, 101, 101, 102]);
}

async fn a_staged_number_whose_statement_failed_is_not_applied<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    let (staged, mut tx) = stage(&shop, stream(&shop), 1).await;
    let failed = S::run(&mut tx, "SELECT nonsense FROM nowhere".to_owned()).await;
    assert!(failed.is_err());
    let stands = match staged.commit(tx).await {
        Ok(decision) => {
            assert_eq!(decision, Decision::Applied(1));
            true
        }
        Err(PlaceError::Idempotency(error)) => {
            assert!(matches!(error, Error::TransactionEnded { .. }), "{error:?}");
            false
        }
        Err(error) => panic!("{error:?}"),
    };
    assert_eq!(shop.orders().await.is_empty(), !stands);
    let last = stream(&shop)
        .position()
        .await
        .expect("the store answers")
        .last;
    assert_eq!(last.is_some(), stands);
}

async fn a_staged_number_of_a_nested_transaction_is_not_said_to_be_applied<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let mut outer = shop.begin().await.expect("a transaction");
    let mut inner = sqlx::Connection::begin(&mut *outer)
        .await
        .expect("a savepoint");
    let call = stream(&shop).number(1);
    let staged = call.run_in(&mut *inner, async |tx| {
        shop.order(tx, 1).await?;
        Ok::<i64, PlaceError>(1)
    });
    let staged = staged.await;
    is_ended(staged.commit(inner).await);
    outer.rollback().await.expect("it rolls back");
    assert_applied(plain(place(&shop, &stream(&shop), 1).await), 1);
    assert_eq!(shop.orders().await, [1]);
}

#[track_caller]
fn is_ended(committed: Placed) {
    match committed {
        Err(PlaceError::Idempotency(Error::TransactionEnded { .. })) => {}
        other => panic!("{other:?}"),
    }
}

async fn a_staged_number_that_does_not_stand_is_not_said_to_be_applied<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let run = async |tx: &mut <S::Database as sqlx::Database>::Connection| {
        let call = stream(&shop).number(1);
        let staged = call.run_in(tx, async |tx| {
            shop.order(tx, 1).await?;
            Ok::<i64, PlaceError>(1)
        });
        staged.await
    };
    let mut tx = shop.begin().await.expect("a transaction");
    S::run(&mut tx, "SAVEPOINT mine".to_owned())
        .await
        .expect("a place");
    let staged = run(&mut tx).await;
    let back = S::run(&mut tx, "ROLLBACK TO SAVEPOINT mine".to_owned());
    back.await.expect("it goes back");
    is_ended(staged.commit(tx).await);

    let mut tx = shop.begin().await.expect("a transaction");
    let staged = run(&mut tx).await;
    tx.rollback().await.expect("it rolls back");
    let another = shop.begin().await.expect("a transaction");
    is_ended(staged.commit(another).await);
    assert_applied(plain(place(&shop, &stream(&shop), 1).await), 1);
    assert_eq!(shop.orders().await, [1]);
}

/// It does not come again, and the offset beside it moves.
async fn a_copy_of_a_number_with_a_recorded_error_commits<S: Shop<Database: SqlDatabase>>(shop: S) {
    for offset in [101, 102] {
        let mut tx = shop.begin().await.expect("a transaction");
        shop.order(&mut tx, offset).await.expect("a row beside it");
        let call = stream(&shop).number(1).record_errors();
        let staged = call.run_in(&mut *tx, async |tx| {
            shop.order(tx, 1).await?;
            Err::<i64, _>(PlaceError::SoldOut)
        });
        let failed = staged.await.commit(tx).await;
        assert!(matches!(failed, Err(PlaceError::SoldOut)), "{failed:?}");
    }
    assert_eq!(shop.orders().await, [101, 102]);
}

async fn settings_without_a_meaning_in_a_transaction_are_refused<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    let refused = |placed: Placed| {
        let error = placed.expect_err("it has no meaning");
        let PlaceError::Idempotency(error) = error else {
            panic!("{error:?}")
        };
        assert!(matches!(error, Error::InvalidPolicy(_)), "{error:?}");
    };
    let (lease, on_crash) = (
        stream(&shop).lease("10s"),
        stream(&shop).on_crash(idempotent_runtime::OnCrash::Uncertain),
    );
    let (in_flight, waits) = (
        stream(&shop).in_flight(InFlight::Reject),
        stream(&shop).wait_for_gap("1s"),
    );
    for sequence in [&lease, &on_crash] {
        refused(place(&shop, sequence, 1).await);
    }
    for sequence in [lease, on_crash, in_flight, waits] {
        let (staged, tx) = stage(&shop, sequence, 1).await;
        refused(staged.commit(tx).await);
    }
    assert_eq!(shop.orders().await, [0_i64; 0]);
    assert_applied(plain(place(&shop, &stream(&shop), 1).await), 1);
}
