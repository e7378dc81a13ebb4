//! Parameters to the server, and rows and numbers from it.

use std::{future::poll_fn, sync::Arc, time::Duration};

use sqlx::{
    AssertSqlSafe, Either, Executor,
    mysql::{MySql, MySqlArguments, MySqlConnection, MySqlRow},
    query::Query,
};

use super::{
    beside_triggers,
    connection::Session,
    failure::{self, is_deadlock},
    statements::Statement,
    together,
};
use crate::{
    record::{Draft, Moment, Record, Time, TokenRule},
    store::{Snapshot, Stamp, StoreError, StoreErrorKind, sql::Value},
};

/// How often a statement that met a deadlock is sent again, where it is a transaction of its own,
/// which a deadlock rolls back.
const DEADLOCKS: u32 = 10;

/// The server's answer to a statement.
#[derive(Default)]
pub(super) struct ServerAnswer {
    pub(super) rows: Vec<MySqlRow>,
    /// The last argument of `LAST_INSERT_ID` in it; 0 where that was not called.
    pub(super) server_time: u64,
    /// How many rows were found, or changed: that depends on how the connection was opened.
    pub(super) affected: u64,
}

/// Runs a statement to its end.
pub(super) async fn run(
    session: &mut Session<'_>,
    statement: &Statement,
    values: &[Value<'_>],
    doing: &'static str,
) -> Result<ServerAnswer, StoreError> {
    fits(session, values, doing)?;
    let mut deadlocks = 0;
    loop {
        let query = match session.is_alone() {
            true => query(statement, values),
            false => query_elsewhere(statement, values),
        };
        match send(session.connection, query).await {
            Err(error) if gives_way(session, &mut deadlocks, &error).await => {}
            answer => return answer.map_err(|error| failure::of(error, doing)),
        }
    }
}

/// Runs a write in a message that keeps its number.
pub(super) async fn run_text(
    session: &mut Session<'_>,
    message: &str,
    doing: &'static str,
) -> Result<ServerAnswer, StoreError> {
    /// The word that begins stands before it.
    const WRITE: usize = 1;
    let mut deadlocks = 0;
    loop {
        let mut told = Vec::new();
        match together::send(session.connection, message.to_owned(), &mut told).await {
            Ok(()) => {
                let (writes, shown) = told.split_at_mut(WRITE + 1);
                beside_triggers::fill(&mut writes[WRITE..], shown.first());
                return Ok(told.swap_remove(WRITE));
            }
            Err(error) if told.len() > WRITE => {
                return Err(failure::of(error, doing).after_a_write());
            }
            Err(error) if gives_way(session, &mut deadlocks, &error).await => {}
            Err(error) => return Err(failure::of(error, doing)),
        }
    }
}

/// Waits for a moment after a deadlock, if the statement may be sent again.
async fn gives_way(session: &Session<'_>, deadlocks: &mut u32, error: &sqlx::Error) -> bool {
    if !session.is_alone() || *deadlocks >= DEADLOCKS || !is_deadlock(error) {
        return false;
    }
    *deadlocks += 1;
    let pause = Duration::from_millis(rand::random_range(1..=5 * u64::from(*deadlocks)));
    tokio::time::sleep(pause).await;
    true
}

async fn send(
    connection: &mut MySqlConnection,
    query: Query<'static, MySql, MySqlArguments>,
) -> sqlx::Result<ServerAnswer> {
    let mut answers = connection.fetch_many(query);
    let mut whole = ServerAnswer::default();
    while let Some(answer) = poll_fn(|context| answers.as_mut().poll_next(context)).await {
        match answer? {
            Either::Left(done) => {
                whole.server_time = done.last_insert_id();
                whole.affected = done.rows_affected();
            }
            Either::Right(row) => whole.rows.push(row),
        }
    }
    Ok(whole)
}

/// A statement with its parameters.
pub(super) fn query(
    statement: &Statement,
    values: &[Value<'_>],
) -> Query<'static, MySql, MySqlArguments> {
    let query = sqlx::query(AssertSqlSafe(Arc::clone(&statement.text)));
    let values = statement
        .places
        .iter()
        .filter_map(|place| values.get(*place));
    values.fold(query, bind)
}

/// The same for a session that is not ours, which may take an empty parameter for NULL: empty
/// values are written out.
pub(super) fn query_elsewhere(
    statement: &Statement,
    values: &[Value<'_>],
) -> Query<'static, MySql, MySqlArguments> {
    let mut parts = statement.text.split('?');
    let mut text = parts.next().unwrap_or_default().to_owned();
    let places = statement.places.iter();
    let (mut places, mut given) = (places.filter_map(|place| values.get(*place)), Vec::new());
    for part in parts {
        match places.next() {
            Some(value) if is_empty(value) => text.push_str("x''"),
            value => {
                text.push('?');
                given.extend(value);
            }
        }
        text.push_str(part);
    }
    given
        .into_iter()
        .fold(sqlx::query(AssertSqlSafe(text)), bind)
}

fn is_empty(value: &Value<'_>) -> bool {
    match value {
        Value::Bytes(bytes) => bytes.as_ref().is_some_and(|bytes| bytes.is_empty()),
        Value::Text(text) => text.is_some_and(str::is_empty),
        Value::Number(_) => false,
    }
}

/// Refuses what the server would not read: it hangs up in the middle of a packet that is too large,
/// and its answer to that may be lost.
fn fits(
    session: &Session<'_>,
    values: &[Value<'_>],
    doing: &'static str,
) -> Result<(), StoreError> {
    /// The numbers and short texts of a statement, and what frames them.
    const REST: usize = 4096;
    let length = |value: &Value<'_>| match value {
        Value::Bytes(Some(bytes)) => bytes.len(),
        Value::Text(Some(text)) => text.len(),
        _ => 0,
    };
    let (needed, most) = (
        REST + values.iter().map(length).sum::<usize>(),
        session.about.max_allowed_packet,
    );
    if u64::try_from(needed).unwrap_or(u64::MAX) <= most {
        return Ok(());
    }
    Err(StoreError::new(StoreErrorKind::Full, doing).with_source(format!(
        "the record takes a packet of {needed} bytes, and the server reads at most {most}: raise its `max_allowed_packet`"
    )))
}

fn bind(
    query: Query<'static, MySql, MySqlArguments>,
    value: &Value<'_>,
) -> Query<'static, MySql, MySqlArguments> {
    match value {
        Value::Bytes(bytes) => query.bind(bytes.as_deref().map(<[u8]>::to_vec)),
        Value::Text(text) => query.bind(text.map(str::to_owned)),
        Value::Number(number) => query.bind(*number),
    }
}

/// Whether a draft keeps anything that its stamp holds.
pub(super) fn keeps(next: &Draft) -> bool {
    next.token == TokenRule::Keep || next.lease == Moment::Keep || next.expires == Moment::Keep
}

/// The stamp of what was written at the time that the server told; `None` where it told none.
pub(super) fn stamped(next: &Draft, previous: Option<&Record>, server_time: u64) -> Option<Stamp> {
    let now = Time::from_micros(i64::try_from(server_time).ok().filter(|now| *now > 0)?);
    Some(Stamp::from_record(&next.apply(previous, now), now))
}

/// The stamp of the record that stands there, if it is the one that was written: beside a trigger
/// of the application's the server forgets what it was to tell. The record says when it was
/// written, if that is noted in it, or if it ends a certain time after that.
pub(super) fn found(next: &Draft, snapshot: &Snapshot) -> Option<Stamp> {
    let record = snapshot.record.as_deref()?;
    let before = |end: Time, moment| match moment {
        Moment::In(after) => Some(end.minus(after)),
        Moment::Keep => None,
    };
    let begun = next.subject.as_ref().map(|_| record.created);
    let now = begun
        .or(record.finished)
        .or_else(|| before(record.lease_end, next.lease))
        .or_else(|| before(record.expires, next.expires))
        .unwrap_or(snapshot.now);
    (record.version == next.version).then(|| Stamp::from_record(record, now))
}
