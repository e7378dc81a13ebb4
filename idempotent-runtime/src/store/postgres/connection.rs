//! A connection, set up as the store needs it.

use std::time::Duration;

use sqlx::{AssertSqlSafe, ConnectOptions, Executor, Row, postgres::PgConnectOptions};

use super::{failure, rows::Protocol, statements::Statements};
use crate::store::{
    StoreError,
    pool::{Server, ServerPlace},
    sql::{self, TablePrefix, server},
};

/// The place of the server, and how it is spoken to.
#[derive(Clone)]
pub(super) struct Postgres {
    pub(super) place: ServerPlace<PgConnectOptions>,
    pub(super) protocol: Protocol,
    /// How long a statement waits for a lock that another session holds.
    pub(super) lock_wait: Duration,
    pub(super) prefix: TablePrefix,
}

pub(super) type Connected = server::Connected<Statements>;
pub(super) type Session<'a> = server::Session<'a, Statements>;

/// A right without which a call may begin and not end.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Right {
    #[error(
        "the outcome of a call could not be recorded: grant the user UPDATE on `{0}records`, too"
    )]
    Update(TablePrefix),
    #[error(
        "the outcome of a call could not be recorded: grant the user EXECUTE on `pg_notify(text, text)`"
    )]
    Tell,
}

/// The settings of a connection of our own.
///
/// A database or a role may have a stricter isolation by default, under which callers that meet
/// fail. Planning one of our statements anew takes longer than running it, to the same plan: there
/// is one row, and it is found by its id. A plan that was made while the table was empty would read
/// all of it for ever after. The server rates a plan that has to read a table all the same as
/// costly and compiles it, which takes longer than any of our statements. And a statement that
/// waits for a lock does so for ever, also when no caller waits for its answer any more.
fn settings(lock_wait: Duration) -> String {
    format!(
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
         SET plan_cache_mode = force_generic_plan;
         SET enable_seqscan = off;
         SET jit = off;
         SET lock_timeout = {};",
        lock_wait
            .as_millis()
            .clamp(1, i32::MAX.unsigned_abs().into())
    )
}

impl Postgres {
    /// Whether the user may update records, where they are, and tell that they moved: a completion
    /// does both, and a claim neither.
    pub(super) fn question(&self) -> String {
        // Behind a proxy a setting would stay with the server's connection, and with the client
        // that gets it next.
        let settings = match self.protocol {
            Protocol::Extended => settings(self.lock_wait),
            Protocol::Simple => String::new(),
        };
        let table = format!("to_regclass('{}records')::oid", self.prefix);
        format!(
            "{settings}
             SELECT coalesce(has_any_column_privilege({table}, 'UPDATE'), true),
                 has_function_privilege('pg_catalog.pg_notify(text, text)', 'EXECUTE')"
        )
    }
}

impl Server for Postgres {
    type Connection = Connected;

    async fn open(&self, doing: &'static str) -> Result<Connected, StoreError> {
        let failed = |error| failure::of(error, doing);
        let opened = self.place.options().connect().await;
        let mut connection =
            opened.map_err(|error| sql::while_opening(error, doing, failure::of))?;
        let question = sqlx::raw_sql(AssertSqlSafe(self.question()));
        let row = connection.fetch_one(question).await.map_err(failed)?;
        let may = |place| row.try_get::<bool, usize>(place).map_err(failed);
        let about = if !may(0)? {
            Some(Right::Update(self.prefix.clone()))
        } else if !may(1)? {
            Some(Right::Tell)
        } else {
            None
        };
        Ok(Connected { connection, about })
    }
}
