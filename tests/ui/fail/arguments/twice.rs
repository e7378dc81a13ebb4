use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

#[idempotent(key = order.id, key = order.tenant)]
async fn key_twice(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, ttl = "24h", lease = "30s", ttl = "1h")]
async fn ttl_twice(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key_from_arguments, key_from_arguments)]
async fn flag_twice(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

fn main() {}
