//! Numbers for people outside of the process: metrics of all that observers are told of, and
//! readings of what waits in the stores.
//!
//! `metrics` is an observer, and no more: it learns of nothing that another observer cannot learn.
//! It keeps a handle for each value of its labels, because to look one up costs ten times as much
//! as to count. `sampler` reads on a schedule, in one process at a time, and tells observers. No
//! label is a key, a scope, an id or the text of an error.

#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub mod metrics;
#[cfg(feature = "opentelemetry")]
#[cfg_attr(docsrs, doc(cfg(feature = "opentelemetry")))]
pub mod otel;
mod sampler;
mod turn;

pub use self::sampler::{Sampler, SamplerBuilder};
