//! Every form in which something of ours meets a session.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    Error, Idempotency,
    outbox::{Envelope, Message, Outbox, OutboxDatabase, PublishError, Publisher},
    sequence::Decision,
    step, step_in,
    transaction::transaction,
};

use crate::transactions::{PlaceError, Placed, ours, shop::Shop};

pub(super) async fn every_form_works<S: Shop<Database: OutboxDatabase>>(shop: &S) {
    let outbox = every_form_on_its_connections_works(shop).await;
    relayed(&outbox).await;
}

/// The forms that meet the connections of the application's pool. It returns an outbox in which
/// messages wait.
pub(super) async fn every_form_on_its_connections_works<S: Shop<Database: OutboxDatabase>>(
    shop: &S,
) -> Outbox<S::Database> {
    let idem = Idempotency::new(shop.store());
    outside(shop, &idem).await;
    inside(shop, &idem).await;
    numbers(shop, &idem).await;
    steps(shop, &idem).await;
    messages(shop).await
}

/// The rows that were committed. A session that commits nothing by itself would go on to see those
/// of its first look.
async fn orders<S: Shop>(shop: &S) -> Vec<i64> {
    let query = format!("SELECT item FROM {}orders ORDER BY item", shop.prefix());
    let mut tx = shop.begin().await.expect("a transaction");
    let mut seen = Vec::new();
    let mut from = -1;
    // A session may show one row of many.
    loop {
        let next = query.replace("ORDER", &format!("WHERE item > {from} ORDER"));
        let found = S::numbers(&mut tx, next).await.expect("the orders");
        let Some(last) = found.last() else {
            break;
        };
        from = *last;
        seen.extend(found);
    }
    tx.rollback().await.expect("it ends");
    seen
}

async fn outside<S: Shop>(shop: &S, idem: &Idempotency) {
    let runs = AtomicI64::new(0);
    for _ in 0..2 {
        let call = idem.call("settings.plain").key("k");
        let run = call.run(async |_| Placed::Ok(runs.fetch_add(1, Ordering::SeqCst)));
        assert_eq!(ours(run.await), Ok(0));
        let call = idem.call("settings.failed").key("k").record_errors();
        let failed: Placed = call.run(async |_| Err(PlaceError::SoldOut)).await;
        assert!(matches!(failed, Err(PlaceError::SoldOut)), "{failed:?}");
        let call = idem.call("settings.empty").key("k").arguments(&());
        let empty: Result<String, PlaceError> = call.run(async |_| Ok(String::new())).await;
        assert_eq!(empty.expect("it runs"), "");
    }
    let purged = shop.store().purge(100, Duration::ZERO).await;
    assert_eq!(purged, Ok(0));
    let listed = shop.store().scan(None, 100).await.expect("the records");
    assert_eq!(listed.len(), 3);
}

async fn inside<S: Shop<Database: OutboxDatabase>>(shop: &S, idem: &Idempotency) {
    for _ in 0..2 {
        let call = idem.call("settings.own").key("k");
        let own = call.transact(shop.pool(), async |tx| {
            shop.order(tx, 1).await?;
            Placed::Ok(1)
        });
        assert_eq!(ours(own.await), Ok(1));
        let call = idem.call("settings.refused").key("k").record_errors();
        let refused = call.transact(shop.pool(), async |tx| {
            shop.order(tx, 99).await?;
            Placed::Err(PlaceError::SoldOut)
        });
        let refused = refused.await;
        assert!(matches!(refused, Err(PlaceError::SoldOut)), "{refused:?}");
        let around: Placed = transaction(shop.pool(), async |tx| {
            let call = idem.call("settings.around").key("k");
            let ordered = call.run_in(tx, async |tx| {
                shop.order(tx, 2).await?;
                Placed::Ok(2)
            });
            ordered.await
        })
        .await;
        assert_eq!(ours(around), Ok(2));
        let mut tx = shop.begin().await.expect("a transaction");
        let call = idem.call("settings.theirs").key("k");
        let theirs = call.run_in(&mut *tx, async |tx| {
            shop.order(tx, 3).await?;
            Placed::Ok(3)
        });
        assert_eq!(ours(theirs.await), Ok(3));
        tx.commit().await.expect("it commits");
    }
    assert_eq!(orders(shop).await, [1, 2, 3]);
}

async fn numbers<S: Shop<Database: OutboxDatabase>>(shop: &S, idem: &Idempotency) {
    let stream = idem.sequence("settings.numbers", "s").first(1);
    for (number, is_applied) in [(1, true), (2, true), (2, false), (3, true)] {
        let call = stream.clone().number(number);
        let decided: Result<Decision<u64>, PlaceError> =
            call.transact(shop.pool(), async |_| Ok(number)).await;
        let expected = match is_applied {
            true => Decision::Applied(number),
            false => Decision::Replayed(number),
        };
        assert_eq!(decided.expect("it is decided"), expected);
    }
}

async fn steps<S: Shop<Database: OutboxDatabase>>(shop: &S, idem: &Idempotency) {
    let runs = AtomicI64::new(0);
    for ends in [Err(PlaceError::SoldOut), Ok(4)] {
        let is_last = ends.is_ok();
        let call = idem.call("settings.steps").key("k").release_errors();
        let answer: Placed = call
            .run(async |_| {
                let plain = step("plain", async |_| {
                    Placed::Ok(runs.fetch_add(1, Ordering::SeqCst))
                });
                assert_eq!(ours(plain.await), Ok(0));
                let rows = step_in("rows", shop.pool(), async |tx, _| {
                    shop.order(tx, 4).await?;
                    Placed::Ok(4)
                });
                assert_eq!(ours(rows.await), Ok(4));
                ends
            })
            .await;
        assert_eq!(answer.is_ok(), is_last, "{answer:?}");
    }
    assert_eq!(orders(shop).await, [1, 2, 3, 4]);
}

/// A publisher that takes every payload but one.
#[derive(Clone, Default)]
struct Arrived(Arc<Mutex<Vec<String>>>);

const POISON: &str = "13";

impl Publisher for Arrived {
    async fn publish(&self, batch: &[Envelope]) -> Vec<Result<(), PublishError>> {
        let take = |it: &Envelope| {
            let payload = String::from_utf8_lossy(&it.payload).into_owned();
            if payload == POISON {
                return Err(PublishError::Rejected("it is unlucky".to_owned()));
            }
            self.0.lock().expect("nobody panics").push(payload);
            Ok(())
        };
        batch.iter().map(take).collect()
    }
}

impl Arrived {
    async fn all(&self, count: usize) -> Vec<String> {
        loop {
            let mut arrived = self.0.lock().expect("nobody panics").clone();
            if arrived.len() >= count {
                arrived.sort();
                return arrived;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn message(payload: i64, id: &str) -> Message {
    Message::new("orders.placed", &payload)
        .expect("JSON")
        .id(id)
}

async fn sends<S: Shop<Database: OutboxDatabase>>(
    shop: &S,
    outbox: &Outbox<S::Database>,
    message: Message,
) -> Result<String, Error> {
    let mut tx = shop.begin().await.expect("a transaction");
    let sent = outbox.send(&mut tx, message).await;
    tx.commit().await.expect("it commits");
    sent
}

async fn messages<S: Shop<Database: OutboxDatabase>>(shop: &S) -> Outbox<S::Database> {
    let outbox = Outbox::new(shop.pool()).prefix(&format!("o_{}", shop.prefix()));
    let outbox = outbox
        .expect("a prefix")
        .audit_retention("1h")
        .expect("a time");
    assert!(outbox.check_schema().await.is_err(), "no table is there");
    for _ in 0..2 {
        outbox.migrate().await.expect("tables");
        outbox.check_schema().await.expect("tables");
    }
    assert_eq!(outbox.parked().await, Ok(Vec::new()));
    for _ in 0..2 {
        let sent = sends(shop, &outbox, message(11, "a").key("k")).await;
        assert_eq!(sent.as_deref(), Ok("a"));
    }
    let other = sends(shop, &outbox, message(12, "a").key("k")).await;
    assert!(
        matches!(other, Err(Error::MessageChanged { .. })),
        "{other:?}"
    );
    for (payload, id) in [(12, "b"), (13, "c"), (14, "d")] {
        let sent = sends(shop, &outbox, message(payload, id).key("k")).await;
        assert_eq!(sent.as_deref(), Ok(id));
    }
    let sent = sends(shop, &outbox, message(15, "e")).await;
    assert_eq!(sent.as_deref(), Ok("e"));
    takes_a_long_one(shop, &outbox).await;
    outbox
}

/// A long message without headers is sent, and sent again; nothing of it is left.
async fn takes_a_long_one<S: Shop<Database: OutboxDatabase>>(
    shop: &S,
    outbox: &Outbox<S::Database>,
) {
    let outbox = outbox.clone().max_payload(1 << 20);
    let mut tx = shop.begin().await.expect("a transaction");
    for _ in 0..2 {
        let message = Message::raw("orders.placed", vec![7; 300 * 1024]).id("long");
        let sent = outbox.send(&mut tx, message).await;
        assert_eq!(sent.as_deref(), Ok("long"));
    }
    tx.rollback().await.expect("it rolls back");
}

async fn relayed<DB: OutboxDatabase>(outbox: &Outbox<DB>) {
    let arrived = Arrived::default();
    let relay = outbox.relay(arrived.clone()).budget(1).lease("1s");
    let relay = relay.start().await.expect("it starts");
    relay.wake();
    assert_eq!(arrived.all(3).await, ["11", "12", "15"]);
    assert_eq!(parked(outbox).await, "c");
    assert_eq!(outbox.resume("k").await, Ok(true));
    relay.wake();
    assert_eq!(parked(outbox).await, "c");
    assert_eq!(
        outbox.discard("k", "c").because("it is unlucky").await,
        Ok(true)
    );
    relay.wake();
    assert_eq!(arrived.all(4).await, ["11", "12", "14", "15"]);
    relay.stop().await;
    outbox.purge().await.expect("the old rows go");
    assert_eq!(outbox.parked().await, Ok(Vec::new()));
}

/// The id of the message at which a key is parked.
async fn parked<DB: OutboxDatabase>(outbox: &Outbox<DB>) -> String {
    loop {
        let parked = outbox.parked().await.expect("the parked keys");
        if let Some(parked) = parked.first() {
            return parked.id.clone();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
