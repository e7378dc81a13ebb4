use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

#[idempotent(key = order.id, skip(gateway))]
async fn not_bound(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = id, skip(gatway))]
async fn misspelt(gateway: &Order, id: u64) -> Result<u64, Error> {
    Ok(id + gateway.id)
}

#[idempotent(key = id, skip(gateway, gateway))]
async fn twice(gateway: &Order, id: u64) -> Result<u64, Error> {
    Ok(id + gateway.id)
}

#[idempotent(key = order.id, skip())]
async fn nothing(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, skip(State(order), order.tenant))]
async fn pattern(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

impl Order {
    #[idempotent(name = "order.receiver", key = self.id, skip(self))]
    async fn receiver(&self) -> Result<u64, Error> {
        Ok(self.id)
    }
}

#[idempotent(key = order.id, skip(order), fingerprint = order.id)]
async fn with_fingerprint(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

fn main() {}
