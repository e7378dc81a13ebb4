//! The place where a list goes on.

use std::{fmt, str::FromStr};

use crate::{identity::RecordId, record::Time, store::ListPosition};

/// The place behind which the next page of a list begins: [`RecordPage::next`](super::RecordPage).
///
/// It is written and read as text, for a command line or a link. It is of use to a list with the
/// same filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordCursor(pub(super) ListPosition);

/// A text is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no cursor of a list of records: take it from the page before")]
pub struct InvalidCursor;

impl fmt::Display for RecordCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ListPosition { created, id } = &self.0;
        write!(formatter, "{}-{}", created.as_micros(), id.to_hex())
    }
}

impl FromStr for RecordCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (created, id) = text.rsplit_once('-').ok_or(InvalidCursor)?;
        let created = created.parse().map_err(|_| InvalidCursor)?;
        Ok(Self(ListPosition {
            created: Time::from_micros(created),
            id: id.parse::<RecordId>().map_err(|_| InvalidCursor)?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        for created in [0, -5, 1_764_400_000_000_000, i64::MAX] {
            let cursor = RecordCursor(ListPosition {
                created: Time::from_micros(created),
                id: RecordId::from_bytes([0xa7; 32]),
            });
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for text in ["", "-", "5", "5-", "x-a7", "5-a7a7", "💥-💥"] {
            assert_eq!(text.parse::<RecordCursor>(), Err(InvalidCursor), "{text}");
        }
    }
}
