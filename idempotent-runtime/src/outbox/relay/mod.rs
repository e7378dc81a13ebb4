//! A relay: takes the messages that were committed, and gives them to a publisher.

mod ages;
mod builder;
mod claims;
mod envelope;
mod failures;
pub(super) mod sleep;
mod suspects;
mod work;

use std::{future::Future, sync::Arc, time::Duration};

use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
};

use crate::value::opaque;

pub(super) use self::work::connect;
pub use self::{
    builder::{OnPoison, RelayBuilder},
    envelope::Envelope,
};

/// Gives messages to a broker, or to a service.
///
/// The future may be dropped at any await: after the time for a batch, and where the relay is
/// dropped or can no longer renew its lease.
///
/// Its answer has a result for each message, in the order of the batch. A message without one, a
/// panic, and no answer within the time for it are [`PublishError::Unknown`].
///
/// Where several messages of a batch fail with no answer of their own, the relay sends them again
/// in smaller batches, until the one is alone that fails the others.
pub trait Publisher: Send + Sync + 'static {
    /// Publishes a batch, in which no two messages have one key.
    fn publish(
        &self,
        batch: &[Envelope],
    ) -> impl Future<Output = Vec<Result<(), PublishError>>> + Send;

    /// How many bytes payload and headers of a message may have together.
    fn max_payload(&self) -> usize {
        usize::MAX
    }
}

/// Why a message was not published.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The receiver of this topic is out of reach or takes nothing now, such as where a credential
    /// has expired. The message was not taken. It costs no attempt, unless the message fails by
    /// itself and another one of the topic was confirmed since it failed before.
    #[error("it is out of reach")]
    Outage,
    /// The receiver of this topic asks to be called again after so long, as with `Retry-After`: the
    /// whole topic pauses, up to ten minutes. Otherwise it is as an outage.
    #[error("it asks to be called again in {0:?}")]
    RetryAfter(Duration),
    /// This message was refused, for this reason.
    #[error("it was refused: {0}")]
    Rejected(String),
    /// It is not known whether it was taken. It is sent again, and counts as an outage does.
    #[error("it is unknown whether it was taken")]
    Unknown,
}

/// A relay that runs. Dropped, it stops at once: its keys go to another relay when their lease is
/// over.
#[must_use = "dropped, it stops at once"]
pub struct Relay {
    wake: Arc<Notify>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Relay {
    /// Has it look for messages now.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// Ends it after the batch that is under way, and gives its keys back.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it stops at once.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        self.wake.notify_one();
        let _it_has_ended = (&mut self.task).await;
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

opaque!(Relay);
