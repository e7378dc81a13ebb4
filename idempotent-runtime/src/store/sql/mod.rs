//! What all SQL stores have in common: the columns of a record, and the way to and from them.
//!
//! A dialect brings its statements and the few lines that hand a [`Value`] to its driver; it orders
//! parameters as [`written`] does and selects columns as [`COLUMNS`] says.

mod answers;
mod columns;
mod decode;
mod encode;
mod failure;
mod prefix;
pub(crate) mod version;

#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) use self::answers::answer;
pub(crate) use self::{
    answers::{id, listed, snapshot, stamp},
    columns::COLUMNS,
    decode::{Cell, Damaged, Row},
    encode::{Value, written},
    failure::no_row,
    prefix::{TablePrefix, chosen},
};
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) use self::{encode::bytes, failure::kind_on_the_way};
