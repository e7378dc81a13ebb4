use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

#[idempotent(key = order.id, ttl = "24")]
async fn no_unit(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, ttl = "24hours")]
async fn unknown_unit(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, ttl = "one day")]
async fn words(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, ttl = "")]
async fn empty(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, ttl = "0h")]
async fn zero(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, ttl = "99999999999999w")]
async fn too_long(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, ttl = "30m1h")]
async fn out_of_order(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, ttl = "1.5h")]
async fn fraction(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, lease = "-5s")]
async fn negative(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, in_flight = wait("10"))]
async fn wait(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

fn main() {}
