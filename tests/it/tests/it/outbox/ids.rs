//! Ids: a message is there once, whatever runs again.

use std::sync::atomic::{AtomicUsize, Ordering};

use idempotent_runtime::{
    Error, Idempotency,
    outbox::{Outbox, OutboxDatabase},
    transaction::{Transact, transaction},
};

use sqlx::Database;

use super::{count, outbox, placed};
use crate::transactions::{PlaceError, shop::Shop};

on_every_database![
    a_message_under_an_id_that_is_there_is_not_written_again,
    another_message_under_an_id_that_is_there_is_refused_and_the_transaction_goes_on,
    a_clone_keeps_the_id_and_a_new_message_has_another,
    a_body_that_runs_again_sends_the_same_messages,
    mend_09_a_transaction_that_is_tried_again_sends_the_same_messages,
];

async fn a_message_under_an_id_that_is_there_is_not_written_again<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    for _ in 0..2 {
        let mut tx = shop.begin().await.expect("a transaction");
        for _ in 0..2 {
            let message = placed(7).key("customer-7").id("order-7");
            let id = outbox.send(&mut tx, message).await;
            assert_eq!(id.as_deref(), Ok("order-7"));
        }
        tx.commit().await.expect("it commits");
    }
    assert_eq!(count(&shop).await, 1);
}

async fn another_message_under_an_id_that_is_there_is_refused_and_the_transaction_goes_on<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    let first = placed(7).key("customer-7").id("order-7");
    let others = [
        placed(8).key("customer-7").id("order-7"),
        placed(7).key("customer-8").id("order-7"),
        placed(7).id("order-7"),
        idempotent_runtime::outbox::Message::raw("orders.paid", "7")
            .key("customer-7")
            .id("order-7"),
    ];
    let mut tx = shop.begin().await.expect("a transaction");
    outbox
        .send(&mut tx, first.clone())
        .await
        .expect("it is written");
    for other in others {
        let changed = outbox.send(&mut tx, other).await;
        assert!(
            matches!(changed, Err(Error::MessageChanged { .. })),
            "{changed:?}"
        );
    }
    shop.order(&mut tx, 7)
        .await
        .expect("the transaction goes on");
    outbox.send(&mut tx, first).await.expect("it is there");
    tx.commit().await.expect("it commits");
    assert_eq!((count(&shop).await, shop.orders().await), (1, vec![7]));
}

async fn a_clone_keeps_the_id_and_a_new_message_has_another<S: Shop<Database: OutboxDatabase>>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    let message = placed(7).key("customer-7");
    let mut ids = Vec::new();
    for message in [message.clone(), message, placed(7).key("customer-7")] {
        let mut tx = shop.begin().await.expect("a transaction");
        ids.push(outbox.send(&mut tx, message).await.expect("it is written"));
        tx.commit().await.expect("it commits");
    }
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[0], ids[2]);
    assert_eq!(count(&shop).await, 2);
}

/// Sends two equal messages and one of its own inside the body of a call, outside of its
/// transaction, and fails.
async fn run_and_fail<S: Shop<Database: OutboxDatabase>>(
    shop: &S,
    idem: &Idempotency,
    outbox: &Outbox<S::Database>,
    key: &str,
) -> Vec<String> {
    let ids = std::sync::Mutex::new(Vec::new());
    let call = idem.call("orders.place").key(key).release_errors();
    let failed = call.run(async |_| {
        let mut tx = shop.begin().await?;
        for order in [7, 7, 8] {
            let id = outbox
                .send(&mut tx, placed(order).key("customer-7"))
                .await?;
            ids.lock().expect("nobody panics").push(id);
        }
        tx.commit().await?;
        Err::<(), _>(PlaceError::SoldOut)
    });
    assert!(matches!(failed.await, Err(PlaceError::SoldOut)));
    ids.into_inner().expect("nobody panics")
}

async fn a_body_that_runs_again_sends_the_same_messages<S: Shop<Database: OutboxDatabase>>(
    shop: S,
) {
    let (idem, outbox) = (Idempotency::memory(), outbox(&shop).await);
    let first = run_and_fail(&shop, &idem, &outbox, "order-7").await;
    let mut distinct = first.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 3, "two equal messages are two");
    assert_eq!(run_and_fail(&shop, &idem, &outbox, "order-7").await, first);
    assert_eq!(count(&shop).await, 3);
    let other = run_and_fail(&shop, &idem, &outbox, "order-8").await;
    assert!(other.iter().all(|id| !first.contains(id)));
    assert_eq!(count(&shop).await, 6);
}

/// Sends two equal messages in a transaction inside the body of a call, which fails. The first
/// tries of the transaction roll back. Returns the ids that stand.
async fn try_and_fail<S: Shop<Database: OutboxDatabase>>(
    shop: &S,
    idem: &Idempotency,
    outbox: &Outbox<S::Database>,
    tries: usize,
) -> Vec<String> {
    let (ids, runs) = (std::sync::Mutex::new(Vec::new()), AtomicUsize::new(0));
    let (ids, runs) = (&ids, &runs);
    let body = async move |tx: &mut <S::Database as Database>::Connection| {
        let mut sent = Vec::new();
        for _ in 0..2 {
            sent.push(outbox.send(tx, placed(7).key("customer-7")).await?);
        }
        if runs.fetch_add(1, Ordering::SeqCst) < tries {
            return Err(PlaceError::SoldOut);
        }
        *ids.lock().expect("no panic") = sent;
        Ok(())
    };
    let call = idem.call("orders.place").key("k").release_errors();
    let failed = call.run(async |_| {
        // The second one is not tried again by the library, and by the body.
        let again = Transact::new(shop.pool()).retry_if(|_: &PlaceError| tries == 1);
        if transaction(again, body).await.is_err() {
            transaction(shop.pool(), body).await?;
        }
        Err::<(), _>(PlaceError::SoldOut)
    });
    assert!(matches!(failed.await, Err(PlaceError::SoldOut)));
    ids.lock().expect("no panic").clone()
}

async fn mend_09_a_transaction_that_is_tried_again_sends_the_same_messages<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let (idem, outbox) = (Idempotency::memory(), outbox(&shop).await);
    let first = try_and_fail(&shop, &idem, &outbox, 0).await;
    assert_ne!(first[0], first[1]);
    assert_eq!(try_and_fail(&shop, &idem, &outbox, 1).await, first);
    assert_eq!(count(&shop).await, 2);
}
