//! The statements of the SQLite dialect. Parameters are numbered as
//! [`sql::written`](crate::store::sql::written) orders them.

use std::{
    fmt::Write as _,
    sync::{Arc, OnceLock},
};

use super::steps::{load_steps, write_step};
use crate::{
    policy::OnCrash,
    record::State,
    store::sql::{self, APPLIED, COLUMNS, REFUSED, Reads, TablePrefix},
};

/// The time in microseconds. `unixepoch('subsec')` is a float of seconds with three exact decimals,
/// so it is rounded to milliseconds before it becomes an integer. Within one statement SQLite
/// answers the same time everywhere, and reads the clock after it has the lock it writes under.
pub(super) const NOW: &str = "CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000";

/// The places where a record may begin. Inside a transaction of the application's it is the
/// database of the store alone.
const ANYWHERE: &str = "WHERE true";

/// The text of every statement, for one table.
///
/// Beside the columns of a record the table has `purge_from`, the least moment at which it can
/// expire: what `expires` would be if its holder finished at once. This column is indexed, and the
/// operation with `created` and the id. A completion leaves them alone, so that it writes no index.
/// A record that needs somebody never expires, so it stands behind everything that a purge looks
/// at.
#[derive(Clone, Debug)]
pub(super) struct Statements {
    pub(super) load: Arc<str>,
    pub(super) create: Arc<str>,
    pub(super) replace: Arc<str>,
    pub(super) finish: Arc<str>,
    pub(super) purge: Arc<str>,
    pub(super) scan: Arc<str>,
    pub(super) load_steps: Arc<str>,
    pub(super) list_steps: Arc<str>,
    pub(super) write_step: Arc<str>,
    /// Looks at several records.
    pub(super) looks: Together,
    /// `create`, without its look, for several records.
    pub(super) creates: Together,
    /// `finish` for several records.
    pub(super) finishes: Together,
    /// Inside a transaction of the application's: gives a row in the store's database.
    pub(super) here: Option<Arc<str>>,
}

/// How many writes stand after one commit at most. Their answers have to fit into the channel of
/// the driver, of 50: if it waits for a reader, it waits with the file locked.
pub(super) const MOST_TOGETHER: usize = 8;

/// One statement for several records, which are one message to the driver.
#[derive(Clone, Debug)]
pub(super) struct Together {
    of_one: String,
    parameters: usize,
    is_written: bool,
    texts: [OnceLock<Arc<str>>; MOST_TOGETHER],
}

impl Together {
    fn new(of_one: String, parameters: usize, is_written: bool) -> Self {
        Self {
            of_one,
            parameters,
            is_written,
            texts: Default::default(),
        }
    }

    /// The text for so many records.
    pub(super) fn of(&self, records: usize) -> Arc<str> {
        let write = || {
            let of_each = (0..records).map(|record| self.of_record(record));
            let all = of_each.collect::<Vec<_>>().join("; ");
            match self.is_written {
                true => format!("BEGIN IMMEDIATE; {all}; COMMIT"),
                false => all,
            }
        };
        let text = self.texts[records - 1].get_or_init(|| write().into());
        Arc::clone(text)
    }

    /// The text for one of them. By numbers with a dollar sign the driver finds the parameters of
    /// each. By numbers with a question mark it finds only those that begin with the first.
    fn of_record(&self, record: usize) -> String {
        let mut pieces = self.of_one.split('?');
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = piece.split_at(digits);
            let number: usize = number.parse().expect("every parameter has a number");
            let _ = write!(text, "${}{rest}", number + record * self.parameters);
        }
        text
    }

    /// How many statements stand before those of the first record, and how many belong to each.
    pub(super) fn places(&self) -> (usize, usize) {
        (usize::from(self.is_written), self.of_one.split(';').count())
    }
}

impl Statements {
    pub(super) fn new(prefix: &TablePrefix) -> Self {
        let table = format!("{prefix}records");
        let columns = COLUMNS.join(", ");
        let running = State::Running.code();
        let (done, released) = (State::Done.code(), State::Released.code());
        let attention = sql::attention();
        let rerun = OnCrash::Rerun.code();
        let max = i64::MAX;
        let stands = format!("{NOW}, {columns} FROM (SELECT 1) LEFT JOIN {table} ON id = ?1");
        let load = format!("SELECT {stands}");
        // Three statements in one round trip. If a record stands, the first one shows it and then
        // fails on purpose, by the absolute value of the least integer. That ends them: a replay is
        // a look and takes no lock. The third looks if another call was quicker than the second.
        let create = format!(
            "SELECT {REFUSED}, {NOW}, {columns} FROM {table} WHERE id = ?1
             UNION ALL SELECT abs({min} + 0 * rowid), 0, {columns} FROM {table} WHERE id = ?1;
             INSERT INTO {table} ({columns}, purge_from)
             SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, coalesce(max(?9, now), 0), ?10, ?11, ?12, ?13, ?14,
                    now + coalesce(min(?15, {max} - now), 0), now,
                    CASE ?8 WHEN {running} THEN NULL ELSE now END,
                    now + coalesce(min(?16, {max} - now), 0), ?17, ?18, ?19, ?20, ?21, ?22,
                    now + max(0, coalesce(min(?16, {max} - now), 0) - coalesce(?15, 0))
             FROM (SELECT {NOW} AS now) {ANYWHERE}
             ON CONFLICT (id) DO NOTHING
             RETURNING {APPLIED}, created, token, lease_end, expires;
             SELECT {REFUSED}, {stands} WHERE changes() = 0",
            min = i64::MIN,
        );
        let subject = "operation = coalesce(?3, operation), scope = coalesce(?4, scope),
             call_key = coalesce(?5, call_key), fingerprint = coalesce(?6, fingerprint),
             digests = coalesce(?7, digests)";
        let kept = "version = ?2, state = ?8, attempt = ?10, attempt_id = ?11, holder = ?12, trace_parent = ?13,
             on_crash = ?14, outcome_kind = ?17, outcome_schema = ?18, outcome = ?19,
             note = ?20, note_by = ?21, note_of = ?22";
        let moments = format!(
            "coalesce(max(?9, now), token),
             coalesce(now + min(?15, {max} - now), lease_end),
             CASE ?8 WHEN {running} THEN NULL ELSE now END,
             coalesce(now + min(?16, {max} - now), expires)"
        );
        let answered = format!(
            "RETURNING {APPLIED}, {NOW}, token, lease_end, expires;
             SELECT {REFUSED}, {stands} WHERE changes() = 0"
        );
        // Parameter 16 less parameter 15 is the retention without the lease.
        let replace = format!(
            "UPDATE {table} SET {subject}, {kept},
                    (token, lease_end, finished, expires, created, purge_from) = (
                        SELECT {moments}, CASE WHEN ?3 IS NULL THEN created ELSE now END,
                               CASE WHEN ?8 IN ({attention}) THEN {max}
                               ELSE coalesce(now + max(0, min(?16, {max} - now) - coalesce(?15, 0)), min(purge_from, expires)) END
                        FROM (SELECT {NOW} AS now))
             WHERE id = ?1 AND version = ?23 {answered}"
        );
        // Applied if the record cannot expire earlier than `purge_from` says. It sets no column of
        // an index, so it writes none.
        let finish = format!(
            "UPDATE {table} SET {kept},
                    (token, lease_end, finished, expires) = (
                        SELECT {moments} FROM (SELECT {NOW} AS now))
             WHERE id = ?1 AND version = ?23 AND purge_from <= {NOW} + ?16 {answered}"
        );
        let purge = format!(
            "DELETE FROM {table} WHERE rowid IN (
                 SELECT {table}.rowid FROM (SELECT {NOW} AS now) CROSS JOIN {table}
                 WHERE purge_from <= now - ?2 AND expires <= now - ?2
                   AND (state IN ({done}, {released})
                        OR state = {running} AND on_crash = {rerun} AND lease_end <= now)
                 LIMIT ?1)
             RETURNING id"
        );
        let scan = format!("SELECT {columns} FROM {table} WHERE id > ?1 ORDER BY id LIMIT ?2");
        let look = format!("SELECT {REFUSED}, {NOW}, {columns} FROM {table} WHERE id = ?1");
        let insert = create
            .split_once(';')
            .map(|(_look, insert)| insert.to_owned());
        let insert = insert.expect("it begins with a look");
        Self {
            looks: Together::new(look, 1, false),
            creates: Together::new(insert, 23, true),
            finishes: Together::new(finish.clone(), 23, true),
            load: load.into(),
            create: create.into(),
            replace: replace.into(),
            finish: finish.into(),
            purge: purge.into(),
            scan: scan.into(),
            load_steps: load_steps(prefix, Reads::Whole).into(),
            list_steps: load_steps(prefix, Reads::Heads).into(),
            write_step: write_step(prefix).into(),
            here: None,
        }
    }

    /// The same for a transaction of the application's: it claims only if `here` gives a row.
    pub(super) fn inside(&self, here: &str) -> Self {
        let create = self
            .create
            .replace(ANYWHERE, &format!("WHERE EXISTS ({here})"));
        Self {
            create: create.into(),
            here: Some(here.into()),
            ..self.clone()
        }
    }
}
