//! Makes a repeated call safe.
//!
//! Put [`#[idempotent]`](macro@idempotent) on an async function, and a retry, a redelivered message
//! or a double click meets at most one live body and one recorded outcome, which answers every
//! duplicate.
//!
//! ```
//! use idempotent_runtime::{Error, Idempotency, idempotent};
//!
//! #[idempotent(key = order_id)]
//! async fn charge(order_id: &str, cents: u64) -> Result<String, Error> {
//!     Ok(format!("receipt for {cents} cents"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! Idempotency::memory().install()?; // or `Idempotency::sqlite("idempotency.db").await?`
//!
//! let first = charge("order-42", 1_250).await?;
//! assert_eq!(charge("order-42", 1_250).await?, first); // the body did not run
//! assert!(matches!(charge("order-42", 9_900).await, Err(Error::KeyReused { .. })));
//! # Ok(()) }
//! ```
//!
//! # Where to look
//!
//! * [`#[idempotent]`](macro@idempotent) is the manual: keys, errors, crashes, cancellation,
//!   outages, roll-outs.
//! * [`Idempotency`] is the handle: set-up, the method form of the attribute, looking at a call and
//!   settling it.
//! * [`current`] is what a body can ask: its attempt, its fencing token, and keys for downstream
//!   calls.
//! * [`Error`] says why a call got no answer, and what to do.
//! * [`Observer`] is told of everything that happens, for metrics.
//! * [`idempotent-client`](https://docs.rs/idempotent-client), a crate of its own, is the other
//!   side: keys and retries for calls that a program makes to a server over HTTP.
//! * [`store::TieredStore`] answers replays from memory or Redis, and lets another store decide.
//! * [`store`] is for programs that bring a store of their own, which `store::writing` shows how to
//!   write. [`fingerprint`] and [`key`] are for programs that must compute the same elsewhere.
//!
//! # What is supported
//!
//! Async functions and methods, on tokio, that return a `Result`; calls, duplicates and takeovers
//! across the tasks of a process with [`MemoryStore`], across the processes of a machine with
//! `SqliteStore`, and across machines with `PostgresStore` (Postgres 13 or newer), `MySqlStore`
//! (MariaDB 10.6 or newer, MySQL 8 or newer) and `RedisStore` (Redis 7 or newer, and Cluster). Rust
//! 1.94 or newer; it is developed on 1.95. The target must have atomics of 64 bits, as 32-bit x86
//! and ARMv7 do, and 32-bit PowerPC and MIPS do not.
//!
//! # What is not
//!
//! * **Exactly once at a third party.** Send it a [`child_key`](Attempt::child_key), or choose
//!   `on_crash = uncertain`.
//! * **Blocking functions**, and runtimes other than tokio. A runtime of tokio's must have its
//!   time, as by `enable_time` and in `#[tokio::main]`. Without it, a call panics that has to wait
//!   for another one, or for a store.
//! * **Going on by itself.** A call that died is run again when the next call with its key comes.
//!   Timers, queues and signals are a workflow engine's.
//!
//! # Features
//!
//! None is on by default: the attribute and the memory store are always there.
//!
//! | feature | what it brings |
//! |---|---|
//! | `sqlite` | the SQLite store, by sqlx and the SQLite C library, which cannot be linked with rusqlite 0.40 or newer in one program |
//! | `postgres` | the Postgres store, by sqlx |
//! | `mysql` | the MariaDB and MySQL store, by sqlx |
//! | `redis`, `redis-cluster` | the Redis store, for Valkey too, by the crate redis |
//! | `tls-rustls`, `tls-native-tls` and their kind | encryption on the way to a server, by the names of sqlx; the URL switches it on, as each store says |
//! | `tower` | the HTTP front end as a layer for services of tower, on the types of the crate http |
//! | `axum` | the same for axum 0.8, with extractors and responses |
//! | `wire` | the words of HTTP that a service and its clients share, on the types of the crate http; `tower` brings it |
//! | `testing` | a manual clock, a store that fails on command, gates, `assert_once`, processes that die at every point of a call, and the conformance suite for stores |
//! | `opentelemetry` | links between the spans of calls, by `opentelemetry` 0.33 and `tracing-opentelemetry` 0.34 |
//! | `metrics` | `metrics::MetricsObserver`, by the facade `metrics` 0.24 |
//! | `inventory` | [`Idempotency::operations`] knows every annotated function before its first call |
//! | `uuid`, `ulid`, `chrono`, `time`, `jiff`, `rust_decimal` | the types of that crate as parts of keys |
//!
//! # Crates in signatures
//!
//! Types and traits of these crates stand in signatures. A program that brings its own pool, client
//! or type has it of the same version: with another one, the compiler finds two types of one name.
//! A newer version of theirs is a breaking change here.
//!
//! | crate | version | where |
//! |---|---|---|
//! | `serde` | 1 | values, errors, arguments |
//! | `erased-serde` | 0.4 | [`Codec`]; re-exported |
//! | `async-trait` | 0.1 | the methods of [`Store`] and of [`store::OutcomeTier`] are written with it |
//! | `bytes` | 1 | [`RawOutcome`], and bodies of HTTP |
//! | `sqlx` | 0.9 | pools, options and connections of the SQL stores |
//! | `redis` | 1 | clients and connections of the Redis store |
//! | `http`, `http-body` | 1 | `http` |
//! | `serde_json` | 1 | `http::Contract::to_open_api` |
//! | `tower-layer`, `tower-service` | 0.3 | the layer, as tower 0.5 has them |
//! | `axum` | 0.8 | extractors and responses |
//! | `metrics` | 0.24 | `metrics::MetricsObserver::with_recorder` |
//! | `ulid` | 3 | parts of keys |
//! | `uuid` | 1 | parts of keys |
//! | `chrono` | 0.4 | parts of keys |
//! | `time` | 0.3 | parts of keys |
//! | `jiff` | 0.2 | parts of keys |
//! | `rust_decimal` | 1 | parts of keys |

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod call;
pub mod consumer;
mod drive;
mod engine;
pub mod guide;
mod handle;
#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub mod http;
pub mod operate;
#[cfg(feature = "_sql")]
#[cfg_attr(
    docsrs,
    doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite")))
)]
pub mod outbox;
#[doc(hidden)]
pub mod protocol;
pub mod record;
pub mod sequence;
pub mod step;
pub mod store;
mod telemetry;
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;
mod value;

#[cfg(feature = "_sql")]
#[cfg_attr(
    docsrs,
    doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite")))
)]
pub use crate::drive::transaction;
#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub use crate::telemetry::metrics;
#[cfg(feature = "opentelemetry")]
#[cfg_attr(docsrs, doc(cfg(feature = "opentelemetry")))]
pub use crate::telemetry::otel;
#[cfg(feature = "wire")]
#[cfg_attr(docsrs, doc(cfg(feature = "wire")))]
pub use crate::value::wire;
pub use crate::value::{clock, fingerprint, identity, key, policy};
use crate::{
    drive::{request, run},
    engine::{attempt, observe},
    handle::operation,
    record::{duration, error, outcome},
    value::{codec, framing, race, sha256, sync},
};

#[doc(inline)]
pub use crate::call::{CallBuilder, RawEnding};
#[cfg(feature = "_sql")]
#[cfg_attr(
    docsrs,
    doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite")))
)]
#[doc(inline)]
pub use crate::step::step_in;
#[doc = include_str!("idempotent.md")]
pub use idempotent_macros::idempotent;
pub use idempotent_macros::{ErrorVerdict, KeyPart};

pub use crate::{
    attempt::{Attempt, ChildId, current, try_current},
    codec::{Codec, Read},
    duration::IntoDuration,
    engine::{
        audit::{AuditEvent, AuditTrail, TrailState},
        steps::StepContext,
    },
    error::{BoxError, Error, Moved, NotSettled, Unreadable},
    fingerprint::FingerprintKey,
    handle::{AsHandle, Builder, Idempotency, PurgeTask},
    key::{KeyPart, KeyWriter, text},
    observe::{
        CallEvent, CallOutcome, CallReport, FrontEndEvent, Observer, OutboxEvent, Purged,
        RecordChange, RecordEvent, RevealEvent, Sample, StepEvent, StepOutcome, UnprotectedReason,
    },
    operate::{Settle, SettleStep, Status, StoredOutcome},
    operation::Operation,
    outcome::Stored,
    policy::{
        ErrorVerdict, InFlight, OnCancel, OnCrash, OnExpired, OnMissingKey, OnOutage, Reconciled,
        Unrecorded, Verdict,
    },
    record::{FencingToken, OutcomeKind, RawOutcome, Time},
    step::{Undo, step, step_version},
    store::{MemoryStore, Store, StoreError, StoreErrorKind},
    telemetry::{Sampler, SamplerBuilder},
};

/// The crate whose traits [`Codec`] is written in, at the version that it is written in.
pub use erased_serde;

/// The items that the attribute's expansion and front ends call. Not for people: they change with
/// every release.
#[doc(hidden)]
pub mod __private {
    pub use core;
    pub use std::time::Duration;

    pub use crate::{
        handle::AsHandle,
        key::{Template, part},
        operation::Site,
        outcome::{
            Classification, Classified, FromRefusal, Keep, LeftUncertain, OnError, Outcome,
            Outline, Recorded, Reference, Released, Replayed, Storable, StorableError, Upgraded,
            Whole, is_own,
        },
        policy::{InFlight, OnCancel, OnCrash, OnMissingKey, OnOutage},
        request::{Call, Fingerprintable, begin},
        run::reconcile,
    };

    pub use crate::__link as link;
    #[cfg(feature = "inventory")]
    pub use crate::operation::Linked;
    #[cfg(feature = "_sql")]
    pub use crate::run::Joined;
    #[cfg(feature = "inventory")]
    pub use inventory;
}

/// The items that the client's crate shares with this one. Not for people: they change with every
/// release.
#[doc(hidden)]
pub mod __client {
    pub use crate::{
        engine::last_words::{tell, within},
        framing::{Hex, read_framed, write_framed},
        race::survive,
        record::limits::LONGEST,
        sha256::sha256,
        value::setters,
    };

    #[cfg(feature = "metrics")]
    pub use crate::telemetry::metrics::{
        family::{Family, Shown, made},
        recorder::Source,
    };

    #[cfg(feature = "_sql")]
    pub use crate::store::{
        spawned::spawned,
        sql::{
            prefix::{TablePrefix, chosen},
            version::{Found, SchemaStep, is_usable, missing},
        },
    };

    #[cfg(feature = "sqlite")]
    pub use crate::store::sqlite::{
        connections::{Connections, Held, Lent},
        failure::of as sqlite_failure,
    };
}

/// The items that the audit's crate shares with this one. Not for people: they change with every
/// release.
#[cfg(feature = "_sql")]
#[doc(hidden)]
pub mod __audit {
    pub use crate::{
        framing::Hex,
        store::sql::{
            Dialect, Row,
            prefix::{TablePrefix, chosen},
        },
        value::setters,
    };
}

/// Its listing is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
