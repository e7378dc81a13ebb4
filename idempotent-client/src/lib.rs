#![doc = include_str!("client.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod call;
mod error;
mod headers;
mod in_flight;
pub mod journal;
mod key;
mod keys;
#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub mod metrics;
pub mod observe;
mod outcome;
mod policy;
mod problem;
mod sampler;
mod wire;

#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub use self::journal::SqliteJournal;
pub use self::{
    call::{ClientCall, Intent},
    error::{CallSummary, ClientAnswer, ClientError},
    journal::{ClientJournal, MemoryJournal, PendingCall, Resend},
    key::{ClientKey, InvalidClientKey, KeyStyle, LONGEST_KEY},
    keys::{IdempotencyKeys, KeysBuilder},
    observe::ClientObserver,
    outcome::{ClientOutcome, KeyStatus, Origin},
    policy::{Budget, Conflict, Limits, Profile, StopReason, Support},
    sampler::Sampler,
};

/// Its listing is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
