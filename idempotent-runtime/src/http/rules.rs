//! The rules for a request: the same for all routes, or others for some.

mod choice;
mod presets;

use std::time::Duration;

use http::{HeaderMap, HeaderName, Method, Response, StatusCode};

use crate::{
    duration::IntoDuration,
    error::Error,
    http::{
        HeaderPolicy, IDEMPOTENCY_KEY, KeyReader,
        fingerprint::{BodyComparison, Comparison, QueryComparison},
        patience::Patience,
        server_errors::ServerErrors,
    },
    policy::{InFlight, OnCrash, OnExpired, OnOutage},
};

pub(crate) use self::choice::Protocol;
pub use self::choice::{
    EarlyData, KeyEcho, KeyScope, MismatchDetails, Presence, ReplayOfCreated, Storage,
    UnstorableResponse,
};

/// The rules of the layer for requests: begin with a preset, change what differs, and give them to
/// [`LayerBuilder::rules`](super::LayerBuilder::rules), or to
/// [`LayerBuilder::route`](super::LayerBuilder::route) for some paths.
///
/// | setting | [`ietf`](Rules::ietf) | [`stripe_v1`](Rules::stripe_v1) | [`acp`](Rules::acp) |
/// |---|---|---|---|
/// | methods | POST, PATCH | POST | POST |
/// | a request without a key | refused, 400 | runs unprotected | refused, 400 |
/// | the key's syntax | compatible | compatible | compatible |
/// | the key's length | 1 to 255 | 1 to 255 | 1 to 255 |
/// | another request with the key | 422 | 400 | 422 |
/// | while the first one runs | 409 | 409 | 409 |
/// | another route, same key | refused | refused | refused |
/// | bodies are compared | byte by byte | byte by byte | as canonical JSON |
/// | 500 and above | replayed | replayed | released |
/// | the key in responses | no | yes | yes |
/// | responses are kept for | the handle's `ttl` | 24 hours | 24 hours |
///
/// [`Rules::default`] is `ietf`. In all of them 408, 425, 429, 503 and the answers of a server
/// before it begins are released. A request may have 2 MiB, and so may a response that is kept.
/// Lease, crash and outage policy are the handle's.
#[derive(Clone, Debug)]
#[must_use]
pub struct Rules {
    pub(crate) protocol: Protocol,
    pub(crate) presence: Presence,
    pub(crate) methods: Vec<Method>,
    pub(crate) reader: KeyReader,
    pub(crate) key_scope: KeyScope,
    pub(crate) comparison: Comparison,
    pub(crate) in_flight: InFlight,
    pub(crate) rejections: Vec<StatusCode>,
    pub(crate) server_errors: ServerErrors,
    pub(crate) storage: Storage,
    pub(crate) unrepeatable: UnstorableResponse,
    pub(crate) headers: HeaderPolicy,
    pub(crate) max_request: usize,
    pub(crate) patience: Patience,
    pub(crate) stream_patience: Patience,
    pub(crate) max_response: usize,
    pub(crate) ttl: Option<Duration>,
    pub(crate) on_expired: OnExpired,
    pub(crate) lease: Option<Duration>,
    pub(crate) on_crash: Option<OnCrash>,
    pub(crate) on_outage: Option<OnOutage>,
    pub(crate) mismatch_status: StatusCode,
    pub(crate) mismatch_details: MismatchDetails,
    pub(crate) in_flight_status: StatusCode,
    pub(crate) retry_after: Duration,
    pub(crate) replay_of_created: ReplayOfCreated,
    pub(crate) echo: KeyEcho,
    pub(crate) early_data: EarlyData,
    pub(crate) guards_fallback: bool,
    pub(crate) mistake: Option<Error>,
}

/// Requests and their keys.
impl Rules {
    /// Sets what becomes of a request without a key, and whether keys count at all.
    pub fn key(mut self, presence: Presence) -> Self {
        self.presence = presence;
        self
    }

    /// Sets the methods that keys count for. Every other request is handed on untouched, with any
    /// key or none.
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.methods = methods.into_iter().collect();
        self
    }

    /// Has requests that no route of axum's router matches guarded as all others are, for a handler
    /// of `Router::fallback` or a service of `Router::fallback_service` that does something.
    /// Without this word they are handed on untouched: nothing is written, and one without a key
    /// gets the router's 404.
    pub fn guard_fallback(mut self) -> Self {
        self.guards_fallback = true;
        self
    }

    /// Sets how a key is found and read, and what it must be like.
    pub fn reader(mut self, reader: KeyReader) -> Self {
        self.reader = reader;
        self
    }

    /// Sets where a key is unique.
    pub fn key_scope(mut self, key_scope: KeyScope) -> Self {
        self.key_scope = key_scope;
        self
    }

    /// Sets what becomes of early data.
    pub fn early_data(mut self, early_data: EarlyData) -> Self {
        self.early_data = early_data;
        self
    }

    /// Sets how many bytes the body of a request with a key may have; a longer one is refused with
    /// 413 and does not run. The default is 2 MiB. A body without a key is not counted.
    pub fn max_request(mut self, bytes: usize) -> Self {
        self.max_request = bytes;
        self
    }
}

/// How a request's body arrives.
impl Rules {
    /// Sets how long the body of a request with a key may take from one byte to the next: 30
    /// seconds by default. If it takes longer, the request is refused with 408, which a client may
    /// repeat, and nothing was done.
    pub fn body_timeout(mut self, between: impl IntoDuration) -> Self {
        match between.into_duration() {
            Ok(between) => self.patience.between = between,
            Err(error) => self.mistake = Some(error),
        }
        self
    }

    /// Sets how long it may take in all: 10 minutes by default.
    pub fn body_deadline(mut self, in_all: impl IntoDuration) -> Self {
        match in_all.into_duration() {
            Ok(in_all) => self.patience.in_all = in_all,
            Err(error) => self.mistake = Some(error),
        }
        self
    }
}

/// How a response streams.
impl Rules {
    /// Sets how long a client may leave a response unread that is given on as it comes: 60 seconds
    /// by default. If it takes longer, the response breaks off, and its key counts as that of a
    /// client which went away. The silence of the handler does not count.
    pub fn stream_timeout(mut self, between: impl IntoDuration) -> Self {
        match between.into_duration() {
            Ok(between) => self.stream_patience.between = between,
            Err(error) => self.mistake = Some(error),
        }
        self
    }

    /// Sets how long such a response may take in all, the handler's silence included: 24 hours by
    /// default.
    pub fn stream_deadline(mut self, in_all: impl IntoDuration) -> Self {
        match in_all.into_duration() {
            Ok(in_all) => self.stream_patience.in_all = in_all,
            Err(error) => self.mistake = Some(error),
        }
        self
    }
}

/// The comparison that makes two requests the same request.
impl Rules {
    /// Sets how bodies are compared.
    pub fn compare_bodies(mut self, comparison: BodyComparison) -> Self {
        self.comparison.body = comparison;
        self
    }

    /// Sets how queries are compared.
    pub fn compare_queries(mut self, comparison: QueryComparison) -> Self {
        self.comparison.query = comparison;
        self
    }

    /// Compares these header fields, too: an API version, say, or the language of the response. No
    /// others count, so that a new token, date or trace does not make another request. The order in
    /// which they are named does not matter.
    pub fn compare_headers(mut self, names: impl IntoIterator<Item = HeaderName>) -> Self {
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        names.dedup();
        self.comparison.headers = names;
        self
    }

    /// Sets the status that refuses another request with the same key: 422 by default. The
    /// problem's type stays.
    pub fn mismatch_status(mut self, status: StatusCode) -> Self {
        self.mismatch_status = status;
        self
    }

    /// Sets what that refusal tells.
    pub fn mismatch_details(mut self, details: MismatchDetails) -> Self {
        self.mismatch_details = details;
        self
    }
}

/// The first request while it runs.
impl Rules {
    /// Sets what a retry does while the first request runs: it is refused at once by default, or
    /// waits.
    pub fn in_flight(mut self, in_flight: InFlight) -> Self {
        self.in_flight = in_flight;
        self
    }

    /// Sets the status of that refusal: 409 by default. The problem's type stays.
    pub fn in_flight_status(mut self, status: StatusCode) -> Self {
        self.in_flight_status = status;
        self
    }

    /// Sets after how long that refusal says to try again: 1 second by default, in whole seconds.
    /// If the holder of the first request has missed a heartbeat, and so may have vanished, it says
    /// the rest of the lease.
    pub fn retry_after(mut self, wait: impl IntoDuration) -> Self {
        match wait.into_duration() {
            Ok(wait) => self.retry_after = wait,
            Err(error) => self.mistake = Some(error),
        }
        self
    }

    /// Sets how long the holder of a key may be silent, in place of the handle's lease: at least
    /// 100 milliseconds.
    pub fn lease(mut self, lease: impl IntoDuration) -> Self {
        match lease.into_duration() {
            Ok(lease) => self.lease = Some(lease),
            Err(error) => self.mistake = Some(error),
        }
        self
    }

    /// Sets what becomes of a key whose process vanished: `Rerun` or `Uncertain`, in place of the
    /// handle's choice.
    pub fn on_crash(mut self, on_crash: OnCrash) -> Self {
        if on_crash == OnCrash::Reconcile {
            self.mistake = Some(Error::InvalidPolicy(
                "the layer has no function to ask what became of a request: choose `Rerun` or `Uncertain`",
            ));
        }
        self.on_crash = Some(on_crash);
        self
    }

    /// Sets what becomes of a request while the store is out of reach, in place of the handle's
    /// choice.
    pub fn on_outage(mut self, on_outage: OnOutage) -> Self {
        self.on_outage = Some(on_outage);
        self
    }
}

/// Responses and their replays.
impl Rules {
    /// Names statuses with which this service rejects a request before its handler begins, beside
    /// the usual ones: 400 and 422, say, where extractors of axum check the request. Such a
    /// response is not stored, and a retry runs. It is right only on routes whose handlers never
    /// answer so once they have done something; elsewhere, the extractor `ReleaseOnReject` (feature
    /// `axum`) tells the two apart. A [`ReplayHint`](super::ReplayHint) counts more.
    pub fn rejections(mut self, statuses: impl IntoIterator<Item = StatusCode>) -> Self {
        self.rejections = statuses.into_iter().collect();
        if !self.rejections.iter().all(StatusCode::is_client_error) {
            self.mistake = Some(Error::InvalidPolicy(
                "a rejection has a status from 400 to 499: what one of 500 or above means is said by `server_errors`",
            ));
        }
        self
    }

    /// Sets what a response of 500 or above means.
    pub fn server_errors(mut self, server_errors: ServerErrors) -> Self {
        self.server_errors = server_errors;
        self
    }

    /// Sets what is kept of a response.
    pub fn storage(mut self, storage: Storage) -> Self {
        self.storage = storage;
        self
    }

    /// Sets what becomes of the key of a response that cannot be repeated. A
    /// [`ReplayHint`](super::ReplayHint) counts more, and a response that breaks off leaves its key
    /// uncertain in any case.
    pub fn unrepeatable(mut self, unrepeatable: UnstorableResponse) -> Self {
        self.unrepeatable = unrepeatable;
        self
    }

    /// Sets which header fields of a response are kept.
    pub fn headers(mut self, headers: HeaderPolicy) -> Self {
        self.headers = headers;
        self
    }

    /// Sets how many bytes the body of a response may have to be kept: 2 MiB by default. The first
    /// caller gets a longer one whole, and a retry is told that its result cannot be given. The
    /// whole stored response, with the header fields, is also bounded by the handle's
    /// [`max_outcome`](crate::handle::Builder::max_outcome), 16 MiB by default.
    pub fn max_response(mut self, bytes: usize) -> Self {
        self.max_response = bytes;
        self
    }

    /// Sets how long a response answers retries, in place of the handle's: `"24h"`, or a
    /// `Duration`.
    pub fn ttl(mut self, ttl: impl IntoDuration) -> Self {
        match ttl.into_duration() {
            Ok(ttl) => self.ttl = Some(ttl),
            Err(error) => self.mistake = Some(error),
        }
        self
    }

    /// Sets what becomes of a key whose response has expired: it is new by default. Under
    /// [`OnExpired::Refuse`] a retry that comes too late is told so, with 409, as long as the
    /// handle [keeps](crate::handle::Builder::audit_retention) the record. The handle must be told
    /// to keep it.
    pub fn on_expired(mut self, on_expired: OnExpired) -> Self {
        self.on_expired = on_expired;
        self
    }

    /// Sets the status of a replay whose first response was 201: 201 by default. The stored
    /// response stays as it is.
    pub fn replay_of_created(mut self, replay_of_created: ReplayOfCreated) -> Self {
        self.replay_of_created = replay_of_created;
        self
    }

    /// Sets whether responses to requests with a key repeat it.
    pub fn echo(mut self, echo: KeyEcho) -> Self {
        self.echo = echo;
        self
    }

    /// The header fields of a request whose key its response repeats.
    pub(crate) fn repeated(&self) -> &[HeaderName] {
        match self.echo {
            KeyEcho::Key => self.reader.names(),
            KeyEcho::Off => &[],
        }
    }

    /// Repeats the key in the response to a request that has one, if that is set.
    pub(crate) fn repeat_key<B>(&self, request: &HeaderMap, response: &mut Response<B>) {
        let mut names = self.repeated().iter();
        if let Some(sent) = names.find_map(|name| request.get(name)) {
            response.headers_mut().insert(IDEMPOTENCY_KEY, sent.clone());
        }
    }
}
