//! The work of operators: they find the records that need somebody.
//!
//! A list asks the store for a page along one index, and keeps of it what the other filters let
//! through. It runs nothing and writes nothing. A page looks at 10,000 records at
//! most, so that it ends, whatever stands in the store.

mod cursor;
mod records;
mod row;

pub use self::{
    cursor::{InvalidCursor, RecordCursor},
    records::{RecordCount, RecordPage, Records},
    row::{OutcomeSummary, RecordRow},
};
pub use crate::record::{Note, State};
