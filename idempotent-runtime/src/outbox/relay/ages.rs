//! Measures how old the oldest messages are.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use super::claims::Claims;
use crate::{
    error::BoxError,
    observe::{Observers, OutboxEvent},
    outbox::{
        dialect::OutboxDatabase,
        walk::{PendingKey, damaged},
    },
    store::{StoreError, sql::Row},
};

/// How often they are measured.
const EVERY: Duration = Duration::from_secs(30);

/// Measures the ages while the relay walks over the keys, from the first one to the last.
#[derive(Default)]
pub(super) struct Ages {
    observers: Observers,
    measured: Option<Instant>,
    is_measuring: bool,
    /// The age of the oldest message of each topic; zero of a topic that had one before.
    oldest: HashMap<String, Duration>,
}

impl Ages {
    pub(super) fn new(observers: Observers) -> Self {
        Self {
            observers,
            ..Self::default()
        }
    }

    /// Measures the keys that a walk has met, from its beginning on, where it is time.
    pub(super) async fn measure<DB: OutboxDatabase>(
        &mut self,
        claims: &mut Claims<'_, DB>,
        is_begin: bool,
        met: &[PendingKey],
    ) -> Result<(), StoreError> {
        let is_time = |measured: Instant| measured.elapsed() >= EVERY;
        if is_begin && self.observers.are_there() && self.measured.is_none_or(is_time) {
            self.is_measuring = true;
        }
        if !self.is_measuring || met.is_empty() {
            return Ok(());
        }
        let places: Vec<_> = met.iter().map(|it| &*it.place).collect();
        let (messages, now, keys) = (&claims.tables.messages, DB::NOW, DB::rows(&places));
        let look = format!(
            "WITH walk (message_key) AS ({keys})
             SELECT first.topic, max({now} - first.created)
             FROM walk JOIN {messages} AS first ON first.message_key = walk.message_key
             WHERE first.number = (SELECT earlier.number FROM {messages} AS earlier
                 WHERE earlier.message_key = walk.message_key ORDER BY earlier.number LIMIT 1)
             GROUP BY first.topic"
        );
        for row in &claims.query(look).await? {
            let (topic, age) = read(row).map_err(damaged)?;
            let oldest = self.oldest.entry(topic).or_default();
            *oldest = age.max(*oldest);
        }
        Ok(())
    }

    /// Tells what it has measured, once the walk is at its end.
    pub(super) fn end(&mut self) {
        if !std::mem::take(&mut self.is_measuring) {
            return;
        }
        self.measured = Some(Instant::now());
        for (topic, age) in &self.oldest {
            let age = *age;
            self.observers.outbox(&OutboxEvent::Oldest { topic, age });
        }
        self.oldest.retain(|_, age| !age.is_zero());
        self.oldest
            .values_mut()
            .for_each(|age| *age = Duration::ZERO);
    }
}

fn read(row: &impl Row) -> Result<(String, Duration), BoxError> {
    let topic = String::from_utf8(row.bytes(0)?.unwrap_or_default())?;
    let age = u64::try_from(row.number(1)?.unwrap_or_default()).unwrap_or_default();
    Ok((topic, Duration::from_micros(age)))
}
