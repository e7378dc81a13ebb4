//! A ledger that books transfers from messages.

pub mod database;
pub mod plan;

use std::sync::Arc;

use consumer_examples::{
    Failure,
    broker::{Broker, Delivery},
    consume::{Handler, consume, end_with_standard_input, read, say},
};
use database::Ledger;
use idempotent_runtime::{
    ErrorVerdict, Idempotency,
    consumer::{Consumer, Disposition},
    transaction::SqlDatabase,
};
use plan::Transfer;
use serde::{Deserialize, Serialize};
use sqlx::Pool;

/// The brokers and the databases of a consumer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Work {
    /// The name of the broker.
    pub broker: String,
    /// The address of the broker.
    pub url: String,
    /// Its queue.
    pub queue: String,
    /// The address of the database.
    pub database: String,
}

#[derive(Debug, Serialize, Deserialize, ErrorVerdict, thiserror::Error)]
enum BookError {
    #[verdict(replay)]
    #[error("no money is moved")]
    Nothing,
    #[serde(skip)]
    #[verdict(release)]
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

struct Books<DB: sqlx::Database> {
    consumer: Consumer,
    pool: Pool<DB>,
    keep: std::time::Duration,
}

/// Books transfers until the standard input is closed.
///
/// # Errors
///
/// When the database cannot be opened.
pub async fn run<B: Broker, DB: Ledger + SqlDatabase>(work: &Work) -> Result<(), Failure> {
    end_with_standard_input();
    let pool = DB::open(&work.database).await?;
    let idem = Idempotency::new(Arc::new(DB::store(pool.clone()).await?));
    let consumer = idem.consumer("ledger").ttl("7d").broker_retention("1d");
    // There are many kills here.
    let consumer = consumer.max_deliveries(1_000).build()?;
    let keep = B::ACK_WAIT.unwrap_or(std::time::Duration::from_secs(10));
    let books = Books {
        consumer,
        pool,
        keep,
    };
    consume::<B, _>(&work.url, &work.queue, books).await
}

impl<DB: Ledger + SqlDatabase> Handler for Books<DB> {
    async fn handle<D: Delivery>(&self, delivery: &D) -> Disposition {
        say("begin", delivery.id());
        let transfer: Transfer = match read(delivery) {
            Ok(transfer) => transfer,
            Err(disposition) => return disposition,
        };
        let message = self.consumer.message(delivery.id()).payload(&transfer);
        let message = message.delivery(delivery.count());
        let message = message.classify_errors(BookError::verdict);
        let message = message.keep_alive(self.keep, || delivery.extend());
        message
            .transact(&self.pool, async |tx| book::<DB>(tx, &transfer).await)
            .await
    }

    async fn settle<D: Delivery>(
        &self,
        delivery: D,
        disposition: Disposition,
    ) -> Result<(), Failure> {
        let id = delivery.id().to_owned();
        let word = match &disposition {
            Disposition::Retry { .. } => "later",
            _ => "settled",
        };
        delivery.settle(disposition).await?;
        say(word, &id);
        Ok(())
    }
}

async fn book<DB: Ledger>(tx: &mut DB::Connection, transfer: &Transfer) -> Result<(), BookError> {
    let Transfer {
        number,
        from,
        to,
        cents,
        ..
    } = *transfer;
    if cents == 0 {
        return Err(BookError::Nothing);
    }
    // The accounts are taken in the order of their numbers: two transfers never wait for each
    // other.
    let mut changes = [(from, -cents), (to, cents)];
    changes.sort_unstable();
    for (account, cents) in changes {
        let entry = format!("INSERT INTO entries VALUES ({number}, {account}, {cents})");
        DB::run(tx, entry).await?;
        let balance = format!("UPDATE accounts SET cents = cents + {cents} WHERE id = {account}");
        DB::run(tx, balance).await?;
    }
    Ok(())
}
