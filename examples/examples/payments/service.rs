//! The payment service: the process that holds the lease, and that is killed.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use idempotent_runtime::{
    Error, ErrorVerdict, Idempotency, Observer, OnCrash, RecordEvent, current, idempotent,
    store::SqliteStore,
};
use serde::{Deserialize, Serialize};

use crate::{
    Failure,
    choices::{ChildKey, Choices, Crash},
    gateway::Gateway,
    process,
    wire::{self, Charge, Receipt, Refusal, Request},
};

/// Charges an order, once: whatever happens to this process, the gateway sees one key.
#[idempotent(name = "payments.charge", key = req.order, scope = req.merchant, ttl = "24h", on_error = ErrorVerdict::verdict, skip(gateway))]
async fn charge(gateway: &Gateway, req: &Charge) -> Result<Receipt, PayError> {
    gateway
        .charge(req, current().child_key("gateway.charge"))
        .await
}

/// The gateway's decision is the outcome. If it did not answer, a retry may ask it again, because
/// it knows the key. For a gateway that knows no keys, `uncertain` would be the truth.
#[derive(Debug, Serialize, Deserialize, ErrorVerdict, thiserror::Error)]
pub(crate) enum PayError {
    #[verdict(replay)]
    #[error("the gateway declined the charge")]
    Declined,
    #[verdict(release)]
    #[error("the gateway did not answer: {0}")]
    Unreachable(String),
    #[verdict(replay)] // an error of the library is never recorded: `on_crash` decides
    #[error(transparent)]
    Idempotency(#[from] Error),
}

/// The first argument of the process that runs [`run`].
pub(crate) const ROLE: &str = "service";

/// How long a holder may be silent: short, so that no caller waits long for the takeover.
pub(crate) const LEASE: &str = "1s";

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) database: PathBuf,
    pub(crate) gateway: SocketAddr,
    pub(crate) choices: Choices,
}

/// Serves until the client goes away, or kills it.
pub(crate) async fn run(settings: Settings) -> Result<(), Failure> {
    process::end_with_parent();
    let idempotency = Idempotency::builder(SqliteStore::open(&settings.database).await?)
        .lease(LEASE)
        .on_crash(match settings.choices.on_crash {
            Crash::Rerun => OnCrash::Rerun,
            Crash::Uncertain => OnCrash::Uncertain,
        })
        .observer(TellClient)
        .build()?;
    idempotency.install()?;
    let gateway = Arc::new(Gateway {
        address: settings.gateway,
        forwards_key: settings.choices.child_key == ChildKey::Forwarded,
    });

    // A client that hangs up does not stop its request: each is answered in a task of its own.
    wire::serve(move |request| {
        let (gateway, idempotency) = (Arc::clone(&gateway), idempotency.clone());
        async move {
            match request {
                Request::Charge(req) => charge(&gateway, &req).await.map_err(Refusal::from),
                Request::Settle(req, receipt) => settle(&idempotency, &req, receipt).await,
            }
        }
    })
    .await
}

/// An operator has looked at the gateway's log: the charge happened, with this receipt.
async fn settle(
    idempotency: &Idempotency,
    req: &Charge,
    receipt: Receipt,
) -> Result<Receipt, Refusal> {
    let settled = async {
        idempotency
            .settle("payments.charge", Some(&req.merchant), &req.order)?
            .with_value(&receipt)
            .await
    };
    match settled.await {
        Ok(()) => Ok(receipt),
        Err(error) => Err(Refusal::new("NotSettled", error)),
    }
}

/// Tells the client's process what becomes of the record, so that it can act at an exact moment.
struct TellClient;

impl Observer for TellClient {
    fn transition(&self, transition: &RecordEvent<'_>) {
        println!("{:?}", transition.change);
    }
}

impl From<PayError> for Refusal {
    fn from(error: PayError) -> Self {
        let code = match &error {
            PayError::Declined => "Declined",
            PayError::Unreachable(_) => "Unreachable",
            PayError::Idempotency(Error::KeyReused { .. }) => "KeyReused",
            PayError::Idempotency(Error::Uncertain { .. }) => "Uncertain",
            PayError::Idempotency(Error::InProgress { .. }) => "InProgress",
            PayError::Idempotency(_) => "NoAnswer",
        };
        Self::new(code, error)
    }
}
