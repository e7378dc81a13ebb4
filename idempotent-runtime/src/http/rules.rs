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
    value::setters,
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
    setters! {
        /// Sets what becomes of a request without a key, and whether keys count at all.
        key(it, presence: Presence) { it.presence = presence }

        /// Sets the methods that keys count for. Every other request is handed on untouched, with
        /// any key or none.
        methods(it, methods: impl IntoIterator<Item = Method>) {
            it.methods = methods.into_iter().collect();
        }

        /// Has requests that no route of axum's router matches guarded as all others are, for a
        /// handler of `Router::fallback` or a service of `Router::fallback_service` that does
        /// something. Without this word they are handed on untouched: nothing is written, and one
        /// without a key gets the router's 404.
        guard_fallback(it) { it.guards_fallback = true }

        /// Sets how a key is found and read, and what it must be like.
        reader(it, reader: KeyReader) { it.reader = reader }

        /// Sets where a key is unique.
        key_scope(it, key_scope: KeyScope) { it.key_scope = key_scope }

        /// Sets what becomes of early data.
        early_data(it, early_data: EarlyData) { it.early_data = early_data }

        /// Sets how many bytes the body of a request with a key may have; a longer one is refused
        /// with 413 and does not run. The default is 2 MiB. A body without a key is not counted.
        max_request(it, bytes: usize) { it.max_request = bytes }
    }
}

/// How a request's body arrives.
impl Rules {
    setters! {
        /// Sets how long the body of a request with a key may take from one byte to the next: 30
        /// seconds by default. If it takes longer, the request is refused with 408, which a client
        /// may repeat, and nothing was done.
        body_timeout(it, between: impl IntoDuration) {
            it.patience.between = it.read(between).unwrap_or(it.patience.between);
        }

        /// Sets how long it may take in all: 10 minutes by default.
        body_deadline(it, in_all: impl IntoDuration) {
            it.patience.in_all = it.read(in_all).unwrap_or(it.patience.in_all);
        }
    }
}

/// How a response streams.
impl Rules {
    setters! {
        /// Sets how long a client may leave a response unread that is given on as it comes: 60
        /// seconds by default. If it takes longer, the response breaks off, and its key counts as
        /// that of a client which went away. The silence of the handler does not count.
        stream_timeout(it, between: impl IntoDuration) {
            it.stream_patience.between = it.read(between).unwrap_or(it.stream_patience.between);
        }

        /// Sets how long such a response may take in all, the handler's silence included: 24 hours
        /// by default.
        stream_deadline(it, in_all: impl IntoDuration) {
            it.stream_patience.in_all = it.read(in_all).unwrap_or(it.stream_patience.in_all);
        }
    }
}

/// The comparison that makes two requests the same request.
impl Rules {
    setters! {
        /// Sets how bodies are compared.
        compare_bodies(it, comparison: BodyComparison) { it.comparison.body = comparison }

        /// Sets how queries are compared.
        compare_queries(it, comparison: QueryComparison) { it.comparison.query = comparison }

        /// Compares these header fields, too: an API version, say, or the language of the response.
        /// No others count, so that a new token, date or trace does not make another request. The
        /// order in which they are named does not matter.
        compare_headers(it, names: impl IntoIterator<Item = HeaderName>) {
            let mut names: Vec<_> = names.into_iter().collect();
            names.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
            names.dedup();
            it.comparison.headers = names;
        }

        /// Sets the status that refuses another request with the same key: 422 by default. The
        /// problem's type stays.
        mismatch_status(it, status: StatusCode) { it.mismatch_status = status }

        /// Sets what that refusal tells.
        mismatch_details(it, details: MismatchDetails) { it.mismatch_details = details }
    }
}

/// The first request while it runs.
impl Rules {
    setters! {
        /// Sets what a retry does while the first request runs: it is refused at once by default,
        /// or waits.
        in_flight(it, in_flight: InFlight) { it.in_flight = in_flight }

        /// Sets the status of that refusal: 409 by default. The problem's type stays.
        in_flight_status(it, status: StatusCode) { it.in_flight_status = status }

        /// Sets after how long that refusal says to try again: 1 second by default, in whole
        /// seconds. If the holder of the first request has missed a heartbeat, and so may have
        /// vanished, it says the rest of the lease.
        retry_after(it, wait: impl IntoDuration) {
            it.retry_after = it.read(wait).unwrap_or(it.retry_after);
        }

        /// Sets how long the holder of a key may be silent, in place of the handle's lease: at
        /// least 100 milliseconds.
        lease(it, lease: impl IntoDuration) { it.lease = it.read(lease).or(it.lease) }

        /// Sets what becomes of a key whose process vanished: `Rerun` or `Uncertain`, in place of
        /// the handle's choice.
        on_crash(it, on_crash: OnCrash) {
            if on_crash == OnCrash::Reconcile {
                it.mistake = Some(Error::InvalidPolicy(
                    "the layer has no function to ask what became of a request: choose `Rerun` or `Uncertain`",
                ));
            }
            it.on_crash = Some(on_crash);
        }

        /// Sets what becomes of a request while the store is out of reach, in place of the handle's
        /// choice.
        on_outage(it, on_outage: OnOutage) { it.on_outage = Some(on_outage) }
    }
}

/// Responses and their replays.
impl Rules {
    setters! {
        /// Names statuses with which this service rejects a request before its handler begins,
        /// beside the usual ones: 400 and 422, say, where extractors of axum check the request.
        /// Such a response is not stored, and a retry runs. It is right only on routes whose
        /// handlers never answer so once they have done something; elsewhere, the extractor
        /// `ReleaseOnReject` (feature `axum`) tells the two apart. A
        /// [`ReplayHint`](super::ReplayHint) counts more.
        rejections(it, statuses: impl IntoIterator<Item = StatusCode>) {
            it.rejections = statuses.into_iter().collect();
            if !it.rejections.iter().all(StatusCode::is_client_error) {
                it.mistake = Some(Error::InvalidPolicy(
                    "a rejection has a status from 400 to 499: what one of 500 or above means is said by `server_errors`",
                ));
            }
        }

        /// Sets what a response of 500 or above means.
        server_errors(it, server_errors: ServerErrors) { it.server_errors = server_errors }

        /// Sets what is kept of a response.
        storage(it, storage: Storage) { it.storage = storage }

        /// Sets what becomes of the key of a response that cannot be repeated. A
        /// [`ReplayHint`](super::ReplayHint) counts more, and a response that breaks off leaves its
        /// key uncertain in any case.
        unrepeatable(it, unrepeatable: UnstorableResponse) { it.unrepeatable = unrepeatable }

        /// Sets which header fields of a response are kept.
        headers(it, headers: HeaderPolicy) { it.headers = headers }

        /// Sets how many bytes the body of a response may have to be kept: 2 MiB by default. The
        /// first caller gets a longer one whole, and a retry is told that its result cannot be
        /// given. The whole stored response, with the header fields, is also bounded by the
        /// handle's [`max_outcome`](crate::handle::Builder::max_outcome), 16 MiB by default.
        max_response(it, bytes: usize) { it.max_response = bytes }

        /// Sets how long a response answers retries, in place of the handle's: `"24h"`, or a
        /// `Duration`.
        ttl(it, ttl: impl IntoDuration) { it.ttl = it.read(ttl).or(it.ttl) }

        /// Sets what becomes of a key whose response has expired: it is new by default. Under
        /// [`OnExpired::Refuse`] a retry that comes too late is told so, with 409, as long as the
        /// handle [keeps](crate::handle::Builder::audit_retention) the record. The handle must be
        /// told to keep it.
        on_expired(it, on_expired: OnExpired) { it.on_expired = on_expired }

        /// Sets the status of a replay whose first response was 201: 201 by default. The stored
        /// response stays as it is.
        replay_of_created(it, replay_of_created: ReplayOfCreated) {
            it.replay_of_created = replay_of_created;
        }

        /// Sets whether responses to requests with a key repeat it.
        echo(it, echo: KeyEcho) { it.echo = echo }
    }

    fn read(&mut self, duration: impl IntoDuration) -> Option<Duration> {
        let read = duration.into_duration();
        read.map_err(|error| self.mistake = Some(error)).ok()
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
