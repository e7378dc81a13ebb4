use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

#[idempotent]
async fn no_arguments_at_all(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(scope = order.tenant)]
async fn only_a_scope(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent()]
async fn no_argument_to_take() -> Result<u64, Error> {
    Ok(1)
}

#[idempotent(key = order.id, key_from_arguments)]
async fn both(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key_from_arguments, skip(order))]
async fn nothing_left(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key_from_arguments, fingerprint = order.id)]
async fn with_a_fingerprint(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key_from_arguments, on_missing_key = run)]
async fn never_missing(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

fn main() {}
