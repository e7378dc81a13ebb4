//! The service that writes an invoice for each order, by its inbox.

use std::time::Duration;

use idempotent_runtime::{
    Idempotency,
    consumer::{Consumer, Disposition},
    store::SqliteStore,
};
use sqlx::{SqliteConnection, SqlitePool};
use tokio::time::sleep;

use super::plan::{Order, QUEUE, Service, Work};
use crate::{
    Failure, books,
    broker::{Broker, Delivery},
    consume::{end_with_standard_input, read, say},
};

/// For how long a message is held at least, on a broker that does not count the time.
const HOLD: Duration = Duration::from_secs(10);

struct Invoicing {
    /// Without it, nothing is protected.
    inbox: Option<Consumer>,
    pool: SqlitePool,
}

/// Consumes until its standard input is closed.
#[tokio::main]
pub(super) async fn run<B: Broker>(work: &Work) -> Result<(), Failure> {
    end_with_standard_input();
    let file = work.file(Service::Invoices);
    let invoicing = Invoicing {
        inbox: match work.protected {
            true => Some(inbox(SqliteStore::open(&file).await?)?),
            false => None,
        },
        pool: books::open(&file).await?,
    };
    loop {
        let consumed = invoicing.consume_until_lost::<B>(&work.url).await;
        let Err(lost) = consumed;
        say("lost", &lost.to_string());
        sleep(Duration::from_millis(50)).await;
    }
}

fn inbox(store: SqliteStore) -> Result<Consumer, Failure> {
    let inbox = Idempotency::new(store).consumer("invoices");
    let inbox = inbox.ttl("7d").broker_retention("1d");
    // A message that this process held when it was killed is soon free.
    Ok(inbox.lease("1s").build()?)
}

impl Invoicing {
    /// Handles one message after the other. The order of a customer's orders is kept by both sides:
    /// the broker delivers a message only after the one before it is settled, and a message that
    /// fails is not settled until it has had its next try.
    async fn consume_until_lost<B: Broker>(
        &self,
        url: &str,
    ) -> Result<std::convert::Infallible, Failure> {
        let mut broker = B::connect_in_order(url, QUEUE).await?;
        loop {
            let delivery = broker.next().await?;
            let id = delivery.id().to_owned();
            say("delivered", &id);
            let disposition = self.handle::<B>(&delivery).await;
            if let Disposition::Ack { replayed: true } = disposition {
                say("replayed", &id);
            }
            delivery.settle(disposition).await?;
            say(Service::Invoices.step(), &id);
        }
    }

    async fn handle<B: Broker>(&self, delivery: &B::Delivery) -> Disposition {
        let order: Order = match read(delivery) {
            Ok(order) => order,
            Err(disposition) => return disposition,
        };
        let Some(inbox) = &self.inbox else {
            return self.handle_unprotected(&order).await;
        };
        let message = inbox.message(delivery.id()).payload(&order);
        let message = message.delivery(delivery.count());
        let message = message.keep_alive(B::ACK_WAIT.unwrap_or(HOLD), || delivery.extend());
        // The invoice and the record of the message commit together.
        message
            .transact(&self.pool, async |tx| insert(tx, &order).await)
            .await
    }

    async fn handle_unprotected(&self, order: &Order) -> Disposition {
        let invoiced = async {
            let mut connection = self.pool.acquire().await?;
            insert(&mut connection, order).await
        };
        match invoiced.await {
            Ok(()) => Disposition::Ack { replayed: false },
            Err(error) => Disposition::Retry {
                after: Duration::from_millis(50),
                error: Some(error.into()),
            },
        }
    }
}

async fn insert(tx: &mut SqliteConnection, order: &Order) -> Result<(), sqlx::Error> {
    let insert = sqlx::query("INSERT INTO invoices VALUES (?, ?, ?)");
    let insert = insert.bind(order.number).bind(order.customer);
    insert.bind(order.cents).execute(tx).await?;
    Ok(())
}
