//! Writes messages in a transaction of the application's.

use super::{Message, Outbox, dialect::OutboxDatabase};
use crate::{
    attempt::{Asking, goes_forward, try_current},
    engine::parts::Traces,
    error::Error,
    run,
    store::{
        JoinedConnection, NOT_OPEN, StoreError, StoreErrorKind, check_open,
        sql::{ROUNDS, Row as _},
    },
};

/// A message as it is written.
#[derive(Debug)]
pub struct Writing<'a> {
    pub(super) id: &'a str,
    /// The key, or the lane.
    pub(super) key: &'a [u8],
    pub(super) topic: &'a str,
    pub(super) headers: Vec<u8>,
    pub(super) payload: &'a [u8],
    pub(super) trace_parent: Option<String>,
    /// Whether its key counts its messages.
    pub(super) is_numbered: bool,
}

/// Tells whether a message was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It stands.
    New,
    /// A message of its id was there.
    Old,
    /// No transaction is open, and nothing was written.
    Outside,
}

/// The columns that are given.
pub(super) const COLUMNS: &str = "id, message_key, topic, headers, payload, traceparent";

/// The number of lanes, among which messages without a key are spread.
const LANES: u8 = 64;

/// A key and a lane differ in their first byte, and neither is empty.
pub(super) const OF_A_KEY: u8 = b'k';
const OF_A_LANE: u8 = b'l';

/// The W3C's has 55 bytes.
const LONGEST_TRACE_PARENT: usize = 256;

pub(super) const DOING: &str = "sending a message";

impl<DB: OutboxDatabase> Outbox<DB> {
    /// Writes a message in the transaction that is open on this connection, `&mut transaction`, and
    /// tells its id. It is sent once the transaction has committed.
    ///
    /// A key stays locked until the commit: send late, after the rows that the message is about.
    /// Several messages are sent by [`send_all`](Self::send_all), in one order of keys.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidMessage`] where the message cannot be sent, and [`Error::InvalidPolicy`]
    /// where no transaction is open: the transaction goes on. [`Error::MessageChanged`] where
    /// another message has its id. [`Error::LeaseLost`] in an attempt that could not record a step.
    /// [`Error::Store`] where the database fails, such as by a deadlock, which is transient: run
    /// the whole transaction again.
    ///
    /// # Cancel safety
    ///
    /// Dropped at any time, it has written nothing that stands so long as the transaction is not
    /// committed.
    pub async fn send(
        &self,
        connection: &mut DB::Connection,
        message: Message,
    ) -> Result<String, Error> {
        message.check(self.max_payload)?;
        if !DB::FINDS_OUT {
            check_open(connection).await?;
        }
        self.write(connection, &message).await
    }

    /// Sends several messages, in the order of their keys, so that two transactions that send to
    /// the same keys do not wait for each other. It tells their ids in the order of the messages.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send). No message is written if one of them is invalid. After any other
    /// error, the messages before the failed one, in the order of the keys, stand in the
    /// transaction: roll it back.
    ///
    /// # Cancel safety
    ///
    /// As [`send`](Self::send).
    pub async fn send_all(
        &self,
        connection: &mut DB::Connection,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Vec<String>, Error> {
        let messages: Vec<_> = messages.into_iter().collect();
        for message in &messages {
            message.check(self.max_payload)?;
        }
        if !DB::FINDS_OUT {
            check_open(connection).await?;
        }
        let mut places: Vec<usize> = (0..messages.len()).collect();
        places.sort_by_key(|place| messages[*place].key.as_deref());
        let mut ids = vec![String::new(); messages.len()];
        for place in places {
            ids[place] = self.write(connection, &messages[place]).await?;
        }
        Ok(ids)
    }

    async fn write(
        &self,
        connection: &mut DB::Connection,
        message: &Message,
    ) -> Result<String, Error> {
        let asking = Asking::here(message.digest());
        let written = self.try_to_write(connection, message).await;
        asking.answered(written.as_ref().err());
        written
    }

    async fn try_to_write(
        &self,
        connection: &mut DB::Connection,
        message: &Message,
    ) -> Result<String, Error> {
        goes_forward().await?;
        let attempt = try_current();
        if let Some(attempt) = attempt.as_ref().filter(|attempt| attempt.is_poisoned()) {
            let operation = attempt.operation_name().clone();
            return Err(Error::LeaseLost { operation });
        }
        let (id, sending) = message.identity(attempt.as_ref());
        if let Some(sending) = sending {
            run::sends(&JoinedConnection::new(connection), sending);
        }
        let key = key_of(message, &id);
        let writing = self.writing(message, &id, &key);
        for _ in 0..ROUNDS {
            let written = DB::write(connection, &self.tables, &writing, self.clock_ahead).await?;
            match written {
                Written::Outside => return Err(NOT_OPEN),
                Written::New => return Ok(id),
                Written::Old => {}
            }
            match self.meets(connection, message, &id, &key).await? {
                Found::TheSame => return Ok(id),
                Found::Another => return Err(Error::MessageChanged { id: id.into() }),
                Found::Nothing => {}
            }
        }
        let hidden = "a message of its id is there, and this user may not see it";
        let denied = StoreError::new(StoreErrorKind::Denied, DOING);
        Err(denied.with_source(hidden).into())
    }

    fn writing<'a>(&self, message: &'a Message, id: &'a str, key: &'a [u8]) -> Writing<'a> {
        let trace_parent = self.traces.as_ref().and_then(Traces::current);
        Writing {
            id,
            key,
            topic: &message.topic,
            headers: message.framed_headers(),
            payload: &message.payload,
            trace_parent: trace_parent.filter(|it| it.len() <= LONGEST_TRACE_PARENT),
            is_numbered: message.key.is_some(),
        }
    }

    /// Looks at the message that was there under this id.
    async fn meets(
        &self,
        connection: &mut DB::Connection,
        message: &Message,
        id: &str,
        key: &[u8],
    ) -> Result<Found, Error> {
        let messages = &self.tables.messages;
        let (id, key) = (DB::bytes(id.as_bytes()), DB::bytes(key));
        let topic = DB::bytes(message.topic.as_bytes());
        let is_payload = DB::holds("payload", &message.payload);
        let look = format!(
            "SELECT count(CASE WHEN topic = {topic} AND message_key = {key} AND {is_payload} THEN 1 END)
             FROM {messages} WHERE id = {id} HAVING count(*) > 0 {}",
            DB::CURRENT
        );
        let rows = DB::query(connection, look, DOING).await?;
        let is_same = rows.first().map(|row| row.number(0)).transpose();
        let damaged = |source| StoreError::new(StoreErrorKind::Corrupt, DOING).with_source(source);
        Ok(match is_same.map_err(damaged)? {
            None => Found::Nothing,
            Some(Some(1)) => Found::TheSame,
            Some(_) => Found::Another,
        })
    }
}

/// The message that was there.
enum Found {
    TheSame,
    Another,
    /// It has been sent and deleted since.
    Nothing,
}

fn key_of(message: &Message, id: &str) -> Vec<u8> {
    match &message.key {
        Some(key) => [&[OF_A_KEY], key.as_bytes()].concat(),
        None => {
            let add = |sum: u8, byte| sum.wrapping_mul(31).wrapping_add(byte);
            let sum = id.bytes().fold(0, add);
            vec![OF_A_LANE, sum % LANES]
        }
    }
}
