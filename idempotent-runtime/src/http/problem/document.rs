//! The document that a problem is sent as.

use std::fmt::Debug;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use serde::Serialize;

use super::{KeyAction, Mismatch, Problem, Reason};

/// A problem together with its type URI: what a [`Renderer`] is given. Its `Serialize` gives the
/// members of the document, in their usual order.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    pub(super) type_uri: &'a str,
    pub(super) problem: &'a Problem,
}

impl<'a> Document<'a> {
    /// The absolute URI of the problem's type (RFC 9457, section 3.1.1).
    #[must_use]
    pub fn type_uri(&self) -> &'a str {
        self.type_uri
    }

    /// The problem.
    #[must_use]
    pub fn problem(&self) -> &'a Problem {
        self.problem
    }
}

impl Serialize for Document<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let problem = self.problem;
        Members {
            type_uri: self.type_uri,
            title: problem.kind.title(),
            status: problem.status.as_u16(),
            detail: &problem.detail,
            code: problem.kind.code(),
            reason: problem.reason.map(Reason::as_str),
            mismatch: &problem.mismatch,
            retryable: problem.retryable,
            key_action: problem.key_action,
            retry_after: problem.retry_after,
            operation_ref: problem.operation_ref.as_deref(),
        }
        .serialize(serializer)
    }
}

#[derive(Serialize)]
struct Members<'a> {
    #[serde(rename = "type")]
    type_uri: &'a str,
    title: &'a str,
    status: u16,
    detail: &'a str,
    code: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    mismatch: &'a [Mismatch],
    retryable: bool,
    key_action: KeyAction,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_ref: Option<&'a str>,
}

/// Turns problems into the bodies of responses, for a service that does not want JSON for all
/// clients.
///
/// It chooses the representation, by the `Accept` of the request for example, and nothing else:
/// status and header fields stay the same.
///
/// # Examples
///
/// ```
/// use http::{HeaderMap, HeaderValue, header::ACCEPT};
/// use idempotent_runtime::http::problem::{Document, ProblemJson, Rendered, Renderer};
///
/// /// Plain text for those who ask for nothing else.
/// #[derive(Debug)]
/// struct TextOnRequest;
///
/// impl Renderer for TextOnRequest {
///     fn render(&self, document: &Document<'_>, request: &HeaderMap) -> Rendered {
///         if request.get(ACCEPT).is_none_or(|accept| accept != "text/plain") {
///             return ProblemJson.render(document, request);
///         }
///         Rendered {
///             content_type: HeaderValue::from_static("text/plain; charset=utf-8"),
///             content_language: Some(HeaderValue::from_static("en")),
///             body: document.problem().detail().to_owned().into(),
///         }
///     }
/// }
/// ```
pub trait Renderer: Debug + Send + Sync {
    /// Renders a problem for a request with these header fields.
    fn render(&self, document: &Document<'_>, request: &HeaderMap) -> Rendered;
}

/// The body of a problem's response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// Its media type.
    pub content_type: HeaderValue,
    /// Its language.
    pub content_language: Option<HeaderValue>,
    /// Its bytes.
    pub body: Bytes,
}

/// Renders every problem as `application/problem+json`, in English: the default.
///
/// A client that asks for HTML alone gets JSON, too: RFC 9110 allows it (section 12.4.1), and
/// clients that need idempotency are programs.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProblemJson;

impl Renderer for ProblemJson {
    fn render(&self, document: &Document<'_>, _: &HeaderMap) -> Rendered {
        let body = serde_json::to_vec(document).expect("text and numbers have a JSON form");
        Rendered {
            content_type: HeaderValue::from_static("application/problem+json"),
            content_language: Some(HeaderValue::from_static("en")),
            body: body.into(),
        }
    }
}
