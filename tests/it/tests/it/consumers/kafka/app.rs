//! An application that books the orders of a log: its tables, and its work on a message.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use idempotent_runtime::{
    Idempotency,
    consumer::{Consumer, DeadLetterReason},
    store::PostgresStore,
};
use sqlx::{
    AssertSqlSafe, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::servers::{prefix, url};

pub(super) const TOPIC: &str = "orders";

const TABLES: &str = "
    CREATE TABLE offsets (topic TEXT, partition INT, next BIGINT NOT NULL,
        deliveries INT NOT NULL DEFAULT 0, PRIMARY KEY (topic, partition));
    CREATE TABLE dead_letters (topic TEXT, partition INT, place BIGINT, reason TEXT NOT NULL,
        PRIMARY KEY (topic, partition, place));
    CREATE TABLE bookings (number BIGSERIAL, partition INT, place BIGINT, cents BIGINT);
    CREATE TABLE total (cents BIGINT NOT NULL);
    INSERT INTO total VALUES (0)";

/// A message of a log.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) topic: String,
    pub(super) partition: i32,
    pub(super) offset: i64,
    /// In cents.
    pub(super) order: i64,
    /// How often it fails before it is booked.
    pub(super) failures: Arc<AtomicU32>,
}

/// The position of a consumer in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) next: i64,
    /// How often the message that is there was tried, with this time.
    pub(super) delivery: u32,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum BookingError {
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error("the customer is not known yet")]
    TooEarly,
}

/// Books an order. It fails while failures are left, the application's or the database's.
pub(super) async fn book(tx: &mut PgConnection, it: &Message) -> Result<(), BookingError> {
    let insert = "INSERT INTO bookings (partition, place, cents) VALUES ($1, $2, $3)";
    let insert = sqlx::query(insert).bind(it.partition).bind(it.offset);
    insert.bind(it.order).execute(&mut *tx).await?;
    let left = |left: u32| left.checked_sub(1);
    match it
        .failures
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, left)
    {
        Ok(odd) if odd % 2 == 1 => return Err(BookingError::TooEarly),
        Ok(_) => {
            sqlx::query("SELECT 1 / 0").execute(&mut *tx).await?;
        }
        Err(_) => {}
    }
    let total = sqlx::query("UPDATE total SET cents = cents + $1").bind(it.order);
    total.execute(tx).await?;
    Ok(())
}

/// Keeps a dead letter.
pub(super) async fn put_aside(
    tx: &mut PgConnection,
    it: &Message,
    reason: DeadLetterReason,
) -> sqlx::Result<()> {
    let insert = "INSERT INTO dead_letters VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
    let insert = sqlx::query(insert).bind(&it.topic).bind(it.partition);
    let insert = insert.bind(it.offset).bind(reason.to_string());
    insert.execute(tx).await.map(drop)
}

/// A process of the application.
pub(super) struct App {
    pub(super) pool: PgPool,
    pub(super) consumer: Consumer,
}

/// A database of the application's.
#[derive(Clone)]
pub(super) struct Database(PgConnectOptions);

impl Database {
    /// Makes it with so many partitions. Nothing is read of them yet.
    pub(super) async fn new(partitions: i32) -> Self {
        let options: PgConnectOptions = url("IDEMPOTENT_TEST_POSTGRES_URL").parse().expect("a URL");
        let schema = format!("{}kafka", prefix());
        let database = Self(options.options([("search_path", &schema)]));
        let pool = database.pool().await;
        let create = format!("CREATE SCHEMA {schema}; {TABLES}");
        let created = sqlx::raw_sql(AssertSqlSafe(create)).execute(&pool).await;
        created.expect("tables");
        let store = PostgresStore::new(pool.clone());
        store.migrate().await.expect("the table of the records");
        let offsets = "INSERT INTO offsets SELECT $1, number, 0 FROM generate_series(0, $2) number";
        let offsets = sqlx::query(offsets).bind(TOPIC).bind(partitions - 1);
        offsets.execute(&pool).await.expect("offsets");
        database
    }

    pub(super) async fn pool(&self) -> PgPool {
        let pool = PgPoolOptions::new().max_connections(2);
        let pool = pool.connect_with(self.0.clone()).await;
        pool.expect("the server answers")
    }

    /// A process begins, with connections of its own.
    pub(super) async fn start(&self) -> App {
        let pool = self.pool().await;
        let idem = Idempotency::new(PostgresStore::new(pool.clone()));
        let consumer = idem.consumer("bookings").broker_retention("7d");
        let consumer = consumer.max_deliveries(MAX_DELIVERIES).build();
        App {
            pool,
            consumer: consumer.expect("a consumer"),
        }
    }
}

/// More than there are rebalances and kills without progress in between.
pub(super) const MAX_DELIVERIES: u32 = 20;
