//! The entries of one record.

use idempotent_runtime::{
    __audit::Row,
    BoxError, StoreError, Time,
    identity::RecordId,
    record::{State, StepState},
};

use crate::{database::TrailDatabase, names::Names, seal::damaged};

const READING: &str = "reading the entries of a record";

/// The columns that a timeline reads, in this order.
const COLUMNS: &str = "number, written, kind, label, state_before, state_after, attempt, holder, db_user, note, note_by, batch, step";

/// An entry of a record or of one of its steps.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimelineEntry {
    /// The number, which grows with each entry of the trail.
    pub number: i64,
    /// When it was written, by the server's clock.
    pub at: Time,
    /// The kind of the change: `call`, `takeover`, `operator`, `rewritten`, `deleted`, or `found`
    /// if the record is older than the trail.
    pub kind: String,
    /// The label of the step; `None` for the record itself.
    pub step: Option<String>,
    /// The name of the state before, such as `running`.
    pub before: Option<String>,
    /// The name of the state after.
    pub after: Option<String>,
    /// The number of the attempt.
    pub attempt: Option<i64>,
    /// The process, as *claimed*.
    pub holder: Option<String>,
    /// The user of the database, which is *proven*. SQLite has none.
    pub db_user: Option<String>,
    /// The person, as *claimed*.
    pub by: Option<String>,
    /// The reason.
    pub because: Option<String>,
    /// The batch in which it is sealed; `None` until then.
    pub batch: Option<i64>,
}

impl TimelineEntry {
    fn read(row: &impl Row) -> Result<Self, BoxError> {
        let is_step = row.bytes(12)?.is_some();
        let state = |place| -> Result<Option<String>, BoxError> {
            Ok(row.number(place)?.map(|code| name(code, is_step)))
        };
        Ok(Self {
            number: row.number(0)?.unwrap_or_default(),
            at: Time::from_micros(row.number(1)?.unwrap_or_default()),
            kind: row.text(2)?.unwrap_or_default(),
            step: row.text(3)?.filter(|_| is_step),
            before: state(4)?,
            after: state(5)?,
            attempt: row.number(6)?,
            holder: row.text(7)?,
            db_user: row.text(8)?,
            because: row.text(9)?,
            by: row.text(10)?,
            batch: row.number(11)?,
        })
    }
}

/// The name of a state, or its number where no state has it.
fn name(code: i64, is_step: bool) -> String {
    let known = u8::try_from(code).ok();
    let name = match is_step {
        true => known
            .and_then(StepState::from_code)
            .map(|it| format!("{it:?}")),
        false => known.and_then(State::from_code).map(|it| format!("{it:?}")),
    };
    name.map_or_else(|| code.to_string(), |name| name.to_lowercase())
}

/// The newest entries of a record.
pub(crate) async fn timeline<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
    id: RecordId,
    limit: u32,
) -> Result<Vec<TimelineEntry>, StoreError> {
    let (entries, record) = (names.entries(), DB::bytes(id.as_bytes()));
    // The index has sealed entries alone, and those that are open are few.
    let part = |sealed: &str| {
        format!(
            "SELECT * FROM (SELECT {COLUMNS} FROM {entries} WHERE record = {record} AND batch IS {sealed} AND source IN ('record', 'step') ORDER BY number DESC LIMIT {limit}) AS {}",
            if sealed == "NULL" {
                "open_ones"
            } else {
                "sealed_ones"
            }
        )
    };
    let (open, sealed) = (part("NULL"), part("NOT NULL"));
    let look = format!("{open} UNION ALL {sealed} ORDER BY number DESC LIMIT {limit}");
    let rows = DB::query(connection, look, READING).await?;
    let read = rows
        .iter()
        .map(|row| TimelineEntry::read(row).map_err(damaged));
    read.collect()
}
