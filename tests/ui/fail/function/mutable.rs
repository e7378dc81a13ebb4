use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

#[idempotent(key = order.id)]
async fn neither(order: Order, conn: &mut Vec<u8>) -> Result<u64, Error> {
    conn.clear();
    Ok(order.id)
}

#[idempotent(key = order.id, skip(other))]
async fn wrong_skip(order: Order, other: u8, conn: &mut Vec<u8>) -> Result<u64, Error> {
    conn.push(other);
    Ok(order.id)
}

fn main() {}
