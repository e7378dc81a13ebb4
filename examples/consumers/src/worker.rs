//! The consumer: a process of its own, which may be killed at any moment.

use std::{path::PathBuf, time::Duration};

use idempotent_runtime::{
    ErrorVerdict, Idempotency,
    consumer::{Consumer, DeadLetterReason, Disposition},
    store::SqliteStore,
};
use serde::{Deserialize, Serialize};
use sqlx::SqlitePool;
use tokio::time::sleep;

use crate::{
    Failure,
    books::{self, InvoiceError, invoice},
    broker::{Broker, Delivery},
    consume::{Handler, consume, end_with_standard_input, read, say},
    orders::{Mishap, Order},
};

/// The name of this process on its command line.
pub(crate) const ROLE: &str = "--worker";

/// For how long a message is held at least, on a broker that does not count the time.
const HOLD: Duration = Duration::from_secs(10);

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) url: String,
    pub(crate) queue: String,
    pub(crate) file: PathBuf,
    pub(crate) protected: bool,
}

struct Worker {
    /// Without it, nothing is protected.
    consumer: Option<Consumer>,
    pool: SqlitePool,
    ack_wait: Option<Duration>,
}

/// Consumes until its standard input is closed. It says what happens, with the id of the message.
#[tokio::main]
pub(crate) async fn run<B: Broker>(work: &Work) -> Result<(), Failure> {
    end_with_standard_input();
    let worker = Worker {
        consumer: match work.protected {
            true => Some(consumer(work).await?),
            false => None,
        },
        pool: books::open(&work.file).await?,
        ack_wait: B::ACK_WAIT,
    };
    consume::<B, _>(&work.url, &work.queue, worker).await
}

async fn consumer(work: &Work) -> Result<Consumer, Failure> {
    let idem = Idempotency::new(SqliteStore::open(&work.file).await?);
    let consumer = idem.consumer("invoices").ttl("7d").broker_retention("1d");
    Ok(consumer.build()?)
}

impl Worker {
    async fn handle_unprotected(&self, order: &Order) -> Disposition {
        let invoiced = async {
            let mut tx = self.pool.begin().await?;
            invoice(&mut tx, order).await?;
            Ok(tx.commit().await?)
        };
        match invoiced.await {
            Ok(()) => Disposition::Ack { replayed: false },
            Err(error) => Disposition::DeadLetter {
                reason: DeadLetterReason::Failed,
                error: Some(error),
            },
        }
    }
}

impl Handler for Worker {
    async fn handle<D: Delivery>(&self, delivery: &D) -> Disposition {
        say("delivered", delivery.id());
        let order: Order = match read(delivery) {
            Ok(order) => order,
            Err(disposition) => return disposition,
        };
        let Some(consumer) = &self.consumer else {
            return self.handle_unprotected(&order).await;
        };
        let message = consumer.message(delivery.id()).payload(&order);
        let message = message.delivery(delivery.count());
        let message = message.classify_errors(InvoiceError::verdict);
        let message = message.keep_alive(self.ack_wait.unwrap_or(HOLD), || delivery.extend());
        // The invoice and the record of the message commit together.
        let disposition = message
            .transact(&self.pool, async |tx| invoice(tx, &order).await)
            .await;
        if let Disposition::Ack { replayed: true } = disposition {
            say("replayed", delivery.id());
        }
        disposition
    }

    /// Settles a delivery, unless a mishap comes first.
    async fn settle<D: Delivery>(
        &self,
        delivery: D,
        disposition: Disposition,
    ) -> Result<(), Failure> {
        let id = delivery.id().to_owned();
        if let Some((number, mishap)) = mishap_of(&id)
            && books::is_first_mishap(&self.pool, number).await?
        {
            match (mishap, self.ack_wait) {
                (Mishap::Slow, Some(wait)) => {
                    say(mishap.name(), &id);
                    sleep(2 * wait).await;
                }
                (Mishap::Slow, None) => {}
                // It is not acknowledged. Another process kills this one, or cuts its connection.
                (Mishap::Kill | Mishap::Cut, _) => {
                    say(mishap.name(), &id);
                    return Ok(());
                }
            }
        }
        let is_final = !matches!(disposition, Disposition::Retry { .. });
        delivery.settle(disposition).await?;
        if is_final {
            say("settled", &id);
        }
        Ok(())
    }
}

fn mishap_of(id: &str) -> Option<(u32, Mishap)> {
    let number = id.strip_prefix("order-")?.parse().ok()?;
    Some((number, Mishap::of(number)?))
}
