#![cfg_attr(feature = "axum", doc = include_str!("http.md"))]
#![cfg_attr(
    not(feature = "axum"),
    doc = "The HTTP front end: a request that carries an `Idempotency-Key` runs once, and its retries get the same response. Its manual comes with the feature `axum`."
)]
//!
//! # How it works
//!
//! A request goes through triage first. It passes to the handler if its rules ask for no key, and
//! is rejected if its key is missing or malformed. Otherwise key and scope name a call, and method,
//! path, query and body are its arguments. That call claims as every call does. The request that
//! claims runs the handler, and its response is recorded if the status is an outcome. A duplicate
//! gets that response, waits for it, or is refused with a problem document.
//!
//! Bodies of requests and responses, handlers in flight, responses that stream, and waits have
//! limits. A caller never gets a response that another scope recorded. A response is never sent as
//! recorded before the store has it.
//!
//! # Where to look
//!
//! * [`IdempotencyLayer`] answers a request once for all its retries; [`Rules`] say how, and
//!   [`Scope`] who calls.
//! * [`IdempotencyKey`] is what a client sent, and [`KeyReader`] finds it in the header fields of a
//!   request and refuses what is malformed, what is there twice, and what breaks a [`KeyPolicy`].
//! * [`problem`] holds the answers that are not the handler's: problem documents of RFC 9457, one
//!   [`Kind`](problem::Kind) for each thing that a client can do about them.
//! * [`StoredResponse`] is a response as it is kept for retries, and [`HeaderPolicy`] says which of
//!   its header fields are.
//! * [`Contract`] tells others what a service does: browsers by CORS lists, programs by an OpenAPI
//!   fragment, people by a table.

mod arrival;
#[cfg(feature = "axum")]
#[cfg_attr(docsrs, doc(cfg(feature = "axum")))]
mod axum;
mod body;
mod coding;
mod contract;
mod execution;
mod fingerprint;
mod grpc;
mod guard;
mod headers;
mod in_flight_limit;
mod json;
mod layer;
mod outcome;
mod patience;
pub mod problem;
#[cfg(feature = "axum")]
#[cfg_attr(docsrs, doc(cfg(feature = "axum")))]
mod release_on_reject;
#[cfg(feature = "axum")]
#[cfg_attr(docsrs, doc(cfg(feature = "axum")))]
mod replayable;
mod response_channel;
mod routes;
mod routing;
mod rules;
mod scope;
mod seal;
mod server_errors;
mod service;
mod settings;
mod settle;
mod store_failures;
mod stored;
mod streamed;
mod triage;
mod unkept;

use http::HeaderName;

#[cfg(feature = "testing")]
pub(crate) use self::body::whole_body;

#[cfg(feature = "axum")]
#[cfg_attr(docsrs, doc(cfg(feature = "axum")))]
pub use self::{
    axum::{AxumIdempotencyLayer, Json, WithAxumBody},
    release_on_reject::ReleaseOnReject,
    replayable::{Replayable, Replayed},
};
pub use self::{
    body::Body,
    contract::Contract,
    fingerprint::{BodyComparison, BodyDigest, QueryComparison},
    headers::{HeaderPolicy, IDEMPOTENT_REPLAYED, ORIGINAL_REQUEST_ID},
    layer::IdempotencyLayer,
    outcome::ReplayHint,
    rules::{
        EarlyData, KeyEcho, KeyScope, MismatchDetails, Presence, ReplayOfCreated, Rules, Storage,
        UnstorableResponse,
    },
    scope::Scope,
    seal::Seal,
    server_errors::ServerErrors,
    service::{IdempotencyService, ResponseFuture},
    settings::{LayerBuilder, MissingScope},
    settle::SettleResponse,
    stored::{StoredBody, StoredResponse, UnreadableResponse},
};

pub use crate::wire::{
    IDEMPOTENCY_KEY, IdempotencyKey, InvalidHeader, KeyPolicy, KeyReader, Reason, Syntax,
};

/// Writes the name of a field as people do, such as `Idempotency-Key`.
fn capitalised(name: &HeaderName) -> String {
    let words = name.as_str().split('-').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect::<Vec<_>>().join("-")
}
