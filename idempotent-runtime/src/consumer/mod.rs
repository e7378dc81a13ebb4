//! Consumers of messages: a redelivered message has one effect.
//!
//! A message is a call whose key is its id, within the consumer's name. How the call ended becomes
//! a [`Disposition`]: acknowledge it, let it come again after a time, or put it aside as a dead
//! letter. The record decides, not the broker's flag. A message is never acknowledged before its
//! outcome, or the hold of another delivery, is known to stand.

mod batch;
mod dead_letters;
mod disposition;
mod earlier;
pub(crate) mod failure;
mod hold;
mod message;
mod settings;
#[cfg(feature = "_sql")]
mod transaction;

use std::sync::Arc;

use self::settings::Settings;
#[cfg(feature = "_sql")]
pub use self::transaction::StagedMessage;
pub use self::{
    disposition::{DeadLetterReason, Disposition},
    message::{Delivery, MessageCall, Numbered, Unnumbered},
    settings::{ConsumerBuilder, OnFailure},
};
use crate::{
    handle::Idempotency,
    key::{Key, KeyPart},
};

impl Idempotency {
    /// Begins to set up a consumer of messages. Its name is a part of the identity of each message:
    /// two consumers of one message both run.
    ///
    /// # Examples
    ///
    /// ```
    /// use idempotent_runtime::{Idempotency, consumer::Disposition};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let idem = Idempotency::memory();
    /// let consumer = idem.consumer("billing").ttl("7d").broker_retention("3d").build()?;
    ///
    /// // The broker delivers the same message twice.
    /// for copy in [1, 2] {
    ///     let disposition = consumer
    ///         .message("message-7")
    ///         .payload(&("order-42", 1_200))
    ///         .delivery(copy)
    ///         .run(async |_attempt| Ok::<_, std::io::Error>(println!("invoice sent")))
    ///         .await;
    ///     match disposition {
    ///         Disposition::Ack { replayed } => assert_eq!(replayed, copy == 2),
    ///         Disposition::Retry { after, error } => panic!("again in {after:?}: {error:?}"),
    ///         Disposition::DeadLetter { reason, error } => panic!("{reason}: {error:?}"),
    ///         _ => unreachable!("all that there is today"),
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn consumer(&self, name: &str) -> ConsumerBuilder {
        ConsumerBuilder::new(self, name)
    }
}

/// Tells what to do with each message: acknowledge it, have it delivered again, or put it among the
/// dead letters. Clones are the same consumer.
#[derive(Clone, Debug)]
pub struct Consumer(Arc<Settings>);

impl Consumer {
    /// Begins with a message, by what identifies it: its id, a header, a tuple of topic, partition
    /// and offset, or the signed id of a webhook. A type that cannot be a key does not compile:
    ///
    /// ```compile_fail,E0277
    /// # let consumer = idempotent_runtime::Idempotency::memory().consumer("c").broker_retention("1d").build()?;
    /// let _ = consumer.message(&1.5);
    /// # Ok::<(), idempotent_runtime::Error>(())
    /// ```
    pub fn message<K: KeyPart + ?Sized>(&self, id: &K) -> MessageCall {
        MessageCall::new(Arc::clone(&self.0), Key::from_part(id))
    }
}
