//! An outbox, whatever its database.

use std::time::Duration;

use async_trait::async_trait;
use idempotent_runtime::{Error, Time};

/// How many keys and messages a list shows.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
const MOST: u32 = 200;

/// A topic in which messages wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Topic {
    pub(crate) name: String,
    pub(crate) pending: u64,
    /// Whether there may be more.
    pub(crate) is_capped: bool,
    /// The age of the oldest message whose key is not parked.
    pub(crate) oldest: Duration,
    pub(crate) blocked_keys: u64,
}

/// A key that is parked at its oldest message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParkedKey {
    pub(crate) key: String,
    pub(crate) topic: String,
    pub(crate) message: String,
    pub(crate) reason: String,
    pub(crate) since: Duration,
    pub(crate) messages: u64,
}

/// A message that was set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetAside {
    pub(crate) message: String,
    pub(crate) key: Option<String>,
    pub(crate) topic: String,
    pub(crate) reason: String,
    pub(crate) bytes: u64,
    pub(crate) at: Time,
}

/// The act of a person on an outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutboxAct {
    /// A parked key goes on with its oldest message.
    Resume,
    /// The oldest message of a parked key is set aside.
    Discard,
    /// A message that was set aside waits again.
    Resend,
    /// A message that was set aside is deleted.
    Delete,
}

/// The key and the message of an act.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) key: &'a str,
    pub(crate) message: &'a str,
    /// When the message was set aside, in microseconds; 0 for one that waits. It may be set aside
    /// once more.
    pub(crate) at: i64,
}

/// The person and the reason of an act.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(any(feature = "mysql", feature = "postgres", feature = "sqlite")),
    expect(dead_code, reason = "without a database there is no outbox")
)]
pub(crate) struct Signed<'a> {
    pub(crate) by: &'a str,
    pub(crate) because: &'a str,
}

#[async_trait]
pub(crate) trait AnyOutbox: Send + Sync {
    async fn topics(&self) -> Result<Vec<Topic>, Error>;
    async fn parked(&self) -> Result<Vec<ParkedKey>, Error>;
    async fn set_aside(&self) -> Result<Vec<SetAside>, Error>;
    /// Returns whether the target of an act is there.
    async fn has(&self, act: OutboxAct, target: Target<'_>) -> Result<bool, Error>;
    /// Returns whether anything was changed.
    async fn act(
        &self,
        act: OutboxAct,
        target: Target<'_>,
        signed: Signed<'_>,
    ) -> Result<bool, Error>;
}

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod sql {
    use async_trait::async_trait;
    use idempotent_runtime::{
        Error,
        outbox::{Outbox, OutboxDatabase, Rejected},
    };

    use super::{AnyOutbox, MOST, OutboxAct, ParkedKey, SetAside, Signed, Target, Topic};

    #[async_trait]
    impl<DB: OutboxDatabase> AnyOutbox for Outbox<DB> {
        async fn topics(&self) -> Result<Vec<Topic>, Error> {
            let topics = Self::topics(self).await?.into_iter();
            let topics = topics.map(|it| Topic {
                name: it.topic,
                pending: it.pending,
                is_capped: it.is_capped,
                oldest: it.oldest,
                blocked_keys: it.blocked_keys,
            });
            Ok(topics.collect())
        }

        async fn parked(&self) -> Result<Vec<ParkedKey>, Error> {
            let keys = Self::parked(self).limit(MOST).await?.into_iter();
            let keys = keys.map(|it| ParkedKey {
                key: it.key,
                topic: it.topic,
                message: it.id,
                reason: it.reason,
                since: it.since,
                messages: it.messages,
            });
            Ok(keys.collect())
        }

        async fn set_aside(&self) -> Result<Vec<SetAside>, Error> {
            let messages = self.rejected().limit(MOST).await?.into_iter();
            let messages = messages.map(|it| SetAside {
                message: it.id,
                key: it.key,
                topic: it.topic,
                reason: it.reason,
                bytes: it.bytes,
                at: it.at,
            });
            Ok(messages.collect())
        }

        async fn has(&self, act: OutboxAct, target: Target<'_>) -> Result<bool, Error> {
            match act {
                OutboxAct::Resume | OutboxAct::Discard => {
                    is_parked_at(self, target.key, target.message).await
                }
                OutboxAct::Resend | OutboxAct::Delete => {
                    Ok(rejected(self, target).await?.is_some())
                }
            }
        }

        async fn act(
            &self,
            act: OutboxAct,
            target: Target<'_>,
            Signed { by, because }: Signed<'_>,
        ) -> Result<bool, Error> {
            let Target { key, message, .. } = target;
            match act {
                // Not at another message, which the person has not seen.
                OutboxAct::Resume if !is_parked_at(self, key, message).await? => return Ok(false),
                OutboxAct::Resume => return self.resume(key).by(by).because(because).await,
                OutboxAct::Discard => {
                    return self.discard(key, message).by(by).because(because).await;
                }
                OutboxAct::Resend | OutboxAct::Delete => {}
            }
            let Some(rejected) = rejected(self, target).await? else {
                return Ok(false);
            };
            match act {
                OutboxAct::Resend => self.send_again(&rejected).by(by).because(because).await,
                _ => {
                    self.discard_rejected(&rejected)
                        .by(by)
                        .because(because)
                        .await
                }
            }
        }
    }

    /// The message that was set aside at this time, with this key.
    async fn rejected<DB: OutboxDatabase>(
        outbox: &Outbox<DB>,
        target: Target<'_>,
    ) -> Result<Option<Rejected>, Error> {
        let messages = outbox.rejected().id(target.message).await?;
        let is_it = |it: &Rejected| {
            let key = it.key.as_deref().unwrap_or("");
            it.at.as_micros() == target.at && key == target.key
        };
        Ok(messages.into_iter().find(is_it))
    }

    /// Whether a key is parked at this message.
    async fn is_parked_at<DB: OutboxDatabase>(
        outbox: &Outbox<DB>,
        key: &str,
        message: &str,
    ) -> Result<bool, Error> {
        const PAGE: u32 = 1_000;
        let mut after = None;
        loop {
            let keys = outbox.parked().limit(PAGE).after(after).await?;
            if let Some(parked) = keys.iter().find(|it| it.key == key) {
                return Ok(parked.id == message);
            }
            match keys.last() {
                Some(last) if keys.len() >= PAGE as usize => after = Some(last.key.clone()),
                _ => return Ok(false),
            }
        }
    }
}
