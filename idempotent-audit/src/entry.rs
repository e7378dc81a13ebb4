//! An entry, and the bytes that its leaf is the hash of.

use idempotent_runtime::{
    __audit::{Hex, Row},
    BoxError,
};

use crate::merkle::{self, Hash, sha256};

/// A field of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// It says nothing.
    Null,
    /// A number: a count, a code, or microseconds.
    Number(i64),
    /// A text.
    Text(String),
    /// Bytes: an id, a hash, or the number of a stream.
    Bytes(Vec<u8>),
}

/// The type of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Number,
    Text,
    Bytes,
}

/// The fields of an entry, in the order in which its leaf has them.
pub(crate) const FIELDS: [(&str, Kind); 21] = [
    ("number", Kind::Number),
    ("written", Kind::Number),
    ("source", Kind::Text),
    ("kind", Kind::Text),
    ("record", Kind::Bytes),
    ("operation", Kind::Text),
    ("step", Kind::Bytes),
    ("label", Kind::Text),
    ("stream", Kind::Bytes),
    ("state_before", Kind::Number),
    ("state_after", Kind::Number),
    ("attempt", Kind::Number),
    ("token", Kind::Number),
    ("holder", Kind::Text),
    ("db_user", Kind::Text),
    ("note", Kind::Text),
    ("note_by", Kind::Text),
    ("forgettable", Kind::Number),
    ("outcome_kind", Kind::Number),
    ("outcome_hash", Kind::Bytes),
    ("hash_before", Kind::Bytes),
];

/// The fields that SQLite has as they are until the entry is sealed.
const HASHED: [&str; 2] = ["outcome_hash", "hash_before"];

/// An entry of a trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    values: Vec<Value>,
}

/// The columns that a select lists, in this order.
pub(crate) fn columns() -> String {
    FIELDS.map(|(column, _)| column).join(", ")
}

impl Entry {
    /// Reads the entry whose columns begin at `first`.
    pub(crate) fn read(row: &impl Row, first: usize) -> Result<Self, BoxError> {
        let fields = FIELDS.iter().enumerate();
        let values = fields.map(|(place, (_, kind))| value(row, first + place, *kind));
        Ok(Self {
            values: values.collect::<Result<_, _>>()?,
        })
    }

    /// Returns the field of this name; `None` if an entry has no such field.
    #[must_use]
    pub(crate) fn get(&self, field: &str) -> Option<&Value> {
        Some(&self.values[place(field)?])
    }

    /// Returns its number, which grows with each entry that is written.
    #[must_use]
    pub(crate) fn number(&self) -> i64 {
        self.number_of("number").unwrap_or_default()
    }

    pub(crate) fn number_of(&self, field: &str) -> Option<i64> {
        match self.get(field) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn text_of(&self, field: &str) -> Option<&str> {
        match self.get(field) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    #[cfg(feature = "sqlite")]
    pub(crate) fn bytes_of(&self, field: &str) -> Option<&[u8]> {
        match self.get(field) {
            Some(Value::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// Puts hashes where SQLite has the bytes themselves.
    pub(crate) fn hash_late(&mut self) {
        let is_of_outbox = matches!(self.text_of("source"), Some("rejected" | "claim" | "act"));
        let hashed = HASHED.iter().chain(is_of_outbox.then_some(&"record"));
        for field in hashed {
            if let Some(Value::Bytes(bytes)) = place(field).map(|place| &mut self.values[place]) {
                *bytes = sha256(bytes).to_vec();
            }
        }
    }

    /// The hash of the entry.
    pub(crate) fn leaf(&self) -> Hash {
        merkle::leaf(&encode(&self.values))
    }
}

fn place(field: &str) -> Option<usize> {
    FIELDS.iter().position(|(column, _)| *column == field)
}

fn value(row: &impl Row, place: usize, kind: Kind) -> Result<Value, BoxError> {
    let value = match kind {
        Kind::Number => row.number(place)?.map(Value::Number),
        Kind::Text => row.text(place)?.map(Value::Text),
        Kind::Bytes => row.bytes(place)?.map(Value::Bytes),
    };
    Ok(value.unwrap_or(Value::Null))
}

/// The bytes of some values, one behind the other: 0 for NULL; 1 and eight bytes for a number, in
/// two's complement; 2, the length in eight bytes and the bytes for a text and for bytes.
pub(crate) fn encode(values: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        let content: &[u8] = match value {
            Value::Null => {
                bytes.push(0);
                continue;
            }
            Value::Number(number) => {
                bytes.push(1);
                bytes.extend(number.to_be_bytes());
                continue;
            }
            Value::Text(text) => text.as_bytes(),
            Value::Bytes(content) => content,
        };
        bytes.push(2);
        bytes.extend((content.len() as u64).to_be_bytes());
        bytes.extend(content);
    }
    bytes
}

/// A sealed entry, as the statement takes it that gives it its place.
pub(crate) struct Sealed {
    pub(crate) entry: Entry,
    pub(crate) leaf: Hash,
}

/// The values of sealed entries, for databases that take a list of rows.
pub(crate) fn listed(entries: &[Sealed], row: impl Fn(usize, &Sealed) -> String) -> String {
    let rows = entries.iter().enumerate();
    let rows: Vec<_> = rows.map(|(place, sealed)| row(place, sealed)).collect();
    rows.join(", ")
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    Hex(bytes).to_string()
}
