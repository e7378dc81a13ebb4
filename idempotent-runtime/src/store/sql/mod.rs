//! What all SQL stores have in common: the columns of a record, and the way to and from them. A Redis hash has the same ones.
//!
//! A dialect brings its statements and the few lines that hand a [`Value`] to its driver and a [`Cell`] back; it orders
//! parameters as [`written`] does and selects columns as [`COLUMNS`] says.

mod answers;
mod columns;
mod decode;
mod encode;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod listed;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod prefix;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) mod version;

pub(crate) use self::{
    answers::{answer, snapshot, stamp},
    columns::COLUMNS,
    decode::{Cell, Damaged, Row},
    encode::{Value, written},
};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) use self::{
    listed::{id, listed},
    prefix::TablePrefix,
};
