//! Records that were left behind under the key: a call outside that died, half of a body, an
//! outcome that has expired.

use std::pin::pin;

use idempotent_runtime::{Error, Idempotency};

use super::{
    PlaceError, Placed, assert_uncertain, begin_outside, ours, outside, place, shop::Shop,
};
use crate::answers::is_reused;

on_every_database![
    half_of_a_body_that_is_committed_is_uncertain,
    what_is_only_seen_in_transactions_can_be_settled,
    a_takeover_in_a_transaction_commits_with_it,
    a_takeover_in_a_transaction_that_releases_leaves_what_it_found,
    too_many_takeovers_park_in_a_transaction_too,
    what_is_expired_is_placed_again,
];

async fn half_of_a_body_that_is_committed_is_uncertain(shop: impl Shop) {
    let short = Idempotency::builder(shop.store()).lease("100ms").build();
    let idem = short.expect("a handle");
    commit_half(&shop, &idem).await;
    let inside = once_it_is_over(&shop, &idem).await;
    for again in [inside, outside(&idem, "k", 7).await] {
        assert_uncertain(again);
    }
    assert_uncertain(place(&shop, &idem, "k", 7).await);
    assert_eq!(shop.orders().await, [7]);
}

/// The write that refuses a call is rolled back with it, so that no call leaves anything except
/// what was there before.
async fn what_is_only_seen_in_transactions_can_be_settled(shop: impl Shop) {
    let short = Idempotency::builder(shop.store()).lease("100ms");
    let short = short.max_takeovers(0);
    let idem = short.build().expect("a handle");
    let settle = || {
        let settle = idem.settle("orders.place", None::<&str>, "k");
        settle.expect("a key")
    };
    commit_half(&shop, &idem).await;
    assert_uncertain(once_it_is_over(&shop, &idem).await);

    assert!(settle().with_value(&7_i64).await.is_ok());

    assert_eq!(place(&shop, &idem, "k", 7).await.ok(), Some(7));
    assert_eq!(shop.orders().await, [7]);
}

/// Places an order up to the middle of the body, and commits what there is.
async fn commit_half(shop: &impl Shop, idem: &Idempotency) {
    let mut transaction = shop.begin().await.expect("a transaction");
    {
        let call = idem.call("orders.place").key("k").arguments(&7_i64);
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let placing = call
            .record_errors()
            .run_in(&mut *transaction, async |transaction| {
                shop.order(transaction, 7).await?;
                begun.send(()).expect("somebody waits for it");
                std::future::pending().await
            });
        let mut placing = pin!(placing);
        tokio::select! {
            placed = &mut placing => { let _: Placed = placed; panic!("it never ends") }
            _ = has_begun => {}
        }
    }
    transaction.commit().await.expect("it is committed");
}

/// The answer to a call in a transaction when the holder of its key has no lease any more.
async fn once_it_is_over(shop: &impl Shop, idem: &Idempotency) -> Placed {
    loop {
        match place(shop, idem, "k", 7).await {
            Err(PlaceError::Idempotency(Error::InProgress { .. })) => {}
            answer => return answer,
        }
    }
}

/// A call outside dies, and leaves the key behind.
async fn somebody_dies(idem: &Idempotency) {
    let (_gate, dying) = begin_outside(idem).await;
    dying.abort();
}

async fn too_many_takeovers_park_in_a_transaction_too(shop: impl Shop) {
    let never = Idempotency::builder(shop.store()).lease("100ms");
    let never = never.max_takeovers(0);
    let idem = never.build().expect("a handle");
    somebody_dies(&idem).await;
    let parked = once_it_is_over(&shop, &idem).await;
    for again in [
        parked,
        outside(&idem, "k", 7).await,
        place(&shop, &idem, "k", 7).await,
    ] {
        let again = ours(again);
        assert!(matches!(again, Err(Error::Parked { .. })), "{again:?}");
    }
    assert_eq!(shop.orders().await, [0_i64; 0]);
}

async fn a_takeover_in_a_transaction_commits_with_it(shop: impl Shop) {
    let short = Idempotency::builder(shop.store()).lease("100ms").build();
    let idem = short.expect("a handle");
    somebody_dies(&idem).await;

    let attempt = loop {
        let mut transaction = shop.begin().await.expect("a transaction");
        // The state that is seen here may be all that a look shows later.
        shop.order(&mut transaction, 1).await.expect("an order");
        let call = idem.call("orders.place").key("k").arguments(&7_i64);
        let placed = call
            .record_errors()
            .run_in(&mut *transaction, async |transaction| {
                shop.order(transaction, 7).await?;
                Ok::<_, PlaceError>(i64::from(idempotent_runtime::current().number()))
            })
            .await;
        match placed {
            Err(PlaceError::Idempotency(Error::InProgress { .. })) => {}
            Ok(attempt) => {
                transaction.commit().await.expect("it is committed");
                break attempt;
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(attempt, 2);
    assert_eq!(shop.orders().await, [1, 7]);
    assert_eq!(outside(&idem, "k", 7).await.ok(), Some(2));
}

/// It speaks for itself, and not for the call outside, which may have done something.
async fn a_takeover_in_a_transaction_that_releases_leaves_what_it_found(shop: impl Shop) {
    let short = Idempotency::builder(shop.store()).lease("100ms").build();
    let idem = short.expect("a handle");
    somebody_dies(&idem).await;

    for _ in 0..2 {
        loop {
            let mut transaction = shop.begin().await.expect("a transaction");
            let call = idem.call("orders.place").key("k").arguments(&7_i64);
            let placed: Placed = call
                .release_errors()
                .run_in(&mut *transaction, async |_| {
                    assert!(idempotent_runtime::current().is_takeover());
                    Err(PlaceError::SoldOut)
                })
                .await;
            transaction.commit().await.expect("it is committed");
            match placed {
                Err(PlaceError::Idempotency(Error::InProgress { .. })) => {}
                Err(PlaceError::SoldOut) => break,
                other => panic!("{other:?}"),
            }
        }
    }

    let other = ours(place(&shop, &idem, "k", 8).await);
    assert!(is_reused(&other), "{other:?}");
    assert_eq!(place(&shop, &idem, "k", 7).await.ok(), Some(7));
    assert_eq!(outside(&idem, "k", 7).await.ok(), Some(7));
}

async fn what_is_expired_is_placed_again(shop: impl Shop) {
    let short = Idempotency::builder(shop.store()).ttl("20ms").build();
    let idem = short.expect("a handle");
    assert_eq!(place(&shop, &idem, "k", 7).await.ok(), Some(7));
    let mut others = 0;
    while others == 0 {
        match place(&shop, &idem, "k", 8).await {
            Ok(8) => others += 1,
            Err(PlaceError::Idempotency(Error::KeyReused { .. })) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(shop.orders().await, [7, 8]);
}
