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

fn main() {}
