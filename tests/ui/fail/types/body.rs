use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

#[idempotent(key = order.id)]
async fn another_value(order: Order) -> Result<u64, Error> {
    Ok(order.tenant)
}

#[idempotent(key = order.id)]
async fn nothing(order: Order) -> Result<u64, Error> {
    drop(order);
}

#[idempotent(key = order.id)]
async fn unknown_name(order: Order) -> Result<u64, Error> {
    Ok(order.id + total)
}

#[idempotent(key = id, on_cancel = detach)]
async fn not_send_in_a_task(id: u64) -> Result<u64, Error> {
    let shared = std::rc::Rc::new(id);
    tokio::task::yield_now().await;
    Ok(*shared)
}

fn main() {}
