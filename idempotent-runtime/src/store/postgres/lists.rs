//! Statements that take a list of rows in place of single values.

use std::{borrow::Cow, fmt::Write as _, sync::Arc};

use sqlx::{
    AssertSqlSafe, Executor,
    postgres::{PgArguments, PgConnection, PgRow, Postgres},
    query::Query,
};

use super::{
    failure,
    rows::{Protocol, without_nul, write_value},
    statements::Statement,
};
use crate::store::sql::Value;

type Rows<'a> = [&'a [Value<'a>]];

/// The text of a list whose columns have these types, named `c1`, `c2` and so on. Each column is
/// one parameter. The parameter behind them is the channel.
pub(super) fn listed(types: &[&str]) -> String {
    let columns = types.iter().enumerate();
    let arrays: Vec<_> = columns
        .map(|(place, kind)| format!("${}::{kind}[]", place + 1))
        .collect();
    format!("unnest({}) AS {}", arrays.join(", "), named(types))
}

fn named(types: &[&str]) -> String {
    let names = (1..=types.len()).map(|number| format!("c{number}"));
    let names: Vec<_> = names.collect();
    format!("many ({})", names.join(", "))
}

/// Runs a statement over a list. If the server has no room left for what it is to tell, the
/// statement is sent again without telling.
pub(super) async fn send(
    connection: &mut PgConnection,
    protocol: Protocol,
    statement: &Statement,
    types: &[&str],
    rows: &Rows<'_>,
    channel: Option<&str>,
) -> sqlx::Result<Vec<PgRow>> {
    match send_once(connection, protocol, statement, types, rows, channel).await {
        Err(error) if failure::has_no_room_to_tell(&error) => {
            send_once(connection, protocol, statement, types, rows, None).await
        }
        rows => rows,
    }
}

async fn send_once(
    connection: &mut PgConnection,
    protocol: Protocol,
    statement: &Statement,
    types: &[&str],
    rows: &Rows<'_>,
    channel: Option<&str>,
) -> sqlx::Result<Vec<PgRow>> {
    match protocol {
        Protocol::Extended => {
            let query = sqlx::query(AssertSqlSafe(Arc::clone(&statement.text)));
            let columns = types.iter().enumerate();
            let query = columns.fold(query, |query, (place, kind)| {
                bind(query, kind, rows.iter().map(|row| &row[place]))
            });
            let channel_is_read = statement.text.contains(&format!("${}", types.len() + 1));
            let query = match channel_is_read {
                true => query.bind(channel.map(str::to_owned)),
                false => query,
            };
            connection.fetch_all(query).await
        }
        Protocol::Simple => {
            let text = written_out(&statement.text, types, rows, channel);
            let query = sqlx::raw_sql(AssertSqlSafe(text));
            connection.fetch_all(query).await
        }
    }
}

fn bind<'q, 'v>(
    query: Query<'q, Postgres, PgArguments>,
    kind: &str,
    column: impl Iterator<Item = &'v Value<'v>>,
) -> Query<'q, Postgres, PgArguments> {
    match kind {
        "bytea" => {
            let values = column.map(|value| match value {
                Value::Bytes(bytes) => bytes.as_deref().map(<[u8]>::to_vec),
                _ => None,
            });
            query.bind(values.collect::<Vec<_>>())
        }
        "text" => {
            let values = column.map(|value| match value {
                Value::Text(text) => text.map(without_nul).map(Cow::into_owned),
                _ => None,
            });
            query.bind(values.collect::<Vec<_>>())
        }
        _ => {
            let values = column.map(|value| match value {
                Value::Number(number) => *number,
                _ => None,
            });
            query.bind(values.collect::<Vec<_>>())
        }
    }
}

/// Puts the values in their places, as [`write_value`] does: none becomes a part of the statement.
pub(super) fn written_out(
    text: &str,
    types: &[&str],
    rows: &Rows<'_>,
    channel: Option<&str>,
) -> String {
    let mut list = String::from("(VALUES ");
    for (number, row) in rows.iter().enumerate() {
        list.push_str(if number == 0 { "(" } else { ", (" });
        for (place, (value, kind)) in row.iter().zip(types).enumerate() {
            list.push_str(if place == 0 { "" } else { ", " });
            write_value(&mut list, value);
            let _ = write!(list, "::{kind}");
        }
        list.push(')');
    }
    let _ = write!(list, ") AS {}", named(types));
    let mut told = String::new();
    write_value(&mut told, &Value::Text(channel));
    text.replace(&listed(types), &list)
        .replace(&format!("${}", types.len() + 1), &told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_written_out_in_digits() {
        let types = ["bytea", "text"];
        let text = format!("SELECT $3::text FROM {}", listed(&types));
        let rows = [
            [
                Value::Bytes(Some(Cow::Borrowed(b"\\'$1"))),
                Value::Text(Some("'")),
            ],
            [Value::Bytes(None), Value::Text(None)],
        ];
        assert_eq!(
            written_out(&text, &types, &[&rows[0], &rows[1]], Some("c")),
            "SELECT (convert_from(decode('63', 'hex'), 'UTF8'))::text FROM (VALUES \
             ((decode('5c272431', 'hex'))::bytea, (convert_from(decode('27', 'hex'), 'UTF8'))::text), \
             ((NULL)::bytea, (NULL)::text)) AS many (c1, c2)"
        );
    }
}
