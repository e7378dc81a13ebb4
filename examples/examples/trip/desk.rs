//! The desk: a process that books one trip, and may be killed at any moment.

use std::{io::stdin, net::SocketAddr, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{
    Failure,
    agency::{self, BookError, Gateways, Trip},
};

/// The name of this process on its command line.
pub(super) const ROLE: &str = "--desk";

/// One trip, as it comes by standard input.
#[derive(Serialize, Deserialize)]
pub(super) struct Work {
    pub(super) file: PathBuf,
    pub(super) gateways: [SocketAddr; 3],
    pub(super) protected: bool,
    pub(super) trip: String,
    pub(super) stops_at: Option<String>,
    /// Whether an operator has looked into what could not be undone.
    pub(super) resumes: bool,
}

/// Books it, and says how that ended.
#[tokio::main]
pub(super) async fn run() -> Result<(), Failure> {
    let work: Work = serde_json::from_reader(stdin().lock())?;
    let gateways = Gateways(work.gateways);
    let trip = Trip {
        id: work.trip,
        stops_at: work.stops_at,
    };
    if !work.protected {
        let ended = agency::book_unprotected(gateways, &trip).await;
        println!(
            "{}",
            ended.map_or_else(|error| error.to_string(), |()| "booked".to_owned())
        );
        return Ok(());
    }
    let idem = agency::open(&work.file).await?;
    if work.resumes {
        idem.settle("trips.book", None::<&str>, &trip.id)?
            .resume()
            .await?;
    }
    let booked = idem.enter(agency::book(gateways, &trip)).await;
    println!(
        "{}",
        match booked {
            Ok(_) => "booked".to_owned(),
            Err(BookError::Idempotency(idempotent_runtime::Error::NotUndone { left, .. })) => {
                format!("not undone: {}", left.join(", "))
            }
            Err(error) => error.to_string(),
        }
    );
    Ok(())
}
