//! The functions that run the statements over a connection, the store's or the application's.

use std::{future::poll_fn, sync::Arc, time::Duration};

use sqlx::{
    AssertSqlSafe, Either, Executor,
    query::Query,
    sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow},
};

use super::{
    failure,
    group_commit::Write,
    rows,
    statements::{Statements, Together},
};
use crate::{
    identity::RecordId,
    record::{Draft, Moment, Record, Version, micros},
    store::{Snapshot, StoreError, StoreErrorKind, Swap, sql},
};

const CLAIMING: &str = "claiming a record";
const TOGETHER: &str = "writing a record";

/// The reason why a record that is not there cannot be claimed.
const DROPPED: &str = "nothing is written where nothing stands: a trigger drops it";

/// The place where the columns of a record begin in the answer of a refused write.
const RECORD: usize = 2;

impl Statements {
    pub(super) async fn load(
        &self,
        connection: &mut SqliteConnection,
        id: &RecordId,
    ) -> Result<Snapshot, StoreError> {
        const DOING: &str = "loading a record";
        let query = query(&self.load).bind(&id.as_bytes()[..]);
        let rows = all(connection, query, DOING).await?;
        let row = rows.first().ok_or_else(|| sql::no_row(DOING))?;
        sql::snapshot(row, 0, 1, DOING)
    }

    /// Puts `next` where `seen` stands, or where nothing stands if there is none.
    pub(super) async fn swap(
        &self,
        connection: &mut SqliteConnection,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        match seen {
            None => self.create(connection, id, next).await,
            Some(seen) => self.replace(connection, id, seen, next).await,
        }
    }

    /// Puts `next` where nothing stands.
    async fn create(
        &self,
        connection: &mut SqliteConnection,
        id: &RecordId,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        for _ in 0..sql::ROUNDS {
            match self.create_once(connection, id, next).await? {
                // The record that was in the way is gone already.
                Swap::Refused(Snapshot { record: None, .. }) => {
                    if self.is_elsewhere(connection).await? {
                        return Err(sql::version::is_elsewhere(CLAIMING));
                    }
                }
                swap => return Ok(swap),
            }
        }
        Err(StoreError::new(StoreErrorKind::Denied, CLAIMING).with_source(DROPPED))
    }

    pub(super) async fn is_elsewhere(
        &self,
        connection: &mut SqliteConnection,
    ) -> Result<bool, StoreError> {
        match &self.here {
            Some(here) => Ok(all(connection, query(here), CLAIMING).await?.is_empty()),
            None => Ok(false),
        }
    }

    async fn create_once(
        &self,
        connection: &mut SqliteConnection,
        id: &RecordId,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        let mut answers = connection.fetch_many(written(&self.create, id, None, next));
        let mut applied = None;
        // Read to the end if something was written, because an error at the commit comes after the
        // row.
        while let Some(answer) = poll_fn(|context| answers.as_mut().poll_next(context)).await {
            if let Either::Right(row) = answer.map_err(|error| failure::of(error, CLAIMING))? {
                match sql::swapped(&row, RECORD, next.version, CLAIMING)? {
                    Swap::Refused(snapshot) => return Ok(Swap::Refused(snapshot)),
                    Swap::Applied(stamp) => applied = Some(stamp),
                }
            }
        }
        let applied = applied.map(Swap::Applied);
        applied.ok_or_else(|| sql::no_row(CLAIMING))
    }

    /// Puts `next` where version `seen` stands.
    async fn replace(
        &self,
        connection: &mut SqliteConnection,
        id: &RecordId,
        seen: Version,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        if finishes(next) {
            let swap = replace(connection, &self.finish, id, seen, next).await?;
            match &swap {
                // Refused over the version that was seen: only the bound on `purge_from` was in the
                // way.
                Swap::Refused(Snapshot {
                    record: Some(record),
                    ..
                }) if record.version == seen => {}
                _ => return Ok(swap),
            }
        }
        replace(connection, &self.replace, id, seen, next).await
    }

    /// Looks at the records under the ids of these claims: the answer to each of them, if a record
    /// stands.
    pub(super) async fn look(
        &self,
        connection: &mut SqliteConnection,
        claims: &[Write],
    ) -> Result<Vec<Option<Result<Swap, StoreError>>>, StoreError> {
        let query = query(&self.looks.of(claims.len()));
        let ids = claims.iter().map(|claim| claim.id.as_bytes());
        let query = ids.fold(query, |query, id| query.bind(&id[..]));
        let rows = each(connection, query, &self.looks, claims.len()).await?;
        let answers = rows.into_iter().zip(claims);
        let read = |row, claim: &Write| sql::swapped(&row, RECORD, claim.next.version, CLAIMING);
        let answers = answers.map(|(row, claim)| row.map(|row| read(row, claim)));
        Ok(answers.collect())
    }

    /// Puts several drafts where their callers saw that nothing stands, or each where its version
    /// stands and only finishes. Either all are answered, and the applied ones stand. Or none is,
    /// and none stands once the transaction is rolled back.
    pub(super) async fn together(
        &self,
        connection: &mut SqliteConnection,
        writes: &[Write],
    ) -> Result<Vec<Result<Swap, StoreError>>, StoreError> {
        let together = match writes.iter().any(|write| write.seen.is_some()) {
            true => &self.finishes,
            false => &self.creates,
        };
        let parameters = writes
            .iter()
            .flat_map(|write| sql::written(&write.id, write.seen, &write.next));
        let query = parameters.fold(query(&together.of(writes.len())), rows::bind);
        let rows = each(connection, query, together, writes.len()).await?;
        let answers = rows.into_iter().zip(writes);
        let read = |(row, write): (Option<_>, &Write)| {
            let row = row.ok_or_else(|| sql::no_row(TOGETHER))?;
            sql::swapped(&row, RECORD, write.next.version, TOGETHER)
        };
        Ok(answers.map(read).collect())
    }

    pub(super) async fn purge(
        &self,
        connection: &mut SqliteConnection,
        limit: u32,
        keep: Duration,
    ) -> Result<Vec<RecordId>, StoreError> {
        const DOING: &str = "purging expired records";
        let query = query(&self.purge).bind(limit).bind(micros(keep));
        let rows = all(connection, query, DOING).await?;
        rows.iter().map(|row| sql::id(row, DOING)).collect()
    }

    pub(super) async fn scan(
        &self,
        connection: &mut SqliteConnection,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        const DOING: &str = "listing records";
        // Shorter than every id, and so before all of them.
        let after = after.map_or(Vec::new(), |after| after.as_bytes().to_vec());
        let rows = all(connection, query(&self.scan).bind(after).bind(limit), DOING).await?;
        rows.iter().map(|row| sql::listed(row, DOING)).collect()
    }
}

/// Whether a draft goes on with its subject, and leaves `purge_from` alone: it says when its record
/// expires, and the record does not need somebody, as those do that stand behind all others there.
pub(super) fn finishes(next: &Draft) -> bool {
    next.subject.is_none()
        && !next.state.needs_attention()
        && next.lease == Moment::Keep
        && next.expires != Moment::Keep
}

async fn replace(
    connection: &mut SqliteConnection,
    text: &Arc<str>,
    id: &RecordId,
    seen: Version,
    next: &Draft,
) -> Result<Swap, StoreError> {
    const DOING: &str = "writing a record";
    let rows = all(connection, written(text, id, Some(seen), next), DOING).await?;
    let row = rows.first().ok_or_else(|| sql::no_row(DOING))?;
    sql::swapped(row, RECORD, next.version, DOING)
}

/// Runs one statement for so many records to its end: the row that each of them is answered with,
/// if there is one.
async fn each(
    connection: &mut SqliteConnection,
    query: Query<'static, Sqlite, SqliteArguments>,
    together: &Together,
    records: usize,
) -> Result<Vec<Option<SqliteRow>>, StoreError> {
    let (before, of_each) = together.places();
    let mut rows: Vec<_> = (0..records).map(|_| None).collect();
    let mut answers = connection.fetch_many(query);
    let mut ended = 0_usize;
    while let Some(answer) = poll_fn(|context| answers.as_mut().poll_next(context)).await {
        match answer.map_err(|error| failure::of(error, TOGETHER))? {
            Either::Left(_) => ended += 1,
            Either::Right(row) => {
                if let Some(place) = rows.get_mut(ended.saturating_sub(before) / of_each) {
                    *place = Some(row);
                }
            }
        }
    }
    match ended == 2 * before + records * of_each {
        true => Ok(rows),
        false => Err(sql::no_row(TOGETHER)),
    }
}

pub(super) fn query(text: &Arc<str>) -> Query<'static, Sqlite, SqliteArguments> {
    sqlx::query(AssertSqlSafe(Arc::clone(text)))
}

fn written(
    text: &Arc<str>,
    id: &RecordId,
    seen: Option<Version>,
    next: &Draft,
) -> Query<'static, Sqlite, SqliteArguments> {
    let values = sql::written(id, seen, next).into_iter();
    values.fold(query(text), rows::bind)
}

/// Runs a query to its end. Never `fetch_one` for a write with `RETURNING`: the driver would stop
/// at its row and swallow an error of the commit, which comes after it.
pub(super) async fn all(
    connection: &mut SqliteConnection,
    query: Query<'static, Sqlite, SqliteArguments>,
    doing: &'static str,
) -> Result<Vec<SqliteRow>, StoreError> {
    let rows = connection.fetch_all(query).await;
    rows.map_err(|error| failure::of(error, doing))
}
