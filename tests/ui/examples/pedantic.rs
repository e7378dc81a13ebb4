//! Annotated functions under every lint there is: the expansion must stay silent. `cargo xtask lint`
//! reads it.

#![deny(warnings, clippy::all, clippy::pedantic, clippy::nursery)]
#![deny(
    missing_docs,
    single_use_lifetimes,
    trivial_casts,
    unused_lifetimes,
    unused_qualifications,
    unused_results
)]

use std::sync::Arc;
use std::time::Duration;

use idempotent_runtime::{Error, KeyPart, Reconciled, idempotent};
use serde::{Deserialize, Serialize};

/// A gateway.
#[derive(Debug)]
pub struct Gateway;

impl Gateway {
    async fn charge(&self, amount: u64) -> Result<u64, Error> {
        tokio::task::yield_now().await;
        Ok(amount)
    }
}

/// An order's number.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, KeyPart)]
pub struct OrderId(u64);

/// A line of an order.
#[derive(Debug, Clone, Serialize, Deserialize, KeyPart)]
pub struct Line<T> {
    order: OrderId,
    product: T,
}

/// The id that orders were known by once.
#[derive(Debug, KeyPart)]
#[deprecated]
pub struct OldId(u64);

/// How it came.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, KeyPart)]
pub enum Channel {
    /// By the shop.
    Web,
    /// By telephone.
    Phone,
}

/// An order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    id: OrderId,
    tenant: String,
    amount: u64,
    channel: Channel,
    line: Line<String>,
}

/// Wraps an argument.
#[derive(Debug)]
pub struct State<T>(T);

/// Charges once.
///
/// # Errors
///
/// When the gateway declines.
#[idempotent(name = "payments.charge", key = order.id, scope = order.tenant, ttl = "24h", lease = "30s", skip(gateway))]
pub async fn charge(gateway: &Gateway, order: &Order) -> Result<u64, Error> {
    gateway.charge(order.amount).await
}

/// Takes everything apart.
///
/// # Errors
///
/// When the gateway declines.
#[idempotent(key = (id, channel, (&line, "v1")), skip(gateway), ttl = Duration::from_mins(amount), in_flight = wait("5s"))]
pub async fn patterns(
    State(gateway): State<Arc<Gateway>>,
    Order {
        id,
        tenant,
        amount,
        channel,
        line,
    }: Order,
    _note: &str,
) -> Result<u64, Error> {
    let paid = gateway.charge(amount).await?;
    Ok(paid + id.0 + tenant.len() as u64 + line.product.len() as u64)
}

/// Runs on when the caller goes.
///
/// # Errors
///
/// When the gateway declines.
#[idempotent(key = "{order.id}/{order.line}", on_cancel = detach, on_crash = uncertain, on_outage = open, skip(gateway))]
pub async fn detached(gateway: Arc<Gateway>, order: Order) -> Result<u64, Error> {
    if order.amount == 0 {
        return Ok(0);
    }
    gateway.charge(order.amount).await
}

/// Is generic.
///
/// # Errors
///
/// When the gateway declines.
#[idempotent(key = (part, std::any::type_name::<T>()), on_error = release, version = 2)]
pub async fn generic<T>(part: T) -> Result<T, Error>
where
    T: Serialize + for<'de> Deserialize<'de> + KeyPart + Send + Sync,
{
    tokio::task::yield_now().await;
    Ok(part)
}

async fn ask(order: &Order) -> Reconciled<u64, Error> {
    tokio::task::yield_now().await;
    Reconciled::Happened(order.amount)
}

/// Asks what happened.
///
/// # Errors
///
/// When the gateway declines.
#[idempotent(key = order.id, on_crash = reconcile(ask), fingerprint = (order.amount, &order.tenant))]
pub async fn reconciled(order: Order) -> Result<u64, Error> {
    tokio::task::yield_now().await;
    Ok(order.amount)
}

async fn ask_for_a_reason(order: &Order, _reason: &str) -> Reconciled<u64, Error> {
    tokio::task::yield_now().await;
    Reconciled::Happened(order.amount)
}

/// Asks with all its arguments.
///
/// # Errors
///
/// When the gateway declines.
#[idempotent(key = order.id, on_crash = reconcile(ask_for_a_reason), skip(_reason))]
pub async fn reconciled_without_its_reason(order: Order, _reason: &str) -> Result<u64, Error> {
    tokio::task::yield_now().await;
    Ok(order.amount)
}

async fn ask_at_length(order: &Order) -> Reconciled<u64, Error> {
    let (asked, answered) = ([0_u8; 10_000], [0_u8; 10_000]);
    tokio::task::yield_now().await;
    if asked == answered {
        Reconciled::Happened(order.amount)
    } else {
        Reconciled::Unknown
    }
}

/// Asks by a future that is large.
///
/// # Errors
///
/// When the gateway declines.
#[idempotent(key = order.id, on_crash = reconcile(ask_at_length))]
pub async fn reconciled_at_length(order: Order) -> Result<u64, Error> {
    tokio::task::yield_now().await;
    Ok(order.amount)
}

async fn find(amount: u64) -> Result<u64, Error> {
    tokio::task::yield_now().await;
    Ok(amount)
}

/// Stores a reference.
///
/// # Errors
///
/// When it is not found.
#[idempotent(key = order.id, outcome = reference(|amount: &u64| *amount, find))]
pub async fn by_reference(order: Order) -> Result<u64, Error> {
    find(order.amount).await
}

/// Ends with a unit, from all its arguments.
///
/// # Errors
///
/// Never.
#[idempotent(key_from_arguments, in_flight = reject)]
pub async fn unit(order: Order) -> Result<(), Error> {
    drop(order);
    tokio::task::yield_now().await;
    Ok(())
}

/// Has keys that lints would have something to say about.
///
/// # Errors
///
/// Never.
#[idempotent(
    key = (*id, format!("{note}-{id}"), note.to_owned(), "{id}", &note, (*id + 1,), Some(*id)),
    scope = if *id > 1 { "large" } else { "small" },
    fingerprint = &note
)]
pub async fn odd_keys(id: &u64, note: &str) -> Result<u64, Error> {
    tokio::task::yield_now().await;
    return_early(*id).await
}

/// Says so early.
///
/// # Errors
///
/// Never.
#[idempotent(key = id)]
async fn return_early(id: u64) -> Result<u64, Error> {
    tokio::task::yield_now().await;
    if id == 1 {
        return Ok(0);
    }
    let mut id = id;
    loop {
        id /= 2;
        if id < 2 {
            break Ok(id);
        }
    }
}

/// Panics.
///
/// # Errors
///
/// Never.
///
/// # Panics
///
/// Always.
#[idempotent(key = id)]
pub async fn panics(id: u64) -> Result<u64, Error> {
    tokio::task::yield_now().await;
    panic!("{id}")
}

/// Never ends.
///
/// # Errors
///
/// Never.
#[idempotent(key = id)]
pub async fn never_ends(id: u64) -> Result<u64, Error> {
    const PAUSE: Duration = Duration::from_millis(1);
    loop {
        tokio::time::sleep(PAUSE).await;
    }
}

/// A shop.
#[derive(Debug)]
pub struct Shop {
    tenant: String,
    sold: u64,
}

impl Shop {
    /// Sells once.
    ///
    /// # Errors
    ///
    /// Never.
    #[idempotent(name = "shop.sell", key = (&self.tenant, order.id))]
    pub async fn sell(&mut self, order: Order) -> Result<u64, Error> {
        tokio::task::yield_now().await;
        self.sold += order.amount;
        Ok(self.sold)
    }
}

/// A trait whose futures are boxed.
#[async_trait::async_trait]
pub trait Pay {
    /// Pays once.
    async fn pay(&self, order: Order, pair: (u64, u64)) -> Result<u64, Error>;
}

#[async_trait::async_trait]
impl Pay for Shop {
    #[idempotent(name = "shop.pay", key = (&self.tenant, order.id))]
    async fn pay(&self, order: Order, (left, right): (u64, u64)) -> Result<u64, Error> {
        tokio::task::yield_now().await;
        Ok(order.amount + left + right + self.sold)
    }
}

fn main() {}
