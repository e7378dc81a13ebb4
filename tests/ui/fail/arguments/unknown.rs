use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

#[idempotent(key = order.id, tll = "24h")]
async fn misspelt(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, timeout = "5s")]
async fn not_known(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(kee = order.id, ttl = "24x", on_crash = retry, skip(app), lease = "0s")]
async fn many_at_once(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

fn main() {}
