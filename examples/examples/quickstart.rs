use idempotent_runtime::{Error, ErrorVerdict, Idempotency, current, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
struct Charge {
    order_id: String,
    merchant: String,
    cents: u64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    charge: String,
}

#[derive(Debug, Serialize, Deserialize, ErrorVerdict, thiserror::Error)]
enum PayError {
    #[verdict(replay)] // an answer: every duplicate gets it
    #[error("the card was declined")]
    Declined,
    #[verdict(replay)] // never recorded: `on_crash` says what becomes of the call
    #[error(transparent)]
    Idempotency(#[from] Error),
}

struct Gateway;

impl Gateway {
    async fn charge(&self, req: &Charge, key: String) -> Result<Receipt, PayError> {
        if req.cents == 0 {
            return Err(PayError::Declined);
        }
        println!("charging {} cents for {}", req.cents, req.order_id);
        Ok(Receipt { charge: key })
    }
}

#[idempotent(
    name = "payments.charge",
    key = req.order_id,
    scope = req.merchant,
    ttl = "24h",
    on_error = ErrorVerdict::verdict,
    skip(gateway)
)]
async fn charge(gateway: &Gateway, req: &Charge) -> Result<Receipt, PayError> {
    gateway
        .charge(req, current().child_key("gateway.charge"))
        .await
}

#[tokio::main]
async fn main() -> Result<(), PayError> {
    Idempotency::sqlite("idempotency.db").await?.install()?;

    let req = Charge {
        order_id: "order-42".into(),
        merchant: "merchant-7".into(),
        cents: 1_250,
    };
    println!("first  {:?}", charge(&Gateway, &req).await?);
    println!("again  {:?}", charge(&Gateway, &req).await?);
    Ok(())
}
