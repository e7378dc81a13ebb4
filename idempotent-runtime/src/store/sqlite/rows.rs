//! Records to and from SQLite's rows.

use std::error::Error;

use sqlx::{
    Row as _,
    query::Query,
    sqlite::{Sqlite, SqliteArguments, SqliteRow},
};

use crate::store::sql::{self, Value};

impl sql::Row for SqliteRow {
    fn bytes(&self, place: usize) -> Result<Option<Vec<u8>>, Box<dyn Error + Send + Sync>> {
        Ok(self.try_get(place)?)
    }
    fn text(&self, place: usize) -> Result<Option<String>, Box<dyn Error + Send + Sync>> {
        Ok(self.try_get(place)?)
    }
    fn number(&self, place: usize) -> Result<Option<i64>, Box<dyn Error + Send + Sync>> {
        Ok(self.try_get(place)?)
    }
}

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
