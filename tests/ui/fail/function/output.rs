use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

#[idempotent(key = order.id)]
async fn nothing(order: Order) {
    drop(order);
}

#[idempotent(key = order.id)]
async fn opaque(order: Order) -> impl Serialize {
    order.id
}

#[idempotent(key = order.id)]
async fn opaque_inside(order: Order) -> Result<impl Serialize, Error> {
    Ok(order.id)
}

#[idempotent(key = id)]
async fn borrowed<'a>(id: &'a str) -> Result<&'a str, Error> {
    Ok(id)
}

#[idempotent(key = id)]
async fn borrowed_inside(id: u64) -> Result<(u64, Option<Vec<&'static str>>), Error> {
    Ok((id, None))
}

fn main() {}
