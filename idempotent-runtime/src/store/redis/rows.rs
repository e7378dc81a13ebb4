//! The answer of a script, read as a row: the same columns as in SQL.

use std::error::Error;

use redis::Value;

use crate::{
    identity::RecordId,
    store::{StoreError, StoreErrorKind, sql::Row},
};

/// The places where the parts of an answer begin.
pub(super) mod place {
    /// The time, and the stamp that begins with it.
    pub(in super::super) const NOW: usize = 1;
    /// The record, which begins with its id.
    pub(in super::super) const RECORD: usize = 2;
}

/// A cell holds something else than its reader expects.
#[derive(Debug, thiserror::Error)]
#[error("it is of another type")]
struct Unreadable;

/// The cells that a script answered.
#[derive(Debug)]
pub(super) struct Cells(Vec<Value>);

impl Cells {
    pub(super) fn of(answer: Value, doing: &'static str) -> Result<Self, StoreError> {
        match answer {
            Value::Array(cells) => Ok(Self(cells)),
            _ => Err(Self::unreadable(doing)),
        }
    }

    pub(super) fn unreadable(doing: &'static str) -> StoreError {
        StoreError::new(StoreErrorKind::Corrupt, doing).with_source(Unreadable)
    }

    /// Puts the id before the record, if one stands: the script knows it only as a part of its key.
    pub(super) fn with_id(mut self, id: &RecordId) -> Self {
        let version = self.0.get(place::RECORD).unwrap_or(&Value::Nil);
        let id = match version {
            Value::Nil => Value::Nil,
            _ => Value::BulkString(id.as_bytes().to_vec()),
        };
        self.0.insert(self.0.len().min(place::RECORD), id);
        self
    }
}

impl Row for Cells {
    fn bytes(&self, place: usize) -> Result<Option<Vec<u8>>, Box<dyn Error + Send + Sync>> {
        match self.0.get(place) {
            Some(Value::BulkString(bytes)) => Ok(Some(bytes.clone())),
            Some(Value::Nil) | None => Ok(None),
            Some(_) => Err(Unreadable.into()),
        }
    }

    fn text(&self, place: usize) -> Result<Option<String>, Box<dyn Error + Send + Sync>> {
        let bytes = self.bytes(place)?;
        Ok(bytes.map(String::from_utf8).transpose()?)
    }

    fn number(&self, place: usize) -> Result<Option<i64>, Box<dyn Error + Send + Sync>> {
        if let Some(Value::Int(number)) = self.0.get(place) {
            return Ok(Some(*number));
        }
        let text = self.text(place)?;
        Ok(text.map(|text| text.parse()).transpose()?)
    }
}
