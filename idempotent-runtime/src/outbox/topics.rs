//! Counts what waits, topic by topic.

use std::{collections::BTreeMap, time::Duration};

use super::{
    Outbox,
    dialect::OutboxDatabase,
    operators::{DOING, READING, damaged},
    tables::Tables,
};
use crate::{
    error::{BoxError, Error},
    store::sql::Row,
};

/// How many messages are counted, and how many parked keys.
const MOST: u64 = 10_000;

/// A topic in which messages wait.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicBacklog {
    /// The topic.
    pub topic: String,
    /// How many messages wait, of the first 10,000 of the outbox, by their keys.
    pub pending: u64,
    /// Whether there may be more.
    pub is_capped: bool,
    /// The age of the oldest of them whose key is not parked, by the database's clock; zero if
    /// there is none.
    pub oldest: Duration,
    /// How many keys are parked at a message of the topic, of the first 10,000.
    pub blocked_keys: u64,
}

impl TopicBacklog {
    pub(crate) fn new(topic: &str) -> Self {
        Self {
            topic: topic.to_owned(),
            pending: 0,
            is_capped: false,
            oldest: Duration::ZERO,
            blocked_keys: 0,
        }
    }
}

impl<DB: OutboxDatabase> Outbox<DB> {
    /// Counts the messages that wait, and the keys that are parked, topic by topic. It looks at
    /// 10,000 messages and 10,000 parked keys at most.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] where the database fails.
    ///
    /// # Cancel safety
    ///
    /// It only reads.
    pub async fn topics(&self) -> Result<Vec<TopicBacklog>, Error> {
        let (pending, blocked) = self.topic_queries();
        let reading = self.run(DOING, READING, async |connection| {
            let pending = DB::query(connection, pending, DOING).await?;
            let blocked = DB::query(connection, blocked, DOING).await?;
            let mut topics = BTreeMap::new();
            for row in &pending {
                let (topic, pending) = counted(row).map_err(damaged)?;
                let oldest = Duration::from_micros(number(row, 2).map_err(damaged)?);
                let backlog = TopicBacklog::new(&topic);
                topics.insert(
                    topic,
                    TopicBacklog {
                        pending,
                        oldest,
                        ..backlog
                    },
                );
            }
            let all: u64 = topics.values().map(|it: &TopicBacklog| it.pending).sum();
            for row in &blocked {
                let (topic, keys) = counted(row).map_err(damaged)?;
                let new = TopicBacklog::new(&topic);
                topics.entry(topic).or_insert(new).blocked_keys = keys;
            }
            for topic in topics.values_mut() {
                topic.is_capped = all >= MOST;
            }
            Ok(topics.into_values().collect())
        });
        reading.await
    }

    /// Names the outbox, in all processes.
    pub(crate) fn name(&self) -> String {
        let place = DB::place(&self.pool.connect_options());
        format!("{place} {}", self.tables.messages)
    }

    /// Two queries that count topic by topic: the messages that wait, with the age of the oldest
    /// one, and the keys that are parked.
    fn topic_queries(&self) -> (String, String) {
        let Tables {
            messages, claims, ..
        } = &*self.tables;
        let now = DB::NOW;
        let pending = format!(
            "SELECT message.topic, count(*),
                 max(CASE WHEN parked.message_key IS NULL THEN {now} - message.created ELSE 0 END)
             FROM (SELECT topic, created, message_key FROM {messages}
                 ORDER BY message_key, number LIMIT {MOST}) AS message
             LEFT JOIN {claims} AS parked
               ON parked.message_key = message.message_key AND parked.blocked_since > 0
             GROUP BY message.topic"
        );
        let blocked = format!(
            "SELECT message.topic, count(*)
             FROM (SELECT message_key FROM {claims} WHERE blocked_since > 0
                 ORDER BY message_key LIMIT {MOST}) AS parked
             JOIN {messages} AS message ON message.message_key = parked.message_key
               AND message.number = (SELECT earlier.number FROM {messages} AS earlier
                   WHERE earlier.message_key = parked.message_key ORDER BY earlier.number LIMIT 1)
             GROUP BY message.topic"
        );
        (pending, blocked)
    }
}

/// The topic and the count of a row.
fn counted(row: &impl Row) -> Result<(String, u64), BoxError> {
    let topic = row.bytes(0)?.unwrap_or_default();
    let topic = String::from_utf8_lossy(&topic).into_owned();
    Ok((topic, number(row, 1)?))
}

fn number(row: &impl Row, place: usize) -> Result<u64, BoxError> {
    let number = row.number(place)?.unwrap_or_default();
    Ok(u64::try_from(number).unwrap_or_default())
}
