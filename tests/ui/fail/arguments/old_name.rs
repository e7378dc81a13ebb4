use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
}

#[idempotent(key = (order.id, "v2"), also_accept = "order.id")]
async fn old_key_without_braces(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = "{cart}:{seq}", also_accept = "cart")]
async fn old_key_of_one_argument(cart: u64, seq: u64) -> Result<u64, Error> {
    Ok(cart + seq)
}

#[idempotent(key = order.id, also_accept = format!("orders"))]
async fn no_constant(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

fn main() {}
