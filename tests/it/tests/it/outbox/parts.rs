//! Messages of a body, of its steps and of its undos: each part counts its own.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

use idempotent_runtime::{
    Idempotency, Undo, Verdict,
    outbox::{Outbox, OutboxDatabase},
    step, step_in,
};

use tokio::sync::Notify;

use super::{count, outbox, placed};
use crate::transactions::{PlaceError, shop::Shop};

on_every_database![
    mend_09_equal_messages_of_a_body_and_its_steps_are_all_sent,
    mend_09_a_step_that_runs_again_sends_the_same_message,
    mend_09_an_undo_sends_one_message_however_often_it_runs,
];

/// Sends the message, which is equal to all others here, in a transaction of its own.
async fn send_alone<S: Shop<Database: OutboxDatabase>>(
    shop: &S,
    outbox: &Outbox<S::Database>,
) -> Result<String, PlaceError> {
    let mut tx = shop.begin().await?;
    let id = outbox.send(&mut tx, placed(7).key("customer-7")).await?;
    tx.commit().await?;
    Ok(id)
}

/// Sends it before, in and after two steps, and fails. Returns the ids of the body's own ones, and
/// those of the steps.
async fn send_around<S: Shop<Database: OutboxDatabase>>(
    shop: &S,
    outbox: &Outbox<S::Database>,
    idem: &Idempotency,
) -> [Vec<String>; 2] {
    let sent = Mutex::new([Vec::new(), Vec::new()]);
    let note = |part: usize, ids: Vec<String>| {
        sent.lock().expect("nobody panics")[part].extend(ids);
    };
    let call = idem.call("orders.place").key("order-7").release_errors();
    let failed = call.run(async |_| {
        // A clone is the same message, and the parts between its sends change nothing.
        let message = placed(7).key("customer-7");
        for name in ["a", "b"] {
            let mut tx = shop.begin().await?;
            let id = outbox.send(&mut tx, message.clone()).await?;
            tx.commit().await?;
            note(0, vec![id, send_alone(shop, outbox).await?]);
            let ids = step_in(name, shop.pool(), async |tx, _| {
                let mut ids = Vec::new();
                for message in [message.clone(), placed(7).key("customer-7")] {
                    ids.push(outbox.send(tx, message).await?);
                }
                Ok::<_, PlaceError>(ids)
            });
            note(1, ids.await?);
        }
        Err::<(), _>(PlaceError::SoldOut)
    });
    let failed = failed.await;
    assert!(matches!(failed, Err(PlaceError::SoldOut)), "{failed:?}");
    sent.into_inner().expect("nobody panics")
}

fn distinct(ids: &[String]) -> usize {
    let mut ids = ids.to_vec();
    ids.sort();
    ids.dedup();
    ids.len()
}

async fn mend_09_equal_messages_of_a_body_and_its_steps_are_all_sent<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let (outbox, idem) = (outbox(&shop).await, Idempotency::new(shop.store()));
    let first = send_around(&shop, &outbox, &idem).await;
    assert_eq!(distinct(&first[0]), 3, "the clone is sent once: {first:?}");
    assert_eq!(distinct(&first[1]), 4, "{first:?}");
    assert_eq!(distinct(&first.concat()), 7, "{first:?}");
    assert_eq!(count(&shop).await, 7);
    // The steps are replayed, and the body's own messages have the ids that they had.
    assert_eq!(send_around(&shop, &outbox, &idem).await, first);
    assert_eq!(count(&shop).await, 7);
}

async fn mend_09_a_step_that_runs_again_sends_the_same_message<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let (outbox, idem) = (outbox(&shop).await, Idempotency::new(shop.store()));
    let ids = Mutex::new(Vec::new());
    let run = async |succeeds: bool| {
        let body = async |_| {
            // A task of the step belongs to it, too.
            let attempt = idempotent_runtime::current();
            let id = tokio::join!(attempt.enter(send_alone(&shop, &outbox))).0?;
            ids.lock().expect("nobody panics").push(id);
            match succeeds {
                true => Ok(()),
                false => Err(PlaceError::SoldOut),
            }
        };
        step("notify", body).run().await
    };
    for succeeds in [false, true] {
        let call = idem.call("orders.place").key("order-7").release_errors();
        let ended = call.run(async |_| {
            let id = send_alone(&shop, &outbox).await?;
            ids.lock().expect("nobody panics").push(id);
            for _ in 0..2 {
                assert!(run(false).await.is_err());
            }
            run(succeeds).await
        });
        assert_eq!(ended.await.is_ok(), succeeds);
    }
    let ids = ids.into_inner().expect("nobody panics");
    let (first, second) = ids.split_at(4);
    assert_eq!((distinct(first), first), (2, second));
    assert_eq!(count(&shop).await, 2);
}

/// A call that fails for good behind a step. The step and its undo send a message each. The undo
/// fails twice, hangs once, and then succeeds.
struct Trip<S: Shop<Database: OutboxDatabase>> {
    shop: Arc<S>,
    outbox: Outbox<S::Database>,
    runs: Arc<AtomicU32>,
    hangs: Arc<Notify>,
    undos: Arc<Mutex<Vec<String>>>,
}

impl<S: Shop<Database: OutboxDatabase>> Trip<S> {
    async fn book(&self) -> Result<String, PlaceError> {
        let trip = Trip {
            shop: Arc::clone(&self.shop),
            outbox: self.outbox.clone(),
            runs: Arc::clone(&self.runs),
            hangs: Arc::clone(&self.hangs),
            undos: Arc::clone(&self.undos),
        };
        let trip = Arc::new(trip);
        let body = async |_| send_alone(&*self.shop, &self.outbox).await;
        let step = step("flight", body).undo(move |_: Undo<String>| {
            let trip = Arc::clone(&trip);
            async move { trip.undo().await }
        });
        step.run().await
    }

    async fn undo(&self) -> Result<(), PlaceError> {
        let id = send_alone(&*self.shop, &self.outbox).await?;
        self.undos.lock().expect("nobody panics").push(id);
        match self.runs.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => Err(PlaceError::SoldOut),
            2 => {
                self.hangs.notify_one();
                std::future::pending().await
            }
            _ => Ok(()),
        }
    }
}

async fn mend_09_an_undo_sends_one_message_however_often_it_runs<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let (outbox, idem) = (outbox(&shop).await, Idempotency::new(shop.store()));
    let trip = Trip {
        shop: Arc::new(shop),
        outbox,
        runs: Arc::default(),
        hangs: Arc::default(),
        undos: Arc::default(),
    };
    let sent = Mutex::new(Vec::new());
    for _ in 0..2 {
        let call = idem.call("trips.book").key("trip-7").arguments(&7);
        let call = call.classify_errors(|_: &PlaceError| Verdict::Replay);
        let ended = call.run(async |_| {
            // A takeover that undoes comes to no step behind a message of the body itself.
            let of_step = trip.book().await?;
            let own = send_alone(&*trip.shop, &trip.outbox).await?;
            sent.lock().expect("nobody panics").extend([own, of_step]);
            Err::<(), _>(PlaceError::SoldOut)
        });
        // The first caller leaves, and the second one takes over.
        tokio::select! {
            ended = ended => assert!(ended.is_err()),
            () = trip.hangs.notified() => {}
        }
    }
    let mut ids = trip.undos.lock().expect("nobody panics").clone();
    assert_eq!((ids.len(), distinct(&ids)), (4, 1), "{ids:?}");
    ids.extend(sent.into_inner().expect("nobody panics"));
    assert_eq!(distinct(&ids), 3, "{ids:?}");
    assert_eq!(count(&*trip.shop).await, 3);
}
