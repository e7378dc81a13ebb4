use std::pin::Pin;

use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

#[idempotent(key = order.id)]
fn not_async(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id)]
fn a_future(order: Order) -> impl Future<Output = Result<u64, Error>> {
    async move { Ok(order.id) }
}

#[idempotent(key = order.id)]
fn boxed_by_an_attribute_above<'a>(order: &'a Order) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + 'a>> {
    Box::pin(async move { Ok(order.id) })
}

#[idempotent(key = id)]
struct OnAStruct {
    id: u64,
}

#[idempotent(key = id)]
impl Order {}

trait Shop {
    #[idempotent(name = "shop.pay", key = order.id)]
    async fn pay(&self, order: Order) -> Result<u64, Error>;
}

fn main() {}
