use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    amount: u64,
}

#[idempotent(key = order.id, fingerprint = "{order.amount}")]
async fn template(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, fingerprint = "order.amount")]
async fn expression_in_quotes(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, fingerprint = (1, ("amount", &"v1")))]
async fn constant(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, fingerprint = (order.id, "{order.amount}", "order.amount"))]
async fn text_beside_an_expression(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

fn main() {}
