//! The page over a store with something of everything: open the address that it prints.

#![allow(clippy::print_stdout, reason = "the address is for a person")]

use std::time::Duration;

use axum::Router;
use http::request::Parts;
use idempotent_admin::{Act, CallChart, Page, Person};
use idempotent_runtime::{BoxError, Error, Idempotency, MemoryStore, step};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let chart = CallChart::default();
    let idem = Idempotency::builder(MemoryStore::new()).observer(chart.clone());
    let idem = idem.build()?;
    fill(&idem).await?;
    // Everyone on this machine may do everything. A program in production asks for a login.
    let access = |_: &Parts| Some(Person::reader("anna").with(Act::ALL));
    let app = Router::new().nest("/admin", Page::new(idem, access).chart(&chart).router());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/admin", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}

/// Calls that are done, that failed, that nobody knows of, and streams.
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
    let trip = idem.call("trips.book").key("trip-42");
    trip.run(async |_| {
        step("flight", async |_| Ok::<_, Error>("AB 123".to_owned()))
            .run()
            .await?;
        step("hotel", async |_| Ok::<_, Error>("room 7".to_owned()))
            .run()
            .await?;
        Ok::<_, Error>(())
    })
    .await?;
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
