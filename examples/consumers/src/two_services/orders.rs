//! The service that takes orders, and tells of them by its outbox.

use std::{future::pending, time::Duration};

use idempotent_runtime::outbox::{Envelope, Message, Outbox, PublishError, Publisher};
use sqlx::{Sqlite, SqliteConnection, SqlitePool};
use tokio::time::sleep;

use super::{
    plan::{ORDERS, Order, QUEUE, Service, Work},
    server::Local,
};
use crate::{
    Failure, books,
    broker::Broker,
    consume::{end_with_standard_input, say},
};

/// The time between two orders.
const PACE: Duration = Duration::from_millis(10);

/// Takes all orders that are still to come, and publishes until its standard input is closed.
#[tokio::main]
pub(super) async fn run<B: Local>(work: &Work) -> Result<(), Failure> {
    end_with_standard_input();
    let pool = books::open(&work.file(Service::Orders)).await?;
    if !work.protected {
        return run_unprotected::<B>(&pool, &work.url).await;
    }
    let outbox = Outbox::sqlite(pool.clone());
    outbox.migrate().await?;
    let publisher = Telling(B::publisher(&work.url).await?);
    // The keys of a relay that was killed are free when their lease is over.
    let relay = outbox.relay(publisher).lease("1s").start().await?;
    for number in next(&pool).await?..=ORDERS {
        let order = Order::new(number);
        place(&pool, &outbox, &order).await?;
        relay.wake();
        say("placed", &order.id());
        sleep(PACE).await;
    }
    pending().await
}

/// Writes the order and its message in one transaction.
async fn place(pool: &SqlitePool, outbox: &Outbox<Sqlite>, order: &Order) -> Result<(), Failure> {
    let mut tx = pool.begin().await?;
    insert(&mut tx, order).await?;
    // The messages of one customer arrive in the order of their commits.
    let message = Message::new(QUEUE, order)?.key(&order.customer);
    outbox.send(&mut tx, message).await?;
    if order.is_rolled_back() {
        tx.rollback().await?;
    } else {
        tx.commit().await?;
    }
    Ok(())
}

async fn insert(tx: &mut SqliteConnection, order: &Order) -> Result<(), sqlx::Error> {
    let insert = sqlx::query("INSERT INTO orders VALUES (?, ?, ?)");
    let insert = insert.bind(order.number).bind(order.customer);
    insert.bind(order.cents).execute(tx).await?;
    Ok(())
}

/// The order after the last one that was committed.
async fn next(pool: &SqlitePool) -> Result<u32, sqlx::Error> {
    let next = "SELECT coalesce(max(number), 0) + 1 FROM orders";
    sqlx::query_scalar(next).fetch_one(pool).await
}

/// A publisher that tells the parent of each confirmed message.
struct Telling<P>(P);

impl<P: Publisher> Publisher for Telling<P> {
    async fn publish(&self, batch: &[Envelope]) -> Vec<Result<(), PublishError>> {
        let results = self.0.publish(batch).await;
        for (envelope, result) in batch.iter().zip(&results) {
            match result {
                Ok(()) => say("sent", &envelope.id),
                Err(error) => say("unsent", &error.to_string()),
            }
        }
        results
    }

    fn max_payload(&self) -> usize {
        self.0.max_payload()
    }
}

/// The same without an outbox: the message goes out before the commit, so that none is lost.
async fn run_unprotected<B: Broker>(pool: &SqlitePool, url: &str) -> Result<(), Failure> {
    for number in next(pool).await?..=ORDERS {
        let order = Order::new(number);
        let mut tx = pool.begin().await?;
        insert(&mut tx, &order).await?;
        while let Err(error) = publish::<B>(url, &order).await {
            say("unsent", &error.to_string());
            sleep(PACE).await;
        }
        say("sent", &order.id());
        if order.is_rolled_back() {
            tx.rollback().await?;
        } else {
            tx.commit().await?;
        }
        say("placed", &order.id());
        sleep(PACE).await;
    }
    pending().await
}

async fn publish<B: Broker>(url: &str, order: &Order) -> Result<(), Failure> {
    let broker = B::connect_in_order(url, QUEUE).await?;
    let body = serde_json::to_vec(order)?;
    broker.publish(&order.id(), &body).await
}
