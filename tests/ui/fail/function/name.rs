use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

impl Order {
    #[idempotent(key = self.id)]
    async fn receiver(&self) -> Result<u64, Error> {
        Ok(self.id)
    }

    #[idempotent(key = order.id)]
    async fn self_type(order: Self) -> Result<u64, Error> {
        Ok(order.id)
    }

    #[idempotent(key = id)]
    async fn self_type_in_the_body(id: u64) -> Result<u64, Error> {
        Ok(Self { id, tenant: String::new() }.id)
    }
}

trait Shop {
    #[idempotent(key = order.id)]
    async fn pay(&self, order: Order) -> Result<u64, Error> {
        Ok(order.id)
    }
}

fn main() {}
