//! A connection, set up as the store needs it.

use std::time::Duration;

use sqlx::{
    AssertSqlSafe, ConnectOptions, Executor, Row,
    mysql::{MySqlConnectOptions, MySqlConnection},
};

use super::{beside_triggers::Triggers, failure, statements::Statements};
use crate::store::{
    StoreError, StoreErrorKind,
    pool::{Server, ServerPlace},
    sql::{self, TablePrefix, server},
};

/// The place of the server.
#[derive(Clone)]
pub(super) struct MySql {
    pub(super) place: ServerPlace<MySqlConnectOptions>,
    /// How long a statement waits for a lock that another session holds.
    pub(super) lock_wait: Duration,
    /// Whether MariaDB, too, gets only what MySQL knows.
    pub(super) plain: bool,
    pub(super) prefix: TablePrefix,
    /// Told whether the tables of this prefix have any.
    pub(super) triggers: Triggers,
}

pub(super) type Connected = server::Connected<Statements>;
pub(super) type Session<'a> = server::Session<'a, Statements>;

/// The facts of a server.
#[derive(Debug)]
pub(super) struct About {
    /// Whether it shows what an insert wrote: MariaDB does, MySQL does not.
    pub(super) shows: bool,
    /// How many bytes a statement may have.
    pub(super) max_allowed_packet: u64,
}

impl Default for About {
    fn default() -> Self {
        Self {
            shows: false,
            max_allowed_packet: u64::MAX,
        }
    }
}

impl Server for MySql {
    type Connection = Connected;

    async fn open(&self, doing: &'static str) -> Result<Connected, StoreError> {
        let failed = |error| failure::of(error, doing);
        // Our texts have every character, whatever the application reads and writes.
        let options = self.place.options().charset("utf8mb4").set_names(true);
        let opened = options.connect().await;
        let mut connection =
            opened.map_err(|error| sql::while_opening(error, doing, failure::of))?;
        let settings = AssertSqlSafe(settings(self.lock_wait, &self.prefix));
        let row = connection
            .fetch_one(sqlx::raw_sql(settings))
            .await
            .map_err(failed)?;
        let version: String = row.try_get(0).map_err(failed)?;
        let Some(product) = Product::of(&version) else {
            let source =
                format!("the server is `{version}`: MariaDB 10.6 and MySQL 8.0 are the oldest");
            return Err(StoreError::new(StoreErrorKind::Configuration, doing).with_source(source));
        };
        // A user without the right to triggers sees none: the first write tells then.
        if row.try_get::<i64, _>(2).map_err(failed)? > 0 {
            self.triggers.met();
        }
        let about = About {
            shows: product == Product::MariaDb && !self.plain,
            max_allowed_packet: row.try_get(1).map_err(failed)?,
        };
        Ok(Connected { connection, about })
    }
}

/// The text by which a session of ours depends on nothing that a server or a user sets.
///
/// A server may truncate in silence, take an empty text for NULL, refuse statements that go by no
/// key, show some rows of many, leave statements uncommitted or lock the gaps between rows. It may
/// begin another transaction where one ends: the statements that follow are answered and never
/// committed.
pub(crate) const SESSION: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
     SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', SESSION autocommit = 1,
         SESSION completion_type = 'NO_CHAIN', SESSION sql_safe_updates = 0,
         SESSION sql_select_limit = 18446744073709551615, SESSION sql_big_selects = 1,
         SESSION time_zone = '+00:00'";

/// Unless told, a session waits for a day for a table that another one changes or has locked.
pub(super) fn settings(lock_wait: Duration, prefix: &TablePrefix) -> String {
    let seconds = lock_wait.as_secs().clamp(1, 3600);
    format!(
        "{SESSION};
         SET SESSION innodb_lock_wait_timeout = {seconds}, SESSION lock_wait_timeout = {seconds};
         SELECT VERSION(), CAST(@@max_allowed_packet AS UNSIGNED), (
             SELECT COUNT(*) FROM information_schema.triggers WHERE event_object_schema = DATABASE()
             AND event_object_table IN ('{prefix}records', '{prefix}steps'))"
    )
}

/// A savepoint that is there only if a transaction is open.
pub(super) const POINT: &str = "SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here";

/// Tells whether a transaction is open on a connection: elsewhere a savepoint is made and forgotten
/// in one.
pub(crate) async fn has_transaction(
    connection: &mut MySqlConnection,
    doing: &'static str,
) -> Result<bool, StoreError> {
    match connection.execute(sqlx::raw_sql(POINT)).await {
        Ok(_) => Ok(true),
        Err(error) if failure::is_no_savepoint(&error) => Ok(false),
        Err(error) => Err(failure::of(error, doing)),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Product {
    MariaDb,
    MySql,
}

impl Product {
    /// `None` for one that is too old: it cannot skip what is locked.
    fn of(version: &str) -> Option<Self> {
        // Some versions of MariaDB say that they are MySQL 5.5.5, and then their own version.
        let version = version.strip_prefix("5.5.5-").unwrap_or(version);
        let mut numbers = version.split(|c: char| !c.is_ascii_digit());
        let mut number = || numbers.next().and_then(|number| number.parse::<u32>().ok());
        let found = (number()?, number()?);
        let (product, oldest) = if version.contains("MariaDB") {
            (Self::MariaDb, (10, 6))
        } else {
            (Self::MySql, (8, 0))
        };
        (found >= oldest).then_some(product)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_its_version() {
        for (version, product) in [
            ("10.11.14-MariaDB-0+deb12u2", Some(Product::MariaDb)),
            ("5.5.5-10.6.21-MariaDB-log", Some(Product::MariaDb)),
            ("11.8.3-MariaDB", Some(Product::MariaDb)),
            ("10.5.28-MariaDB", None),
            ("8.0.43", Some(Product::MySql)),
            ("9.5.0-commercial", Some(Product::MySql)),
            ("5.7.44-log", None),
            ("", None),
        ] {
            assert_eq!(Product::of(version), product, "{version}");
        }
    }
}
