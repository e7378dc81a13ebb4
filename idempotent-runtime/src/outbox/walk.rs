//! Walks over the keys that have messages.

use super::{dialect::sealed::KeepsMessages, tables::Tables};
use crate::{
    error::BoxError,
    store::{StoreError, StoreErrorKind, sql::Row as _},
};

/// How many keys a walk meets at most.
pub(super) const MOST: usize = 1_000;

pub(super) const DOING: &str = "relaying messages";

/// A key that has messages.
#[derive(Debug)]
pub struct PendingKey {
    /// The key or the lane, as it is claimed.
    pub(super) place: Vec<u8>,
    /// Whether a relay may claim it now.
    pub(super) is_due: bool,
}

/// The text that walks the index from key to key behind `after`, and tells which ones are due: it
/// reads as many rows as there are keys, however many messages they have.
pub(super) fn look<DB: KeepsMessages>(tables: &Tables, after: &[u8]) -> String {
    let Tables {
        messages, claims, ..
    } = tables;
    let next = |after: &str| {
        format!(
            "(SELECT next.message_key FROM {messages} AS next WHERE next.message_key > {after}
              ORDER BY next.message_key LIMIT 1)"
        )
    };
    format!(
        "WITH RECURSIVE walk (message_key, step) AS (
             SELECT {first}, 1
             UNION ALL
             SELECT {second}, step + 1 FROM walk WHERE walk.message_key IS NOT NULL AND step < {MOST})
         SELECT walk.message_key,
             CASE WHEN claimed.message_key IS NULL OR {free} THEN {one} ELSE {zero} END
         FROM walk LEFT JOIN {claims} AS claimed ON claimed.message_key = walk.message_key
         WHERE walk.message_key IS NOT NULL ORDER BY walk.message_key",
        first = next(&DB::bytes(after)),
        second = next("walk.message_key"),
        free = free::<DB>(),
        one = DB::number(1),
        zero = DB::number(0),
    )
}

/// The condition under which another relay may claim a key that was `claimed`.
pub(super) fn free<DB: KeepsMessages>() -> String {
    let now = DB::NOW;
    format!(
        "(claimed.lease_end <= {now} AND claimed.next_attempt <= {now} AND claimed.blocked_since = 0)"
    )
}

/// The keys that such a text tells.
pub(super) fn met<DB: KeepsMessages>(rows: &[DB::Row]) -> Result<Vec<PendingKey>, StoreError> {
    let met = |row: &DB::Row| -> Result<PendingKey, BoxError> {
        Ok(PendingKey {
            place: row.bytes(0)?.unwrap_or_default(),
            is_due: row.number(1)? == Some(1),
        })
    };
    rows.iter()
        .map(met)
        .collect::<Result<_, _>>()
        .map_err(damaged)
}

pub(super) fn damaged(source: BoxError) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, DOING).with_source(source)
}
