//! One process that books transfers, to be killed by a test.

use consumer_examples::{Failure, broker::Broker, nats::Nats, rabbitmq::RabbitMq};

use broker_tests::{Work, run};
use sqlx::{MySql, Postgres};

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let work = std::env::args().nth(1).ok_or("say what to do")?;
    let work: Work = serde_json::from_str(&work)?;
    match (work.broker.as_str(), work.database.starts_with("postgres")) {
        (Nats::NAME, true) => run::<Nats, Postgres>(&work).await,
        (Nats::NAME, false) => run::<Nats, MySql>(&work).await,
        (_, true) => run::<RabbitMq, Postgres>(&work).await,
        (_, false) => run::<RabbitMq, MySql>(&work).await,
    }
}
