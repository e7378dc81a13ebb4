use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

#[idempotent(key = uuid::Uuid::new_v4())]
async fn fresh(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = "order")]
async fn constant(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = "order.id")]
async fn expression_in_quotes(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = "it's")]
async fn text_of_others(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = ORDER.id)]
async fn other_name(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = config.order)]
async fn field_of_the_same_name(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = format!("{}-{}", "order", 1))]
async fn in_a_format(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = (order.id, rand::random::<u64>()))]
async fn call_in_a_tuple(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = format!("{}-{}", order.id, std::process::id()))]
async fn call_in_a_format(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = "{order.id}-{now()}")]
async fn call_in_a_template(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = (order.id, now(), (order.tenant, clock.now())))]
async fn two_calls(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = "{config.id}:{TENANT}")]
async fn template_of_others(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = stringify!(order))]
async fn name_of_an_argument(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = concat!("{order.id}", "-v1"))]
async fn template_in_a_constant(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = client_key.unwrap_or_else(uuid::Uuid::new_v4))]
async fn function_that_is_not_called_here(client_key: Option<u128>) -> Result<u64, Error> {
    Ok(client_key.map_or(0, |_| 1))
}

fn main() {}
