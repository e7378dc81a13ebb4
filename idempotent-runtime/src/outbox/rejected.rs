//! Messages that were set aside: operators look at them, and send them again or discard them.

use super::{
    LIMIT, Outbox,
    dialect::{OutboxDatabase, read},
    operators::{DOING, WRITING},
    send::{OF_A_KEY, Writing, Written},
    tables::ALL,
};
use crate::{
    error::{BoxError, Error},
    record::{Note, Time, note::signed},
    store::sql::Row,
    value::{awaited, setters},
};

/// A message that was set aside: it was rejected too often, or an operator discarded it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejected {
    /// Its id.
    pub id: String,
    /// Its key; `None` where it has none.
    pub key: Option<String>,
    /// The number that it had in its key: the larger, the later it was sent.
    pub number: i64,
    /// Its topic.
    pub topic: String,
    /// Why it was set aside.
    pub reason: String,
    /// The length of its payload, in bytes.
    pub bytes: u64,
    /// When it was set aside, by the database's clock.
    pub at: Time,
}

/// How many are listed at once, at most.
const MOST: u32 = 1_000;

/// A list of messages that were set aside, in the order of their ids: [`Outbox::rejected`] makes
/// it. Awaited, it returns a page.
#[derive(Debug)]
#[must_use = "nothing is looked at until it is awaited"]
pub struct RejectedMessages<'a, DB: OutboxDatabase> {
    outbox: &'a Outbox<DB>,
    id: Option<String>,
    topic: Option<String>,
    after: Option<(String, Time)>,
    limit: u32,
}

impl<DB: OutboxDatabase> Outbox<DB> {
    /// Begins to list the messages that were set aside, in the order of their ids. Awaited, it
    /// returns up to 1,000 of them, or as many as the [limit](RejectedMessages::limit), without
    /// their payloads.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] where the database fails.
    ///
    /// # Cancel safety
    ///
    /// It only reads.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{Error, outbox::{Outbox, OutboxDatabase}};
    /// # async fn example<DB: OutboxDatabase>(outbox: Outbox<DB>) -> Result<(), Error> {
    /// let mut rejected = outbox.rejected().topic("invoices").await?;
    /// // The messages of a key in the order in which they were sent first.
    /// rejected.sort_by_key(|message| message.number);
    /// for message in rejected {
    ///     let again = outbox.send_again(&message);
    ///     again.by("anna").because("the broker takes it now").await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn rejected(&self) -> RejectedMessages<'_, DB> {
        RejectedMessages {
            outbox: self,
            id: None,
            topic: None,
            after: None,
            limit: MOST,
        }
    }

    /// Begins to send a message again that was set aside: under the same id, and behind all that
    /// its key has now. Awaited, it returns whether it did. It changes nothing where the message is
    /// not there any more, and where one of its id waits in the outbox.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] where the database fails, and [`Error::InvalidPolicy`] where the note is
    /// too long.
    ///
    /// # Cancel safety
    ///
    /// Dropped at any await, it is sent again or is not.
    pub fn send_again(&self, message: &Rejected) -> RejectedAct<'_, DB> {
        RejectedAct::new(self, message, Act::SendAgain)
    }

    /// Begins to delete a message that was set aside. Awaited, it returns whether it was there.
    ///
    /// # Errors
    ///
    /// As [`send_again`](Self::send_again).
    ///
    /// # Cancel safety
    ///
    /// Dropped at any await, it is deleted or is not.
    pub fn discard_rejected(&self, message: &Rejected) -> RejectedAct<'_, DB> {
        RejectedAct::new(self, message, Act::Discard)
    }
}

impl<DB: OutboxDatabase> RejectedMessages<'_, DB> {
    setters! {
        /// Only the message of this id, once for each time that it was set aside.
        id(it, id: &str) { it.id = Some(id.to_owned()) }

        /// Only messages of this topic.
        topic(it, topic: &str) { it.topic = Some(topic.to_owned()) }

        /// Goes on behind this message, the last one of the page before.
        after(it, last: &Rejected) { it.after = Some((last.id.clone(), last.at)) }

        /// Sets how many messages a page has at most: 1 to 1,000.
        limit(it, limit: u32) { it.limit = limit.clamp(1, MOST) }
    }

    async fn run(self) -> Result<Vec<Rejected>, Error> {
        const DOING: &str = "looking at messages that were set aside";
        let look = self.look();
        let looking = self.outbox.run(DOING, (None, LIMIT), async |connection| {
            Ok(read::<DB, _>(connection, look, DOING, row::<DB::Row>).await?)
        });
        looking.await
    }

    fn look(&self) -> String {
        let (rejected, limit) = (&self.outbox.tables.rejected, self.limit);
        let mut only = Vec::new();
        if let Some(id) = &self.id {
            only.push(format!("id = {}", DB::bytes(id.as_bytes())));
        }
        if let Some(topic) = &self.topic {
            only.push(format!("topic = {}", DB::bytes(topic.as_bytes())));
        }
        if let Some((id, at)) = &self.after {
            let (id, at) = (DB::bytes(id.as_bytes()), at.as_micros());
            only.push(format!("(id > {id} OR (id = {id} AND rejected > {at}))"));
        }
        let only = match only.is_empty() {
            true => String::new(),
            false => format!("WHERE {}", only.join(" AND ")),
        };
        let none = DB::number(0);
        format!(
            "SELECT id, message_key, topic, reason, length(payload) + {none}, rejected, number FROM {rejected} {only}
             ORDER BY id, rejected LIMIT {limit}"
        )
    }
}

awaited!([DB: OutboxDatabase] RejectedMessages<'a, DB> => Result<Vec<Rejected>, Error>);

fn row<R: Row>(row: &R) -> Result<Rejected, BoxError> {
    let bytes = |place| -> Result<Vec<u8>, BoxError> { Ok(row.bytes(place)?.unwrap_or_default()) };
    let text = |place| -> Result<String, BoxError> { Ok(String::from_utf8(bytes(place)?)?) };
    // Another program may have written bytes that are no text.
    let shown = |place| -> Result<String, BoxError> {
        Ok(String::from_utf8_lossy(&bytes(place)?).into_owned())
    };
    let number = |place| -> Result<i64, BoxError> { Ok(row.number(place)?.unwrap_or_default()) };
    let key = bytes(1)?;
    let key = key.strip_prefix(&[OF_A_KEY]).map(<[u8]>::to_vec);
    Ok(Rejected {
        id: text(0)?,
        key: key.map(String::from_utf8).transpose()?,
        topic: shown(2)?,
        reason: shown(3)?,
        bytes: number(4)?.unsigned_abs(),
        at: Time::from_micros(number(5)?),
        number: number(6)?,
    })
}

/// An act of an operator on one message that was set aside: [`Outbox::send_again`] and
/// [`Outbox::discard_rejected`] make it. Nothing happens until it is awaited.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct RejectedAct<'a, DB: OutboxDatabase> {
    outbox: &'a Outbox<DB>,
    id: String,
    at: Time,
    act: Act,
    note: Note,
}

#[derive(Clone, Copy, Debug)]
enum Act {
    SendAgain,
    Discard,
}

/// A message as it stands among those that were set aside.
struct Stored {
    id: String,
    key: Vec<u8>,
    topic: String,
    headers: Vec<u8>,
    payload: Vec<u8>,
    trace_parent: Option<String>,
}

impl<'a, DB: OutboxDatabase> RejectedAct<'a, DB> {
    fn new(outbox: &'a Outbox<DB>, message: &Rejected, act: Act) -> Self {
        Self {
            outbox,
            id: message.id.clone(),
            at: message.at,
            act,
            note: Note::default(),
        }
    }

    signed!(|it| it.note);

    async fn run(self) -> Result<bool, Error> {
        self.note.checked()?;
        let doing = self.outbox.run(DOING, WRITING, async |connection| {
            self.carry_out(connection).await
        });
        let is_done = doing.await?;
        if let (true, Act::Discard) = (is_done, self.act) {
            let by = self.note.by.as_deref().unwrap_or_default();
            let (id, reason) = (&*self.id, &*self.note.text);
            tracing::warn!(id, by, reason, "a message that was set aside was deleted");
        }
        Ok(is_done)
    }

    async fn carry_out(&self, connection: &mut DB::Connection) -> Result<bool, Error> {
        let (outbox, rejected) = (self.outbox, &self.outbox.tables.rejected);
        let (id, at) = (DB::bytes(self.id.as_bytes()), self.at.as_micros());
        let meant = format!("id = {id} AND rejected = {at}");
        // Acts on such messages go one after the other: each has a moment of its own.
        let (counters, floor, locking) = (&outbox.tables.counters, DB::bytes(b""), DB::LOCKING);
        let turn = format!("SELECT number FROM {counters} WHERE message_key = {floor} {locking}");
        DB::query(connection, turn, DOING).await?;
        let look = format!("SELECT {ALL} FROM {rejected} WHERE {meant} {locking}");
        let mut found = read::<DB, _>(connection, look, DOING, stored::<DB::Row>).await?;
        let Some(message) = found.pop() else {
            return Ok(false);
        };
        let act = match self.act {
            Act::Discard => "discarded",
            Act::SendAgain => {
                let writing = message.writing();
                let (tables, ahead) = (&outbox.tables, outbox.clock_ahead);
                if DB::write(connection, tables, &writing, ahead).await? != Written::New {
                    return Ok(false);
                }
                "sent again"
            }
        };
        let place = DB::bytes(&message.key);
        let text = outbox.tables.note::<DB>(&place, act, &id, &self.note)
            + &format!("DELETE FROM {rejected} WHERE {meant}");
        DB::query(connection, text, DOING).await?;
        Ok(true)
    }
}

awaited!([DB: OutboxDatabase] RejectedAct<'a, DB> => Result<bool, Error>);

impl Stored {
    fn writing(&self) -> Writing<'_> {
        Writing {
            id: &self.id,
            key: &self.key,
            topic: &self.topic,
            headers: self.headers.clone(),
            payload: &self.payload,
            trace_parent: self.trace_parent.clone(),
            is_numbered: self.key.first() == Some(&OF_A_KEY),
        }
    }
}

fn stored<R: Row>(row: &R) -> Result<Stored, BoxError> {
    let bytes = |place| -> Result<Vec<u8>, BoxError> { Ok(row.bytes(place)?.unwrap_or_default()) };
    let text = |place| -> Result<String, BoxError> { Ok(String::from_utf8(bytes(place)?)?) };
    Ok(Stored {
        id: text(0)?,
        key: bytes(1)?,
        topic: text(3)?,
        headers: bytes(4)?,
        payload: bytes(5)?,
        trace_parent: row.bytes(6)?.map(String::from_utf8).transpose()?,
    })
}
