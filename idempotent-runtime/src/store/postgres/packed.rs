//! A record in one column, as `record_send` of Postgres packs it. The number of its columns comes
//! first. Then each has the OID of its type, its length or -1 for NULL, and its bytes, as the
//! binary protocol has them.
//!
//! A claim that answers so, and not in twenty-four columns, of which it mostly has none to show,
//! costs the server a fifth less.

use std::{error::Error, ops::Range};

use sqlx::postgres::PgRow;

use super::statements::place;
use crate::store::{
    StoreError, StoreErrorKind,
    sql::{COLUMNS, Row},
};

type Cause = Box<dyn Error + Send + Sync>;

/// A row whose record is unpacked: its columns stand from [`place::RECORD`] on.
#[derive(Debug)]
pub(super) struct Unpacked<'r> {
    row: &'r PgRow,
    record: Option<Record>,
}

#[derive(Debug)]
struct Record {
    bytes: Vec<u8>,
    cells: [Option<Range<usize>>; COLUMNS.len()],
}

#[derive(Debug, thiserror::Error)]
enum Flaw {
    #[error("the record that the server packed ends too early, or too late")]
    Torn,
    #[error("a number has {0} bytes in place of 8")]
    Number(usize),
}

impl<'r> Unpacked<'r> {
    pub(super) fn of(row: &'r PgRow, doing: &'static str) -> Result<Self, StoreError> {
        let corrupt =
            |cause: Cause| StoreError::new(StoreErrorKind::Corrupt, doing).with_source(cause);
        let packed = row.bytes(place::RECORD).map_err(corrupt)?;
        let record = packed.map(|bytes| Record::unpack(bytes).ok_or(Flaw::Torn));
        Ok(Self {
            row,
            record: record.transpose().map_err(|flaw| corrupt(flaw.into()))?,
        })
    }

    /// The bytes that the column at `place` of the record holds; `None` if no record stands, or the
    /// column is NULL.
    fn cell(&self, place: usize) -> Option<&[u8]> {
        let record = self.record.as_ref()?;
        let cell = record.cells.get(place)?.clone()?;
        Some(&record.bytes[cell])
    }
}

impl Record {
    /// `None` if the bytes are not packed as said above.
    fn unpack(bytes: Vec<u8>) -> Option<Self> {
        let mut at = 0;
        let number = |at: &mut usize| {
            let (number, _) = bytes.get(*at..)?.split_first_chunk()?;
            *at += number.len();
            Some(i32::from_be_bytes(*number))
        };
        if usize::try_from(number(&mut at)?) != Ok(COLUMNS.len()) {
            return None;
        }
        let mut cells = [const { None }; COLUMNS.len()];
        for cell in &mut cells {
            let _type = number(&mut at)?;
            // Only NULL has a negative length.
            if let Ok(length) = usize::try_from(number(&mut at)?) {
                let end = at.checked_add(length)?;
                *cell = Some(at..end);
                at = end;
            }
        }
        // The cells follow each other, so all are there if the last one ends where the bytes do.
        (at == bytes.len()).then_some(Self { bytes, cells })
    }
}

impl Row for Unpacked<'_> {
    fn bytes(&self, place: usize) -> Result<Option<Vec<u8>>, Cause> {
        match place.checked_sub(place::RECORD) {
            Some(column) => Ok(self.cell(column).map(<[u8]>::to_vec)),
            None => self.row.bytes(place),
        }
    }

    fn text(&self, place: usize) -> Result<Option<String>, Cause> {
        match place.checked_sub(place::RECORD) {
            Some(column) => {
                let text = self.cell(column).map(<[u8]>::to_vec);
                Ok(text.map(String::from_utf8).transpose()?)
            }
            None => self.row.text(place),
        }
    }

    fn number(&self, place: usize) -> Result<Option<i64>, Cause> {
        match place.checked_sub(place::RECORD) {
            Some(column) => {
                let number = self.cell(column).map(|bytes| {
                    let bytes = bytes.try_into().map_err(|_| Flaw::Number(bytes.len()))?;
                    Ok::<_, Flaw>(i64::from_be_bytes(bytes))
                });
                Ok(number.transpose()?)
            }
            None => self.row.number(place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first column is NULL, and each other one holds its number.
    fn packed() -> Vec<u8> {
        let count = i32::try_from(COLUMNS.len()).expect("a few");
        let mut bytes = count.to_be_bytes().to_vec();
        for cell in 0..COLUMNS.len() {
            bytes.extend(20_i32.to_be_bytes());
            if cell == 0 {
                bytes.extend((-1_i32).to_be_bytes());
            } else {
                bytes.extend(8_i32.to_be_bytes());
                bytes.extend((cell as u64).to_be_bytes());
            }
        }
        bytes
    }

    #[test]
    fn every_cell_is_where_the_server_put_it() {
        let record = Record::unpack(packed()).expect("it is whole");

        assert_eq!(record.cells[0], None);
        for (number, cell) in record.cells.into_iter().enumerate().skip(1) {
            let cell = &record.bytes[cell.expect("it is not NULL")];
            assert_eq!(cell, (number as u64).to_be_bytes());
        }
    }

    #[test]
    fn what_is_torn_is_no_record() {
        let whole = packed();
        for length in 0..whole.len() {
            assert!(Record::unpack(whole[..length].to_vec()).is_none());
        }
        let longer = [&whole[..], &[0]].concat();
        assert!(Record::unpack(longer).is_none());
        let mut of_more_columns = whole;
        of_more_columns[3] += 1;
        assert!(Record::unpack(of_more_columns).is_none());
    }
}
