//! The tables of an outbox.

use super::dialect::OutboxDatabase;
use crate::store::{
    StoreError,
    sql::{
        Row, TablePrefix,
        version::{self, Found},
    },
};

/// The names of the tables.
#[derive(Debug)]
pub struct Tables {
    pub(super) schema: String,
    pub(super) messages: String,
    pub(super) counters: String,
    pub(super) claims: String,
    pub(super) rejected: String,
    prefix: String,
}

/// A column, by what it holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Column {
    /// At most 256 bytes, which an index may hold.
    Short,
    /// Bytes of any length.
    Long,
    /// A number of 64 bits.
    Number,
}

/// How many steps the schema has seen: the version that this build makes and needs.
const VERSION: usize = 1;

impl Tables {
    pub(super) fn new(prefix: &TablePrefix) -> Self {
        let table = |name| format!("{prefix}outbox_{name}");
        Self {
            schema: table("schema"),
            messages: table("messages"),
            counters: table("counters"),
            claims: table("claims"),
            rejected: table("rejected"),
            prefix: prefix.to_string(),
        }
    }

    /// The statements that make the tables, each of which changes nothing when it is repeated.
    ///
    /// The id is the only unique key of a message, so that nothing but a copy of it is in the way.
    pub(super) fn ddl(
        &self,
        of: impl Fn(Column) -> &'static str,
        (options, has_indexes_inside): (&str, bool),
        unless_there: &str,
    ) -> String {
        let (short, long, number) = (of(Column::Short), of(Column::Long), of(Column::Number));
        let Self {
            schema,
            messages,
            counters,
            claims,
            rejected,
            prefix,
        } = self;
        let index = format!("{prefix}outbox_order");
        let (inside, apart) = match has_indexes_inside {
            true => (
                format!(",\n    KEY {index} (message_key, number)"),
                String::new(),
            ),
            false => (
                String::new(),
                format!(
                    "CREATE INDEX IF NOT EXISTS {index} ON {messages} (message_key, number);\n"
                ),
            ),
        };
        format!(
            "CREATE TABLE IF NOT EXISTS {schema} (
    version {number} NOT NULL PRIMARY KEY,
    usable_from {number} NOT NULL
){options};
CREATE TABLE IF NOT EXISTS {messages} (
    id {short} NOT NULL PRIMARY KEY,
    message_key {short} NOT NULL,
    number {number} NOT NULL,
    topic {short} NOT NULL,
    headers {long} NOT NULL,
    payload {long} NOT NULL,
    traceparent {short},
    created {number} NOT NULL{inside}
){options};
{apart}CREATE TABLE IF NOT EXISTS {counters} (
    message_key {short} NOT NULL PRIMARY KEY,
    number {number} NOT NULL
){options};
CREATE TABLE IF NOT EXISTS {claims} (
    message_key {short} NOT NULL PRIMARY KEY,
    token {number} NOT NULL,
    lease_end {number} NOT NULL,
    attempts {number} NOT NULL,
    next_attempt {number} NOT NULL,
    blocked_since {number} NOT NULL,
    reason {long}
){options};
CREATE TABLE IF NOT EXISTS {rejected} (
    id {short} NOT NULL,
    message_key {short} NOT NULL,
    number {number} NOT NULL,
    topic {short} NOT NULL,
    headers {long} NOT NULL,
    payload {long} NOT NULL,
    traceparent {short},
    created {number} NOT NULL,
    rejected {number} NOT NULL,
    reason {long} NOT NULL,
    PRIMARY KEY (id, rejected)
){options};
INSERT INTO {schema} (version, usable_from) VALUES ({VERSION}, 1) {unless_there};
"
        )
    }

    /// Tells whether this build can use the tables.
    pub(super) async fn check<DB: OutboxDatabase>(
        &self,
        connection: &mut DB::Connection,
        doing: &'static str,
    ) -> Result<(), StoreError> {
        let look = format!(
            "SELECT coalesce(max(version), 0), coalesce(max(usable_from), 0) FROM {}",
            self.schema
        );
        let rows = DB::query(connection, look, doing).await.unwrap_or_default();
        let number = |place| {
            let row = rows.first()?;
            row.number(place).ok().flatten()
        };
        let found = Found {
            version: number(0).unwrap_or_default(),
            usable_from: number(1).unwrap_or_default(),
        };
        version::check(found, VERSION, doing)
    }
}
