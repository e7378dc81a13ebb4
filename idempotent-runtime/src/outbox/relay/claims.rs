//! The claims of a relay on keys, and the messages that come first in them.

use std::time::Duration;

use tokio::time::timeout;

use super::{Envelope, envelope::COLUMNS};
use crate::{
    outbox::{
        dialect::{OutboxDatabase, read},
        tables::{ALL, Tables},
        walk::{DOING, MOST, PendingKey},
    },
    record::micros,
    store::{StoreError, StoreErrorKind},
};

/// How long the database may take for a statement.
const ANSWER: Duration = Duration::from_secs(30);
/// How many bytes of payloads a batch begins at most.
pub(super) const BYTES: usize = 16 * 1024 * 1024;

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
    pub(super) after: Duration,
    /// The attempt that it cost; `None` where it costs none.
    pub(super) attempt: Option<Attempted>,
}

/// An attempt at a message.
pub(super) struct Attempted {
    pub(super) id: String,
    pub(super) topic: String,
    /// The number of its row.
    pub(super) row: i64,
    /// How many attempts it had by now.
    pub(super) attempts: u32,
    /// Why it failed.
    pub(super) reason: String,
    /// Its end, where its budget is spent.
    pub(super) spent: Option<Spent>,
}

/// The end of a message whose budget is spent.
#[derive(Clone, Copy)]
pub(super) enum Spent {
    /// Its key is parked.
    Parked,
    /// It is taken out.
    SetAside,
}

/// The result of a walk over the keys.
pub(super) struct Walk {
    pub(super) met: Vec<PendingKey>,
    /// Whether it has claimed any.
    pub(super) has_claimed: bool,
}

impl Walk {
    /// The key at which it ended; empty if there are no more keys.
    pub(super) fn end(&self) -> Vec<u8> {
        let last = self.met.last().filter(|_| self.met.len() == MOST);
        last.map_or_else(Vec::new, |it| it.place.clone())
    }
}

/// How many messages of the size of these fill a batch.
pub(super) fn fitting(bytes: usize, messages: usize) -> usize {
    let each = bytes / messages.max(1);
    (BYTES / each.max(1) + 1).clamp(2, MOST)
}

/// Waits for an answer of the database, for so long.
pub(super) async fn answered<T>(
    answer: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
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
        let due = met.iter().filter(|it| it.is_due);
        let due: Vec<_> = due.map(|it| &*it.place).collect();
        if !due.is_empty() {
            let text = DB::claim(self.tables, &due, self.token, micros(self.lease));
            self.query(text).await?;
        }
        let has_claimed = !due.is_empty();
        Ok(Walk { met, has_claimed })
    }

    /// The first message of each key that is held, of `most` keys at most: the payloads of no other
    /// ones are read.
    ///
    /// They begin behind the key `served`, so that large payloads keep no key waiting for ever.
    pub(super) async fn first_messages(
        &mut self,
        served: &[u8],
        most: usize,
    ) -> Result<Vec<Envelope>, StoreError> {
        let Tables {
            messages, claims, ..
        } = self.tables;
        let (token, served) = (self.token, DB::bytes(served));
        let turn = |of: &str| {
            format!(
                "CASE WHEN {of}message_key > {served} THEN 0 ELSE 1 END, {of}message_key, {of}id"
            )
        };
        let look = format!(
            "SELECT {COLUMNS} FROM (
                 SELECT message.id, message.message_key, message.number, message.topic, message.headers, message.payload,
                     firsts.attempts, message.traceparent, sum(length(message.payload)) OVER (ORDER BY {inside}) AS bytes
                 FROM (
                     SELECT message.id, CASE WHEN claimed.attempted = message.id THEN claimed.attempts ELSE {zero} END AS attempts
                     FROM {claims} AS claimed JOIN {messages} AS message ON message.message_key = claimed.message_key
                     WHERE claimed.token = {token}
                       AND message.number = (SELECT earlier.number FROM {messages} AS earlier
                           WHERE earlier.message_key = claimed.message_key ORDER BY earlier.number LIMIT 1)
                     ORDER BY {inside} LIMIT {most}) AS firsts
                 JOIN {messages} AS message ON message.id = firsts.id) AS sized
             WHERE bytes - length(payload) < {BYTES} ORDER BY {outside}",
            zero = DB::number(0),
            inside = turn("message."),
            outside = turn(""),
        );
        answered(read::<DB, _>(self.connection, look, DOING, |row| {
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

    /// Deletes messages that were confirmed, whichever relay holds their keys now. `is_late` says
    /// that another relay may have held their keys meanwhile, and parked them.
    pub(super) async fn delete(
        &mut self,
        confirmed: &[&Envelope],
        is_late: bool,
    ) -> Result<(), StoreError> {
        if confirmed.is_empty() {
            return Ok(());
        }
        let Tables {
            messages,
            claims,
            history,
            ..
        } = self.tables;
        let ids = Self::list(confirmed.iter().map(|it| it.id.as_bytes()));
        let rows: Vec<_> = confirmed.iter().map(|it| it.row.to_string()).collect();
        // A message that was sent again under the id has another number.
        let confirmed = format!("id IN ({ids}) AND number IN ({})", rows.join(", "));
        let mut text = format!("DELETE FROM {messages} WHERE {confirmed}");
        if self.keeps {
            text = format!(
                "{};\nINSERT INTO {history} ({ALL}, sent) SELECT {ALL}, {} FROM {messages} WHERE {confirmed} {};\n{text};\nCOMMIT",
                DB::BEGIN,
                DB::NOW,
                DB::LOCKING
            );
        }
        if is_late {
            text += &format!(
                ";\nUPDATE {claims} SET blocked_since = 0, attempts = 0, reason = NULL
                 WHERE blocked_since > 0 AND attempted IN ({ids})"
            );
        }
        self.query(text).await.map(drop)
    }

    /// Gives back keys whose first message was not published. Returns whether this relay still
    /// held them; it is not asked where the pause costs no attempt.
    pub(super) async fn pause(&mut self, pause: &Pause) -> Result<bool, StoreError> {
        let (claims, now, after) = (&self.tables.claims, DB::NOW, micros(pause.after));
        let places = Self::list(pause.places.iter().map(|place| &**place));
        let held = format!("token = {} AND message_key IN ({places})", self.token);
        let set = format!("token = 0, lease_end = 0, next_attempt = {now} + {after}");
        match &pause.attempt {
            Some(attempt) => self.count(attempt, &held, &set).await,
            None => {
                let text = format!("UPDATE {claims} SET {set} WHERE {held}");
                self.query(text).await.map(|_| true)
            }
        }
    }

    /// Counts an attempt at a message whose key is `held`, and gives the key back. A message that
    /// is taken out leaves in the same transaction, which locks the claim before: a relay that has
    /// lost it takes nothing out.
    async fn count(
        &mut self,
        attempt: &Attempted,
        held: &str,
        set: &str,
    ) -> Result<bool, StoreError> {
        let Tables {
            claims, messages, ..
        } = self.tables;
        let (id, now) = (DB::bytes(attempt.id.as_bytes()), DB::NOW);
        let message = format!("id = {id} AND number = {}", attempt.row);
        // Another relay may have confirmed it meanwhile.
        let stands = format!("{held} AND EXISTS (SELECT 1 FROM {messages} WHERE {message})");
        let counted = format!("attempts = {}, attempted = {id}", attempt.attempts);
        let (moved, set, only) = match &attempt.spent {
            None => (String::new(), format!("{set}, {counted}"), &*stands),
            Some(Spent::Parked) => {
                let reason = DB::bytes(attempt.reason.as_bytes());
                let parked = format!("{set}, {counted}, blocked_since = {now}, reason = {reason}");
                (String::new(), parked, &*stands)
            }
            Some(Spent::SetAside) => {
                let meant = format!("{message} AND EXISTS (SELECT 1 FROM {claims} WHERE {held})");
                let moved = self.tables.set_aside::<DB>(&meant, &attempt.reason);
                (moved, format!("{set}, attempts = 0"), held)
            }
        };
        let (begin, locking) = (DB::BEGIN, DB::LOCKING);
        let text = format!(
            "{begin};\nSELECT message_key FROM {claims} WHERE {stands} {locking};
             {moved}UPDATE {claims} SET {set} WHERE {only};\nCOMMIT"
        );
        self.query(text).await.map(|held| !held.is_empty())
    }

    /// Gives all keys back. The count of attempts stays with the message that it counts.
    pub(super) async fn give_back(&mut self) -> Result<(), StoreError> {
        let Tables {
            messages, claims, ..
        } = self.tables;
        let token = self.token;
        let text = format!(
            "DELETE FROM {claims} WHERE token = {token} AND (attempts = 0 OR NOT EXISTS
                 (SELECT 1 FROM {messages} WHERE {messages}.id = {claims}.attempted));
             UPDATE {claims} SET token = 0, lease_end = 0 WHERE token = {token}"
        );
        self.query(text).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mend_22_a_batch_looks_at_hardly_more_messages_than_it_sends() {
        const KIB: usize = 1024;
        for (bytes, messages, fit) in [
            (0, 0, MOST),
            (1_000 * KIB, 1_000, MOST),
            (16_000 * KIB, 80, 82),
            (40 * 1024 * KIB, 1, 2),
            (BYTES, 2, 3),
        ] {
            assert_eq!(fitting(bytes, messages), fit, "{messages} of {bytes} bytes");
        }
    }
}
