//! Annotated functions beside a crate called `core`, under lints that nothing may switch off.

#![deny(warnings, clippy::implicit_return)]
#![allow(
    clippy::needless_return,
    reason = "`implicit_return` asks for the opposite"
)]
#![forbid(
    deprecated,
    clippy::large_futures,
    clippy::used_underscore_binding,
    clippy::used_underscore_items
)]
#![expect(
    non_upper_case_globals,
    reason = "the names are those of the expansion's own variables"
)]

extern crate core as _;

use std::sync::Arc;

use idempotent_runtime::{Error, KeyPart, Reconciled, idempotent};
use serde::{Deserialize, Serialize};

/// Names that the expansion may not take for patterns.
pub const __ret: u8 = 1;
/// As above.
pub const __call: u8 = 2;
/// As above.
pub const __body: u8 = 3;
/// As above.
pub const __answer: u8 = 4;

/// An order's number.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, KeyPart)]
pub struct OrderId(u64);

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
    amount: u64,
}

/// A gateway.
#[derive(Debug)]
pub struct Gateway;

impl Gateway {
    async fn charge(&self, amount: u64) -> Result<u64, Error> {
        return Ok(amount);
    }

    /// Charges once.
    ///
    /// # Errors
    ///
    /// When the gateway declines.
    #[idempotent(name = "gateway.pay", key = order.id, on_crash = reconcile(Self::ask))]
    pub async fn pay(&self, order: &Order, _note: &str) -> Result<u64, Error> {
        return self.charge(order.amount).await;
    }

    async fn ask(&self, order: &Order, _reason: &str) -> Reconciled<u64, Error> {
        return Reconciled::Happened(order.amount);
    }
}

/// Charges once.
///
/// # Errors
///
/// When the gateway declines.
#[idempotent(key = (order.id, channel), ttl = "24h", skip(gateway))]
pub async fn charge(gateway: &Gateway, order: Order, channel: Channel) -> Result<u64, Error> {
    if order.amount == 0 {
        return Ok(0);
    }
    let charged = gateway.charge(order.amount).await?;
    return Ok(charged);
}

/// Charges once, and runs on when its caller goes; its future is large.
///
/// # Errors
///
/// When the gateway declines.
#[idempotent(key = "{order.id}", on_cancel = detach, on_error = release, skip(gateway))]
pub async fn detached(gateway: Arc<Gateway>, order: Order) -> Result<u64, Error> {
    let before = [order.amount; 4_096];
    let charged = gateway.charge(order.amount).await?;
    return Ok(charged + before[0]);
}

/// Reads a value back through a reference.
///
/// # Errors
///
/// When it is not found.
#[idempotent(key = order.id, outcome = reference(|amount: &u64| return *amount, find))]
pub async fn by_reference(order: Order) -> Result<u64, Error> {
    return Ok(order.amount);
}

async fn find(amount: u64) -> Result<u64, Error> {
    return Ok(amount);
}
