use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

#[idempotent(key = order.id, outcome = whole)]
async fn no_reference(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, outcome = reference(save))]
async fn one_function(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, upgrade = read_old)]
async fn upgrade_without_version(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, version = 2, upgrade = read_old, outcome = reference(save, load))]
async fn upgrade_of_a_reference(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, version = "2")]
async fn version_of_text(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, version = 4294967296)]
async fn version_too_large(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

fn main() {}
