//! The caller's answer and the recorded outcome, where the body's own answer cannot be both.

use std::sync::Arc;

use idempotent_runtime::{
    CallOutcome, Error, Idempotency, StoreErrorKind,
    testing::{Fault, FaultyStore, On, StoreOperation},
};

use super::{PlaceError, Placed, assert_uncertain, ours, place, place_in, shop::Shop, sold_out};
use crate::harness::Log;

on_every_database![
    a_body_that_rolls_back_to_before_the_call_is_no_call,
    a_record_that_cannot_be_written_is_an_error,
    a_body_that_fails_has_run_whatever_can_be_recorded,
    a_nested_call_that_got_no_answer_is_never_the_outcome,
    a_value_with_a_refusal_in_it_is_not_placed_again,
    g16_a_reference_is_not_read_back_before_the_commit,
];

async fn a_body_that_rolls_back_to_before_the_call_is_no_call<S: Shop>(shop: S) {
    let idem = Idempotency::new(shop.store());
    let place = async |answer: Placed| {
        let mut transaction = shop.begin().await.expect("a transaction");
        S::run(&mut transaction, "SAVEPOINT here".to_owned())
            .await
            .expect("a savepoint");
        let call = idem.call("orders.place").key("k").arguments(&7_i64);
        call.record_errors()
            .run_in(&mut *transaction, async |connection| {
                S::run(connection, "ROLLBACK TO SAVEPOINT here".to_owned()).await?;
                answer
            })
            .await
    };
    let placed = ours(place(Ok(7)).await);
    assert!(
        matches!(placed, Err(Error::TransactionEnded { .. })),
        "{placed:?}"
    );
    // The body's word about itself counts for more.
    let placed: Placed = place(Err(PlaceError::SoldOut)).await;
    assert!(matches!(placed, Err(PlaceError::SoldOut)), "{placed:?}");
}

async fn a_record_that_cannot_be_written_is_an_error(shop: impl Shop) {
    let faulty = FaultyStore::new(shop.store());
    let idem = Idempotency::new(faulty.clone());
    let fault = Fault::Fail(StoreErrorKind::Unavailable);
    faulty.fault(StoreOperation::Ending, On::Next, fault);
    let mut transaction = shop.begin().await.expect("a transaction");
    let placed = ours(place_in(&shop, &idem, &mut transaction, "k", 7).await);
    assert!(matches!(placed, Err(Error::Store(_))), "{placed:?}");
    drop(transaction);
    assert_eq!(shop.orders().await, [0_i64; 0]);

    // The body's word about itself counts for more.
    faulty.fault(
        StoreOperation::Ending,
        On::Next,
        Fault::Fail(StoreErrorKind::Full),
    );
    let mut transaction = shop.begin().await.expect("a transaction");
    let placed = sold_out(&shop, &idem, &mut transaction).await;
    assert!(matches!(placed, Err(PlaceError::SoldOut)), "{placed:?}");
    drop(transaction);

    assert_eq!(place(&shop, &idem, "k", 7).await.ok(), Some(7));
    assert_eq!(shop.orders().await, [7]);
}

/// An application that counts refusals counts calls that were refused before a store was asked.
async fn a_body_that_fails_has_run_whatever_can_be_recorded(shop: impl Shop) {
    let (faulty, log) = (FaultyStore::new(shop.store()), Log::new());
    let idem = Idempotency::builder(faulty.clone()).observer(log.clone());
    let idem = idem.build().expect("a handle");
    let fault = Fault::Fail(StoreErrorKind::Other);
    faulty.fault(StoreOperation::Ending, On::Next, fault);
    let mut transaction = shop.begin().await.expect("a transaction");

    let placed = sold_out(&shop, &idem, &mut transaction).await;

    assert!(matches!(placed, Err(PlaceError::SoldOut)), "{placed:?}");
    assert_eq!(log.answers(), [CallOutcome::Released]);
}

/// Its rows are undone, and a retry runs it again.
async fn a_nested_call_that_got_no_answer_is_never_the_outcome(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    let nested = async || {
        let nested = idem.call("orders.place").key("").arguments(&7_i64);
        nested.run(async |_| Ok::<_, PlaceError>(1)).await
    };
    for commits in [false, true] {
        let mut transaction = shop.begin().await.expect("a transaction");
        let call = idem.call("orders.place").key("k").arguments(&7_i64);
        let placed: Placed = call
            .record_errors()
            .run_in(&mut *transaction, async |connection| {
                shop.order(connection, 7).await?;
                nested().await
            })
            .await;
        let placed = ours(placed);
        assert!(
            matches!(placed, Err(Error::InvalidKey { .. })),
            "{placed:?}"
        );
        if commits {
            transaction.commit().await.expect("it is committed");
        } else {
            transaction.rollback().await.expect("it is rolled back");
        }
    }
    assert_eq!(shop.orders().await, [0_i64; 0]);
    assert_eq!(place(&shop, &idem, "k", 7).await.ok(), Some(7));
    assert_eq!(shop.orders().await, [7]);
}

/// A refusal of ours inside a value that cannot be kept so.
async fn a_value_with_a_refusal_in_it_is_not_placed_again(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    let mut transaction = shop.begin().await.expect("a transaction");
    let call = idem.call("orders.place").key("k").arguments(&7_i64);
    let batch: Result<Vec<PlaceError>, PlaceError> = call
        .record_errors()
        .run_in(&mut *transaction, async |connection| {
            shop.order(connection, 7).await?;
            Ok(vec![Error::InvalidPolicy("nested").into()])
        })
        .await;
    assert_eq!(batch.map(|batch| batch.len()).ok(), Some(1));
    transaction.commit().await.expect("it is committed");

    assert_uncertain(place(&shop, &idem, "k", 7).await);
    assert_eq!(shop.orders().await, [7]);
}

/// The reference may lead to what the transaction writes.
async fn g16_a_reference_is_not_read_back_before_the_commit(shop: impl Shop) {
    let idem = Idempotency::new(shop.store());
    let shop = Arc::new(shop);
    let call = || {
        let reading = Arc::clone(&shop);
        let call = idem.call("orders.place").key("k").arguments(&7_i64);
        call.reference(
            |_: &i64| 0_i64,
            move |_: i64| {
                let reading = Arc::clone(&reading);
                async move { Ok::<_, Error>(reading.orders().await.pop().unwrap_or(-1)) }
            },
        )
    };
    for _ in 0..2 {
        let mut transaction = shop.begin().await.expect("a transaction");
        let placed: Placed = call()
            .record_errors()
            .run_in(&mut *transaction, async |connection| {
                shop.order(connection, 7).await?;
                Ok(7)
            })
            .await;
        assert_eq!(placed.ok(), Some(7));
        transaction.commit().await.expect("it is committed");
    }
    assert_eq!(shop.orders().await, [7]);
}
