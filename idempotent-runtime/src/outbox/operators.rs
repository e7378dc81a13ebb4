//! Acts of operators on a key that is parked: it goes on, with its oldest message or behind it.

use std::time::Duration;

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
    value::{awaited, setters},
};

pub(super) const DOING: &str = "looking at parked keys";

pub(super) const READING: (Option<Isolation>, Duration) = (None, LIMIT);

pub(super) const WRITING: (Option<Isolation>, Duration) = (Some(Isolation::ReadCommitted), LIMIT);

impl<DB: OutboxDatabase> Outbox<DB> {
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
        KeyAct::new(self, key, Act::Discard).at_message(id)
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

    pub(super) async fn count(connection: &mut DB::Connection, look: String) -> Result<i64, Error> {
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
    /// The id of the message that is meant.
    meant: Option<String>,
    note: Note,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Resume,
    Discard,
}

impl<'a, DB: OutboxDatabase> KeyAct<'a, DB> {
    fn new(outbox: &'a Outbox<DB>, key: &str, act: Act) -> Self {
        Self::at(outbox, &place_of::<DB>(key), act, &Note::default())
    }

    pub(super) fn at(outbox: &'a Outbox<DB>, place: &str, act: Act, note: &Note) -> Self {
        let (place, note) = (place.to_owned(), note.clone());
        Self {
            outbox,
            place,
            act,
            meant: None,
            note,
        }
    }

    signed!(|it| it.note);

    setters! {
        /// Does it only where the message of this id is the oldest of the key, as a list showed it.
        at_message(it, id: &str) { it.meant = Some(id.to_owned()) }
    }

    /// Does it, and notes it, where the key is parked.
    async fn run(self) -> Result<bool, Error> {
        self.note.checked()?;
        let done = self.outbox.run(DOING, WRITING, async |connection| {
            self.carry_out(connection).await
        });
        let is_done = done.await?;
        if let (true, Act::Discard, Some(id)) = (is_done, self.act, &self.meant) {
            let (by, reason) = (
                self.note.by.as_deref().unwrap_or_default(),
                &*self.note.text,
            );
            tracing::warn!(id, by, reason, "a message was discarded");
        }
        Ok(is_done)
    }

    /// The same in the transaction that is open.
    pub(super) async fn carry_out(&self, connection: &mut DB::Connection) -> Result<bool, Error> {
        let Self { outbox, place, .. } = self;
        let is_meant = outbox.locks(connection, place).await?
            && match &self.meant {
                None => true,
                Some(id) => {
                    let oldest = outbox.tables.is_oldest::<DB>(place, id);
                    Outbox::<DB>::count(connection, oldest).await? > 0
                }
            };
        if is_meant {
            DB::query(connection, self.text(), DOING).await?;
        }
        Ok(is_meant)
    }

    fn text(&self) -> String {
        let (tables, place) = (&*self.outbox.tables, &self.place);
        let Tables {
            claims, messages, ..
        } = tables;
        let oldest = format!(
            "(SELECT id FROM {messages} WHERE message_key = {place} ORDER BY number LIMIT 1)"
        );
        let noted = |act| tables.note::<DB>(place, act, &oldest, &self.note);
        match self.act {
            Act::Resume => {
                noted("resumed")
                    + &format!(
                        "UPDATE {claims} SET blocked_since = 0, attempts = 0, next_attempt = 0, reason = NULL
             WHERE message_key = {place} AND blocked_since > 0"
                    )
            }
            Act::Discard => {
                let id = self.meant.as_deref().unwrap_or_default();
                let meant = format!("id = {}", DB::bytes(id.as_bytes()));
                noted("discarded")
                    + &tables.set_aside::<DB>(&meant, &self.note.text)
                    + &format!("DELETE FROM {claims} WHERE message_key = {place}")
            }
        }
    }
}

awaited!([DB: OutboxDatabase] KeyAct<'a, DB> => Result<bool, Error>);

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

    /// The text that notes an act of an operator on a key, with the id of the message that it is
    /// about. Two acts of one moment have two rows.
    pub(super) fn note<DB: OutboxDatabase>(
        &self,
        place: &str,
        act: &str,
        id: &str,
        note: &Note,
    ) -> String {
        let (acts, now, act) = (&self.acts, DB::NOW, DB::bytes(act.as_bytes()));
        let person = note.by.as_deref();
        let person = person.map_or_else(|| "NULL".to_owned(), |it| DB::bytes(it.as_bytes()));
        let reason = DB::bytes(note.text.as_bytes());
        format!(
            "INSERT INTO {acts} (message_key, acted, act, id, person, reason)
             SELECT {place}, CASE WHEN coalesce(max(acted), 0) < {now} THEN {now} ELSE max(acted) + 1 END,
                 {act}, {id}, {person}, {reason} FROM {acts} WHERE message_key = {place};\n"
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

/// A key, as it stands in the tables, written out.
pub(super) fn place_of<DB: OutboxDatabase>(key: &str) -> String {
    DB::bytes(&[&[OF_A_KEY], key.as_bytes()].concat())
}

pub(super) fn damaged(source: BoxError) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, DOING).with_source(source)
}
