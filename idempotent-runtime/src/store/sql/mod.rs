//! The common part of all SQL stores: the columns of a record, and the way to and from them. A
//! Redis hash has the same columns.
//!
//! A dialect brings its statements and the few lines that hand a [`Value`] to its driver; it orders
//! parameters as [`written`] does and selects columns as [`COLUMNS`] says.

mod answers;
mod columns;
mod decode;
#[cfg(feature = "_sql")]
mod dialect;
mod encode;
#[cfg(feature = "_sql")]
mod failure;
#[cfg(feature = "_sql")]
pub(crate) mod list;
#[cfg(feature = "_sql")]
mod listed;
#[cfg(feature = "_sql")]
pub(crate) mod migrate;
#[cfg(feature = "_sql")]
pub(crate) mod prefix;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) mod server;
#[cfg(feature = "_sql")]
mod steps;
#[cfg(feature = "_sql")]
pub(crate) mod store;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) mod url;
#[cfg(feature = "_sql")]
pub(crate) mod version;

#[cfg(any(feature = "postgres", feature = "redis", feature = "sqlite"))]
pub(crate) use self::answers::APPLIED;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) use self::answers::again;
#[cfg(feature = "redis")]
pub(crate) use self::answers::is_applied;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
pub(crate) use self::answers::stamp;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) use self::answers::{REFUSED, swapped};
#[cfg(not(feature = "_sql"))]
pub(crate) use self::decode::Row;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) use self::dialect::sent;
#[cfg(feature = "mysql")]
pub(crate) use self::listed::time_at;
pub(crate) use self::{
    answers::snapshot,
    columns::COLUMNS,
    decode::{Cell, Damaged},
    encode::{Value, written},
};
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) use self::{
    columns::INDEXED_NAME,
    encode::{bytes, completed, known},
    failure::{kind_on_the_way, while_opening},
    listed::{id_at, shown, version_at},
};
#[cfg(feature = "_sql")]
pub(crate) use self::{
    columns::attention,
    failure::{doing, no_row},
    listed::{id, listed},
    prefix::{TablePrefix, chosen},
    steps::{
        Reads, STEP_COLUMNS, heads, step_is_dropped, step_refused, step_set, step_written, steps,
        steps_sought, taking_steps,
    },
};
#[cfg(feature = "_sql")]
pub use self::{decode::Row, dialect::Dialect};

/// How often a claim is tried that neither stands nor shows what stands: once more for each time
/// that a record is deleted in between.
#[cfg(feature = "_sql")]
pub(crate) const ROUNDS: u32 = 16;

#[cfg(test)]
pub(crate) mod tests {
    #[cfg(feature = "_sql")]
    pub(crate) mod earlier;
    pub(crate) mod golden;
    #[cfg(feature = "_sql")]
    pub(crate) mod upgrade;
}
