//! Writes beside a trigger.
//!
//! Any trigger on a table, such as those of an audit, makes the server forget the number that
//! `LAST_INSERT_ID` was to tell. The first write that meets this looks at what it wrote, in a round
//! trip of its own. From then on each write keeps the number in a variable, which is read in the
//! same message.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{
    connection::Session,
    rows::{self, ServerAnswer},
    statements::{Statement, Statements},
    together::written_out,
};
use crate::{
    identity::RecordId,
    record::{Draft, Version},
    store::{
        Stamp, StoreError, StoreErrorKind,
        sql::{self, Row as _, Value},
    },
};

/// The packet of a message is twice as long as the bytes that it writes out.
const PART_OF_PACKET: u64 = 2;

/// Whether a trigger has been met on a table. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Triggers(Arc<AtomicBool>);

impl Triggers {
    pub(super) fn are_there(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Notes that a write stands of which the server told nothing.
    pub(super) fn met(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The text of a write that keeps its number in the variable of this place.
pub(super) fn keeping(text: &str, place: usize) -> String {
    text.replace("LAST_INSERT_ID(", &format!("(@idempotent_told_{place} := "))
}

/// A look at the variables of the first places.
pub(super) fn kept(count: usize) -> String {
    let variables = (0..count).map(|place| format!("CAST(@idempotent_told_{place} AS SIGNED)"));
    format!("SELECT {}", variables.collect::<Vec<_>>().join(", "))
}

/// Fills in the numbers that such a look shows: the answer to it stands behind those of the writes.
pub(super) fn fill(writes: &mut [ServerAnswer], shown: Option<&ServerAnswer>) {
    let Some(row) = shown.and_then(|shown| shown.rows.first()) else {
        return;
    };
    for (place, write) in writes.iter_mut().enumerate() {
        let number = row.number(place).ok().flatten();
        write.server_time = number.and_then(|it| it.try_into().ok()).unwrap_or(0);
    }
}

impl Statements {
    /// Runs a write, whose answer has the number that the server tells. MariaDB shows the row of an
    /// insert, too.
    pub(super) async fn write(
        &self,
        session: &mut Session<'_>,
        (statement, shown): (&Statement, Option<&Statement>),
        values: &[Value<'_>],
        doing: &'static str,
    ) -> Result<ServerAnswer, StoreError> {
        if self.triggers.are_there() {
            if let Some(shown) = shown.filter(|_| session.about.shows) {
                return rows::run(session, shown, values, doing).await;
            }
            let message = beside_triggers(statement, values);
            let length = u64::try_from(message.len()).unwrap_or(u64::MAX);
            if length <= session.about.max_allowed_packet / PART_OF_PACKET {
                return rows::run_text(session, &message, doing).await;
            }
        }
        rows::run(session, statement, values, doing).await
    }

    /// Looks at what was written and not told, and remembers that there are triggers.
    pub(super) async fn learn(
        &self,
        session: &mut Session<'_>,
        id: &RecordId,
        next: &Draft,
        doing: &'static str,
    ) -> Result<Stamp, StoreError> {
        self.triggers.met();
        let looked = self.load_current(session, id).await;
        let shown = looked.map_err(StoreError::after_a_write)?;
        let gone = "it was written, and something else at once after it";
        let gone = || StoreError::new(StoreErrorKind::Unavailable, doing).with_source(gone);
        rows::found(next, &shown).ok_or_else(gone)
    }
}

/// The number that an insert wrote, where its row shows this version.
pub(super) fn shown(
    answer: &ServerAnswer,
    version: Version,
    doing: &'static str,
) -> Result<u64, StoreError> {
    let Some(row) = answer.rows.first() else {
        return Ok(answer.server_time);
    };
    let read = || {
        let is_own = sql::version_at(row, 0, doing)? == version.to_bytes();
        let now = sql::time_at(row, 1, doing)?;
        Ok(is_own.then(|| u64::try_from(now.as_micros()).unwrap_or(0)))
    };
    let number = read().map_err(StoreError::after_a_write)?;
    Ok(number.unwrap_or(0))
}

/// A write that may find no row leaves the variable as it is.
pub(super) fn beside_triggers(statement: &Statement, values: &[Value<'_>]) -> String {
    let write = keeping(&written_out(statement, values), 0);
    format!("SET @idempotent_told_0 = 0; {write}; {}", kept(1))
}
