use std::sync::Arc;

use idempotent_runtime::{Error, idempotent};

struct Shop;

#[async_trait::async_trait]
trait Pay {
    #[idempotent(name = "pay.required", key = id)]
    async fn required(&self, id: u64) -> Result<u64, Error>;

    async fn unnamed(&self, id: u64) -> Result<u64, Error>;
    async fn detached(&self, id: u64, note: &str) -> Result<u64, Error>;
    async fn mutable(self: Arc<Self>, id: u64, list: &mut Vec<u64>) -> Result<u64, Error>;
    async fn constant(&self, (id, line): (u64, u64)) -> Result<u64, Error>;
    fn at_once(&self, id: u64) -> Result<u64, Error>;
}

#[async_trait::async_trait]
impl Pay for Shop {
    async fn required(&self, id: u64) -> Result<u64, Error> {
        Ok(id)
    }

    #[idempotent(key = id)]
    async fn unnamed(&self, id: u64) -> Result<u64, Error> {
        Ok(id)
    }

    #[idempotent(name = "pay.detached", key = id, on_cancel = detach)]
    async fn detached(&self, id: u64, note: &str) -> Result<u64, Error> {
        Ok(id + note.len() as u64)
    }

    #[idempotent(name = "pay.mutable", key = id)]
    async fn mutable(self: Arc<Self>, id: u64, list: &mut Vec<u64>) -> Result<u64, Error> {
        list.push(id);
        Ok(id)
    }

    #[idempotent(name = "pay.constant", key = "pay", skip(list))]
    async fn constant(&self, (id, line): (u64, u64)) -> Result<u64, Error> {
        Ok(id + line)
    }

    #[idempotent(name = "pay.at_once", key = id)]
    fn at_once(&self, id: u64) -> Result<u64, Error> {
        Ok(id)
    }
}

fn main() {}
