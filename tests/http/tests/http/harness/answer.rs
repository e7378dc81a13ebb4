//! The answers of a shop, and what a test may say of one.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;

/// A response, read to its end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Answer {
    pub(crate) async fn of(response: Response<Body>) -> Self {
        let (head, body) = response.into_parts();
        let whole = body.collect().await.expect("the body is whole");
        let trailers = whole.trailers().cloned();
        Self {
            status: head.status,
            headers: head.headers,
            body: whole.to_bytes(),
            trailers,
        }
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.headers
            .get("idempotent-replayed")
            .is_some_and(|value| value == "true")
    }

    /// It is a replay of `first`, byte for byte, and is so marked.
    #[track_caller]
    pub(crate) fn replays(&self, first: &Self) {
        self.replays_but_for(&[], first);
    }

    /// The same, but for these header fields, which are not kept, or made anew for each response.
    #[track_caller]
    pub(crate) fn replays_but_for(&self, fields: &[&str], first: &Self) {
        assert!(self.is_replay(), "{self:?}");
        assert!(!first.is_replay(), "{first:?}");
        let [replay, original] = [self, first].map(|answer| {
            let mut kept = answer.clone();
            for name in ["idempotent-replayed"].iter().chain(fields) {
                kept.headers.remove(*name);
            }
            kept
        });
        assert_eq!(replay, original);
    }

    /// It is a problem of that status and code.
    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(self.headers["cache-control"], "no-store");
        assert!(!self.is_replay());
        let document: Value = serde_json::from_slice(&self.body).expect("the document is JSON");
        assert_eq!(
            document["code"],
            format!("idempotency_{code}"),
            "{document}"
        );
        assert_eq!(document["status"], status);
        let type_uri = document["type"].as_str().expect("it has a type");
        let is_absolute = ["urn:idempotent-runtime:problem:", "https://"]
            .iter()
            .any(|base| type_uri.starts_with(base));
        assert!(is_absolute, "{type_uri}");
        document
    }

    /// It is a handler's own answer, and no replay. How many runs there were, the shop knows.
    #[track_caller]
    pub(crate) fn is_fresh(&self) {
        assert!(self.status.is_success(), "{self:?}");
        assert!(
            !self.headers.contains_key("idempotent-replayed"),
            "{self:?}"
        );
    }
}
