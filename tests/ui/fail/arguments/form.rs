use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

#[idempotent(key)]
async fn no_value(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, ttl = )]
async fn empty_value(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key(order.id))]
async fn called(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.tenant, skip = order)]
async fn assigned_skip(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key_from_arguments = true)]
async fn flag_with_value(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id scope = order.tenant)]
async fn no_comma(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id,, scope = order.tenant)]
async fn two_commas(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent("payments.charge", key = order.id)]
async fn literal_as_name(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order., scope = order.tenant)]
async fn half_expression(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, crate = "idempotent_runtime")]
async fn quoted_crate(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, name = charge)]
async fn name_without_quotes(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, name = "")]
async fn empty_name(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, also_accept = " ")]
async fn blank_also_accept(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

fn main() {}
