//! The rules that a service begins with.

use std::time::Duration;

use http::{Method, StatusCode};

use super::{
    EarlyData, KeyEcho, KeyScope, MismatchDetails, Presence, Protocol, ReplayOfCreated, Rules,
    Storage, UnstorableResponse,
};
use crate::{
    http::{
        HeaderPolicy, KeyReader,
        fingerprint::{BodyComparison, Comparison, QueryComparison},
        patience::Patience,
        server_errors::ServerErrors,
    },
    policy::{InFlight, OnExpired},
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const TWO_MIB: usize = 2 * 1024 * 1024;

impl Rules {
    /// The rules of the IETF's draft (draft-ietf-httpapi-idempotency-key-header-07).
    pub fn ietf() -> Self {
        Self {
            protocol: Protocol::Http,
            presence: Presence::Required,
            methods: vec![Method::POST, Method::PATCH],
            reader: KeyReader::new(),
            key_scope: KeyScope::Caller,
            comparison: Comparison {
                body: BodyComparison::Exact,
                query: QueryComparison::Exact,
                headers: Vec::new(),
            },
            in_flight: InFlight::Reject,
            rejections: Vec::new(),
            server_errors: ServerErrors::Replay,
            storage: Storage::Whole,
            unrepeatable: UnstorableResponse::Refused,
            headers: HeaderPolicy::default(),
            max_request: TWO_MIB,
            patience: Patience::USUAL,
            stream_patience: Patience::OF_A_STREAM,
            max_response: TWO_MIB,
            ttl: None,
            on_expired: OnExpired::Run,
            lease: None,
            on_crash: None,
            on_outage: None,
            mismatch_status: StatusCode::UNPROCESSABLE_ENTITY,
            mismatch_details: MismatchDetails::Hidden,
            in_flight_status: StatusCode::CONFLICT,
            retry_after: Duration::from_secs(1),
            replay_of_created: ReplayOfCreated::Created,
            echo: KeyEcho::Off,
            early_data: EarlyData::Accept,
            guards_fallback: false,
            mistake: None,
        }
    }

    /// The rules of version 1 of Stripe's API.
    pub fn stripe_v1() -> Self {
        Self {
            presence: Presence::Optional,
            methods: vec![Method::POST],
            ttl: Some(DAY),
            mismatch_status: StatusCode::BAD_REQUEST,
            echo: KeyEcho::Key,
            ..Self::ietf()
        }
    }

    /// The rules for a unary method of gRPC; the rest is as in [`ietf`](Rules::ietf). The key is in
    /// the metadata `idempotency-key`, refusals are statuses of gRPC, and a response's own status
    /// says what it means. They are for [`LayerBuilder::route`](super::super::LayerBuilder::route)
    /// with the method's path, such as `/shop.v1.Orders/Place`.
    ///
    /// | what | answer |
    /// |---|---|
    /// | a key that is missing or malformed | INVALID_ARGUMENT |
    /// | another message with the key | FAILED_PRECONDITION |
    /// | the first call still runs | ABORTED, with a `RetryInfo` |
    /// | its outcome is unknown, cannot be repeated, or has expired | FAILED_PRECONDITION |
    /// | the store is out of reach | UNAVAILABLE, with a `RetryInfo` |
    /// | more than one message | UNIMPLEMENTED |
    ///
    /// Each has an `ErrorInfo` of the domain `idempotent-runtime`, whose reason is the problem's
    /// code. A replay has the metadata `idempotent-replayed: true`. PERMISSION_DENIED,
    /// RESOURCE_EXHAUSTED, UNIMPLEMENTED, UNAVAILABLE and UNAUTHENTICATED are released; CANCELLED,
    /// UNKNOWN, DEADLINE_EXCEEDED, INTERNAL and DATA_LOSS are what
    /// [`server_errors`](Rules::server_errors) speaks of; every other status is the outcome.
    ///
    /// They are never for a streaming method: messages are read to the end, and a client that waits
    /// for an answer before it goes on would wait for ever. The statuses that other rules set, and
    /// [`Problems`](super::super::problem::Problems), are of HTTP and have no effect.
    pub fn grpc_unary() -> Self {
        Self {
            protocol: Protocol::GrpcUnary,
            methods: vec![Method::POST],
            ..Self::ietf()
        }
    }

    /// The rules of the Agentic Commerce Protocol.
    pub fn acp() -> Self {
        Self {
            methods: vec![Method::POST],
            comparison: Comparison {
                body: BodyComparison::CanonicalJson,
                query: QueryComparison::Exact,
                headers: Vec::new(),
            },
            server_errors: ServerErrors::Release,
            ttl: Some(DAY),
            echo: KeyEcho::Key,
            ..Self::ietf()
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::ietf()
    }
}
