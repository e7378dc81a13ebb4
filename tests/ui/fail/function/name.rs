use idempotent_runtime::{Error, Verdict, idempotent};
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

    #[idempotent(name = "inbox:orders", key = self.id)]
    async fn of_a_consumer(&self) -> Result<u64, Error> {
        Ok(self.id)
    }

    #[idempotent(name = "sequence:orders", key = self.id)]
    async fn of_a_sequence(&self) -> Result<u64, Error> {
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

    #[idempotent(key = Self::key_of(id))]
    async fn self_type_in_the_key(id: u64) -> Result<u64, Error> {
        Ok(id)
    }

    #[idempotent(key = "{Self::key_of(id)}/1")]
    async fn self_type_in_a_template(id: u64) -> Result<u64, Error> {
        Ok(id)
    }

    #[idempotent(key = id, on_error = Self::judge)]
    async fn self_type_beside_the_key(id: u64) -> Result<u64, Error> {
        Ok(id)
    }

    fn key_of(id: u64) -> u64 {
        id
    }

    fn judge(_: &Error) -> Verdict {
        Verdict::Uncertain
    }
}

trait Shop {
    #[idempotent(key = order.id)]
    async fn pay(&self, order: Order) -> Result<u64, Error> {
        Ok(order.id)
    }
}

#[idempotent(name = concat!("shop", ".pay"), key = order.id)]
async fn name_of_a_macro(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

fn main() {}
