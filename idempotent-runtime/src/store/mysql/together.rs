//! Many statements in one message, for heartbeats. Each is a transaction of its own, and its text
//! is that of a statement that goes alone, so no condition stands in a second place.
//!
//! A record that somebody has locked would keep all behind it waiting. MariaDB is told not to wait.
//! MySQL has no such word for a single statement: there a look that skips what is locked goes
//! before the message, and what it does not find goes alone.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    future::poll_fn,
};

use sqlx::{
    AssertSqlSafe, Either, Executor,
    mysql::{MySqlConnection, MySqlRow},
};

use super::{
    Inner, MySqlStore,
    beside_triggers::{fill, keeping, kept},
    connection::Connected,
    failure,
    rows::{ServerAnswer, found, keeps, stamped},
    statements::{NOW, Statement, Statements},
};
use crate::{
    framing::Hex,
    identity::RecordId,
    record::Record,
    store::{
        Snapshot, Stamp, StoreError, StoreErrorKind, Swap,
        moment::Moment,
        sql::{self, COLUMNS, Value},
        together::{Write, WriteAnswer, WriteTogether},
    },
};

const WRITING: &str = "writing records together";
const LOOKING: &str = "loading records together";

/// How long an outcome may be that is shown beside others, in bytes.
const LONGEST_SHOWN: usize = 4096;

/// How much of what the server reads at once is taken up by one message, at most.
const PART_OF_PACKET: u64 = 2;

/// A write, and what this process knows of the version that it replaces.
pub(super) struct Known<'a> {
    pub(super) write: &'a Write,
    pub(super) previous: Option<Record>,
    /// Whether it would wait for somebody who has locked the record.
    pub(super) is_locked: bool,
}

/// The result of a statement.
enum Written {
    Stands(Stamp),
    /// It was written, and something kept the server from telling when: a trigger of the
    /// application's.
    Untold,
    /// Another version was there.
    Refused,
    /// It has to go alone.
    Alone,
}

impl Known<'_> {
    /// The text of the statement that writes it; `None` if it has to go alone.
    fn text(&self, statements: &Statements, shows: bool) -> Option<String> {
        if self.is_locked {
            return None;
        }
        let Write { id, seen, next } = self.write;
        let previous = self.previous.as_ref();
        let is_completion = previous.is_some_and(|previous| next.only_completes(previous));
        let text = if is_completion {
            written_out(&statements.complete, &sql::completed(id, *seen, next))
        } else {
            let statement = match previous {
                None if keeps(next) && shows => &statements.replace_and_show,
                None if keeps(next) => return None,
                _ => &statements.replace,
            };
            written_out(statement, &sql::written(id, Some(*seen), next))
        };
        Some(match shows {
            true => format!("SET STATEMENT innodb_lock_wait_timeout = 0 FOR {text}"),
            false => text,
        })
    }

    fn read(&self, answer: &ServerAnswer) -> Written {
        let next = &self.write.next;
        if let Some(row) = answer.rows.first() {
            return match sql::stamp(row, 0, next.version, WRITING) {
                Ok(stamp) => Written::Stands(stamp),
                Err(_) => Written::Alone,
            };
        }
        let previous = self.previous.as_ref();
        if answer.affected == 0 {
            return Written::Refused;
        }
        stamped(next, previous, answer.server_time).map_or(Written::Untold, Written::Stands)
    }
}

impl Statements {
    /// Writes as many as one message takes, up to the first one that fails, and adds their answers.
    async fn write_some(
        &self,
        connected: &mut Connected,
        writes: &[Known<'_>],
        answers: &mut Vec<Written>,
    ) -> Result<(), StoreError> {
        let writes = &writes[answers.len()..];
        let most = connected.about.max_allowed_packet / PART_OF_PACKET;
        let (message, count) = self.message(most, connected.about.shows, writes);
        if count == 0 {
            answers.push(Written::Alone);
            return Ok(());
        }
        let mut told = Vec::new();
        let sent = send(&mut connected.connection, message, &mut told).await;
        if let Some((told, shown)) = told.split_at_mut_checked(count) {
            fill(told, shown.first());
        }
        let read = writes[..count].iter().zip(&told);
        answers.extend(read.map(|(write, answer)| write.read(answer)));
        if answers
            .iter()
            .any(|answer| matches!(answer, Written::Untold))
        {
            self.triggers.met();
        }
        let Err(error) = sent else {
            return Ok(());
        };
        let is_undone = error.as_database_error().is_some() && told.len() < count;
        let error = failure::of(error, WRITING);
        match error.kind() {
            StoreErrorKind::Denied | StoreErrorKind::Unavailable => Err(error),
            // The one that failed was undone, and the server has done nothing behind it.
            _ if is_undone => {
                answers.push(Written::Alone);
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// The texts of the first ones, and how many these are. If there is none for the first one, it
    /// has to go alone.
    pub(super) fn message(&self, most: u64, shows: bool, writes: &[Known<'_>]) -> (String, usize) {
        let (mut message, mut count) = (String::new(), 0);
        for write in writes {
            let Some(text) = write.text(self, shows) else {
                break;
            };
            let text = match self.triggers.are_there() {
                true => keeping(&text, count),
                false => text,
            };
            let length = u64::try_from(message.len() + text.len()).unwrap_or(u64::MAX);
            if length > most {
                break;
            }
            let _ = write!(message, "{text};");
            count += 1;
        }
        if self.triggers.are_there() && count > 0 {
            message.push_str(&kept(count));
        }
        (message, count)
    }

    async fn load_all(
        &self,
        connection: &mut MySqlConnection,
        ids: &[RecordId],
    ) -> Result<HashMap<RecordId, Snapshot>, StoreError> {
        let rows = look(connection, self.load_all_text(ids)).await?;
        rows.iter().map(|row| sql::shown(row, LOOKING)).collect()
    }

    /// The ones of these that are there and that nobody has locked at this moment.
    async fn find_free(
        &self,
        connection: &mut MySqlConnection,
        ids: &[RecordId],
    ) -> Result<HashSet<RecordId>, StoreError> {
        let rows = look(connection, self.find_free_text(ids)).await?;
        rows.iter().map(|row| sql::id(row, LOOKING)).collect()
    }

    /// Records with a long outcome are left out: many may be too large for one answer.
    pub(super) fn load_all_text(&self, ids: &[RecordId]) -> String {
        let (columns, table, ids) = (COLUMNS.join(", "), &self.table, listed(ids));
        format!(
            "SELECT {columns}, {NOW} FROM {table}
             WHERE id IN ({ids}) AND COALESCE(LENGTH(outcome), 0) <= {LONGEST_SHOWN}"
        )
    }

    pub(super) fn find_free_text(&self, ids: &[RecordId]) -> String {
        let (table, ids) = (&self.table, listed(ids));
        format!("SELECT id FROM {table} WHERE id IN ({ids}) FOR UPDATE SKIP LOCKED")
    }
}

/// The stamp of a write that stands, as a look shows it. If that does not show it, its caller has
/// to look for itself, as after an answer that is lost: sent again, the write would be refused for
/// ever.
fn written(write: &Write, shown: Option<Snapshot>) -> Result<Stamp, StoreError> {
    let stamp = shown.and_then(|shown| found(&write.next, &shown));
    let unknown = "it was written, and what stands there now is not shown";
    stamp.ok_or_else(|| StoreError::new(StoreErrorKind::Unavailable, WRITING).with_source(unknown))
}

fn listed(ids: &[RecordId]) -> String {
    let ids: Vec<_> = ids.iter().map(|id| format!("x'{}'", id.to_hex())).collect();
    ids.join(", ")
}

async fn look(connection: &mut MySqlConnection, text: String) -> Result<Vec<MySqlRow>, StoreError> {
    let look = sqlx::raw_sql(AssertSqlSafe(text));
    let rows = connection.fetch_all(look).await;
    rows.map_err(|error| failure::of(error, LOOKING))
}

/// Sends several statements, and takes the answers of those that the server has done.
pub(super) async fn send(
    connection: &mut MySqlConnection,
    message: String,
    told: &mut Vec<ServerAnswer>,
) -> sqlx::Result<()> {
    let mut answers = connection.fetch_many(sqlx::raw_sql(AssertSqlSafe(message)));
    let mut one = ServerAnswer::default();
    while let Some(answer) = poll_fn(|context| answers.as_mut().poll_next(context)).await {
        match answer? {
            Either::Left(done) => {
                one.server_time = done.last_insert_id();
                one.affected = done.rows_affected();
                told.push(std::mem::take(&mut one));
            }
            Either::Right(row) => one.rows.push(row),
        }
    }
    Ok(())
}

/// Puts the values in their places. Only digits and hexadecimal digits are put in, so nothing in a
/// value can be read as a part of the statement.
pub(super) fn written_out(statement: &Statement, values: &[Value<'_>]) -> String {
    let mut parts = statement.text.split('?');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (part, place) in parts.zip(&statement.places) {
        let _ = match values.get(*place) {
            Some(Value::Bytes(Some(bytes))) => write!(text, "x'{}'", Hex(bytes)),
            Some(Value::Text(Some(value))) => {
                write!(text, "_utf8mb4 x'{}'", Hex(value.as_bytes()))
            }
            Some(Value::Number(Some(number))) => write!(text, "({number})"),
            _ => write!(text, "NULL"),
        };
        text.push_str(part);
    }
    text
}

impl WriteTogether for MySqlStore {
    async fn write_together(&self, writes: &[Write]) -> Vec<WriteAnswer> {
        let inner = &*self.inner;
        let known = inner.known(writes).await;
        let (sent_at, mut answers) = (Moment::now(), Vec::new());
        let mut failed = None;
        while answers.len() < known.len() && failed.is_none() {
            let writing = async |connected: &mut Connected| {
                let statements = &inner.statements;
                statements.write_some(connected, &known, &mut answers).await
            };
            failed = inner.connections.run(WRITING, writing).await.err();
        }
        let is_shown = |answer: &Written| matches!(answer, Written::Refused | Written::Untold);
        let refused = writes.iter().zip(&answers);
        let refused = refused.filter(|(_, answer)| is_shown(answer));
        let refused: Vec<_> = refused.map(|(write, _)| write.id).collect();
        let mut shown = match refused.is_empty() {
            true => HashMap::new(),
            // A write that finds nothing here goes alone, and meets the same error.
            false => inner.load_all(&refused).await.unwrap_or_default(),
        };
        let mut answers = answers.into_iter();
        let answer = |write: &Write| {
            let swap = match (answers.next(), &failed) {
                (Some(Written::Stands(stamp)), _) => Swap::Applied(stamp),
                (Some(Written::Refused), _) => write.refused(shown.remove(&write.id))?,
                (Some(Written::Untold), _) => match written(write, shown.remove(&write.id)) {
                    Ok(stamp) => Swap::Applied(stamp),
                    Err(error) => return Some(Err(error)),
                },
                (None, Some(error)) => return Some(Err(error.clone())),
                (Some(Written::Alone) | None, _) => return None,
            };
            inner.note(&write.id, Some(write.seen), &write.next, &swap, sent_at);
            Some(Ok(swap))
        };
        writes.iter().map(answer).collect()
    }
}

impl Inner {
    /// Looks at what the server does not show with its answers: what is locked, and what is written
    /// over if that is not known. A look that fails leaves it unknown.
    async fn known<'a>(&self, writes: &'a [Write]) -> Vec<Known<'a>> {
        let previous = |write: &Write| {
            let known = self.versions.version(&write.id, Some(write.seen))?;
            Some(known.record().clone())
        };
        let known = writes.iter().map(|write| Known {
            write,
            previous: previous(write),
            is_locked: false,
        });
        let mut known: Vec<_> = known.collect();
        let shows = async |connected: &mut Connected| Ok(connected.about.shows);
        if self.connections.run(LOOKING, shows).await.unwrap_or(true) {
            return known;
        }
        if let Ok(free) = self.find_free(writes).await {
            for known in &mut known {
                known.is_locked = !free.contains(&known.write.id);
            }
        }
        self.learn_unknown(&mut known).await;
        known
    }

    async fn learn_unknown(&self, known: &mut [Known<'_>]) {
        let unknown = known.iter().filter(|known| {
            known.previous.is_none() && !known.is_locked && keeps(&known.write.next)
        });
        let unknown: Vec<_> = unknown.map(|known| known.write.id).collect();
        if unknown.is_empty() {
            return;
        }
        let mut shown = self.load_all(&unknown).await.unwrap_or_default();
        for known in known {
            // If it is another version, the write is refused, whatever this says.
            let snapshot = shown.remove(&known.write.id);
            let record = snapshot.and_then(|snapshot| snapshot.record);
            if let Some(record) = record {
                known.previous = Some(Record::clone(&record));
            }
        }
    }

    async fn find_free(&self, writes: &[Write]) -> Result<HashSet<RecordId>, StoreError> {
        let ids: Vec<_> = writes.iter().map(|write| write.id).collect();
        let looking = async |connected: &mut Connected| {
            let connection = &mut connected.connection;
            self.statements.find_free(connection, &ids).await
        };
        self.connections.run_again(LOOKING, looking).await
    }

    async fn load_all(&self, ids: &[RecordId]) -> Result<HashMap<RecordId, Snapshot>, StoreError> {
        let looking = async |connected: &mut Connected| {
            let connection = &mut connected.connection;
            self.statements.load_all(connection, ids).await
        };
        self.connections.run_again(LOOKING, looking).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_becomes_a_part_of_the_statement() {
        let statement = Statement::new("SELECT ?2, a - ?3 FROM t WHERE b = ?1 AND c = ?4");
        let values = [
            Value::Text(Some("'; DROP TABLE x; --")),
            Value::Bytes(Some(b"\\'?".into())),
            Value::Number(Some(-5)),
            Value::Bytes(None),
        ];
        assert_eq!(
            written_out(&statement, &values),
            "SELECT x'5c273f', a - (-5) FROM t \
             WHERE b = _utf8mb4 x'273b2044524f50205441424c4520783b202d2d' AND c = NULL"
        );
    }
}
