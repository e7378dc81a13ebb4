//! One message for the operations of many callers.
//!
//! The text of each operation is that of the statement for a single record, with its values written
//! out. Looks are one statement over a list of ids. Claims are one statement with a row for each.
//! Completions are a statement each, with one commit behind all of them.
//!
//! If another transaction has locked one of the records, the message fails at once, and each
//! operation goes alone. MySQL has no such setting for one statement, so there only looks share a
//! message.

use std::collections::HashMap;

use sqlx::{AssertSqlSafe, Executor, mysql::MySqlRow};

use super::{
    beside_triggers::{fill, keeping, kept},
    connection::Session,
    failure,
    rows::{ServerAnswer, stamped},
    statements::{ANYWHERE, NOW, Statement, Statements},
    together::{send, written_out},
};
use crate::{
    identity::RecordId,
    record::Time,
    store::{
        Stamp, StoreError, Swap,
        lane::{Answer, Job, Kind, LONGEST_SHOWN, Work},
        sql::{self, COLUMNS, Value},
    },
};

const DOING: &str = "doing many operations together";

/// Makes the statement behind it fail at once if a record is locked.
const NO_WAIT: &str = "SET STATEMENT innodb_lock_wait_timeout = 0 FOR";

/// How much of what the server reads at once is taken up by one message, at most.
const PART_OF_PACKET: u64 = 2;

/// The place of the id behind the time and the columns of a record.
const ID: usize = 1 + COLUMNS.len();

/// The same behind the time and a known outcome. The version follows.
const KNOWN_ID: usize = 2;

type Answers = Vec<Option<Answer>>;

impl Statements {
    /// The answers in the order of the jobs; `None` for one that has to go alone.
    pub(super) async fn send_many(
        &self,
        session: &mut Session<'_>,
        kind: Kind,
        jobs: &[&Job],
    ) -> Result<Answers, StoreError> {
        match kind {
            Kind::Look => self.look_at_many(session, jobs).await,
            Kind::Again => self.look_again(session, jobs).await,
            Kind::Claim => self.claim_many(session, jobs).await,
            Kind::Complete => self.complete_many(session, jobs).await,
        }
    }

    async fn look_at_many(
        &self,
        session: &mut Session<'_>,
        jobs: &[&Job],
    ) -> Result<Answers, StoreError> {
        let rows = rows(session, self.look_text(jobs)).await?;
        let shown = rows.iter().map(|row| {
            let shown = sql::snapshot(row, 0, 1, DOING);
            Ok((sql::id_at(row, ID, DOING)?, shown.map(Swap::Refused)))
        });
        let shown: HashMap<_, _> = shown.collect::<Result<_, StoreError>>()?;
        let answer = |job: &&Job| shown.get(&job.id).cloned();
        Ok(jobs.iter().map(answer).collect())
    }

    /// A look at the record of each of these.
    pub(super) fn look_text(&self, jobs: &[&Job]) -> String {
        let ids: Vec<_> = jobs
            .iter()
            .map(|job| vec![sql::bytes(job.id.as_bytes())])
            .collect();
        let text = self.load.with_columns();
        let text = text.replacen(&format!("({ANYWHERE}) AS one"), &listed(&ids), 1);
        let text = text.replacen(" FROM (", ", c1 FROM (", 1);
        format!("{text} WHERE COALESCE(LENGTH(outcome), 0) <= {LONGEST_SHOWN}")
    }

    async fn look_again(
        &self,
        session: &mut Session<'_>,
        jobs: &[&Job],
    ) -> Result<Answers, StoreError> {
        let rows = rows(session, self.again_text(jobs)).await?;
        let found = rows.iter().map(|row| {
            let version = sql::version_at(row, KNOWN_ID + 1, DOING)?;
            Ok(((sql::id_at(row, KNOWN_ID, DOING)?, version), row))
        });
        let found: HashMap<_, _> = found.collect::<Result<_, StoreError>>()?;
        let answer = |job: &&Job| {
            let known = job.work.known()?;
            let row = found.get(&(job.id, known.version().to_bytes()))?;
            let shown = sql::again(*row, known, DOING).transpose()?;
            Some(shown.map(Swap::Refused))
        };
        Ok(jobs.iter().map(answer).collect())
    }

    /// A look at the outcome of each of these, which is known but for its bytes.
    pub(super) fn again_text(&self, jobs: &[&Job]) -> String {
        let known = jobs.iter().filter_map(|job| {
            let known = job.work.known()?;
            Some(sql::known(&job.id, known).into())
        });
        let list = listed(&known.collect::<Vec<_>>());
        let (table, text) = (&self.table, self.again.with_columns());
        let from = format!(", c1, c2 FROM {list} STRAIGHT_JOIN {table}");
        text.replacen(&format!(" FROM {table}"), &from, 1)
    }

    /// A look takes no lock, and an insert that meets a row locks it. So those that stand are
    /// looked at.
    async fn claim_many(
        &self,
        session: &mut Session<'_>,
        jobs: &[&Job],
    ) -> Result<Answers, StoreError> {
        let mut answers = self.look_at_many(session, jobs).await?;
        let is_free = |answer: &Option<Answer>| matches!(answer, Some(Ok(Swap::Refused(shown))) if shown.record.is_none());
        let free = (0..jobs.len()).filter(|place| is_free(&answers[*place]));
        let free: Vec<_> = free.collect();
        let claimed: Vec<_> = free.iter().map(|place| jobs[*place]).collect();
        let written = match self.claim_text(session.about.max_allowed_packet, &claimed) {
            Some(text) => self.claimed(session, text).await?,
            None => HashMap::new(),
        };
        for place in free {
            let job = jobs[place];
            answers[place] = job.work.next().and_then(|next| {
                let (version, now) = written.get(&job.id)?;
                let stamp = || Stamp::from_record(&next.apply(None, *now), *now);
                (*version == next.version.to_bytes()).then(|| Ok(Swap::Applied(stamp())))
            });
        }
        Ok(answers)
    }

    /// The version that stands under each id, and the time.
    async fn claimed(
        &self,
        session: &mut Session<'_>,
        text: String,
    ) -> Result<HashMap<RecordId, ([u8; 16], Time)>, StoreError> {
        let rows = rows(session, text).await?;
        let claimed = rows.iter().map(|row| {
            let id = sql::id_at(row, 0, DOING)?;
            let version = sql::version_at(row, 1, DOING)?;
            let now = sql::time_at(row, 2, DOING)?;
            Ok((id, (version, now)))
        });
        // They may stand, whatever the answer says.
        let claimed = claimed.collect::<Result<_, StoreError>>();
        claimed.map_err(StoreError::after_a_write)
    }

    /// `None` if there is none, or they do not fit.
    pub(super) fn claim_text(&self, most: u64, jobs: &[&Job]) -> Option<String> {
        let (head, rest) = self.create.text.split_once("VALUES ")?;
        let (row, tail) = rest.split_once(" ON DUPLICATE")?;
        let row = Statement {
            text: row.trim_end().into(),
            places: self.create.places.clone(),
        };
        let rows = jobs.iter().filter_map(|job| {
            Some(written_out(
                &row,
                &sql::written(&job.id, None, job.work.next()?),
            ))
        });
        let rows: Vec<_> = rows.collect();
        let text = format!(
            "{NO_WAIT} {head}VALUES {} ON DUPLICATE{tail} RETURNING id, version, {NOW}",
            rows.join(", ")
        );
        let fits = text.len() as u64 <= most / PART_OF_PACKET;
        (!rows.is_empty() && fits).then_some(text)
    }

    async fn complete_many(
        &self,
        session: &mut Session<'_>,
        jobs: &[&Job],
    ) -> Result<Answers, StoreError> {
        let message = self.complete_text(session.about.max_allowed_packet, jobs);
        let Some(message) = message else {
            return Ok(jobs.iter().map(|_| None).collect());
        };
        let mut told = Vec::new();
        if let Err(error) = send(session.connection, message, &mut told).await {
            let error = failure::of(error, DOING);
            if failure::was_undone(&error) {
                // The statements before it are undone only by this.
                let undone = session.connection.execute("ROLLBACK").await;
                undone.map_err(|error| failure::of(error, DOING))?;
            }
            return Err(error);
        }
        // The first answer is that of the word that begins.
        let (told, behind) = told[1..].split_at_mut(jobs.len());
        if self.triggers.are_there() {
            fill(told, behind.first());
        }
        let mut answers: Vec<_> = told.iter().zip(jobs).map(completed).collect();
        let untold = told.iter().zip(jobs).enumerate();
        let untold = untold.filter(|(_, (told, _))| told.affected > 0 && told.server_time == 0);
        for (place, (_, job)) in untold {
            if let Work::Complete { next, .. } = &job.work {
                let learned = self.learn(session, &job.id, next, DOING).await;
                answers[place] = Some(learned.map(Swap::Applied));
            }
        }
        Ok(answers)
    }

    /// `None` if they do not fit.
    pub(super) fn complete_text(&self, most: u64, jobs: &[&Job]) -> Option<String> {
        let mut message = "START TRANSACTION;".to_owned();
        let has_triggers = self.triggers.are_there();
        for (place, job) in jobs.iter().enumerate() {
            let Work::Complete { seen, next, .. } = &job.work else {
                return None;
            };
            let values = sql::completed(&job.id, *seen, next);
            let text = written_out(&self.complete, &values);
            let text = match has_triggers {
                true => keeping(&text, place),
                false => text,
            };
            message.push_str(&format!("{NO_WAIT} {text};"));
        }
        if has_triggers {
            message.push_str(&format!("{};", kept(jobs.len())));
        }
        message.push_str("COMMIT");
        (message.len() as u64 <= most / PART_OF_PACKET).then_some(message)
    }
}

/// `None` if another version stands there, or nothing.
fn completed((told, job): (&ServerAnswer, &&Job)) -> Option<Answer> {
    let Work::Complete { next, known, .. } = &job.work else {
        return None;
    };
    let stamp = stamped(next, Some(known.record()), told.server_time)?;
    (told.affected > 0).then_some(Ok(Swap::Applied(stamp)))
}

async fn rows(session: &mut Session<'_>, text: String) -> Result<Vec<MySqlRow>, StoreError> {
    let text = sqlx::raw_sql(AssertSqlSafe(text));
    let rows = session.connection.fetch_all(text).await;
    rows.map_err(|error| failure::of(error, DOING))
}

/// A list of rows whose columns are named `c1`, `c2` and so on.
fn listed(rows: &[Vec<Value<'_>>]) -> String {
    let rows = rows.iter().map(|row| {
        let columns = (1..=row.len()).map(|number| format!("?{number} AS c{number}"));
        let columns: Vec<_> = columns.collect();
        written_out(
            &Statement::new(&format!("SELECT {}", columns.join(", "))),
            row,
        )
    });
    let mut rows: Vec<_> = rows.collect();
    // Those that look at one record in the same way are side by side, and share a row.
    rows.dedup();
    format!("({}) AS many", rows.join(" UNION ALL "))
}

impl Statement {
    /// Puts a column of a list in the place of each parameter.
    fn with_columns(&self) -> String {
        let mut parts = self.text.split('?');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for (part, place) in parts.zip(&self.places) {
            text.push_str(&format!("c{}{part}", place + 1));
        }
        text
    }
}
