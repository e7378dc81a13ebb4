//! The page over a store with something of everything: open the address that it prints.

#![allow(clippy::print_stdout, reason = "the address is for a person")]

use std::time::Duration;

use axum::Router;
use http::request::Parts;
use idempotent_admin::{Act, CallChart, Page, Person};
use idempotent_audit::Audit;
use idempotent_runtime::{
    BoxError, Error, Idempotency, Verdict,
    outbox::{Envelope, Message, Outbox, PublishError, Publisher},
    step,
    store::SqliteStore,
};
use sqlx::SqlitePool;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("shop.db");
    let store = SqliteStore::open(&file).await?;
    let pool = SqlitePool::connect(&format!("sqlite:{}", file.display())).await?;
    let outbox = Outbox::sqlite(pool.clone());
    outbox.migrate().await?;
    Audit::sqlite(pool.clone()).migrate().await?;
    let audit = Audit::sqlite(pool.clone()).connect().await?;
    let _sealing = audit.seal_every("2s")?;
    let chart = CallChart::default();
    let idem = Idempotency::builder(store).observer(chart.clone());
    let idem = idem.audit(audit.clone()).build()?;
    fill(&idem).await?;
    post(&outbox, &pool).await?;
    audit.seal().await?;
    let verifying = audit.verify_every("1h")?;

    // Everyone on this machine may do everything. A program in production asks for a login.
    let access = |_: &Parts| Some(Person::reader("anna").with(Act::ALL));
    let page = Page::new(idem, access).outbox(&outbox).chart(&chart);
    let page = page.audit(&audit).verified(&verifying);
    let app = Router::new().nest("/admin", page.router());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/admin", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}

/// An error of a call.
#[derive(Debug, serde::Serialize, serde::Deserialize, thiserror::Error)]
enum Failed {
    #[error("it is sold out")]
    SoldOut,
    #[error(transparent)]
    Store(#[from] Error),
}

/// Calls that are done or undone, that nobody knows of, that are parked, that run, and streams.
async fn fill(idem: &Idempotency) -> Result<(), BoxError> {
    for order in 0..60_u32 {
        let call = idem.call("payments.charge").key(&order);
        call.run(async |_| Ok::<_, Error>(order)).await?;
    }
    for order in 60..65_u32 {
        let call = idem.call("payments.charge").key(&order).uncertain_errors();
        let silent = async |_| Err::<u32, _>(Error::InvalidPolicy("the gateway is silent"));
        let _nobody_knows = call.run(silent).await;
    }
    for (trip, is_undone) in [("trip-42", true), ("trip-43", false)] {
        book(idem, trip, is_undone).await;
    }
    for number in 1..4_u64 {
        let stream = idem.sequence("ledger.apply", "eur").first(1);
        let applied = stream.number(number);
        let _decision = applied.run(async |_| Ok::<_, Error>(number)).await?;
    }
    let slow = idem.clone();
    tokio::spawn(async move {
        let call = slow.call("reports.make").key("2026-12");
        let body = async |_| {
            tokio::time::sleep(Duration::from_secs(600)).await;
            Ok::<_, Error>(())
        };
        let _it_runs_long = call.run(body).await;
    });
    Ok(())
}

/// A trip without a room. Its flight is given back, or the airline refuses that: then the trip is
/// parked.
async fn book(idem: &Idempotency, trip: &str, is_undone: bool) {
    let call = idem.call("trips.book").key(trip);
    let call = call.classify_errors(|_: &Failed| Verdict::Replay);
    let body = async |_| {
        let flight = step("flight", async |_| Ok::<_, Failed>("AB 123".to_owned()));
        let give_back = flight.undo(move |_| async move {
            match is_undone {
                true => Ok(()),
                false => Err(BoxError::from("the airline takes none back")),
            }
        });
        give_back.run().await?;
        Err::<String, _>(Failed::SoldOut)
    };
    let _sold_out = call.run(body).await;
}

/// A broker that takes no message.
struct Full;

impl Publisher for Full {
    async fn publish(&self, batch: &[Envelope]) -> Vec<Result<(), PublishError>> {
        let refused = |_: &Envelope| Err(PublishError::Rejected("the queue is full".to_owned()));
        batch.iter().map(refused).collect()
    }
}

/// Messages of a key that is parked, and of one that waits.
async fn post(outbox: &Outbox<sqlx::Sqlite>, pool: &SqlitePool) -> Result<(), BoxError> {
    send(outbox, pool, "order-17").await?;
    let relay = outbox.relay(Full).budget(1).start().await?;
    while outbox.parked().await?.is_empty() {
        tokio::task::yield_now().await;
    }
    relay.stop().await;
    send(outbox, pool, "order-18").await
}

async fn send(outbox: &Outbox<sqlx::Sqlite>, pool: &SqlitePool, key: &str) -> Result<(), BoxError> {
    let mut transaction = pool.begin().await?;
    for number in 1..3 {
        let message = Message::new("orders.placed", &number)?.key(key);
        outbox.send(&mut transaction, message).await?;
    }
    transaction.commit().await?;
    Ok(())
}
