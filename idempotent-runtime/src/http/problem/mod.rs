//! The answers that are not the handler's: problem documents (RFC 9457).
//!
//! Each [`Kind`] of problem has a slug, which is its stable name. The document's `type` is the slug
//! behind a base URI of the service ([`Problems::base`]), or behind
//! `urn:idempotent-runtime:problem:` if it sets none. The member `code` is the slug with
//! underscores. Beside the members of RFC 9457, a document says what a client that knows nothing of
//! the service can do: `retryable`, whether the same request with the same key may succeed later,
//! and `key_action`, what becomes of the key. `retry_after` is in seconds and equals the header
//! field, and `operation_ref` is for a conversation with support. `reason` and `mismatch` tell what
//! was wrong with the key and the request.
//!
//! No document holds the key, the caller or what the handler answered, and every one is sent with
//! `Cache-Control: no-store`.
//!
//! # idempotency-key-missing
//!
//! The request needs an `Idempotency-Key` and has none (draft-07, section 2.7). Send one.
//!
//! # idempotency-key-invalid
//!
//! The `Idempotency-Key` is malformed, is there more than once, or breaks the service's policy
//! (draft-07, sections 2.1 and 5). The member `reason` says which. Send another one.
//!
//! # idempotency-key-reused
//!
//! The key belongs to another request (draft-07, section 2.7). Repeat that one, or take a new key
//! for a new operation.
//!
//! # idempotency-inner-call-refused
//!
//! The handler made a call under a key of its own, such as the number of an order, and that key
//! belongs to a call with other data, or is no key. The `Idempotency-Key` of the request has no
//! part in it, and another one does not help. Correct the request.
//!
//! # idempotency-request-in-progress
//!
//! The first request with this key is still being processed (draft-07, section 2.7). Repeat it
//! later, with the same key.
//!
//! # idempotency-outcome-unknown
//!
//! The first request began, and it is unknown whether it took effect. Find that out before doing it
//! again with a new key.
//!
//! # idempotency-result-unavailable
//!
//! The first request was carried out, and its response cannot be repeated: it was too large, was
//! streamed, is a secret, or cannot be read.
//!
//! # idempotency-result-expired
//!
//! The request was carried out so long ago that its response is no longer kept.
//!
//! # idempotency-result-out-of-reach
//!
//! The request was carried out, and its result cannot be read right now. Try again later, with the
//! same key, to get it; the request is not carried out again.
//!
//! # idempotency-scope-unresolved
//!
//! The service could not tell who is calling, and keys belong to a caller. Authenticate.
//!
//! # idempotency-body-too-large
//!
//! The request's body is larger than the service takes together with a key. Nothing was done.
//!
//! # idempotency-body-unreadable
//!
//! The request's body did not arrive whole. Nothing was done; send it again, with the same key.
//!
//! # idempotency-body-timeout
//!
//! The request's body took longer to arrive than the service waits. Nothing was done; send it
//! again, with the same key.
//!
//! # idempotency-store-unavailable
//!
//! The service cannot look up keys right now. Nothing was done; try again later, with the same key.
//! Where `retryable` is false, that helps only when the service's operators have mended the store.
//!
//! # idempotency-overloaded
//!
//! The service is overloaded or shutting down. Nothing was done; try again later, with the same
//! key.
//!
//! # idempotency-too-early
//!
//! The request came in the early data of a TLS connection, and no key protects it (RFC 8470).
//! Nothing was done; send it again once the connection is set up, or with a key where keys count.
//!
//! # idempotency-too-many-keys
//!
//! The caller has more keys in use than the service allows. Nothing was done; try again later, with
//! the same key.
//!
//! # idempotency-not-supported
//!
//! This resource does not support `Idempotency-Key`. Nothing was done; leave the key out, and do
//! not repeat the request blindly.
//!
//! # idempotency-handler-failed
//!
//! The service failed while it carried out the request, which may or may not have taken effect. A
//! retry with the same key tells.
//!
//! # idempotency-misconfigured
//!
//! The service made a mistake in its set-up. Tell its operators.

mod document;
mod refusal;
mod respond;

use std::{borrow::Cow, time::Duration};

use http::{Method, StatusCode};

pub use self::{
    document::{Document, ProblemJson, Rendered, Renderer},
    respond::{InvalidUri, Problems},
};
use super::capitalised;
use crate::wire::{InvalidHeader, KeyReader, Reason};

pub use crate::wire::{KeyAction, Kind, Mismatch};

/// Why a request got no answer of the handler's, in the words of a problem document.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use idempotent_runtime::http::problem::{Kind, Problem};
///
/// let problem = Problem::new(Kind::RequestInProgress);
/// let problem = problem.with_retry_after(Duration::from_millis(1_200));
/// assert_eq!(problem.status(), 409);
/// assert_eq!(problem.retry_after(), Some(2)); // seconds, rounded up
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    kind: Kind,
    status: StatusCode,
    detail: Cow<'static, str>,
    retry_after: Option<u64>,
    retryable: bool,
    key_action: KeyAction,
    operation_ref: Option<String>,
    reason: Option<Reason>,
    mismatch: Vec<Mismatch>,
}

impl Problem {
    /// Makes a problem with the status, the detail and the wait that are usual for its kind.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            status: kind.status(),
            detail: Cow::Borrowed(kind.detail()),
            retry_after: kind.retry_after(),
            retryable: kind.is_retryable(),
            key_action: kind.key_action(),
            operation_ref: None,
            reason: None,
            mismatch: Vec::new(),
        }
    }

    /// Makes the one for a request without a key where one is required, which says what `reader`
    /// expects.
    #[must_use]
    pub fn key_missing(method: &Method, path: &str, reader: &KeyReader) -> Self {
        let name = capitalised(reader.name());
        let expects = reader.expects();
        Self::new(Kind::KeyMissing).with_detail(format!(
            "{method} {path} requires the header field {name}: {expects}."
        ))
    }

    /// Sets the status, if the service departs from the usual one. The type stays.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Sets the sentence for people. It must hold neither a key nor anything of another caller.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Sets when the client may try again: whole seconds, rounded up, and at least one.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        let begun = u64::from(wait.subsec_nanos() > 0);
        self.retry_after = Some(wait.as_secs().saturating_add(begun).max(1));
        self
    }

    /// Says that trying again does not help until somebody has acted.
    pub(crate) fn until_mended(mut self) -> Self {
        self.retryable = false;
        self.retry_after = None;
        self
    }

    /// Says that no key helps, because keys do not count for this request.
    pub(crate) fn where_keys_do_not_count(mut self) -> Self {
        self.key_action = KeyAction::None;
        self
    }

    /// Sets the reference by which support finds the operation. It must not be the key.
    #[must_use]
    pub fn with_operation_ref(mut self, reference: impl Into<String>) -> Self {
        self.operation_ref = Some(reference.into());
        self
    }

    /// Sets the parts in which the request differs from the first one with its key. It is only for
    /// a caller to whom the first one belongs.
    #[must_use]
    pub fn with_mismatch(mut self, parts: impl IntoIterator<Item = Mismatch>) -> Self {
        self.mismatch = parts.into_iter().collect();
        self
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The status of the response, which the document repeats.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The sentence for people.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// In how many seconds the client may try again.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        self.retry_after
    }

    /// Whether the same request with the same key may succeed later, without any help: as is usual
    /// for its kind, except where the store has failed for good.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// The fate of the key: the usual one for its kind, or none if keys do not count.
    #[must_use]
    pub fn key_action(&self) -> KeyAction {
        self.key_action
    }

    /// The reference by which support finds the operation.
    #[must_use]
    pub fn operation_ref(&self) -> Option<&str> {
        self.operation_ref.as_deref()
    }

    /// The fault of the key.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// The parts in which the request differs from the first one with its key.
    #[must_use]
    pub fn mismatch(&self) -> &[Mismatch] {
        &self.mismatch
    }
}

impl From<InvalidHeader> for Problem {
    fn from(error: InvalidHeader) -> Self {
        let mut problem = Self::new(Kind::KeyInvalid).with_detail(error.to_string());
        problem.reason = Some(error.reason());
        problem
    }
}

#[cfg(test)]
mod tests;
