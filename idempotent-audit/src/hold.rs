//! Holds: entries that no pruning touches.

use idempotent_runtime::{Time, identity::RecordId};
use serde_json::{Value as Json, json};

use crate::event::{Event, Signed};

/// The entries that are held.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hold {
    /// Those of one record, and of its steps.
    Record(RecordId),
    /// Those of all records of this operation, and of their steps.
    Operation(String),
    /// Those that were written from the first time up to the second one.
    Times(Time, Time),
}

/// A hold that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// The number of the hold, by which it is released.
    pub number: i64,
    /// The entries that are held.
    pub hold: Hold,
    /// The act that holds them.
    pub signed: Signed,
}

pub(crate) const HOLD: &str = "hold";
pub(crate) const RELEASE: &str = "release";

const BECAUSE: &str = "because";

/// The events that holds are made of.
pub(crate) const EVENTS: [&str; 2] = [HOLD, RELEASE];

/// The holds that stand after these events.
pub(crate) fn standing(events: &[Event]) -> Vec<Held> {
    let mut all: Vec<Held> = Vec::new();
    for event in events {
        let Some((signed, subject)) = read(event) else {
            continue;
        };
        let number = event.number;
        if event.event == RELEASE {
            all.retain(|held| Some(held.number) != subject.as_i64());
        } else if let Some(hold) = Hold::from_json(&subject) {
            all.push(Held {
                number,
                hold,
                signed,
            });
        }
    }
    all
}

/// The detail of an act that holds or releases this.
pub(crate) fn detail(subject: &Json, because: &str) -> String {
    json!({ HOLD: subject, BECAUSE: because }).to_string()
}

/// Reads an act, and the entries that it is about.
fn read(event: &Event) -> Option<(Signed, Json)> {
    let detail: Json = serde_json::from_str(&event.detail).ok()?;
    let because = detail.get(BECAUSE)?.as_str()?.to_owned();
    Some((Signed::new(event, because), detail.get(HOLD)?.clone()))
}

impl Hold {
    /// Whether it holds nothing, as a time that ends before it begins.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Times(from, to) if from > to)
    }

    pub(crate) fn to_json(&self) -> Json {
        match self {
            Self::Record(id) => json!({ "record": id.to_hex() }),
            Self::Operation(operation) => json!({ "operation": operation }),
            Self::Times(from, to) => json!({ "from": from.as_micros(), "to": to.as_micros() }),
        }
    }

    fn from_json(json: &Json) -> Option<Self> {
        let text = |field| json.get(field)?.as_str();
        let time = |field| Some(Time::from_micros(json.get(field)?.as_i64()?));
        if let Some(id) = text("record") {
            return Some(Self::Record(id.parse().ok()?));
        }
        if let Some(operation) = text("operation") {
            return Some(Self::Operation(operation.to_owned()));
        }
        Some(Self::Times(time("from")?, time("to")?))
    }
}

/// Decides entry by entry, in the order of their records, which of them a hold keeps.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    records: Vec<Vec<u8>>,
    operations: Vec<String>,
    times: Vec<(i64, i64)>,
    /// The record at hand, if its operation is held.
    of_operation: Option<Vec<u8>>,
}

impl Keeper {
    pub(crate) fn new(holds: &[Held]) -> Self {
        let mut keeper = Self::default();
        for held in holds {
            match &held.hold {
                Hold::Record(id) => keeper.records.push(id.as_bytes().to_vec()),
                Hold::Operation(operation) => keeper.operations.push(operation.clone()),
                Hold::Times(from, to) => keeper.times.push((from.as_micros(), to.as_micros())),
            }
        }
        keeper
    }

    /// The entries of a record come before those of its steps, which have no operation.
    pub(crate) fn keeps(
        &mut self,
        record: Option<&Vec<u8>>,
        operation: Option<&String>,
        written: i64,
    ) -> bool {
        if operation.is_some_and(|it| self.operations.contains(it)) {
            self.of_operation = record.cloned();
        }
        let is_of_record = record.is_some_and(|record| {
            self.records.contains(record) || self.of_operation.as_ref() == Some(record)
        });
        let mut times = self.times.iter();
        is_of_record || times.any(|(from, to)| (*from..=*to).contains(&written))
    }
}
