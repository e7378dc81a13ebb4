use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

#[idempotent(key = "{order.id")]
async fn not_closed(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = "order.id}")]
async fn not_opened(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = "order-{}")]
async fn empty_braces(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = "{order.id:?}")]
async fn debug_format(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = "{order.id:>8}")]
async fn width(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = "{order id}")]
async fn no_expression(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, scope = "{order.tenant")]
async fn in_the_scope(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, also_accept = "{order.tenant:?}")]
async fn in_the_old_key(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = ("{order.id", "{}"))]
async fn in_a_tuple(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, scope = "order.tenant")]
async fn without_braces_in_the_scope(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, scope = ("order.tenant"))]
async fn in_parentheses(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, scope = &("order.tenant"), also_accept = &"order.id")]
async fn behind_a_reference(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = (order.id, (&"{order.tenant")))]
async fn in_parentheses_in_a_tuple(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

fn main() {}
