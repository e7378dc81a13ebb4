//! The claims of a relay on keys, and the messages that come first in them.

use std::time::Duration;

use tokio::time::timeout;

use super::{Envelope, envelope::COLUMNS};
use crate::{
    outbox::{
        dialect::OutboxDatabase,
        tables::{ALL, Tables},
        walk::{DOING, MOST, Met},
    },
    record::micros,
    store::{StoreError, StoreErrorKind},
};

/// How long the database may take for a statement.
const ANSWER: Duration = Duration::from_secs(30);
/// How many bytes of payloads a batch begins at most.
const BYTES: usize = 16 * 1024 * 1024;

/// A connection, and the name under which its relay claims.
pub(super) struct Claims<'a, DB: OutboxDatabase> {
    pub(super) connection: &'a mut DB::Connection,
    pub(super) tables: &'a Tables,
    pub(super) token: i64,
    pub(super) lease: Duration,
    /// Whether messages are kept after they were sent.
    pub(super) keeps: bool,
}

/// A change of the claims on keys whose first message was not published.
pub(super) struct Pause {
    pub(super) places: Vec<Vec<u8>>,
    /// The attempts of the message so far; `None` where it costs none.
    pub(super) attempts: Option<u32>,
    pub(super) after: Duration,
    /// What becomes of a message whose budget is spent.
    pub(super) spent: Option<Spent>,
}

/// What becomes of a message whose budget is spent.
pub(super) enum Spent {
    /// Its key is parked, for this reason.
    Parked(String),
    /// It has no key, and is taken out of its lane.
    SetAside { id: String, reason: String },
}

/// What came of a walk over the keys.
pub(super) struct Walk {
    pub(super) met: Vec<Met>,
    /// Whether it has claimed any.
    pub(super) has_claimed: bool,
}

impl Walk {
    /// Where it ended; nothing where there are no more keys.
    pub(super) fn end(&self) -> Vec<u8> {
        let last = self.met.last().filter(|_| self.met.len() == MOST);
        last.map_or_else(Vec::new, |it| it.place.clone())
    }
}

/// Waits for an answer of the database, for so long.
async fn answered<T>(answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    timeout(ANSWER, answer).await.unwrap_or_else(|late| {
        Err(StoreError::new(StoreErrorKind::Unavailable, DOING).with_source(late))
    })
}

impl<DB: OutboxDatabase> Claims<'_, DB> {
    pub(super) async fn query(&mut self, text: String) -> Result<Vec<DB::Row>, StoreError> {
        answered(DB::query(self.connection, text, DOING)).await
    }

    fn list<'v>(values: impl IntoIterator<Item = &'v [u8]>) -> String {
        let values: Vec<_> = values.into_iter().map(DB::bytes).collect();
        values.join(", ")
    }

    /// Claims the keys behind `after` that are due, and tells which ones it has met.
    pub(super) async fn claim(&mut self, after: &[u8]) -> Result<Walk, StoreError> {
        let walk = answered(DB::walk(self.connection, self.tables, after));
        let met = walk.await?;
        let due: Vec<_> = met.iter().filter(|it| it.is_due).collect();
        let due: Vec<_> = due.into_iter().map(|it| &*it.place).collect();
        if !due.is_empty() {
            let text = DB::claim(self.tables, &due, self.token, micros(self.lease));
            self.query(text).await?;
        }
        let has_claimed = !due.is_empty();
        Ok(Walk { met, has_claimed })
    }

    /// The first message of each key that is held.
    pub(super) async fn first_messages(&mut self) -> Result<Vec<Envelope>, StoreError> {
        let Tables {
            messages, claims, ..
        } = self.tables;
        let token = self.token;
        let look = format!(
            "SELECT {COLUMNS} FROM (
                 SELECT message.id, message.message_key, message.number, message.topic, message.headers, message.payload,
                     claimed.attempts, message.traceparent,
                     sum(length(message.payload)) OVER (ORDER BY message.message_key, message.id) AS bytes
                 FROM {claims} AS claimed JOIN {messages} AS message ON message.message_key = claimed.message_key
                 WHERE claimed.token = {token}
                   AND message.number = (SELECT earlier.number FROM {messages} AS earlier
                       WHERE earlier.message_key = claimed.message_key ORDER BY earlier.number LIMIT 1)) AS firsts
             WHERE bytes - length(payload) < {BYTES} ORDER BY message_key, id LIMIT {MOST}"
        );
        answered(DB::read(self.connection, look, DOING, |row| {
            Envelope::read(row)
        }))
        .await
    }

    /// Prolongs the leases.
    pub(super) async fn renew(&mut self) -> Result<(), StoreError> {
        let (claims, now, lease) = (&self.tables.claims, DB::NOW, micros(self.lease));
        let token = self.token;
        let renew =
            format!("UPDATE {claims} SET lease_end = {now} + {lease} WHERE token = {token}");
        self.query(renew).await.map(drop)
    }

    /// Deletes messages that were confirmed, whoever says so.
    pub(super) async fn delete(&mut self, confirmed: &[&Envelope]) -> Result<(), StoreError> {
        if confirmed.is_empty() {
            return Ok(());
        }
        let messages = &self.tables.messages;
        let ids = Self::list(confirmed.iter().map(|it| it.id.as_bytes()));
        let delete = format!("DELETE FROM {messages} WHERE id IN ({ids})");
        let mut text = match self.keeps {
            false => delete,
            true => {
                let (history, now) = (&self.tables.history, DB::NOW);
                format!(
                    "{};\nINSERT INTO {history} ({ALL}, sent) SELECT {ALL}, {now} FROM {messages} WHERE id IN ({ids}) {};\n{delete};\nCOMMIT",
                    DB::BEGIN,
                    DB::LOCKING
                )
            }
        };
        let tried = confirmed.iter().filter(|it| it.attempts > 0);
        let tried = Self::list(tried.map(|it| &*it.place));
        if !tried.is_empty() {
            let (claims, token) = (&self.tables.claims, self.token);
            text = format!(
                "UPDATE {claims} SET attempts = 0 WHERE token = {token} AND message_key IN ({tried});\n{text}"
            );
        }
        self.query(text).await.map(drop)
    }

    /// Gives back keys whose first message was not published.
    pub(super) async fn pause(&mut self, pause: &Pause) -> Result<(), StoreError> {
        let (claims, now, token) = (&self.tables.claims, DB::NOW, self.token);
        let after = micros(pause.after);
        let places = Self::list(pause.places.iter().map(|place| &**place));
        let attempts = match pause.attempts {
            Some(attempts) => format!(", attempts = {attempts}"),
            None => String::new(),
        };
        let parked = match &pause.spent {
            Some(Spent::Parked(reason)) => {
                let reason = DB::bytes(reason.as_bytes());
                format!(", blocked_since = {now}, reason = {reason}")
            }
            Some(Spent::SetAside { id, reason }) => {
                let set_aside = self.tables.set_aside::<DB>(id, reason);
                let text = format!("{};\n{set_aside}COMMIT", DB::BEGIN);
                self.query(text).await?;
                String::new()
            }
            None => String::new(),
        };
        let text = format!(
            "UPDATE {claims} SET token = 0, lease_end = 0, next_attempt = {now} + {after}{attempts}{parked}
             WHERE token = {token} AND message_key IN ({places})"
        );
        self.query(text).await.map(drop)
    }

    /// Gives all keys back. The count of attempts stays with the message that it counts.
    pub(super) async fn give_back(&mut self) -> Result<(), StoreError> {
        let Tables {
            messages, claims, ..
        } = self.tables;
        let token = self.token;
        let text = format!(
            "DELETE FROM {claims} WHERE token = {token} AND (attempts = 0 OR NOT EXISTS
                 (SELECT 1 FROM {messages} WHERE {messages}.message_key = {claims}.message_key));
             UPDATE {claims} SET token = 0, lease_end = 0 WHERE token = {token}"
        );
        self.query(text).await.map(drop)
    }
}
