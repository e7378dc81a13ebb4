//! The travel agency: one call books a flight, a hotel and a car, or none of them.

use std::{net::SocketAddr, time::Duration};

use idempotent_runtime::{BoxError, Error, ErrorVerdict, Idempotency, Undo, idempotent, step};
use serde::{Deserialize, Serialize};

use super::gateway;

/// A holder that is silent for so long has vanished.
pub(super) const LEASE: Duration = Duration::from_millis(600);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Trip {
    pub(super) id: String,
    /// The place where the process stops and waits to be killed: in a step, or in an undo.
    #[serde(skip)]
    pub(super) stops_at: Option<String>,
}

/// The addresses of the gateways for flights, hotels and cars.
#[derive(Clone, Copy)]
pub(super) struct Gateways(pub(super) [SocketAddr; 3]);

#[derive(Debug, thiserror::Error, Serialize, Deserialize, ErrorVerdict)]
pub(super) enum BookError {
    #[error("refused: {0}")]
    #[verdict(replay)]
    Refused(String),
    #[error("a gateway does not answer: {0}")]
    #[verdict(release)]
    Gateway(String),
    #[error(transparent)]
    #[verdict(release)]
    Idempotency(#[from] Error),
}

#[idempotent(
    name = "trips.book",
    key = trip.id,
    ttl = "30d",
    on_error = ErrorVerdict::verdict,
    skip(gateways)
)]
pub(super) async fn book(gateways: Gateways, trip: &Trip) -> Result<[String; 3], BookError> {
    let [air, hotels, cars] = gateways.0;
    let flight = booked("flight", air, trip).await?;
    let hotel = booked("hotel", hotels, trip).await?;
    let car = booked("car", cars, trip).await?;
    Ok([flight, hotel, car])
}

/// One step: it books at a gateway, and its undo cancels there.
async fn booked(name: &'static str, gateway: SocketAddr, trip: &Trip) -> Result<String, BookError> {
    let stops_at = trip.stops_at.clone();
    let booking = step(name, async |s| {
        let reference = gateway::book(gateway, &trip.id, &s.key()).await?;
        // The booking stands at the gateway, and is not recorded here.
        stop(trip.stops_at.as_deref(), name).await;
        Ok(reference)
    });
    booking
        .argument("trip", &trip.id)
        // The gateway's refusal is final: nothing is booked there, and nothing is to be cancelled.
        .on_error(ErrorVerdict::verdict)
        .undo(move |undo: Undo<String>| {
            let stops_at = stops_at.clone();
            async move {
                gateway::cancel(gateway, &undo.step_key()).await?;
                stop(stops_at.as_deref(), &format!("undo {name}")).await;
                Ok::<_, BoxError>(())
            }
        })
        .await
}

/// The same without the library: a process that finds the call half-way begins anew.
pub(super) async fn book_unprotected(gateways: Gateways, trip: &Trip) -> Result<(), BookError> {
    for (name, gateway) in super::plan::GATEWAYS.into_iter().zip(gateways.0) {
        gateway::book(gateway, &trip.id, &random_key()).await?;
        stop(trip.stops_at.as_deref(), name).await;
    }
    Ok(())
}

/// A key that no other attempt has.
fn random_key() -> String {
    let (pid, now) = (std::process::id(), std::time::SystemTime::now());
    let now = now
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    format!("{pid:x}-{:x}", now.as_nanos())
}

/// Says where it is, and waits to be killed.
async fn stop(stops_at: Option<&str>, place: &str) {
    if stops_at == Some(place) {
        println!("{place}");
        std::future::pending::<()>().await;
    }
}

/// Opens the library's store, which is the file of the agency.
pub(super) async fn open(file: &std::path::Path) -> Result<Idempotency, super::Failure> {
    let store = idempotent_runtime::store::SqliteStore::open(file).await?;
    let builder = Idempotency::builder(store).lease(LEASE);
    Ok(builder
        .in_flight(idempotent_runtime::InFlight::Wait(LEASE * 20))
        .build()?)
}
