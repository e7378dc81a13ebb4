//! All that the programs need of a broker.

use std::{future::Future, time::Duration};

use idempotent_runtime::consumer::Disposition;

use crate::Failure;

/// A connection to a broker, with one queue and the queue of its dead letters.
pub trait Broker: Sized + Send + Sync + 'static {
    const NAME: &'static str;
    /// The environment variable with the address of a broker that runs.
    const VARIABLE: &'static str;
    /// The server, and the Debian package that it comes with.
    const PROGRAM: &'static str;
    /// For how long the broker waits for an acknowledgement. A broker that waits for as long as the
    /// connection lives has none.
    const ACK_WAIT: Option<Duration>;

    type Delivery: Delivery;

    /// Connects, and makes the queues where they are not there.
    fn connect(url: &str, queue: &str) -> impl Future<Output = Result<Self, Failure>> + Send;

    /// Connects so that a message is delivered only after the one before it is settled, whatever
    /// becomes of consumers. Make a queue in this way or in the other one.
    fn connect_in_order(
        url: &str,
        queue: &str,
    ) -> impl Future<Output = Result<Self, Failure>> + Send;

    /// Sends a message, and waits until the broker has it.
    fn publish(&self, id: &str, body: &[u8]) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Waits for the next delivery. After an error, connect anew.
    fn next(&mut self) -> impl Future<Output = Result<Self::Delivery, Failure>> + Send;

    /// The dead letters so far.
    fn dead_letters(&self) -> impl Future<Output = Result<Vec<DeadLetter>, Failure>> + Send;

    /// Whether every message is settled. Ask when no consumer is connected.
    fn is_drained(&self) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// Removes the queues.
    fn delete(&self) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// One delivery of a message.
pub trait Delivery: Send + Sync + 'static {
    /// The id that its producer gave it, the same one at each delivery; empty where there is none.
    fn id(&self) -> &str;

    fn body(&self) -> &[u8];

    /// How often it was delivered, with this time.
    fn count(&self) -> u32;

    /// Has the broker wait for as long again.
    fn extend(&self) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Does with the message as its disposition says.
    fn settle(self, disposition: Disposition) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// A message that was put aside, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeadLetter {
    pub id: String,
    pub reason: String,
}
