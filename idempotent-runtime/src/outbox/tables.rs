//! The tables of an outbox.

use super::dialect::OutboxDatabase;
use crate::store::{
    StoreError,
    sql::{
        TablePrefix,
        migrate::numbers,
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
    pub(super) relays: String,
    pub(super) rejected: String,
    pub(super) history: String,
    pub(super) acts: String,
    /// The channel on which Postgres tells relays of messages.
    pub(super) channel: String,
    prefix: String,
}

/// The columns of a message.
pub(super) const ALL: &str =
    "id, message_key, number, topic, headers, payload, traceparent, created";

/// A column, by what it holds.
#[derive(Clone, Copy, Debug)]
pub enum Column {
    /// At most 256 bytes, which an index may hold.
    Short,
    /// Bytes of any length.
    Long,
    /// A number of 64 bits.
    Number,
}

/// How many steps the schema has seen: the version that this build makes and needs. Each step so
/// far only added a table, so builds of every version can use what stands.
const VERSION: usize = 2;

impl Tables {
    pub(super) fn new(prefix: &TablePrefix) -> Self {
        let table = |name| format!("{prefix}outbox_{name}");
        Self {
            schema: table("schema"),
            messages: table("messages"),
            counters: table("counters"),
            claims: table("claims"),
            relays: table("relays"),
            rejected: table("rejected"),
            history: table("history"),
            acts: table("acts"),
            channel: table("messages"),
            prefix: prefix.to_string(),
        }
    }

    /// The statements that make the tables, each of which changes nothing when it is repeated.
    ///
    /// The id is the only unique key of a message, so that only a copy of it is in the way.
    pub(super) fn ddl<DB: OutboxDatabase>(&self) -> String {
        let Self {
            schema, counters, ..
        } = self;
        let (floor, version) = (DB::bytes(b""), DB::unless_there("version"));
        let unless_there = DB::unless_there("number");
        self.of_messages::<DB>()
            + &self.of_relays::<DB>()
            + &self.of_operators::<DB>()
            + &format!(
                "INSERT INTO {counters} (message_key, number) VALUES ({floor}, 0) {unless_there};
INSERT INTO {schema} (version, usable_from) VALUES ({VERSION}, 1) {version};
"
            )
    }

    fn of_messages<DB: OutboxDatabase>(&self) -> String {
        let Self {
            schema,
            messages,
            counters,
            rejected,
            history,
            prefix,
            ..
        } = self;
        let (number, short) = (DB::column(Column::Number), DB::column(Column::Short));
        let (long, options) = (DB::column(Column::Long), DB::TABLE);
        let index = format!("{prefix}outbox_order");
        let (inside, apart) = match DB::HAS_INDEXES_INSIDE {
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
        let message = format!(
            "message_key {short} NOT NULL,
    number {number} NOT NULL,
    topic {short} NOT NULL,
    headers {long} NOT NULL,
    payload {long} NOT NULL,
    traceparent {short},
    created {number} NOT NULL"
        );
        format!(
            "CREATE TABLE IF NOT EXISTS {schema} (
    version {number} NOT NULL PRIMARY KEY,
    usable_from {number} NOT NULL
){options};
CREATE TABLE IF NOT EXISTS {messages} (
    id {short} NOT NULL PRIMARY KEY,
    {message}{inside}
){options};
{apart}CREATE TABLE IF NOT EXISTS {counters} (
    message_key {short} NOT NULL PRIMARY KEY,
    number {number} NOT NULL
){options};
CREATE TABLE IF NOT EXISTS {rejected} (
    id {short} NOT NULL,
    {message},
    rejected {number} NOT NULL,
    reason {long} NOT NULL,
    PRIMARY KEY (id, rejected)
){options};
CREATE TABLE IF NOT EXISTS {history} (
    id {short} NOT NULL,
    {message},
    sent {number} NOT NULL,
    PRIMARY KEY (sent, id)
){options};
"
        )
    }

    fn of_relays<DB: OutboxDatabase>(&self) -> String {
        let Self { claims, relays, .. } = self;
        let (number, short) = (DB::column(Column::Number), DB::column(Column::Short));
        let (long, options) = (DB::column(Column::Long), DB::TABLE);
        format!(
            "CREATE TABLE IF NOT EXISTS {claims} (
    message_key {short} NOT NULL PRIMARY KEY,
    token {number} NOT NULL,
    lease_end {number} NOT NULL,
    attempts {number} NOT NULL,
    attempted {short},
    next_attempt {number} NOT NULL,
    blocked_since {number} NOT NULL,
    reason {long}
){options};
CREATE TABLE IF NOT EXISTS {relays} (
    relay {number} NOT NULL PRIMARY KEY,
    sleeps_until {number} NOT NULL
){options};
"
        )
    }

    fn of_operators<DB: OutboxDatabase>(&self) -> String {
        let (acts, options) = (&self.acts, DB::TABLE);
        let (number, short) = (DB::column(Column::Number), DB::column(Column::Short));
        let long = DB::column(Column::Long);
        format!(
            "CREATE TABLE IF NOT EXISTS {acts} (
    message_key {short} NOT NULL,
    acted {number} NOT NULL,
    act {short} NOT NULL,
    id {short},
    person {short},
    reason {long} NOT NULL,
    PRIMARY KEY (message_key, acted, act)
){options};
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
        let numbers = numbers::<DB, 2>(connection, look, doing).await;
        version::check(Found::from(numbers.unwrap_or_default()), VERSION, doing)
    }
}
