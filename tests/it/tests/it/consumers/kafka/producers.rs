//! A producer with an epoch: one that was replaced writes nothing more.

use std::sync::atomic::{AtomicU32, Ordering};

use idempotent_runtime::{Idempotency, store::PostgresStore, transaction::Transact};
use sqlx::{PgConnection, PgPool};

use super::app::Database;

#[derive(Debug, thiserror::Error)]
pub(super) enum ProducerError {
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Idempotency(#[from] idempotent_runtime::Error),
    #[error("a newer producer has taken over: end this process")]
    Fenced,
}

/// Takes over from the producer before, whose epoch is refused from now on.
pub(super) async fn take_over(pool: &PgPool, producer: &str) -> sqlx::Result<i64> {
    let begin = "INSERT INTO producers VALUES ($1, 1)
        ON CONFLICT (producer) DO UPDATE SET epoch = producers.epoch + 1 RETURNING epoch";
    let epoch = sqlx::query_scalar(begin).bind(producer);
    epoch.fetch_one(pool).await
}

/// Holds the epoch until the transaction ends. Call it first in each transaction that publishes.
pub(super) async fn fence(
    tx: &mut PgConnection,
    producer: &str,
    epoch: i64,
) -> Result<(), ProducerError> {
    let held = "UPDATE producers SET epoch = $2 WHERE producer = $1 AND epoch <= $2";
    let held = sqlx::query(held).bind(producer).bind(epoch);
    match held.execute(tx).await?.rows_affected() {
        0 => Err(ProducerError::Fenced),
        _ => Ok(()),
    }
}

/// A producer that publishes into a table, from which it goes to the log.
struct Producer {
    pool: PgPool,
    idem: Idempotency,
    epoch: i64,
    runs: AtomicU32,
}

impl Producer {
    async fn start(database: &Database) -> Self {
        let pool = database.pool().await;
        let tables =
            "CREATE TABLE IF NOT EXISTS producers (producer TEXT PRIMARY KEY, epoch BIGINT);
            CREATE TABLE IF NOT EXISTS outbox (number BIGSERIAL, event TEXT, epoch BIGINT)";
        let created = sqlx::raw_sql(tables).execute(&pool).await;
        created.expect("tables");
        let epoch = take_over(&pool, "shop").await.expect("an epoch");
        let idem = Idempotency::new(PostgresStore::new(pool.clone()));
        let runs = AtomicU32::new(0);
        Self {
            pool,
            idem,
            epoch,
            runs,
        }
    }

    async fn publish(&self, event: &str) -> Result<(), ProducerError> {
        let again = |error: &ProducerError| !matches!(error, ProducerError::Fenced);
        let how = Transact::new(&self.pool).retry_if(again);
        let call = self.idem.call("events.publish").key(event);
        call.release_errors()
            .transact(how, async |tx| {
                self.runs.fetch_add(1, Ordering::SeqCst);
                fence(tx, "shop", self.epoch).await?;
                let insert = "INSERT INTO outbox (event, epoch) VALUES ($1, $2)";
                let insert = sqlx::query(insert).bind(event).bind(self.epoch);
                insert.execute(tx).await?;
                Ok(())
            })
            .await
    }
}

/// The error of a fence is final: the body is not tried again, and a newer producer is not in its
/// way.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn i19_a_producer_with_an_older_epoch_is_refused_for_good() {
    let database = Database::new(1).await;
    let zombie = Producer::start(&database).await;
    zombie.publish("first").await.expect("it has the epoch");
    let next = Producer::start(&database).await;
    assert_eq!((zombie.epoch, next.epoch), (1, 2));

    let refused = zombie.publish("second").await;
    assert!(matches!(refused, Err(ProducerError::Fenced)), "{refused:?}");
    assert_eq!(zombie.runs.load(Ordering::SeqCst), 2, "once each");
    for _copy in 0..2 {
        next.publish("second").await.expect("it has the epoch");
    }
    let published = "SELECT event, epoch FROM outbox ORDER BY number";
    let published: Vec<(String, i64)> = sqlx::query_as(published)
        .fetch_all(&next.pool)
        .await
        .expect("rows");
    assert_eq!(published, [("first".into(), 1), ("second".into(), 2)]);
}
