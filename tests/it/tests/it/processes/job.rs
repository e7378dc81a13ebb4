//! The call that every process makes.

use std::{path::PathBuf, process, sync::Arc, time::Duration};

use idempotent_runtime::{
    Attempt, Error, Idempotency, InFlight, OnCrash, Reconciled,
    record::{FencingToken, Record},
    store::Store,
    testing::Gate,
};
use serde::{Deserialize, Serialize};

use super::{
    log::{Event, Log},
    place::Place,
};

pub(super) const OPERATION: &str = "processes.work";

/// One call: two processes that are given the same make duplicates.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Job {
    /// The folder of the effect logs, and of the database that is a file.
    pub(super) folder: PathBuf,
    /// The place of its records.
    pub(super) place: Place,
    pub(super) key: String,
    pub(super) mode: Mode,
    pub(super) lease: Duration,
}

/// How a call goes on when its holder vanished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Mode {
    Rerun,
    Uncertain,
    /// The reconciling function knows this.
    Reconcile(Knowledge),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Knowledge {
    Unknown,
    RunAgain,
    Happened,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Came {
    Value(String),
    Uncertain,
    LeaseLost,
    /// Another call holds it, for so long at most.
    InProgress(Duration),
    Other(String),
}

/// The points at which a call is held, apart from the store.
#[derive(Clone, Debug, Default)]
pub(super) struct Stops {
    pub(super) in_body: Option<Gate>,
    pub(super) in_ask: Option<Gate>,
    /// The body ends only when it learns that its lease is lost.
    pub(super) until_lost: bool,
}

impl Job {
    pub(super) async fn open(&self) -> Arc<dyn Store> {
        self.place.open(&self.folder).await
    }

    pub(super) fn log(&self) -> Log {
        Log::open(&self.folder, &self.key)
    }

    /// Makes the call.
    pub(super) async fn call(&self, idempotency: &Idempotency, stops: &Stops) -> Came {
        let patience = InFlight::Wait(Duration::from_secs(20));
        self.call_with(idempotency, stops, patience).await
    }

    /// Makes the call, and does not wait for another one.
    pub(super) async fn call_at_once(&self, idempotency: &Idempotency, stops: &Stops) -> Came {
        self.call_with(idempotency, stops, InFlight::Reject).await
    }

    async fn call_with(
        &self,
        idempotency: &Idempotency,
        stops: &Stops,
        in_flight: InFlight,
    ) -> Came {
        let call = idempotency
            .call(OPERATION)
            .key(&self.key)
            .arguments(&self.key)
            .lease(self.lease)
            .ttl(Duration::from_secs(300))
            .in_flight(in_flight);
        let log = self.log();
        let body = |attempt: Attempt| async move {
            let token = attempt.fencing_token().map_or(0, FencingToken::as_u64);
            log.write(attempt.number(), &Event::Began { token });
            hold(stops.in_body.as_ref()).await;
            if stops.until_lost {
                attempt.lost().await;
            }
            log.write(attempt.number(), &Event::Ended { token });
            Ok::<_, Error>(self.value(process::id(), attempt.number()))
        };
        let result = match self.mode {
            Mode::Rerun => call.on_crash(OnCrash::Rerun).run(body).await,
            Mode::Uncertain => call.on_crash(OnCrash::Uncertain).run(body).await,
            Mode::Reconcile(knowledge) => {
                let ask = |attempt: Attempt| async move {
                    self.log().write(attempt.number(), &Event::Asked);
                    hold(stops.in_ask.as_ref()).await;
                    match knowledge {
                        Knowledge::Unknown => Reconciled::Unknown,
                        Knowledge::RunAgain => Reconciled::RunAgain,
                        Knowledge::Happened => Reconciled::Happened(self.known()),
                    }
                };
                call.reconcile(ask, body).await
            }
        };
        Came::from(result)
    }

    /// The value that a body returns.
    pub(super) fn value(&self, process: u32, attempt: u32) -> String {
        format!("{} by process {process}, attempt {attempt}", self.key)
    }

    /// The value that the reconciling function gives when it knows.
    pub(super) fn known(&self) -> String {
        format!("{} happened", self.key)
    }

    /// The record that stands in the store.
    pub(super) async fn record(&self, store: &dyn Store) -> Option<Arc<Record>> {
        let records = store.scan(None, 10_000).await.expect("the store lists");
        let mine = |record: &Record| String::from_utf8_lossy(&record.subject.key) == self.key;
        records
            .into_iter()
            .map(|(_, record)| record)
            .find(|record| mine(record))
    }
}

async fn hold(gate: Option<&Gate>) {
    if let Some(gate) = gate {
        gate.pass().await;
    }
}

impl From<Result<String, Error>> for Came {
    fn from(result: Result<String, Error>) -> Self {
        match result {
            Ok(value) => Came::Value(value),
            Err(Error::Uncertain { .. }) => Came::Uncertain,
            Err(Error::LeaseLost { .. }) => Came::LeaseLost,
            Err(Error::InProgress { retry_after, .. }) => Came::InProgress(retry_after),
            Err(error) => Came::Other(format!("{error:?}")),
        }
    }
}
