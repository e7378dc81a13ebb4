//! The work of operators: they find the records that need somebody, settle them, and look at one.
//!
//! A list asks the store for a page along one index, and keeps of it what the other filters let
//! through. It runs nothing and writes nothing. A page looks at 10,000 records at most, so that it
//! ends, whatever stands in the store. An act is written over the version that was loaded, or over
//! the one that the operator names, with the person and the reason beside it. No act moves a stream
//! back, and none touches what a living process holds.

mod acts;
mod attention;
mod cursor;
mod explain;
mod filter;
mod health;
mod lookup;
mod operations;
mod records;
mod reveal;
mod row;
mod settle;
mod settle_step;
mod steps;

pub(crate) use self::attention::attention_at_hand;
#[doc(hidden)]
pub use self::operations::__assert_operations;
pub use self::{
    acts::{InvalidateRecord, ResumeRecord},
    cursor::{InvalidCursor, RecordCursor},
    explain::Explanation,
    health::{Health, StorePulse},
    lookup::{Status, StoredOutcome},
    operations::OperationChange,
    records::{RecordCount, RecordPage, Records},
    row::{OutcomeSummary, RecordRow},
    settle::Settle,
    settle_step::SettleStep,
    steps::StepRow,
};
pub use crate::record::{Note, State, StepName, StepState};
pub use crate::{engine::heartbeat::HeartbeatHealth, handle::PurgeHealth};
