//! From the columns of a row to a record. The answer to any row is a record or [`Damaged`], never a
//! panic.

use std::{error::Error, sync::Arc};

use crate::{
    fingerprint::{ArgumentDigests, Fingerprint, Fingerprinted},
    identity::RecordId,
    policy::OnCrash,
    record::{
        AttemptId, FencingToken, Holder, Note, OutcomeKind, RawOutcome, Record, State, Subject,
        Time, Version,
    },
    store::{Stamp, sql::COLUMNS},
};

/// A row as a driver gives it.
#[cfg_attr(
    not(feature = "_sql"),
    expect(
        unreachable_pub,
        reason = "the crate of the audit needs it beside a database of SQL"
    )
)]
pub trait Row {
    /// The bytes at this place.
    fn bytes(&self, place: usize) -> Result<Option<Vec<u8>>, Box<dyn Error + Send + Sync>>;
    /// The text at this place.
    fn text(&self, place: usize) -> Result<Option<String>, Box<dyn Error + Send + Sync>>;
    /// The number at this place.
    fn number(&self, place: usize) -> Result<Option<i64>, Box<dyn Error + Send + Sync>>;
}

/// Reads a row as its driver does. The one of Postgres reads no bytes that a session has escaped.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
macro_rules! as_the_driver_does {
    ($row:ty) => {
        impl Row for $row {
            fn bytes(&self, place: usize) -> Result<Option<Vec<u8>>, Box<dyn Error + Send + Sync>> {
                Ok(sqlx::Row::try_get(self, place)?)
            }
            fn text(&self, place: usize) -> Result<Option<String>, Box<dyn Error + Send + Sync>> {
                Ok(sqlx::Row::try_get(self, place)?)
            }
            fn number(&self, place: usize) -> Result<Option<i64>, Box<dyn Error + Send + Sync>> {
                Ok(sqlx::Row::try_get(self, place)?)
            }
        }
    };
}
#[cfg(feature = "mysql")]
as_the_driver_does!(sqlx::mysql::MySqlRow);
#[cfg(feature = "sqlite")]
as_the_driver_does!(sqlx::sqlite::SqliteRow);

/// Says which column of a row does not hold what this crate writes.
#[derive(Debug, thiserror::Error)]
#[error("the column `{column}` does not hold what this crate writes there")]
pub(crate) struct Damaged {
    column: &'static str,
    source: Box<dyn Error + Send + Sync>,
}

/// The flaw of a column that the driver could read.
#[derive(Debug, thiserror::Error)]
enum Flaw {
    #[error("it is NULL")]
    Null,
    #[error("it holds {0}, which stands for nothing")]
    Number(i64),
    #[error("it holds {found} bytes in place of {expected}")]
    Length { expected: usize, found: usize },
}

/// Reads the record whose [`COLUMNS`] begin at `first`; `None` if no record stands.
pub(crate) fn record(row: &impl Row, first: usize) -> Result<Option<(RecordId, Record)>, Damaged> {
    let mut cells = Cells {
        row,
        first,
        next: 0,
        columns: &COLUMNS,
    };
    let Some(id) = cells.next().bytes()? else {
        return Ok(None);
    };
    let id = RecordId::from_bytes(exactly(COLUMNS[0], &id)?);
    let version = Version::from_bytes(cells.next().array()?);
    let subject = Arc::new(Subject {
        operation: cells.next().text()?.into(),
        scope: cells.next().some_bytes()?,
        key: cells.next().some_bytes()?,
        fingerprint: {
            let fingerprint = Fingerprint::from_bytes(cells.next().array()?);
            let digests = cells.next();
            let read = ArgumentDigests::from_bytes(&digests.some_bytes()?);
            Fingerprinted::stored(fingerprint, read.map_err(|flaw| digests.damaged(flaw))?)
        },
    });
    let state = cells.next().coded(State::from_code)?;
    let token = cells.next().fits(u64::try_from)?;
    let record = Record {
        subject,
        state,
        version,
        token: FencingToken::from_u64(token),
        attempt: cells.next().fits(u32::try_from)?,
        attempt_id: AttemptId::from_bytes(cells.next().array()?),
        holder: Holder {
            label: cells.next().text()?.into(),
            trace_parent: cells.next().optional_text()?.map(Into::into),
        },
        on_crash: cells.next().coded(OnCrash::from_code)?,
        lease_end: cells.next().time()?,
        created: cells.next().time()?,
        finished: cells.next().optional_time()?,
        expires: cells.next().time()?,
        outcome: cells.outcome()?,
        note: cells.note(version)?,
    };
    Ok(Some((id, record)))
}

/// Reads the time, token, end of lease and end of retention that begin at `first`.
pub(crate) fn stamp(row: &impl Row, first: usize, version: Version) -> Result<Stamp, Damaged> {
    let cell = |place, column| Cell {
        row,
        place: first + place,
        column,
    };
    Ok(Stamp {
        version,
        now: cell(0, "now").time()?,
        token: FencingToken::from_u64(cell(1, "token").fits(u64::try_from)?),
        lease_end: cell(2, "lease_end").time()?,
        expires: cell(3, "expires").time()?,
    })
}

/// The columns of a row, one after the other.
pub(super) struct Cells<'r, R> {
    row: &'r R,
    first: usize,
    next: usize,
    columns: &'static [&'static str],
}

impl<'r, R: Row> Cells<'r, R> {
    /// Those of a row that has no others before them.
    #[cfg(feature = "_sql")]
    pub(super) fn of(row: &'r R, columns: &'static [&'static str]) -> Self {
        Self {
            row,
            first: 0,
            next: 0,
            columns,
        }
    }

    pub(super) fn next(&mut self) -> Cell<'r, R> {
        let cell = Cell {
            row: self.row,
            place: self.first + self.next,
            column: self.columns[self.next],
        };
        self.next += 1;
        cell
    }

    /// The next three, which are an outcome.
    pub(super) fn outcome(&mut self) -> Result<Option<RawOutcome>, Damaged> {
        let (kind, schema, bytes) = (self.next(), self.next(), self.next());
        if kind.number()?.is_none() {
            return Ok(None);
        }
        Ok(Some(RawOutcome {
            kind: kind.coded(OutcomeKind::from_code)?,
            schema: schema.fits(u32::try_from)?,
            bytes: bytes.some_bytes()?.into(),
        }))
    }

    /// The next three, which are the note about `version`; `None` if it is about another one, as
    /// where a build has written that does not know notes.
    pub(super) fn note(&mut self, version: Version) -> Result<Option<Arc<Note>>, Damaged> {
        let (text, by, of) = (self.next(), self.next(), self.next());
        if of.bytes()?.as_deref() != Some(&version.to_bytes()) {
            return Ok(None);
        }
        Ok(Some(Arc::new(Note {
            by: by.optional_text()?.map(Into::into),
            text: text.optional_text()?.unwrap_or_default().into(),
        })))
    }
}

/// One column of one row.
#[derive(Debug)]
pub(crate) struct Cell<'r, R> {
    pub(crate) row: &'r R,
    pub(crate) place: usize,
    pub(crate) column: &'static str,
}

impl<R: Row> Cell<'_, R> {
    pub(crate) fn time(&self) -> Result<Time, Damaged> {
        self.some_number().map(Time::from_micros)
    }

    fn optional_time(&self) -> Result<Option<Time>, Damaged> {
        Ok(self.number()?.map(Time::from_micros))
    }

    pub(super) fn coded<T>(&self, from_code: impl Fn(u8) -> Option<T>) -> Result<T, Damaged> {
        let number = self.some_number()?;
        let meaning = u8::try_from(number).ok().and_then(from_code);
        meaning.ok_or_else(|| self.damaged(Flaw::Number(number)))
    }

    pub(super) fn fits<T, E>(&self, convert: impl Fn(i64) -> Result<T, E>) -> Result<T, Damaged> {
        let number = self.some_number()?;
        convert(number).map_err(|_| self.damaged(Flaw::Number(number)))
    }

    pub(super) fn array<const N: usize>(&self) -> Result<[u8; N], Damaged> {
        exactly(self.column, &self.some_bytes()?)
    }

    pub(super) fn some_bytes(&self) -> Result<Vec<u8>, Damaged> {
        self.bytes()?.ok_or_else(|| self.damaged(Flaw::Null))
    }

    pub(super) fn text(&self) -> Result<String, Damaged> {
        self.optional_text()?
            .ok_or_else(|| self.damaged(Flaw::Null))
    }

    pub(super) fn some_number(&self) -> Result<i64, Damaged> {
        self.number()?.ok_or_else(|| self.damaged(Flaw::Null))
    }

    pub(super) fn bytes(&self) -> Result<Option<Vec<u8>>, Damaged> {
        let bytes = self.row.bytes(self.place);
        bytes.map_err(|cause| self.damaged(cause))
    }

    fn optional_text(&self) -> Result<Option<String>, Damaged> {
        let text = self.row.text(self.place);
        text.map_err(|cause| self.damaged(cause))
    }

    pub(super) fn number(&self) -> Result<Option<i64>, Damaged> {
        let number = self.row.number(self.place);
        number.map_err(|cause| self.damaged(cause))
    }

    pub(super) fn damaged(&self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Damaged {
        Damaged {
            column: self.column,
            source: source.into(),
        }
    }
}

fn exactly<const N: usize>(column: &'static str, bytes: &[u8]) -> Result<[u8; N], Damaged> {
    bytes.try_into().map_err(|_| {
        let flaw = Flaw::Length {
            expected: N,
            found: bytes.len(),
        };
        Damaged {
            column,
            source: flaw.into(),
        }
    })
}
