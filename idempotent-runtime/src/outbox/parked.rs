//! Lists keys that are parked, and has many of them go on.

use std::time::Duration;

use super::{
    Outbox,
    dialect::OutboxDatabase,
    operators::{Act, DOING, KeyAct, READING, WRITING, damaged, place_of},
    tables::Tables,
};
use crate::{
    error::{BoxError, Error},
    record::{Note, note::signed},
    store::sql::Row,
    value::{awaited, setters},
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

/// How many keys one transaction has go on.
const AT_ONCE: u32 = 10;

/// A list of parked keys, in the order of the keys: [`Outbox::parked`] makes it. Awaited, it
/// returns a page.
#[derive(Debug)]
#[must_use = "nothing is looked at until it is awaited"]
pub struct ParkedKeys<'a, DB: OutboxDatabase> {
    outbox: &'a Outbox<DB>,
    topic: Option<String>,
    reason: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

impl<DB: OutboxDatabase> Outbox<DB> {
    /// Begins to list the keys that are parked, in the order of the keys. Awaited, it returns up to
    /// 1,000 of them, or as many as the [limit](ParkedKeys::limit).
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
    /// let mut after = None;
    /// loop {
    ///     let page = outbox.parked().topic("invoices").limit(100).after(after).await?;
    ///     let Some(last) = page.last() else { break };
    ///     after = Some(last.key.clone());
    ///     page.iter().for_each(|parked| println!("{}: {}", parked.key, parked.reason));
    /// }
    /// // All keys that a receiver refused while it was set up wrong.
    /// let resume = outbox.parked().topic("invoices").reason("403").resume();
    /// resume.by("anna").because("its token is renewed").await?;
    /// # Ok(()) }
    /// ```
    pub fn parked(&self) -> ParkedKeys<'_, DB> {
        ParkedKeys {
            outbox: self,
            topic: None,
            reason: None,
            after: None,
            limit: None,
        }
    }
}

impl<'a, DB: OutboxDatabase> ParkedKeys<'a, DB> {
    setters! {
        /// Only keys whose oldest message is of this topic.
        topic(it, topic: &str) { it.topic = Some(topic.to_owned()) }

        /// Only keys whose last reason has this text in it.
        reason(it, part: &str) { it.reason = Some(part.to_owned()) }

        /// Goes on behind this key, the last one of the page before.
        after(it, key: impl Into<Option<String>>) { it.after = key.into() }

        /// Sets how many keys a page has at most, and how many are [resumed](Self::resume): 1 to
        /// 1,000.
        limit(it, limit: u32) { it.limit = Some(limit.clamp(1, MOST)) }
    }

    /// Begins to have all of them go on, each with its oldest message and a fresh budget; with a
    /// [limit](Self::limit), so many. Awaited, it returns how many do. A key that parks meanwhile
    /// may go on, too.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] where the database fails, and [`Error::InvalidPolicy`] where the note is
    /// too long.
    ///
    /// # Cancel safety
    ///
    /// Dropped, or failed, a part of the keys goes on. Do it again.
    pub fn resume(self) -> ResumeKeys<'a, DB> {
        let (keys, note) = (self, Note::default());
        ResumeKeys { keys, note }
    }

    /// The text that looks for them behind `after`, a key as it stands in the tables.
    fn look(&self, after: &str, limit: u32) -> String {
        let Tables {
            messages, claims, ..
        } = &*self.outbox.tables;
        let now = DB::NOW;
        let is_topic =
            |topic: &String| format!("AND message.topic = {}", DB::bytes(topic.as_bytes()));
        let has_reason =
            |part: &String| format!("AND {}", DB::contains("claimed.reason", part.as_bytes()));
        let topic = self.topic.as_ref().map(is_topic).unwrap_or_default();
        let reason = self.reason.as_ref().map(has_reason).unwrap_or_default();
        format!(
            "SELECT claimed.message_key, message.topic, coalesce(message.id, claimed.attempted), claimed.reason,
                 {now} - claimed.blocked_since
             FROM {claims} AS claimed LEFT JOIN {messages} AS message ON message.message_key = claimed.message_key
               AND message.number = (SELECT earlier.number FROM {messages} AS earlier
                   WHERE earlier.message_key = claimed.message_key ORDER BY earlier.number LIMIT 1)
             WHERE claimed.blocked_since > 0 AND claimed.message_key > {after} {topic} {reason}
             ORDER BY claimed.message_key LIMIT {limit}"
        )
    }

    /// The place of the key behind which it begins.
    fn begin(&self) -> String {
        let after = self.after.as_ref();
        after.map_or_else(|| DB::bytes(b""), |key| place_of::<DB>(key))
    }

    async fn run(self) -> Result<Vec<Parked>, Error> {
        let messages = &self.outbox.tables.messages;
        let look = self.look(&self.begin(), self.limit.unwrap_or(MOST));
        let reading = self.outbox.run(DOING, READING, async |connection| {
            let rows = DB::query(connection, look, DOING).await?;
            let mut parked = Vec::new();
            for row in &rows {
                let (place, mut key) = read(row).map_err(damaged)?;
                let place = DB::bytes(&place);
                let count = format!(
                    "SELECT count(*) FROM (SELECT 1 FROM {messages} WHERE message_key = {place} LIMIT {MOST}) AS counted"
                );
                key.messages = Outbox::<DB>::count(connection, count).await?.unsigned_abs();
                parked.push(key);
            }
            Ok(parked)
        });
        reading.await
    }
}

awaited!([DB: OutboxDatabase] ParkedKeys<'a, DB> => Result<Vec<Parked>, Error>);

/// Has many parked keys go on: [`ParkedKeys::resume`] makes it. Nothing happens until it is
/// awaited.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct ResumeKeys<'a, DB: OutboxDatabase> {
    keys: ParkedKeys<'a, DB>,
    note: Note,
}

impl<DB: OutboxDatabase> ResumeKeys<'_, DB> {
    signed!(|it| it.note);

    async fn run(self) -> Result<u64, Error> {
        self.note.checked()?;
        let (outbox, mut after, mut resumed) = (self.keys.outbox, self.keys.begin(), 0);
        let most = self.keys.limit.map_or(u64::MAX, u64::from);
        while resumed < most {
            let left = u32::try_from(most - resumed).unwrap_or(AT_ONCE);
            let look = self.keys.look(&after, left.min(AT_ONCE));
            let running = outbox.run(DOING, WRITING, async |connection| {
                let rows = DB::query(connection, look, DOING).await?;
                let (mut last, mut here) = (None, 0);
                for row in &rows {
                    let place = DB::bytes(&read(row).map_err(damaged)?.0);
                    let act = KeyAct::at(outbox, &place, Act::Resume, &self.note);
                    here += u64::from(act.carry_out(connection).await?);
                    last = Some(place);
                }
                Ok((last, here))
            });
            let (last, here) = running.await?;
            resumed += here;
            match last {
                Some(last) => after = last,
                None => break,
            }
        }
        Ok(resumed)
    }
}

awaited!([DB: OutboxDatabase] ResumeKeys<'a, DB> => Result<u64, Error>);

/// The place of the key, and the key.
fn read(row: &impl Row) -> Result<(Vec<u8>, Parked), BoxError> {
    let bytes = |place| -> Result<Vec<u8>, BoxError> { Ok(row.bytes(place)?.unwrap_or_default()) };
    let text = |place| -> Result<String, BoxError> {
        Ok(String::from_utf8_lossy(&bytes(place)?).into_owned())
    };
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
