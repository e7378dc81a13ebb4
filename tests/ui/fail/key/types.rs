use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

#[idempotent(key = rate)]
async fn a_float(rate: f64) -> Result<f64, Error> {
    Ok(rate)
}

#[idempotent(key = at, skip(at))]
async fn an_instant(at: std::time::Instant) -> Result<u64, Error> {
    Ok(at.elapsed().as_secs())
}

#[idempotent(key = (1, &map))]
async fn a_map(map: std::collections::HashMap<u8, u8>) -> Result<usize, Error> {
    Ok(map.len())
}

#[idempotent(key = (order.id, (1, rate), "{rate}"))]
async fn parts_of_a_tuple(order: Order, rate: f64) -> Result<f64, Error> {
    drop(order);
    Ok(rate)
}

#[idempotent(key = "{order}")]
async fn a_struct(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, scope = order)]
async fn a_scope(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.number)]
async fn no_such_field(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

fn main() {}
