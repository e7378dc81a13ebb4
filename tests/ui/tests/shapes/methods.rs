//! Methods, traits, and the macros that are usually there with them.

use std::sync::Arc;

use idempotent_runtime::{Error, Verdict, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub struct Order {
    id: u64,
}

pub struct Wrapped<T>(T);

pub struct Shop {
    tenant: String,
    count: u64,
}

impl Shop {
    #[idempotent(name = "shop.by_reference", key = order.id, scope = self.tenant)]
    pub async fn by_reference(&self, order: &Order) -> Result<u64, Error> {
        Ok(order.id + self.count)
    }

    #[idempotent(name = "shop.by_mutable_reference", key = order.id)]
    pub async fn by_mutable_reference(&mut self, order: Order) -> Result<u64, Error> {
        self.count += 1;
        Ok(order.id + self.count)
    }

    #[idempotent(name = "shop.by_value", key = self.tenant)]
    pub async fn by_value(self) -> Result<String, Error> {
        Ok(self.tenant)
    }

    #[idempotent(name = "shop.by_arc", key = (&self.tenant, order.id), on_cancel = detach)]
    pub async fn by_arc(self: Arc<Self>, order: Order) -> Result<u64, Error> {
        Ok(order.id + self.count)
    }

    #[idempotent(name = "shop.associated", key = order.id, skip(shop))]
    pub async fn associated(shop: &Self, order: Order) -> Result<u64, Error> {
        Ok(order.id + shop.count)
    }

    #[idempotent(key = order.id)]
    pub async fn without_self(order: Order) -> Result<u64, Error> {
        Ok(order.id)
    }

    #[idempotent(name = "shop.asks_itself", key = order.id, on_crash = reconcile(Self::ask))]
    pub async fn asks_itself(&self, order: Order) -> Result<u64, Error> {
        Ok(order.id)
    }

    fn verdict(&self) -> Verdict {
        Verdict::Uncertain
    }

    async fn load(&self, id: u64) -> Result<u64, Error> {
        Ok(id + self.count)
    }

    async fn ask(&self, order: &Order) -> idempotent_runtime::Reconciled<u64, Error> {
        idempotent_runtime::Reconciled::Happened(order.id + self.count)
    }
}

pub trait Pay {
    fn price(&self) -> u64;

    #[idempotent(name = "pay.provided", key = order.id)]
    #[allow(async_fn_in_trait)]
    async fn provided(&self, order: Order) -> Result<u64, Error> {
        Ok(order.id + self.price())
    }

    #[allow(async_fn_in_trait)]
    async fn required(&self, order: Order) -> Result<u64, Error>;
}

impl Pay for Shop {
    fn price(&self) -> u64 {
        self.count
    }

    #[idempotent(name = "pay.required", key = order.id)]
    async fn required(&self, order: Order) -> Result<u64, Error> {
        Ok(order.id + self.price())
    }
}

fn number_of(order: &Order) -> u64 {
    order.id
}

fn verdict(_: &Error) -> Verdict {
    Verdict::Uncertain
}

#[async_trait::async_trait]
pub trait Boxed {
    fn fee(&self) -> u64;

    #[idempotent(name = "boxed.provided", key = order.id)]
    async fn provided(&self, order: Order) -> Result<u64, Error>
    where
        Self: Sync,
    {
        Ok(order.id + self.fee())
    }

    async fn required(&self, order: &Order, note: &str) -> Result<u64, Error>;
    async fn unpacked(&self, wrapped: Wrapped<Order>, pair: (u8, u8)) -> Result<u64, Error>;
    async fn counted(&mut self, mut list: Vec<u64>) -> Result<u64, Error>;
    async fn shared(self: Arc<Self>, order: Order) -> Result<u64, Error>;
    async fn asked(&self, order: Order) -> Result<u64, Error>;
    async fn judged(self: Arc<Self>, order: Order) -> Result<u64, Error>;
    async fn referred(self: Arc<Self>, order: Order) -> Result<u64, Error>;
    async fn asked_of_all(self: Arc<Self>, order: Order) -> Result<u64, Error>;
    async fn seen(&self, order: Order) -> Result<u64, Error>;
    async fn by_functions_of_the_module(&self, order: Order) -> Result<u64, Error>;
    async fn runs_on(self: Arc<Self>, id: u64, note: impl Serialize + Send + 'static) -> Result<u64, Error>;
    async fn free(order: Order) -> Result<u64, Error>;
    async fn free_unpacked(wrapped: Wrapped<Order>, digit: u8) -> Result<u64, Error>;
}

#[async_trait::async_trait]
impl Boxed for Shop {
    fn fee(&self) -> u64 {
        self.count
    }

    #[idempotent(name = "boxed.required", key = (&self.tenant, order.id), scope = self.tenant)]
    async fn required(&self, order: &Order, note: &str) -> Result<u64, Error> {
        if note.is_empty() {
            return Ok(0);
        }
        Ok(order.id + self.fee())
    }

    #[idempotent(name = "boxed.unpacked", key = (order.id, left))]
    async fn unpacked(&self, Wrapped(order): Wrapped<Order>, (left, right): (u8, u8)) -> Result<u64, Error> {
        Ok(order.id + u64::from(left) + u64::from(right))
    }

    #[idempotent(name = "boxed.counted", key = list.len())]
    async fn counted(&mut self, mut list: Vec<u64>) -> Result<u64, Error> {
        self.count += 1;
        list.push(self.count);
        Ok(list[0])
    }

    #[idempotent(name = "boxed.shared", key = (&self.tenant, order.id))]
    async fn shared(self: Arc<Self>, order: Order) -> Result<u64, Error> {
        Ok(order.id + self.count)
    }

    #[idempotent(name = "boxed.asked", key = order.id, on_crash = reconcile(Self::ask))]
    async fn asked(&self, order: Order) -> Result<u64, Error> {
        Ok(order.id + self.count)
    }

    #[idempotent(name = "boxed.judged", key = order.id, on_error = |_: &Error| self.verdict())]
    async fn judged(self: Arc<Self>, order: Order) -> Result<u64, Error> {
        Ok(order.id)
    }

    #[idempotent(
        name = "boxed.referred",
        key = order.id,
        outcome = reference(|found: &u64| *found - self.count, |id| self.load(id))
    )]
    async fn referred(self: Arc<Self>, order: Order) -> Result<u64, Error> {
        Ok(order.id)
    }

    #[idempotent(name = "boxed.asked_of_all", key = order.id, on_crash = reconcile(Self::ask))]
    async fn asked_of_all(self: Arc<Self>, order: Order) -> Result<u64, Error> {
        Ok(order.id + self.count)
    }

    #[idempotent(
        name = "boxed.by_functions_of_the_module",
        key = (self::number_of(&order), "{self.tenant}/{self::number_of(&order)}"),
        on_error = self::verdict
    )]
    async fn by_functions_of_the_module(&self, order: Order) -> Result<u64, Error> {
        Ok(order.id)
    }

    #[tracing::instrument(skip_all)]
    #[idempotent(name = "boxed.seen", key = order.id)]
    async fn seen(&self, order: Order) -> Result<u64, Error> {
        Ok(order.id + self.count)
    }

    #[idempotent(name = "boxed.runs_on", key = id, on_cancel = detach)]
    async fn runs_on(self: Arc<Self>, id: u64, note: impl Serialize + Send + 'static) -> Result<u64, Error> {
        drop(note);
        Ok(id)
    }

    #[idempotent(name = "boxed.free", key = order.id)]
    async fn free(order: Order) -> Result<u64, Error> {
        Ok(order.id)
    }

    #[idempotent(name = "boxed.free_unpacked", key = order.id)]
    async fn free_unpacked(Wrapped(order): Wrapped<Order>, digit @ 0..=255: u8) -> Result<u64, Error> {
        Ok(order.id + u64::from(digit))
    }
}
