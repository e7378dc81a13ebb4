//! Parameters to Postgres, and rows from it.

use std::{borrow::Cow, fmt::Write as _, sync::Arc, time::Duration};

use sqlx::{
    AssertSqlSafe, Executor, Row as _,
    postgres::{PgArguments, PgConnection, PgRow, Postgres},
    query::Query,
};

use super::{
    connection::Session,
    failure,
    statements::{Statement, Statements},
};
use crate::store::{StoreError, StoreErrorKind, sql::Value};

/// How a statement reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Prepared once a connection: parsed and planned once.
    Extended,
    /// As one text, in one message. Behind a proxy that pools transactions, the second message of
    /// the driver may not find what the first one prepared. On a connection of the application's,
    /// `DISCARD ALL` or `DEALLOCATE ALL` may forget what has a name.
    Simple,
}

/// The reason why an answer is none.
const ANOTHER: &str =
    "another statement answered: say `transaction_pooling()` where a proxy pools transactions";

/// How often a statement that gave way to another one is sent again, where it is a transaction of
/// its own.
pub(super) const MAX_SERIALIZATION_RETRIES: u32 = 10;

impl Statements {
    /// Runs a statement to its end.
    pub(super) async fn run(
        &self,
        session: &mut Session<'_>,
        statement: &Statement,
        values: &[Value<'_>],
        doing: &'static str,
    ) -> Result<Vec<PgRow>, StoreError> {
        let rows = send(session.connection, self.protocol, statement, values).await;
        check_identity(statement, rows, doing)
    }

    /// The same for a statement whose last parameter is the channel. A record that a call waits for
    /// is told there.
    ///
    /// It is sent again up to `retries` times if it gave way to another one that writes the same
    /// rows, as a strict isolation demands. `retries` is zero if it is a part of the application's
    /// transaction, which is lost then, or if its caller sends it again.
    pub(super) async fn run_and_tell(
        &self,
        session: &mut Session<'_>,
        statement: &Statement,
        mut values: Vec<Value<'_>>,
        retries: u32,
        doing: &'static str,
    ) -> Result<Vec<PgRow>, StoreError> {
        let mut retried = 0;
        loop {
            match send_and_tell(session.connection, self.protocol, statement, &mut values).await {
                Err(error) if retried < retries && failure::gave_way(&error) => {
                    retried += 1;
                    let longest = 5 * u64::from(retried);
                    let pause = Duration::from_millis(rand::random_range(1..=longest));
                    tokio::time::sleep(pause).await;
                }
                rows => return check_identity(statement, rows, doing),
            }
        }
    }
}

/// The rows of the answer, if it was this statement that answered.
pub(super) fn check_identity(
    statement: &Statement,
    rows: sqlx::Result<Vec<PgRow>>,
    doing: &'static str,
) -> Result<Vec<PgRow>, StoreError> {
    let rows = rows.map_err(|error| failure::of(error, doing))?;
    let Some(row) = rows.first() else {
        return Ok(rows);
    };
    let last = row.len().saturating_sub(1);
    match row.try_get::<i64, _>(last) {
        Ok(name) if name == statement.name => Ok(rows),
        // It is unknown what it did instead.
        _ => Err(StoreError::new(StoreErrorKind::Other, doing).with_source(ANOTHER)),
    }
}

/// If the server has no room left for what it is to tell, the statement was undone. It is then sent
/// again without telling: calls that wait look, too.
async fn send_and_tell(
    connection: &mut PgConnection,
    protocol: Protocol,
    statement: &Statement,
    values: &mut [Value<'_>],
) -> sqlx::Result<Vec<PgRow>> {
    match send(connection, protocol, statement, values).await {
        Err(error) if failure::has_no_room_to_tell(&error) => {
            if let Some(channel) = values.last_mut() {
                *channel = Value::Text(None);
            }
            send(connection, protocol, statement, values).await
        }
        rows => rows,
    }
}

async fn send(
    connection: &mut PgConnection,
    protocol: Protocol,
    statement: &Statement,
    values: &[Value<'_>],
) -> sqlx::Result<Vec<PgRow>> {
    match protocol {
        Protocol::Extended => {
            let query = sqlx::query(AssertSqlSafe(Arc::clone(&statement.text)));
            connection.fetch_all(values.iter().fold(query, bind)).await
        }
        Protocol::Simple => {
            let query = AssertSqlSafe(written_out(&statement.text, values));
            connection.fetch_all(sqlx::raw_sql(query)).await
        }
    }
}

fn bind<'q>(
    query: Query<'q, Postgres, PgArguments>,
    value: &Value<'_>,
) -> Query<'q, Postgres, PgArguments> {
    match value {
        Value::Bytes(bytes) => query.bind(bytes.as_deref().map(<[u8]>::to_vec)),
        Value::Text(text) => query.bind(text.map(without_nul).map(Cow::into_owned)),
        Value::Number(number) => query.bind(*number),
    }
}

/// No text of Postgres holds a NUL. Texts are for people: the identity is in the bytes.
pub(super) fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        text.replace('\0', "\u{fffd}").into()
    } else {
        text.into()
    }
}

/// Puts the values in their places. Only digits and hexadecimal digits are put in, so nothing in a
/// value can be read as a part of the statement, whatever the server's settings for quotes and
/// backslashes.
pub(super) fn written_out(statement: &str, values: &[Value<'_>]) -> String {
    let mut text = String::with_capacity(2 * statement.len());
    let mut parts = statement.split('$');
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = part.split_at(digits);
        let value = number
            .parse::<usize>()
            .ok()
            .and_then(|number| values.get(number.checked_sub(1)?));
        match value {
            Some(value) => write_value(&mut text, value),
            None => text.push_str("NULL"),
        }
        text.push_str(rest);
    }
    text
}

pub(super) fn write_value(text: &mut String, value: &Value<'_>) {
    let hex = |bytes: &[u8]| format!("decode('{}', 'hex')", crate::framing::Hex(bytes));
    let value = match value {
        Value::Bytes(Some(bytes)) => hex(bytes),
        Value::Text(Some(value)) => {
            let bytes = hex(without_nul(value).as_bytes());
            format!("convert_from({bytes}, 'UTF8')")
        }
        Value::Number(Some(number)) => number.to_string(),
        Value::Bytes(None) | Value::Text(None) | Value::Number(None) => "NULL".to_owned(),
    };
    // In parentheses, so that the cast behind a negative number is that of the number.
    let _ = write!(text, "({value})");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_becomes_a_part_of_the_statement() {
        let values = [
            Value::Text(Some("'; DROP TABLE x; --")),
            Value::Bytes(Some(Cow::Borrowed(b"\\'$1"))),
            Value::Number(Some(-5)),
            Value::Text(None),
        ];
        assert_eq!(
            written_out(
                "SELECT $1::text, $2::bytea, $3::bigint, $4::text, $1",
                &values
            ),
            "SELECT (convert_from(decode('273b2044524f50205441424c4520783b202d2d', 'hex'), 'UTF8'))::text, \
             (decode('5c272431', 'hex'))::bytea, (-5)::bigint, (NULL)::text, \
             (convert_from(decode('273b2044524f50205441424c4520783b202d2d', 'hex'), 'UTF8'))"
        );
    }
}
