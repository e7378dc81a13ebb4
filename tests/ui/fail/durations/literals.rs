use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

#[idempotent(key = order.id, ttl = 24)]
async fn number(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, ttl = 24h)]
async fn number_with_unit(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, lease = true)]
async fn boolean(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, ttl = ("24x"), lease = (30), in_flight = wait((10)))]
async fn in_parentheses(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, ttl = "30s", lease = "30s")]
async fn lease_as_long_as_ttl(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, ttl = "1m", lease = "1h")]
async fn lease_longer_than_ttl(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

fn main() {}
