//! Tells a service's promise about keys to those who call it: a resource must publish how it treats
//! them (draft-07, section 2.5.2).

mod markdown;
mod open_api;

use std::sync::Arc;

use http::{
    HeaderName, StatusCode,
    header::{CONTENT_TYPE, LINK, LOCATION, RETRY_AFTER},
};

use super::{
    IdempotencyLayer,
    headers::IDEMPOTENCY_STATUS,
    headers::{IDEMPOTENT_REPLAYED, ORIGINAL_REQUEST_ID},
    problem::Kind,
    rules::{EarlyData, Presence, Protocol, Rules},
    settings::Settings,
};
use crate::{policy::OnExpired, wire::IDEMPOTENCY_KEY};

/// A layer's promise about keys on one of its routes, read from the layer's own settings.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{Idempotency, http::IdempotencyLayer};
///
/// let layer = IdempotencyLayer::builder(Idempotency::memory())
///     .shared_by_all_callers()
///     .build()?;
/// let contract = layer.contract();
/// assert!(contract.to_markdown().contains("| methods | POST, PATCH |"));
/// assert!(contract.cors_exposed_headers().contains(&"idempotent-replayed".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Contract {
    settings: Arc<Settings>,
    rules: Arc<Rules>,
}

impl IdempotencyLayer {
    /// The promise about keys on every route that has no rules of its own.
    ///
    /// The longest body that it promises to repeat is that of [`Rules::max_response`], or the room
    /// that the handle's [`max_outcome`](crate::handle::Builder::max_outcome) leaves for a body, if
    /// that is less. 8 KiB of `max_outcome`, and at most its half, are for header fields, trailers
    /// and the bytes that a [`Seal`](super::Seal) adds. If these are longer, as with a seal that
    /// writes text for bytes, a response with such a body may not be kept. So let `max_outcome` be
    /// larger than `max_response` by as much.
    #[must_use]
    pub fn contract(&self) -> Contract {
        let settings = self.settings();
        Contract {
            settings: Arc::clone(settings),
            rules: Arc::clone(&settings.rules),
        }
    }

    /// The promise about keys for requests to `path`.
    #[must_use]
    pub fn contract_for(&self, path: &str) -> Contract {
        let settings = self.settings();
        Contract {
            settings: Arc::clone(settings),
            rules: Arc::clone(settings.rules(path)),
        }
    }
}

impl Contract {
    /// The fields that a CORS layer must allow browsers to send, for
    /// `Access-Control-Allow-Headers`: those that carry the key, and `Content-Type`, without which
    /// a browser sends no JSON.
    #[must_use]
    pub fn cors_allowed_headers(&self) -> Vec<HeaderName> {
        let mut names = self.rules.reader.names().to_vec();
        names.push(CONTENT_TYPE);
        names
    }

    /// The fields that a CORS layer must let browsers read, for `Access-Control-Expose-Headers`:
    /// `Idempotent-Replayed`, `Idempotency-Status`, `Idempotency-Key`, `Retry-After`, `Location`,
    /// `Link`, and `Original-Request-Id` if replays have it.
    #[must_use]
    pub fn cors_exposed_headers(&self) -> Vec<HeaderName> {
        let mut names = vec![
            IDEMPOTENT_REPLAYED,
            IDEMPOTENCY_STATUS,
            IDEMPOTENCY_KEY,
            RETRY_AFTER,
            LOCATION,
            LINK,
        ];
        if self.rules.headers.tells_request_id() {
            names.push(ORIGINAL_REQUEST_ID);
        }
        names
    }

    /// Whether keys count.
    fn protects(&self) -> bool {
        matches!(self.rules.presence, Presence::Required | Presence::Optional)
    }

    fn is_grpc(&self) -> bool {
        self.rules.protocol == Protocol::GrpcUnary
    }

    /// The problems that a request may get, and their status in HTTP; in gRPC, the kind of problem
    /// decides.
    fn answers(&self) -> Vec<(Kind, StatusCode)> {
        let answers = Kind::ALL.iter().filter(|kind| self.answers_with(**kind));
        answers.map(|kind| (*kind, self.status(*kind))).collect()
    }

    fn answers_with(&self, kind: Kind) -> bool {
        let presence = self.rules.presence;
        match kind {
            // A handler answers with it, about a call of its own.
            Kind::ResultOutOfReach | Kind::InnerCallRefused => false,
            Kind::TooEarly => {
                self.rules.early_data == EarlyData::WithKey && presence != Presence::Required
            }
            // In gRPC, only the bytes tell that there are several messages.
            Kind::NotSupported => {
                presence == Presence::Unsupported || (self.is_grpc() && self.protects())
            }
            Kind::KeyMissing => presence == Presence::Required,
            Kind::ResultExpired => self.protects() && self.rules.on_expired == OnExpired::Refuse,
            _ => self.protects(),
        }
    }

    fn status(&self, kind: Kind) -> StatusCode {
        match kind {
            Kind::KeyReused => self.rules.mismatch_status,
            Kind::RequestInProgress => self.rules.in_flight_status,
            Kind::ScopeUnresolved => self.settings.unscoped_status,
            _ => kind.status(),
        }
    }
}

#[cfg(test)]
mod tests;
