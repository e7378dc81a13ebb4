use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

#[idempotent(key = order.id, on_cancel = detach)]
async fn borrowed(order: &Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = id, on_cancel = detach)]
async fn borrowed_inside(id: u64, note: Option<&str>) -> Result<u64, Error> {
    drop(note);
    Ok(id)
}

#[idempotent(key = id, on_cancel = detach)]
async fn lifetime<'a>(id: u64, note: std::borrow::Cow<'a, str>) -> Result<u64, Error> {
    drop(note);
    Ok(id)
}

impl Order {
    #[idempotent(name = "order.receiver", key = self.id, on_cancel = detach)]
    async fn receiver(&self) -> Result<u64, Error> {
        Ok(self.id)
    }
}

fn main() {}
