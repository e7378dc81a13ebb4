//! Makes a repeated call safe.
//!
//! Put [`#[idempotent]`](macro@idempotent) on an async function, and a retry, a redelivered message or a double click meets
//! at most one live body and one recorded outcome, which answers every duplicate.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod attempt;
mod call;
pub mod clock;
mod codec;
mod duration;
mod error;
pub mod fingerprint;
mod framing;
mod handle;
pub mod identity;
pub mod key;
pub mod lease;
mod observe;
mod operation;
mod outcome;
pub mod policy;
pub mod record;
mod request;
mod run;
mod sha256;
pub mod store;
mod sync;
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;

pub use idempotent_macros::KeyPart;
#[doc = include_str!("idempotent.md")]
pub use idempotent_macros::idempotent;

pub use crate::{
    attempt::{Attempt, ChildId, current, try_current},
    call::{CallBuilder, RawEnding},
    codec::{Codec, Read},
    duration::IntoDuration,
    error::{BoxError, Error, Unreadable},
    fingerprint::FingerprintKey,
    handle::{AsHandle, Builder, Idempotency, Kept, Settle, Status},
    key::{KeyPart, KeyWriter, text},
    observe::{Answer, Answered, How, Observer, Step, Transition, Unprotected},
    operation::Operation,
    outcome::Stored,
    policy::{
        InFlight, OnCancel, OnCrash, OnMissingKey, OnOutage, Reconciled, Unrecorded, Verdict,
    },
    record::{FencingToken, OutcomeKind, RawOutcome, Time},
    store::{MemoryStore, Store, StoreError, StoreErrorKind},
};

/// What the attribute's expansion calls. Not for people: it changes with every release.
#[doc(hidden)]
pub mod __private {
    pub use core;
    pub use std::time::Duration;

    pub use crate::{
        handle::AsHandle,
        key::Template,
        operation::Site,
        outcome::{
            Classification, Classified, FromRefusal, Keep, LeftUncertain, OnError, Outcome,
            Recorded, Reference, Released, Replayed, Storable, StorableError, Upgraded, Whole,
        },
        policy::{InFlight, OnCancel, OnCrash, OnMissingKey, OnOutage},
        request::{Call, Fingerprintable, begin},
        run::reconcile,
    };
}
