//! One reading of all that waits.

use std::time::Duration;
#[cfg(feature = "_sql")]
use std::{collections::BTreeMap, future::Future, pin::Pin};

use super::Work;
#[cfg(feature = "_sql")]
use crate::outbox::{Outbox, OutboxDatabase, TopicBacklog};
use crate::{
    error::Error, observe::Sample, operate::attention_at_hand, record::State, store::ListedRecord,
    value::micros,
};

/// The topics of an outbox.
#[cfg(feature = "_sql")]
pub(super) trait Backlog: Send + Sync {
    /// Names the outbox, in all processes.
    fn name(&self) -> String;

    fn topics(&self)
    -> Pin<Box<dyn Future<Output = Result<Vec<TopicBacklog>, Error>> + Send + '_>>;
}

#[cfg(feature = "_sql")]
impl<DB: OutboxDatabase> Backlog for Outbox<DB> {
    fn name(&self) -> String {
        Outbox::name(self)
    }

    fn topics(
        &self,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<TopicBacklog>, Error>> + Send + '_>> {
        Box::pin(Outbox::topics(self))
    }
}

impl Work {
    /// Reads everything, and tells of it; no where another process does.
    pub(super) async fn sample(&mut self) -> Result<bool, Error> {
        if !self.turn.take(&self.handle).await? {
            return Ok(false);
        }
        let health = self.handle.health().await;
        let pulse = health.store?;
        let attention = attention_at_hand(&self.handle).await?;
        #[cfg(feature = "_sql")]
        let topics = self.topics().await?;
        self.shows = true;
        let observers = self.handle.observers();
        // A difference that the round trip may hide is none.
        let hidden = micros(pulse.round_trip / 2);
        let ahead_micros = match pulse.clock_ahead_micros {
            ahead if ahead.unsigned_abs() <= hidden.unsigned_abs() => 0,
            ahead => ahead,
        };
        observers.sampled(&Sample::Clock { ahead_micros });
        if let Some((page, is_capped)) = attention {
            for state in State::ATTENTION {
                let of = page.records.iter().filter(|it| it.record.state == state);
                let since = |it: &ListedRecord| match (state, it.record.finished) {
                    // Each write of an undo that goes on sets the time anew.
                    (State::Undoing, _) | (_, None) => it.record.created,
                    (_, Some(finished)) => finished,
                };
                let oldest = of.clone().map(since).min();
                observers.sampled(&Sample::Attention {
                    state,
                    records: of.count() as u64,
                    is_capped,
                    oldest: oldest.map_or(Duration::ZERO, |oldest| page.now.since(oldest)),
                });
            }
        }
        #[cfg(feature = "_sql")]
        self.tell_of_topics(topics);
        Ok(true)
    }

    /// The topics of all outboxes; topics of one name are one.
    #[cfg(feature = "_sql")]
    async fn topics(&self) -> Result<BTreeMap<String, TopicBacklog>, Error> {
        let mut topics: BTreeMap<String, TopicBacklog> = BTreeMap::new();
        for outbox in &self.outboxes {
            let read = outbox.topics().await?;
            let is_capped = read.iter().any(|it| it.is_capped);
            // In a long outbox nothing is known of the topics that were not met.
            let unmet = self.known.iter().filter(|_| is_capped);
            let unmet = unmet.map(|topic| TopicBacklog {
                is_capped,
                ..TopicBacklog::new(topic)
            });
            for it in unmet.chain(read) {
                let sum = topics.entry(it.topic.clone());
                let sum = sum.or_insert_with(|| TopicBacklog::new(&it.topic));
                sum.pending += it.pending;
                sum.blocked_keys += it.blocked_keys;
                sum.is_capped |= it.is_capped;
                sum.oldest = sum.oldest.max(it.oldest);
            }
        }
        Ok(topics)
    }

    /// Tells of all topics that were ever met, also where nothing waits any more.
    #[cfg(feature = "_sql")]
    fn tell_of_topics(&mut self, mut topics: BTreeMap<String, TopicBacklog>) {
        for topic in &self.known {
            let empty = || TopicBacklog::new(topic);
            topics.entry(topic.clone()).or_insert_with(empty);
        }
        for it in topics.values() {
            self.handle.observers().sampled(&Sample::Outbox {
                topic: &it.topic,
                pending: it.pending,
                is_capped: it.is_capped,
                oldest: it.oldest,
                blocked_keys: it.blocked_keys,
            });
        }
        self.known = topics.into_keys().collect();
    }
}
