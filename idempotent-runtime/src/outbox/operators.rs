//! Operators look at keys that are parked, and have them go on.

use std::{pin::Pin, time::Duration};

use super::{
    LIMIT, Outbox,
    dialect::OutboxDatabase,
    send::OF_A_KEY,
    tables::{ALL, Tables},
};
use crate::{
    error::{BoxError, Error},
    record::{Note, note::signed},
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

    /// Begins to have a parked key go on with its oldest message, which has a fresh budget.
    /// Awaited, it returns whether the key was parked.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] where the database fails.
    ///
    /// # Cancel safety
    ///
    /// Dropped at any await, the key goes on or does not. A second call changes nothing.
    pub fn resume(&self, key: &str) -> KeyAct<'_, DB> {
        KeyAct::new(self, key, Act::Resume)
    }

    /// Begins to take the oldest message out of a parked key, and to have the key go on behind it.
    /// Awaited, it returns whether it did. The message goes to the table of those that were
    /// rejected, with the reason.
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
    pub fn discard(&self, key: &str, id: &str) -> KeyAct<'_, DB> {
        KeyAct::new(self, key, Act::Discard { id: id.to_owned() })
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

/// An act of an operator on one parked key: [`Outbox::resume`] and [`Outbox::discard`] make it.
/// Nothing happens until it is awaited.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct KeyAct<'a, DB: OutboxDatabase> {
    outbox: &'a Outbox<DB>,
    /// The key, as it stands in the tables, written out.
    place: String,
    act: Act,
    note: Note,
}

#[derive(Debug)]
enum Act {
    Resume,
    Discard { id: String },
}

impl<'a, DB: OutboxDatabase> KeyAct<'a, DB> {
    fn new(outbox: &'a Outbox<DB>, key: &str, act: Act) -> Self {
        let (place, note) = (place::<DB>(key), Note::default());
        Self {
            outbox,
            place,
            act,
            note,
        }
    }

    signed!(|it| it.note);

    /// Does it, and notes it, where the key is parked.
    async fn run(&self) -> Result<bool, Error> {
        self.note.checked()?;
        let Self { outbox, place, .. } = self;
        let done = outbox.run(DOING, WRITING, async |connection| {
            let is_meant = outbox.locks(connection, place).await?
                && match &self.act {
                    Act::Resume => true,
                    Act::Discard { id } => {
                        let oldest = outbox.tables.is_oldest::<DB>(place, id);
                        Outbox::<DB>::count(connection, oldest).await? > 0
                    }
                };
            if is_meant {
                DB::query(connection, self.text(), DOING).await?;
            }
            Ok(is_meant)
        });
        let is_done = done.await?;
        if let (true, Act::Discard { id }) = (is_done, &self.act) {
            let (by, reason) = (
                self.note.by.as_deref().unwrap_or_default(),
                &*self.note.text,
            );
            tracing::warn!(id, by, reason, "a message was discarded");
        }
        Ok(is_done)
    }

    fn text(&self) -> String {
        let (tables, place) = (&*self.outbox.tables, &self.place);
        let Tables { claims, .. } = tables;
        match &self.act {
            Act::Resume => {
                tables.note::<DB>(place, "resumed", &self.note)
                    + &format!(
                        "UPDATE {claims} SET blocked_since = 0, attempts = 0, next_attempt = 0, reason = NULL
             WHERE message_key = {place} AND blocked_since > 0"
                    )
            }
            Act::Discard { id } => {
                let meant = format!("id = {}", DB::bytes(id.as_bytes()));
                tables.note::<DB>(place, "discarded", &self.note)
                    + &tables.set_aside::<DB>(&meant, &self.note.text)
                    + &format!("DELETE FROM {claims} WHERE message_key = {place}")
            }
        }
    }
}

impl<'a, DB: OutboxDatabase> IntoFuture for KeyAct<'a, DB> {
    type Output = Result<bool, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.run().await })
    }
}

impl Tables {
    /// Counts the message with this id, if it is the oldest of its key.
    fn is_oldest<DB: OutboxDatabase>(&self, place: &str, id: &str) -> String {
        let (messages, message) = (&self.messages, DB::bytes(id.as_bytes()));
        format!(
            "SELECT count(*) FROM {messages} AS message WHERE message.id = {message} AND message.message_key = {place}
               AND message.number = (SELECT earlier.number FROM {messages} AS earlier WHERE earlier.message_key = {place}
                   ORDER BY earlier.number LIMIT 1)"
        )
    }

    /// The text that notes an act of an operator on a key, with the id of its oldest message.
    fn note<DB: OutboxDatabase>(&self, place: &str, act: &str, note: &Note) -> String {
        let Self { acts, messages, .. } = self;
        let (now, act) = (DB::NOW, DB::bytes(act.as_bytes()));
        let (person, unless_there) = (note.by.as_deref(), DB::unless_there("act"));
        let person = person.map_or_else(|| "NULL".to_owned(), |it| DB::bytes(it.as_bytes()));
        let reason = DB::bytes(note.text.as_bytes());
        format!(
            "INSERT INTO {acts} (message_key, acted, act, id, person, reason)
             VALUES ({place}, {now}, {act},
                 (SELECT id FROM {messages} WHERE message_key = {place} ORDER BY number LIMIT 1),
                 {person}, {reason}) {unless_there};\n"
        )
    }

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
