//! A value that a person has said, in JSON.

use std::{borrow::Cow, fmt, fs};

use idempotent_runtime::{OutcomeKind, record::Record};
use serde::{Serialize, Serializer};
use serde_json::{Value, value::RawValue};

use crate::failure::Failure;

/// A value in JSON. A store that is reached by its URL gets the bytes as they were said, since a
/// long number would be another one. The codec of a program's own handle gets the value.
#[derive(Debug)]
pub(super) enum Said {
    AsItIs(Box<RawValue>),
    Value(Value),
}

impl Said {
    /// Reads JSON, or the file that `@file` names: no JSON begins so, and an argument has a limit.
    pub(super) fn read(text: &str, is_given: bool) -> Result<Self, Failure> {
        let text = match text.strip_prefix('@') {
            None => Cow::Borrowed(text),
            Some(file) => {
                let read = fs::read_to_string(file);
                Cow::Owned(read.map_err(|error| {
                    Failure::Usage(format!("the value cannot be read from {file}: {error}"))
                })?)
            }
        };
        let said = match is_given {
            true => serde_json::from_str(&text).map(Self::Value),
            false => serde_json::from_str(&text).map(Self::AsItIs),
        };
        said.map_err(|error| {
            Failure::Usage(format!(
                "the value is no JSON ({error}): a text has quotes of its own, such as '\"receipt-99\"'"
            ))
        })
    }

    /// Whether the record has this outcome already.
    pub(super) fn is_that_of(&self, record: &Record, kind: OutcomeKind, schema: u32) -> bool {
        let bytes = self.to_string();
        record.outcome.as_ref().is_some_and(|it| {
            (it.kind, it.schema, &it.bytes[..]) == (kind, schema, bytes.as_bytes())
        })
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AsItIs(text) => f.write_str(text.get()),
            Self::Value(value) => value.fmt(f),
        }
    }
}

impl Serialize for Said {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::AsItIs(text) => text.serialize(serializer),
            Self::Value(value) => value.serialize(serializer),
        }
    }
}
