//! One statement for the operations of many callers.
//!
//! The text of each is that of the statement for a single record, with a column of a list in the
//! place of each parameter. So each condition and each assignment stands in one place.
//!
//! A record that another transaction has locked keeps all of them waiting, so they wait for
//! [a moment](LOCK_WAIT) and no longer.

use std::collections::{HashMap, HashSet};

use sqlx::postgres::PgRow;

use super::{
    connection::Session,
    lists::{self, listed},
    packed::Unpacked,
    rows::check_identity,
    statements::{NAME, Statement, Statements, place},
    together::{LOOKED, WRITTEN},
};
use crate::{
    identity::RecordId,
    store::{
        StoreError, Swap,
        lane::{Answer, Job, Kind, LONGEST_SHOWN, Work},
        sql::{self, Value, bytes},
    },
};

const DOING: &str = "doing many operations together";

/// How long they wait for a lock, in milliseconds.
const LOCK_WAIT: u32 = 10;

/// The condition for the record of a row of the list. The second half is for the plan, which is
/// made once: a table that was small then is not read to its end when it is large.
const ID_OF_LIST: &str = "id = c1 AND id = ANY($1::bytea[])";

/// The place of the id in an answer, behind the record.
const ID: usize = place::RECORD + 1;

/// The same in the answer to a look at a known outcome. The version follows.
const KNOWN_ID: usize = 2;

/// The types of the parameters of a claim: those of a write without the version that was seen.
const CLAIMED: [&str; 22] = {
    let mut types = [""; 22];
    let mut at = 0;
    while at < types.len() {
        types[at] = WRITTEN[at];
        at += 1;
    }
    types
};

/// Those of a completion, as [`sql::completed`] orders them.
const COMPLETED: [&str; 7] = [
    "bytea", "bytea", "bytea", "bigint", "bigint", "bigint", "bytea",
];

/// Those of a look at a known outcome, as [`sql::known`] orders them.
const KNOWN: [&str; 3] = ["bytea", "bytea", "bigint"];

/// The statements over a list.
#[derive(Clone, Debug)]
pub(super) struct Many {
    pub(super) claim: Statement,
    pub(super) again: Statement,
    pub(super) complete: Statement,
    pub(super) look: Statement,
}

/// Puts a column of the list in the place of each parameter.
pub(super) fn with_columns(text: &str, types: &[&str]) -> String {
    let parameters = types.iter().enumerate();
    parameters.fold(text.to_owned(), |text, (place, kind)| {
        let number = place + 1;
        text.replace(&format!("${number}::{kind}"), &format!("c{number}"))
    })
}

impl Many {
    /// Makes them of the statements for a single record.
    pub(super) fn new(table: &str, [create, again, complete, load]: [&str; 4]) -> Self {
        let is_short = format!("coalesce(octet_length(outcome), 0) <= {LONGEST_SHOWN}");
        let wait = format!("set_config('lock_timeout', '{LOCK_WAIT}', true)");
        let named = format!(", {NAME}");
        let with_id = |text: &str, id: &str| text.replace(&named, &format!(", {id}, {NAME}"));
        let many = |types| format!("many AS MATERIALIZED (SELECT * FROM {})", listed(types));

        let claim = with_columns(create, &CLAIMED);
        let claim = claim
            .replacen(" AS now)", &format!(" AS now, {wait}), {}", many(&CLAIMED)), 1)
            .replacen("FROM clock ", "FROM clock, many ", 1)
            .replacen("RETURNING created", "RETURNING id, created", 1)
            .replacen(
                "WHERE id = c1 AND NOT EXISTS (SELECT FROM claimed)",
                &format!(
                    "WHERE (SELECT count(*) FROM claimed) < cardinality($1::bytea[]) AND id = ANY($1::bytea[])
               AND NOT EXISTS (SELECT FROM claimed WHERE claimed.id = {table}.id) AND {is_short}"
                ),
                1,
            );
        let complete = with_columns(complete, &COMPLETED).replacen(
            "WHERE id = c1",
            &format!(
                "FROM (SELECT {wait}) AS wait, {} WHERE {ID_OF_LIST}",
                listed(&COMPLETED)
            ),
            1,
        );
        let again = with_columns(again, &KNOWN).replacen(
            "WHERE id = c1",
            &format!(", {} WHERE {ID_OF_LIST}", listed(&KNOWN)),
            1,
        );
        let load = with_columns(load, &LOOKED).replacen(
            "FROM clock ",
            &format!("FROM clock CROSS JOIN {} ", listed(&LOOKED)),
            1,
        );
        let load = load.replacen(
            "ON id = c1",
            &format!("ON {ID_OF_LIST} WHERE {is_short}"),
            1,
        );
        Self {
            claim: Statement::new(&with_id(&claim, "id")),
            again: Statement::new(&with_id(&again, "c1, c2")),
            complete: Statement::new(&with_id(&complete, "c1")),
            look: Statement::new(&with_id(&load, "c1")),
        }
    }
}

impl Statements {
    /// The answers in the order of the jobs; `None` for one that has to go alone.
    pub(super) async fn send_many(
        &self,
        session: &mut Session<'_>,
        kind: Kind,
        jobs: &[&Job],
    ) -> Result<Vec<Option<Answer>>, StoreError> {
        if kind == Kind::Claim && session.about.is_some() {
            // A user that could not record how a call ends claims alone, and is refused so.
            return Ok(jobs.iter().map(|_| None).collect());
        }
        let (statement, types): (_, &[&str]) = match kind {
            Kind::Claim => (&self.many.claim, &CLAIMED),
            Kind::Again => (&self.many.again, &KNOWN),
            Kind::Complete => (&self.many.complete, &COMPLETED),
            Kind::Look => (&self.many.look, &LOOKED),
        };
        // Those that look at one record in the same way share a row.
        let mut listed = HashSet::new();
        let rows = jobs.iter().filter(|job| listed.insert(sought(kind, job)));
        let rows: Vec<_> = rows.map(|job| values(kind, job)).collect();
        let rows: Vec<_> = rows.iter().map(|row| &row[..]).collect();
        let (connection, channel) = (&mut *session.connection, Some(&*self.channel));
        let rows = lists::send(connection, self.protocol, statement, types, &rows, channel).await;
        let rows = check_identity(statement, rows, DOING)?;
        let by_record = rows.iter().map(|row| Ok((found(kind, row)?, row)));
        let by_record: HashMap<_, _> = by_record.collect::<Result<_, StoreError>>()?;
        let mut answers: Vec<Option<Answer>> = Vec::with_capacity(jobs.len());
        for (place, job) in jobs.iter().enumerate() {
            // They stand beside each other, and the first one has read what all look at.
            let before = place
                .checked_sub(1)
                .filter(|before| jobs[*before].id == job.id);
            let read = || answer(kind, job, by_record.get(&sought(kind, job))?).transpose();
            answers.push(match before {
                Some(before) if kind == Kind::Look => answers[before].clone(),
                _ => read(),
            });
        }
        Ok(answers)
    }
}

/// The record that a row of the list is about, and its version where it is known to be done.
type Sought = (RecordId, Option<[u8; 16]>);

fn sought(kind: Kind, job: &Job) -> Sought {
    let known = job.work.known().filter(|_| kind == Kind::Again);
    (job.id, known.map(|known| known.version().to_bytes()))
}

/// The same of a row of the answer.
fn found(kind: Kind, row: &PgRow) -> Result<Sought, StoreError> {
    match kind {
        Kind::Again => Ok((
            sql::id_at(row, KNOWN_ID, DOING)?,
            Some(sql::version_at(row, KNOWN_ID + 1, DOING)?),
        )),
        _ => Ok((sql::id_at(row, ID, DOING)?, None)),
    }
}

/// The values of a row of the list.
fn values(kind: Kind, job: &Job) -> Vec<Value<'_>> {
    match (&job.work, job.work.known()) {
        (Work::Claim { .. }, Some(known)) if kind == Kind::Again => {
            sql::known(&job.id, known).into()
        }
        (Work::Claim { next, .. }, _) => {
            // The last one is the version that was seen, and none was.
            let [values @ .., _] = sql::written(&job.id, None, next);
            values.into()
        }
        (Work::Complete { seen, next, .. }, _) => sql::completed(&job.id, *seen, next).into(),
        (Work::Look, _) => vec![bytes(job.id.as_bytes())],
    }
}

/// `None` if a known outcome does not stand as it was known.
fn answer(kind: Kind, job: &Job, row: &PgRow) -> Result<Option<Swap>, StoreError> {
    let swap = match (&job.work, job.work.known()) {
        (Work::Claim { .. }, Some(known)) if kind == Kind::Again => {
            return Ok(sql::again(row, known, DOING)?.map(Swap::Refused));
        }
        (Work::Claim { next, .. }, _) => {
            let row = Unpacked::of(row, DOING)?;
            sql::swapped(&row, place::RECORD, next.version, DOING)?
        }
        (Work::Complete { next, .. }, _) => sql::swapped(row, place::RECORD, next.version, DOING)?,
        (Work::Look, _) => {
            let row = Unpacked::of(row, DOING)?;
            Swap::Refused(sql::snapshot(&row, place::NOW, place::RECORD, DOING)?)
        }
    };
    Ok(Some(swap))
}
