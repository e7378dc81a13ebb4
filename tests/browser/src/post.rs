//! An outbox with a parked key, and a message that was set aside.

use std::path::Path;

use idempotent_runtime::outbox::{Envelope, Message, Outbox, PublishError, Publisher};
use sqlx::{Sqlite, SqlitePool};

/// It refuses every message.
struct Unwilling(&'static str);

impl Publisher for Unwilling {
    async fn publish(&self, batch: &[Envelope]) -> Vec<Result<(), PublishError>> {
        let refused = |_: &Envelope| Err(PublishError::Rejected(self.0.to_owned()));
        batch.iter().map(refused).collect()
    }
}

/// An outbox in a file.
#[derive(Debug)]
pub struct Post {
    /// The outbox.
    pub outbox: Outbox<Sqlite>,
    pool: SqlitePool,
}

impl Post {
    /// Makes an empty one in this file.
    pub async fn create(file: &Path) -> Self {
        let address = format!("sqlite:{}?mode=rwc", file.display());
        let pool = SqlitePool::connect(&address).await.expect("a file");
        let outbox = Outbox::sqlite(pool.clone());
        outbox.migrate().await.expect("tables");
        Self { outbox, pool }
    }

    /// Sends two messages of this key. The broker refuses the first one for this reason, and the
    /// key is parked.
    pub async fn park(&self, topic: &'static str, key: &str, reason: &'static str) {
        let mut transaction = self.pool.begin().await.expect("a transaction");
        for number in 1..3 {
            let message = Message::new(topic, &number).expect("a message").key(key);
            let sent = self.outbox.send(&mut transaction, message).await;
            sent.expect("it waits");
        }
        transaction.commit().await.expect("it stays");
        let relay = self.outbox.relay(Unwilling(reason)).budget(1).start().await;
        let relay = relay.expect("it starts");
        let is_parked = async || {
            let parked = self.outbox.parked().await.expect("a list");
            parked.iter().any(|it| it.key == key)
        };
        while !is_parked().await {
            tokio::task::yield_now().await;
        }
        relay.stop().await;
    }

    /// Sets the first message of a parked key aside.
    pub async fn set_aside(&self, key: &str) {
        let parked = self.outbox.parked().await.expect("a list");
        let first = parked.iter().find(|it| it.key == key);
        let first = first.expect("it is parked");
        let discard = self.outbox.discard(&first.key, &first.id);
        assert_eq!(discard.because("it is broken").await, Ok(true));
    }
}
