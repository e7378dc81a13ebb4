//! The load: what a service does in one round, and what its metrics must show after some of them.

use std::{
    env,
    ffi::OsStr,
    path::PathBuf,
    process::{self, Command, ExitCode},
    time::Duration,
};

use idempotent_runtime::{
    BoxError, Error, Idempotency, InFlight, StoreErrorKind, Undo,
    consumer::Disposition,
    outbox::{Envelope, Message, Outbox, PublishError, Publisher},
    step,
    store::SqliteStore,
    testing::{Fault, FaultyStore, On, StoreOperation},
};
use serde::{Deserialize, Serialize};
use sqlx::{Sqlite, SqlitePool};

use crate::KILLED;

/// How many orders a round has, and how often each of them is sent.
const ORDERS: u32 = 20;
const TIMES: u32 = 3;

pub struct Service {
    pub idem: Idempotency,
    pub store: FaultyStore,
    pub pool: SqlitePool,
    pub outbox: Outbox<Sqlite>,
    pub file: PathBuf,
}

/// A broker that takes everything but the orders of one customer.
struct Broker;

impl Publisher for Broker {
    async fn publish(&self, batch: &[Envelope]) -> Vec<Result<(), PublishError>> {
        let answer = |it: &Envelope| match it.key.as_deref() {
            Some("customer 13") => Err(PublishError::Rejected("no such customer".to_owned())),
            _ => Ok(()),
        };
        batch.iter().map(answer).collect()
    }
}

impl Service {
    pub async fn prepare(&self) -> Result<(), BoxError> {
        sqlx::query("CREATE TABLE orders (number TEXT PRIMARY KEY)")
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    pub async fn round(&self, round: u32) -> Result<(), BoxError> {
        for order in 1..=ORDERS {
            for _ in 0..TIMES {
                self.place(round, order).await?;
            }
        }
        self.wait_for_a_twin(round).await?;
        self.leave_uncertain(round).await;
        self.reuse_a_key(round).await;
        self.take_over(round).await?;
        self.lose_the_store(round).await?;
        self.consume(round).await?;
        self.count_events(round).await?;
        self.undo_a_trip(round).await;
        self.publish(round).await?;
        self.forget_a_code(round).await
    }

    /// Places an order, with a message in the same transaction.
    async fn place(&self, round: u32, order: u32) -> Result<(), BoxError> {
        let number = format!("{round}-{order}");
        let message = Message::new("orders.placed", &order)?;
        let message = message.key(&format!("customer {order}"));
        let call = self.idem.call("orders.place").key(&number).release_errors();
        let placed: Result<u32, PlaceError> = call
            .transact(&self.pool, async |tx| {
                sqlx::query("INSERT INTO orders (number) VALUES (?)")
                    .bind(&number)
                    .execute(&mut *tx)
                    .await?;
                self.outbox.send(tx, message.clone()).await?;
                Ok(order)
            })
            .await;
        Ok(placed.map(drop)?)
    }

    /// A duplicate that comes while the call runs waits for it.
    async fn wait_for_a_twin(&self, round: u32) -> Result<(), BoxError> {
        let call = || self.idem.call("reports.make").key(&round);
        let slow = call().run(async |_| {
            tokio::time::sleep(Duration::from_millis(200)).await;
            Ok::<_, Error>(round)
        });
        let twin = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            call().run(async |_| Ok::<_, Error>(0)).await
        };
        let (first, second) = tokio::join!(slow, twin);
        assert_eq!(first?, second?, "both get the one report");
        Ok(())
    }

    async fn leave_uncertain(&self, round: u32) {
        let call = self.idem.call("cards.charge").key(&round);
        let silent = call.uncertain_errors();
        let _no_answer = silent
            .run(async |_| Err::<(), _>(Error::InvalidPolicy("the gateway is silent")))
            .await;
    }

    async fn reuse_a_key(&self, round: u32) {
        for amount in [100, 200] {
            let call = self.idem.call("coupons.use").key(&round);
            let call = call.argument("amount", &amount);
            let _the_second_one_is_refused = call.run(async |_| Ok::<_, Error>(amount)).await;
        }
    }

    /// Another process is killed in the body of a call, and this one takes over.
    async fn take_over(&self, round: u32) -> Result<(), BoxError> {
        let program = env::current_exe()?;
        let killed = Command::new(program)
            .env(KILLED, &self.file)
            .env("OBSERVE_ROUND", round.to_string())
            .status()?;
        assert!(!killed.success(), "it is killed");
        let call = invoice(&self.idem, round).in_flight(InFlight::Wait(Duration::from_secs(20)));
        call.run(async |_| Ok::<_, Error>(round)).await?;
        Ok(())
    }

    /// The store is away for five calls; then it does not take one outcome at once.
    async fn lose_the_store(&self, round: u32) -> Result<(), BoxError> {
        self.store.outage(StoreErrorKind::Denied);
        for number in 0..5 {
            let call = self.idem.call("stock.take").key(&(round, number));
            let refused = call.run(async |_| Ok::<_, Error>(number)).await;
            assert!(matches!(refused, Err(Error::Store(_))), "{refused:?}");
        }
        self.store.heal();
        let once = Fault::Fail(StoreErrorKind::Unavailable);
        self.store.fault(StoreOperation::Ending, On::Next, once);
        let call = self.idem.call("stock.take").key(&(round, "late"));
        call.run(async |_| Ok::<_, Error>(1)).await?;
        Ok(())
    }

    /// Each message is delivered twice.
    async fn consume(&self, round: u32) -> Result<(), BoxError> {
        let consumer = self.idem.consumer("shipping").ttl("7d");
        let consumer = consumer.broker_retention("3d").build()?;
        for number in 1..=10 {
            for delivery in 1..=2 {
                let id = format!("{round}-{number}");
                let message = consumer.message(&id).payload(&number).delivery(delivery);
                let done = message.run(async |_| Ok::<_, Error>(())).await;
                assert!(matches!(done, Disposition::Ack { .. }), "{done:?}");
            }
        }
        Ok(())
    }

    /// The second event comes twice, and the third one is missing.
    async fn count_events(&self, round: u32) -> Result<(), BoxError> {
        for number in [1, 2, 2, 4] {
            let account = self.idem.sequence("accounts", &round).first(1);
            let _decision = account
                .number(number)
                .run(async |_| Ok::<_, Error>(number))
                .await?;
        }
        Ok(())
    }

    async fn undo_a_trip(&self, round: u32) {
        let call = self.idem.call("trips.book").key(&round).record_errors();
        let booked = call.run(async |_| {
            let flight = step("flight", async |_| Ok::<_, TripError>(7));
            flight.undo(cancel).await?;
            Err::<(), _>(TripError::NoHotel)
        });
        let refused = booked.await;
        assert!(matches!(refused, Err(TripError::NoHotel)), "{refused:?}");
    }

    /// Publishes all messages but those of one customer.
    async fn publish(&self, round: u32) -> Result<(), BoxError> {
        let relay = self.outbox.relay(Broker).budget(1).idempotency(&self.idem);
        let relay = relay.start().await?;
        // One message of each round waits behind the key that is parked.
        let left = u64::from(round);
        while self
            .outbox
            .topics()
            .await?
            .iter()
            .any(|it| it.pending > left)
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        relay.stop().await;
        Ok(())
    }

    /// Its outcome expires at once, and a purge deletes it.
    async fn forget_a_code(&self, round: u32) -> Result<(), BoxError> {
        let call = self
            .idem
            .call("codes.send")
            .key(&round)
            .ttl("150ms")
            .lease("100ms");
        call.run(async |_| Ok::<_, Error>(round)).await?;
        tokio::time::sleep(Duration::from_millis(300)).await;
        self.idem.purge().await?;
        Ok(())
    }
}

async fn cancel(_: Undo<u32>) -> Result<(), Error> {
    Ok(())
}

fn invoice(idem: &Idempotency, round: u32) -> idempotent_runtime::CallBuilder {
    idem.call("invoices.send").key(&round).lease("1s")
}

/// Claims a call, and is killed in its body.
pub async fn be_killed(file: &OsStr) -> Result<ExitCode, BoxError> {
    let idem = Idempotency::new(SqliteStore::open(file).await?);
    let round = env::var("OBSERVE_ROUND")?.parse()?;
    let killed = invoice(&idem, round).run(async |_| -> Result<u32, Error> { process::abort() });
    killed.await?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug, thiserror::Error)]
enum PlaceError {
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Idempotency(#[from] Error),
}

#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
enum TripError {
    #[error("no hotel is left")]
    NoHotel,
    #[error(transparent)]
    Idempotency(#[from] Error),
}

/// Returns the samples that the metrics must show after so many rounds.
pub fn expected(rounds: u32) -> Vec<(String, f64)> {
    let calls = |operation, outcome| {
        format!(r#"idempotent_calls_total{{operation="{operation}",outcome="{outcome}"}}"#)
    };
    let in_a_round = [
        (calls("orders.place", "executed"), ORDERS),
        (calls("orders.place", "replayed"), ORDERS * (TIMES - 1)),
        (calls("reports.make", "executed"), 1),
        (calls("reports.make", "replayed_after_wait"), 1),
        (calls("cards.charge", "left_uncertain"), 1),
        (calls("coupons.use", "executed"), 1),
        (calls("coupons.use", "key_reused"), 1),
        (calls("invoices.send", "executed_after_takeover"), 1),
        (calls("stock.take", "store_failed"), 5),
        (calls("stock.take", "executed"), 1),
        (
            of("wait_duration_seconds_count", r#"operation="reports.make""#),
            1,
        ),
        (of("takeovers_total", r#"operation="invoices.send""#), 1),
        (
            of("completions_retried_total", r#"operation="stock.take""#),
            1,
        ),
        (
            of(
                "store_duration_seconds_count",
                r#"store="sqlite",action="claim",error="denied""#,
            ),
            5,
        ),
        (
            of(
                "consumer_messages_total",
                r#"consumer="shipping",disposition="ack""#,
            ),
            10,
        ),
        (
            of(
                "consumer_messages_total",
                r#"consumer="shipping",disposition="duplicate""#,
            ),
            10,
        ),
        (
            of(
                "sequence_numbers_total",
                r#"sequence="accounts",decision="applied""#,
            ),
            2,
        ),
        (
            of(
                "sequence_numbers_total",
                r#"sequence="accounts",decision="replayed""#,
            ),
            1,
        ),
        (
            of(
                "sequence_numbers_total",
                r#"sequence="accounts",decision="gap""#,
            ),
            1,
        ),
        (
            of(
                "steps_total",
                r#"operation="trips.book",step="flight",outcome="executed""#,
            ),
            1,
        ),
        (
            of(
                "undos_total",
                r#"operation="trips.book",step="flight",outcome="undone""#,
            ),
            1,
        ),
        (
            of("outbox_published_total", r#"topic="orders.placed""#),
            ORDERS - 1,
        ),
        ("idempotent_purged_total".to_owned(), 1),
        (of("attention", r#"kind="uncertain""#), 1),
        (of("outbox_pending", r#"topic="orders.placed""#), 1),
    ];
    let in_all = [
        (of("attention", r#"kind="parked""#), 0),
        ("idempotent_attention_is_capped".to_owned(), 0),
        (of("outbox_blocked_keys", r#"topic="orders.placed""#), 1),
        (
            of("outbox_pending_is_capped", r#"topic="orders.placed""#),
            0,
        ),
        (of("leases_lost_total", r#"operation="invoices.send""#), 0),
    ];
    let counted = in_a_round
        .into_iter()
        .map(|(sample, count)| (sample, count * rounds));
    let all = counted.chain(in_all);
    all.map(|(sample, count)| (sample, f64::from(count)))
        .collect()
}

fn of(metric: &str, labels: &str) -> String {
    format!("idempotent_{metric}{{{labels}}}")
}
