use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

struct Pool;

#[derive(Debug, Serialize, Deserialize)]
struct NoRefusal;

#[derive(Debug)]
struct NotStorable;

impl From<Error> for NotStorable {
    fn from(_: Error) -> Self {
        Self
    }
}

type Answer<T> = Result<T, NotStorable>;

#[idempotent(key = order.id)]
async fn not_skipped(pool: &Pool, order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id)]
async fn not_skipped_of_a_pattern((pool, order): (Pool, Order)) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id)]
async fn of_any_type<T>(note: T, order: Order) -> Result<u64, Error> {
    drop(note);
    Ok(order.id)
}

#[idempotent(key = order.id, fingerprint = pool)]
async fn not_a_fingerprint(pool: Pool, order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, handle = store, skip(store))]
async fn a_bare_store(store: &idempotent_runtime::MemoryStore, order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

fn main() {}
