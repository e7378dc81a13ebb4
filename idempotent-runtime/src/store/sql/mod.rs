//! What all SQL stores have in common: the columns of a record, and the way to and from them.
//!
//! A dialect brings its statements and the few lines that hand a [`Value`] to its driver and a [`Cell`] back; it orders
//! parameters as [`written`] does and selects columns as [`COLUMNS`] says.

mod answers;
mod columns;
mod decode;
mod encode;
mod prefix;
pub(crate) mod version;

#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) use self::answers::answer;
pub(crate) use self::{
    answers::{id, listed, snapshot, stamp},
    columns::COLUMNS,
    decode::{Cell, Damaged, Row},
    encode::{Value, written},
    prefix::TablePrefix,
};
