//! Events: acts on a trail, and those of programs. They are only added, and each leaves an entry.

use idempotent_runtime::{__audit::Row, BoxError, StoreError, Time};

use crate::{database::TrailDatabase, names::Names, seal::damaged, source::Source};

pub(crate) const WRITING: &str = "writing an event of the audit";
const READING: &str = "reading the events of the audit";

/// An event that is to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewEvent<'a> {
    pub(crate) event: &'a str,
    pub(crate) holder: Option<&'a str>,
    pub(crate) detail: &'a str,
    pub(crate) person: Option<&'a str>,
}

impl<'a> NewEvent<'a> {
    /// One of the trail itself.
    pub(crate) fn new(event: &'a str, detail: &'a str) -> Self {
        Self {
            event,
            holder: None,
            detail,
            person: None,
        }
    }
}

/// An event that stands.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) number: i64,
    pub(crate) event: String,
    pub(crate) detail: String,
    pub(crate) person: Option<String>,
    /// The user who was logged in. SQLite has none.
    pub(crate) db_user: Option<String>,
    /// When it was written, by the server's clock, in microseconds.
    pub(crate) written: i64,
}

impl Event {
    fn read(row: &impl Row) -> Result<Self, BoxError> {
        Ok(Self {
            number: row.number(0)?.unwrap_or_default(),
            event: row.text(1)?.unwrap_or_default(),
            detail: row.text(2)?.unwrap_or_default(),
            person: row.text(3)?,
            db_user: row.text(4)?,
            written: row.number(5)?.unwrap_or_default(),
        })
    }
}

/// The statement that writes an event.
pub(crate) fn insert<DB: TrailDatabase>(names: &Names, event: &NewEvent<'_>) -> String {
    let value = |text: Option<&str>| text.map_or("NULL".to_owned(), DB::text);
    let values = [
        Some(event.event),
        event.holder,
        Some(event.detail),
        event.person,
    ];
    let (events, values) = (names.of(Source::Event), values.map(value).join(", "));
    format!("INSERT INTO {events} (event, holder, detail, person) VALUES ({values})")
}

/// The events with these names, in the order in which they were written: all, or those of the last
/// microseconds.
pub(crate) async fn named<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
    events: &[&str],
    newest: Option<i64>,
) -> Result<Vec<Event>, StoreError> {
    let (table, events) = (
        names.of(Source::Event),
        events.iter().map(|it| DB::text(it)),
    );
    let (events, now) = (events.collect::<Vec<_>>().join(", "), DB::NOW);
    let newest = newest.map_or(String::new(), |age| format!(" AND written > {now} - {age}"));
    let look = format!(
        "SELECT number, event, detail, person, db_user, written
         FROM {table} WHERE event IN ({events}){newest} ORDER BY number"
    );
    let rows = DB::query(connection, look, READING).await?;
    let read = rows.iter().map(|row| Event::read(row).map_err(damaged));
    read.collect()
}

/// The person, the reason and the time of an act.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Signed {
    /// The user of the database, which is *proven*. SQLite has none.
    pub db_user: Option<String>,
    /// The person, as *claimed*.
    pub by: Option<String>,
    /// The reason.
    pub because: String,
    /// When it was written, by the server's clock.
    pub at: Time,
}

impl Signed {
    pub(crate) fn new(event: &Event, because: String) -> Self {
        Self {
            db_user: event.db_user.clone(),
            by: event.person.clone(),
            because,
            at: Time::from_micros(event.written),
        }
    }
}
