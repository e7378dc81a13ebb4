//! Operators look at keys that are parked, and have them go on.

use std::time::Duration;

use super::{
    LIMIT, Outbox,
    dialect::OutboxDatabase,
    send::OF_A_KEY,
    tables::{ALL, Tables},
};
use crate::{
    error::{BoxError, Error},
    store::{StoreError, StoreErrorKind, sql::Row},
    transaction::Isolation,
};

/// A key that is parked: its oldest message was rejected too often. Messages behind it wait.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parked {
    /// The key.
    pub key: String,
    /// The topic of the oldest message; empty where another relay has confirmed it since, and
    /// there is none any more.
    pub topic: String,
    /// The id of the oldest message.
    pub id: String,
    /// Why it was rejected last.
    pub reason: String,
    /// For how long it has been parked, by the database's clock.
    pub since: Duration,
    /// How many messages it has, up to 1,000.
    pub messages: u64,
}

/// How many parked keys are listed at once, and how many messages of one are counted.
const MOST: u32 = 1_000;

const DOING: &str = "looking at parked keys";

const READING: (Option<Isolation>, Duration) = (None, LIMIT);

const WRITING: (Option<Isolation>, Duration) = (Some(Isolation::ReadCommitted), LIMIT);

impl<DB: OutboxDatabase> Outbox<DB> {
    /// Tells which keys are parked, up to 1,000 of them, in the order of the keys.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] where the database fails.
    ///
    /// # Cancel safety
    ///
    /// It only reads.
    pub async fn parked(&self) -> Result<Vec<Parked>, Error> {
        let Tables {
            messages, claims, ..
        } = &*self.tables;
        let now = DB::NOW;
        let look = format!(
            "SELECT claimed.message_key, message.topic, coalesce(message.id, claimed.attempted), claimed.reason,
                 {now} - claimed.blocked_since
             FROM {claims} AS claimed LEFT JOIN {messages} AS message ON message.message_key = claimed.message_key
               AND message.number = (SELECT earlier.number FROM {messages} AS earlier
                   WHERE earlier.message_key = claimed.message_key ORDER BY earlier.number LIMIT 1)
             WHERE claimed.blocked_since > 0
             ORDER BY claimed.message_key LIMIT {MOST}"
        );
        self.run(DOING, READING, async |connection| {
            let rows = DB::query(connection, look, DOING).await?;
            let mut parked = Vec::new();
            for row in &rows {
                let (place, mut key) = read(row).map_err(damaged)?;
                let place = DB::bytes(&place);
                let count = format!(
                    "SELECT count(*) FROM (SELECT 1 FROM {messages} WHERE message_key = {place} LIMIT {MOST}) AS counted"
                );
                key.messages = Self::count(connection, count).await?.unsigned_abs();
                parked.push(key);
            }
            Ok(parked)
        })
        .await
    }

    /// Has a parked key go on with its oldest message, which has a fresh budget; whether it was
    /// parked.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] where the database fails.
    ///
    /// # Cancel safety
    ///
    /// Dropped at any await, the key goes on or does not. A second call changes nothing.
    pub async fn resume(&self, key: &str) -> Result<bool, Error> {
        let (claims, place) = (&self.tables.claims, place::<DB>(key));
        let resume = format!(
            "UPDATE {claims} SET blocked_since = 0, attempts = 0, next_attempt = 0, reason = NULL
             WHERE message_key = {place} AND blocked_since > 0"
        );
        self.run(DOING, WRITING, async |connection| {
            let was_parked = self.locks(connection, &place).await?;
            DB::query(connection, resume, DOING).await?;
            Ok(was_parked)
        })
        .await
    }

    /// Takes the oldest message out of a parked key, and has the key go on behind it; whether it
    /// did. The message goes to the table of those that were rejected, with this reason.
    ///
    /// `id` is that of the message which is meant, as [`parked`](Self::parked) tells it: where
    /// another one is the oldest by now, nothing changes.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] where the database fails.
    ///
    /// # Cancel safety
    ///
    /// Dropped at any await, the message is discarded or is not. A second call changes nothing.
    pub async fn discard(&self, key: &str, id: &str, reason: &str) -> Result<bool, Error> {
        let Tables {
            messages, claims, ..
        } = &*self.tables;
        let (place, message) = (place::<DB>(key), DB::bytes(id.as_bytes()));
        let is_it = format!(
            "SELECT count(*) FROM {messages} AS message WHERE message.id = {message} AND message.message_key = {place}
               AND message.number = (SELECT earlier.number FROM {messages} AS earlier WHERE earlier.message_key = {place}
                   ORDER BY earlier.number LIMIT 1)"
        );
        let meant = format!("id = {message}");
        let discard = self.tables.set_aside::<DB>(&meant, reason)
            + &format!("DELETE FROM {claims} WHERE message_key = {place}");
        let is_it = self.run(DOING, WRITING, async |connection| {
            let is_it =
                self.locks(connection, &place).await? && Self::count(connection, is_it).await? > 0;
            if is_it {
                DB::query(connection, discard, DOING).await?;
            }
            Ok(is_it)
        });
        let is_it = is_it.await?;
        if is_it {
            tracing::warn!(id, reason, "a message was discarded");
        }
        Ok(is_it)
    }

    /// Locks a key that is parked; whether it was. No relay holds a parked key, and the lock keeps
    /// other calls from having it go on.
    async fn locks(&self, connection: &mut DB::Connection, place: &str) -> Result<bool, Error> {
        let (claims, locking) = (&self.tables.claims, DB::LOCKING);
        let look = format!(
            "SELECT message_key FROM {claims} WHERE message_key = {place} AND blocked_since > 0 {locking}"
        );
        Ok(!DB::query(connection, look, DOING).await?.is_empty())
    }

    async fn count(connection: &mut DB::Connection, look: String) -> Result<i64, Error> {
        let rows = DB::query(connection, look, DOING).await?;
        let count = rows.first().map_or(Ok(None), |row| row.number(0));
        Ok(count.map_err(damaged)?.unwrap_or_default())
    }
}

impl Tables {
    /// The text that takes the message out that is `meant`, into the table of those that were
    /// rejected.
    pub(super) fn set_aside<DB: OutboxDatabase>(&self, meant: &str, reason: &str) -> String {
        let Self {
            messages, rejected, ..
        } = self;
        let (reason, now) = (DB::bytes(reason.as_bytes()), DB::NOW);
        // A relay may be about to confirm it.
        let locking = DB::LOCKING;
        format!(
            "INSERT INTO {rejected} ({ALL}, rejected, reason)
             SELECT {ALL}, {now}, {reason} FROM {messages} WHERE {meant} {locking};
             DELETE FROM {messages} WHERE {meant};\n"
        )
    }
}

fn place<DB: OutboxDatabase>(key: &str) -> String {
    DB::bytes(&[&[OF_A_KEY], key.as_bytes()].concat())
}

fn read(row: &impl Row) -> Result<(Vec<u8>, Parked), BoxError> {
    let bytes = |place| -> Result<Vec<u8>, BoxError> { Ok(row.bytes(place)?.unwrap_or_default()) };
    let text = |place| -> Result<String, BoxError> { Ok(String::from_utf8(bytes(place)?)?) };
    let place = bytes(0)?;
    let key = place.get(1..).unwrap_or_default().to_vec();
    let since = row.number(4)?.unwrap_or_default().unsigned_abs();
    let parked = Parked {
        key: String::from_utf8_lossy(&key).into_owned(),
        topic: text(1)?,
        id: text(2)?,
        reason: text(3)?,
        since: Duration::from_micros(since),
        messages: 0,
    };
    Ok((place, parked))
}

fn damaged(source: BoxError) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, DOING).with_source(source)
}
