//! Recipes: how a repeated request stays safe, with this library and without it.
//!
//! Many operations need no record of ours, because the database can tell a duplicate by itself.
//! Start at the top of this list, and stop at the first row that fits.
//!
//! | when | recipe |
//! |---|---|
//! | the business has a number for it | [`natural_keys`] |
//! | the duplicate would insert the same row again | [`unique_constraint`] |
//! | the last writer may win | [`upsert`], [`put`] |
//! | a writer must have seen the present version | [`optimistic_locking`] |
//! | the outcome itself must be repeated | [`idempotent`](macro@crate::idempotent), with [`choosing_keys`] |
//! | a queue delivers a message again | [`message_consumers`] |
//! | the queue is a log with offsets | [`kafka`] |
//! | a provider sends webhooks | [`standard_webhooks`] |
//! | the queue is Amazon SQS, or a function of AWS Lambda consumes | [`sqs_and_lambda`] |
//! | events are numbered, and none may be missing or out of order | [`sequences`] |
//! | a body has several effects, and must go on where it stopped | [`steps`] |
//! | the same, and a failure must undo the effects before it | [`sagas`] |
//! | a message must go out if, and only if, rows were committed | [`outbox`] |
//! | the same, and Debezium reads the database already | [`change_data_capture`] |
//! | an operator has to find and settle what no call can decide | [`operators`] |
//! | an auditor asks for each change, and for proof that the list is whole | [`idempotent-audit`](https://docs.rs/idempotent-audit/latest/idempotent_audit/guide/), a crate beside this one |
//! | a dashboard has to show all of that | `metrics`, with the feature `metrics` |
//! | two systems must agree | [`two_phase_commit`], and why it is rarely the answer |

#[doc = include_str!("guide/natural_keys.md")]
pub mod natural_keys {}

#[doc = include_str!("guide/unique_constraint.md")]
pub mod unique_constraint {}

#[doc = include_str!("guide/upsert.md")]
pub mod upsert {}

#[doc = include_str!("guide/optimistic_locking.md")]
pub mod optimistic_locking {}

#[doc = include_str!("guide/put.md")]
pub mod put {}

#[doc = include_str!("guide/choosing_keys.md")]
pub mod choosing_keys {}

#[doc = include_str!("guide/message_consumers.md")]
pub mod message_consumers {}

#[doc = include_str!("guide/kafka.md")]
pub mod kafka {}

#[doc = include_str!("guide/standard_webhooks.md")]
pub mod standard_webhooks {}

#[doc = include_str!("guide/sqs_and_lambda.md")]
pub mod sqs_and_lambda {}

#[doc = include_str!("guide/sequences.md")]
pub mod sequences {}

#[doc = include_str!("guide/steps.md")]
pub mod steps {}

#[doc = include_str!("guide/sagas.md")]
pub mod sagas {}

#[doc = include_str!("guide/operators.md")]
pub mod operators {}

#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
#[doc = include_str!("guide/metrics.md")]
pub mod metrics {}

#[doc = include_str!("guide/outbox.md")]
pub mod outbox {}

#[doc = include_str!("guide/change_data_capture.md")]
pub mod change_data_capture {}

#[doc = include_str!("guide/two_phase_commit.md")]
pub mod two_phase_commit {}
