use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

#[idempotent(key = order.id, ttl = 5 + 6)]
async fn not_a_duration(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, lease = order.id)]
async fn not_a_duration_either(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, in_flight = wait(order.id))]
async fn wait_for_a_number(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

fn main() {}
