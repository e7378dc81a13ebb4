//! Parameters to SQLite.

use sqlx::{
    query::Query,
    sqlite::{Sqlite, SqliteArguments},
};

use crate::store::sql::Value;

/// Adds a parameter to a query.
pub(super) fn bind<'q>(
    query: Query<'q, Sqlite, SqliteArguments>,
    value: Value<'_>,
) -> Query<'q, Sqlite, SqliteArguments> {
    match value {
        Value::Bytes(bytes) => query.bind(bytes.map(std::borrow::Cow::into_owned)),
        Value::Text(text) => query.bind(text.map(str::to_owned)),
        Value::Number(number) => query.bind(number),
    }
}
