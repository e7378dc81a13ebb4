//! The place where a list goes on.

use std::{fmt, str::FromStr};

use crate::{identity::RecordId, record::Time, store::ListPosition};

/// The place behind which the next page of a list begins: [`RecordPage::next`](super::RecordPage).
///
/// It is written and read as text, for a command line or a link. It is of use to a list with the
/// same filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordCursor(pub(super) Place);

/// A place in one of the orders that a store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Behind this record of a list.
    Behind(ListPosition),
    /// At the handful that has this place.
    At(u64),
}

/// A text is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no cursor of a list of records: take it from the page before")]
pub struct InvalidCursor;

impl fmt::Display for RecordCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Behind(ListPosition { created, id }) => {
                write!(formatter, "{}-{}", created.as_micros(), id.to_hex())
            }
            Place::At(place) => write!(formatter, "at-{place}"),
        }
    }
}

impl FromStr for RecordCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (created, id) = text.rsplit_once('-').ok_or(InvalidCursor)?;
        if created == "at" {
            let place = id.parse().map_err(|_| InvalidCursor)?;
            return Ok(Self(Place::At(place)));
        }
        let created = created.parse().map_err(|_| InvalidCursor)?;
        Ok(Self(Place::Behind(ListPosition {
            created: Time::from_micros(created),
            id: id.parse::<RecordId>().map_err(|_| InvalidCursor)?,
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        for created in [0, -5, 1_764_400_000_000_000, i64::MAX] {
            let behind = Place::Behind(ListPosition {
                created: Time::from_micros(created),
                id: RecordId::from_bytes([0xa7; 32]),
            });
            for place in [behind, Place::At(created.cast_unsigned())] {
                let cursor = RecordCursor(place);
                assert_eq!(cursor.to_string().parse(), Ok(cursor));
            }
        }
        for text in [
            "",
            "-",
            "5",
            "5-",
            "x-a7",
            "5-a7a7",
            "💥-💥",
            "at-",
            "at--1",
        ] {
            assert_eq!(text.parse::<RecordCursor>(), Err(InvalidCursor), "{text}");
        }
    }
}
