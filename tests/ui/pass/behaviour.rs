//! What the expansion does when it runs: each shape replays, and keeps calls apart.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use idempotent_runtime::{Error, Idempotency, MemoryStore, Reconciled, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
pub struct Order {
    id: u64,
    amount: u64,
}

pub struct Shop {
    tenant: String,
    runs: AtomicU32,
}

pub struct Wrapped<T>(T);

impl Shop {
    #[idempotent(name = "shop.method", key = order.id, scope = self.tenant)]
    async fn method(&self, order: &Order) -> Result<u32, Error> {
        Ok(self.runs.fetch_add(1, SeqCst))
    }

    #[idempotent(name = "shop.detached", key = (&self.tenant, order.id), on_cancel = detach)]
    async fn detached(self: Arc<Self>, order: Order) -> Result<u32, Error> {
        tokio::task::yield_now().await;
        Ok(self.runs.fetch_add(1, SeqCst))
    }
}

#[async_trait::async_trait]
trait Pay {
    async fn pay(&self, wrapped: Wrapped<Order>) -> Result<u32, Error>;
}

#[async_trait::async_trait]
impl Pay for Shop {
    #[tracing::instrument(skip_all)]
    #[idempotent(name = "shop.pay", key = (&self.tenant, order.id))]
    async fn pay(&self, Wrapped(order): Wrapped<Order>) -> Result<u32, Error> {
        if order.amount == 0 {
            return Ok(0);
        }
        Ok(self.runs.fetch_add(1, SeqCst))
    }
}

#[idempotent(key = "{order.id}", skip(runs), on_crash = reconcile(never_asked))]
async fn template(order: Order, runs: &AtomicU32) -> Result<u32, Error> {
    Ok(runs.fetch_add(1, SeqCst))
}

#[idempotent(key = id, skip(runs), on_crash = reconcile(never_asked_either))]
async fn alternatives((Ok(id) | Err(id)): Result<u64, u64>, runs: &AtomicU32) -> Result<u32, Error> {
    Ok(runs.fetch_add(1, SeqCst))
}

async fn never_asked_either(_: &u64, _: &AtomicU32) -> Reconciled<u32, Error> {
    unreachable!("nothing has crashed")
}

async fn never_asked(_: &Order, _: &AtomicU32) -> Reconciled<u32, Error> {
    unreachable!("nothing has crashed")
}

#[idempotent(key_from_arguments, skip(runs))]
async fn arguments(a: u8, b: &str, runs: &AtomicU32) -> Result<u32, Error> {
    Ok(runs.fetch_add(1, SeqCst))
}

#[idempotent(key = lookup(id)?, skip(runs))]
async fn failing_key(id: u64, runs: &AtomicU32) -> Result<u32, KeyError> {
    Ok(runs.fetch_add(1, SeqCst))
}

fn lookup(id: u64) -> Result<u64, KeyError> {
    id.checked_sub(1).ok_or(KeyError("no key".to_owned()))
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyError(String);

impl From<Error> for KeyError {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

#[tokio::main]
async fn main() {
    Idempotency::new(MemoryStore::new()).enter(every_shape()).await;
}

async fn every_shape() {
    let order = Order { id: 1, amount: 5 };
    let other = Order { id: 2, amount: 5 };
    let shop = Arc::new(Shop { tenant: "t".to_owned(), runs: AtomicU32::new(0) });

    assert_eq!(shop.method(&order).await.unwrap(), 0);
    assert_eq!(shop.method(&order).await.unwrap(), 0);
    assert_eq!(shop.method(&other).await.unwrap(), 1);
    let changed = shop.method(&Order { id: 1, amount: 6 }).await;
    assert!(matches!(changed, Err(Error::KeyReused { .. })));

    assert_eq!(shop.clone().detached(order.clone()).await.unwrap(), 2);
    assert_eq!(shop.clone().detached(order.clone()).await.unwrap(), 2);

    assert_eq!(shop.pay(Wrapped(order.clone())).await.unwrap(), 3);
    assert_eq!(shop.pay(Wrapped(order.clone())).await.unwrap(), 3);

    let runs = AtomicU32::new(0);
    assert_eq!(template(order.clone(), &runs).await.unwrap(), 0);
    assert_eq!(template(order.clone(), &runs).await.unwrap(), 0);
    assert_eq!(arguments(1, "x", &runs).await.unwrap(), 1);
    assert_eq!(arguments(1, "x", &runs).await.unwrap(), 1);
    assert_eq!(arguments(1, "y", &runs).await.unwrap(), 2);
    assert_eq!(alternatives(Ok(1), &runs).await.unwrap(), 3);
    assert_eq!(alternatives(Err(1), &runs).await.unwrap(), 3);
    assert_eq!(failing_key(0, &runs).await.unwrap_err(), KeyError("no key".to_owned()));
    assert_eq!(failing_key(1, &runs).await.unwrap(), 4);
    assert_eq!(failing_key(1, &runs).await.unwrap(), 4);
}
