//! The statements of the Postgres dialect. Parameters are numbered as
//! [`sql::written`](crate::store::sql::written) orders them, and 24 is the channel on which a moved
//! record is told, or NULL if none is. Those of a completion are numbered as
//! [`sql::completed`](crate::store::sql::completed) orders them, and the channel is 8; for a purge
//! it is 3.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use super::{
    many::Many,
    rows::Protocol,
    steps::{load_steps, write_step},
    together::{load_all, replace_all},
};
use crate::{
    policy::OnCrash,
    record::State,
    store::sql::{self, APPLIED, COLUMNS, REFUSED, Reads, TablePrefix},
};

/// The time in microseconds. Not `now()`, which is when the transaction began.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// The time in microseconds at which the statement arrived: the same everywhere in it.
pub(super) const ARRIVED: &str = "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint";

/// The places where the parts of an answer begin. A stamp is NULL if the write was refused, a
/// record if it was applied.
pub(super) mod place {
    /// The time.
    pub(in super::super) const NOW: usize = 1;
    /// The record, [packed](super::super::packed).
    pub(in super::super) const RECORD: usize = 5;
}

/// The places where a record may begin. Inside a transaction of the application's it is the
/// database of the store alone.
pub(super) const ANYWHERE: &str = "WHERE true";

/// Stands for a statement's name in its text.
pub(super) const NAME: &str = "<name>";

/// A statement, whose name is the last column of every answer.
///
/// The driver counts what it prepares on a connection. Behind a proxy that was to be named and was
/// not, another client's statement may answer to that number. It is one of the same form, of a
/// store with another table prefix.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) text: Arc<str>,
    pub(super) name: i64,
}

impl Statement {
    /// Draws the name of a statement from its text, and puts it in.
    pub(super) fn new(text: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let name = hasher.finish().cast_signed() & i64::MAX;
        Self {
            text: text.replace(NAME, &format!("{name}::bigint")).into(),
            name,
        }
    }
}

/// Every statement, for one table, and how they reach the server.
///
/// Beside the columns of a record the table has `purge_from`, the least moment at which the record
/// can expire, and `waited`, which says that a call waits for it. The indexes hold the id,
/// `purge_from`, and the operation with `created`, and no other column. As a rule only a claim
/// changes these, so that every other update is HOT: it writes no index.
#[derive(Clone, Debug)]
pub(super) struct Statements {
    pub(super) protocol: Protocol,
    pub(super) load: Statement,
    pub(super) again: Statement,
    pub(super) create: Statement,
    pub(super) replace: Statement,
    /// The same for many records.
    pub(super) replace_all: Statement,
    pub(super) load_all: Statement,
    pub(super) complete: Statement,
    /// Those of the operations that come together.
    pub(super) many: Many,
    pub(super) mark: Statement,
    pub(super) purge: Statement,
    pub(super) scan: Statement,
    pub(super) load_steps: Statement,
    pub(super) list_steps: Statement,
    pub(super) write_step: Statement,
    pub(super) channel: Arc<str>,
    /// Inside a transaction of the application's: gives a row in the store's database.
    pub(super) here: Option<Arc<str>>,
}

impl Statements {
    pub(super) fn new(prefix: &TablePrefix, protocol: Protocol) -> Self {
        let table = format!("{prefix}records");
        let columns = COLUMNS.join(", ");
        let running = State::Running.code();
        let (done, released) = (State::Done.code(), State::Released.code());
        let attention = sql::attention();
        let rerun = OnCrash::Rerun.code();
        let max = i64::MAX;
        let clock = format!("clock AS MATERIALIZED (SELECT {NOW} AS now)");
        let no_stamp = "NULL::bigint, NULL::bigint, NULL::bigint";
        let packed = format!("record_send(ROW({columns}))");
        let load = format!(
            "WITH {clock}
             SELECT {REFUSED}::bigint, clock.now, {no_stamp}, CASE WHEN id IS NOT NULL THEN {packed} END, {NAME}
             FROM clock LEFT JOIN {table} ON id = $1::bytea"
        );
        let again = format!(
            "SELECT {NOW}, outcome, {NAME} FROM {table}
             WHERE id = $1::bytea AND version = $2::bytea AND state = {done} AND expires = $3::bigint"
        );
        // One statement claims or shows what stands. If the record was written after the
        // statement's snapshot was taken, neither half has a row, and a new statement must look. A
        // conflict is no error and writes nothing.
        let create = format!(
            "WITH {clock}, claimed AS (
                 INSERT INTO {table} ({columns}, purge_from)
                 SELECT $1::bytea, $2::bytea, $3::text, $4::bytea, $5::bytea, $6::bytea, $7::bytea, $8::bigint,
                        CASE WHEN $9::bigint IS NULL THEN 0 ELSE greatest($9::bigint, now) END, $10::bigint, $11::bytea, $12::text, $13::text,
                        $14::bigint, now + least(coalesce($15::bigint, 0), {max} - now), now,
                        CASE WHEN $8::bigint = {running} THEN NULL ELSE now END,
                        now + least(coalesce($16::bigint, 0), {max} - now), $17::bigint, $18::bigint, $19::bytea, $20::text, $21::text, $22::bytea,
                        now + greatest(0, least(coalesce($16::bigint, 0), {max} - now) - coalesce($15::bigint, 0))
                 FROM clock {ANYWHERE}
                 ON CONFLICT (id) DO NOTHING
                 RETURNING created, token, lease_end, expires)
             SELECT {APPLIED}::bigint, created, token, lease_end, expires, NULL::bytea, {NAME} FROM claimed
             UNION ALL
             SELECT {REFUSED}::bigint, clock.now, {no_stamp}, {packed}, {NAME} FROM clock, {table}
             WHERE id = $1::bytea AND NOT EXISTS (SELECT FROM claimed)"
        );
        // A claim says anew when the record can expire at the earliest; every other write can only
        // make it earlier. A record that needs somebody never expires, and stands behind
        // everything that a purge looks at, until it goes on. Calls that wait are told of a call
        // that ended, and of a lease that its holder ended.
        let replace = format!(
            "WITH {clock}, written AS (
                 UPDATE {table} SET
                     version = $2::bytea, operation = coalesce($3::text, operation),
                     scope = coalesce($4::bytea, scope), call_key = coalesce($5::bytea, call_key),
                     fingerprint = coalesce($6::bytea, fingerprint), digests = coalesce($7::bytea, digests),
                     state = $8::bigint,
                     token = CASE WHEN $9::bigint IS NULL THEN token ELSE greatest($9::bigint, now) END,
                     attempt = $10::bigint, attempt_id = $11::bytea, holder = $12::text,
                     trace_parent = $13::text, on_crash = $14::bigint,
                     lease_end = CASE WHEN $15::bigint IS NULL THEN lease_end
                         ELSE now + least($15::bigint, {max} - now) END,
                     created = CASE WHEN $3::text IS NULL THEN created ELSE now END,
                     finished = CASE WHEN $8::bigint = {running} THEN NULL ELSE now END,
                     expires = CASE WHEN $16::bigint IS NULL THEN expires
                         ELSE now + least($16::bigint, {max} - now) END,
                     outcome_kind = $17::bigint, outcome_schema = $18::bigint, outcome = $19::bytea,
                     note = $20::text, note_by = $21::text, note_of = $22::bytea,
                     purge_from = CASE WHEN $8::bigint IN ({attention}) THEN {max}
                         WHEN $16::bigint IS NULL THEN purge_from
                         WHEN $15::bigint IS NULL THEN least(purge_from, now + least($16::bigint, {max} - now))
                         WHEN $3::text IS NULL AND purge_from < {max} THEN purge_from
                         ELSE now + greatest(0, least($16::bigint, {max} - now) - $15::bigint) END
                 FROM clock
                 WHERE id = $1::bytea AND version = $23::bytea
                 RETURNING now, token, lease_end, expires, waited)
             SELECT {APPLIED}::bigint, now, token, lease_end, expires,
                    CASE WHEN waited AND $24::text IS NOT NULL AND ($8::bigint <> {running} OR $15::bigint = 0)
                        THEN pg_notify($24::text, encode($1::bytea, 'hex'))::text END, {NAME}
             FROM written"
        );
        // The same for the second write of most calls. It has a third of the parameters, and takes
        // the server two thirds of the time.
        let complete = format!(
            "UPDATE {table} SET
                 version = $2::bytea, state = {done}, finished = {ARRIVED},
                 expires = {ARRIVED} + least($4::bigint, {max} - {ARRIVED}),
                 outcome_kind = $5::bigint, outcome_schema = $6::bigint, outcome = $7::bytea,
                 purge_from = least(purge_from, {ARRIVED} + least($4::bigint, {max} - {ARRIVED}))
             WHERE id = $1::bytea AND version = $3::bytea
             RETURNING {APPLIED}::bigint, finished, token, lease_end, expires,
                 CASE WHEN waited AND $8::text IS NOT NULL THEN pg_notify($8::text, encode($1::bytea, 'hex'))::text END, {NAME}"
        );
        // A call does not wait in the server, where that keeps a connection: the record may be
        // locked for long.
        let mark = format!(
            "WITH marked AS (
                 UPDATE {table} SET waited = true
                 WHERE id = (SELECT id FROM {table} WHERE id = $1::bytea AND version = $2::bytea AND NOT waited
                     FOR NO KEY UPDATE SKIP LOCKED)
                 RETURNING id)
             SELECT waited OR EXISTS (SELECT FROM marked), {NAME} FROM {table}
             WHERE id = $1::bytea AND version = $2::bytea"
        );
        // `SKIP LOCKED` lets several purges run at once, and leaves alone the records that are
        // being written at this moment.
        let purge = format!(
            "WITH {clock}, gone AS (
                 SELECT id FROM {table}
                 WHERE purge_from <= (SELECT now FROM clock) - $2::bigint
                   AND expires <= (SELECT now FROM clock) - $2::bigint
                   AND (state IN ({done}, {released})
                        OR state = {running} AND on_crash = {rerun} AND lease_end <= (SELECT now FROM clock))
                 ORDER BY purge_from LIMIT $1::bigint
                 FOR UPDATE SKIP LOCKED),
             steps AS (DELETE FROM {prefix}steps AS step USING gone WHERE step.record = gone.id)
             DELETE FROM {table} AS record USING gone WHERE record.id = gone.id
             RETURNING record.id,
                 CASE WHEN waited AND $3::text IS NOT NULL THEN pg_notify($3::text, encode(record.id, 'hex'))::text END, {NAME}"
        );
        let scan = format!(
            "SELECT {columns}, {NAME} FROM {table} WHERE id > $1::bytea ORDER BY id LIMIT $2::bigint"
        );
        Self {
            protocol,
            load: Statement::new(&load),
            again: Statement::new(&again),
            create: Statement::new(&create),
            replace_all: Statement::new(&replace_all(&table, &replace)),
            load_all: Statement::new(&load_all(&table)),
            replace: Statement::new(&replace),
            many: Many::new(&table, [&create, &again, &complete, &load]),
            complete: Statement::new(&complete),
            mark: Statement::new(&mark),
            purge: Statement::new(&purge),
            scan: Statement::new(&scan),
            load_steps: load_steps(prefix, Reads::Whole),
            list_steps: load_steps(prefix, Reads::Heads),
            write_step: write_step(prefix),
            channel: format!("{prefix}moved").into(),
            here: None,
        }
    }
}
