//! Problem bodies (RFC 9457), and what a server says in them about a key.

use std::time::Duration;

use serde::Deserialize;

/// What went wrong with a key, by the last segment of the problem's `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Slug {
    /// The route wants a key.
    KeyMissing,
    /// The key is malformed.
    KeyInvalid,
    /// The key belongs to another request.
    KeyReused,
    /// The first request with this key is still being processed.
    RequestInProgress,
    /// Whether the first request took effect is not known to the server either.
    OutcomeUnknown,
    /// The first request ended, and its response was too large, streamed or secret to be kept.
    ResultUnavailable,
    /// The first request ended, and its response is no longer kept.
    ResultExpired,
    /// The first request was carried out, and its result cannot be read right now.
    ResultOutOfReach,
    /// The server cannot tell who is calling.
    ScopeUnresolved,
    /// The request is larger than the server keeps track of.
    BodyTooLarge,
    /// The request did not arrive whole.
    BodyUnreadable,
    /// The request did not arrive in time; nothing ran.
    BodyTimeout,
    /// The server's store is out of reach: nothing ran now, and whether it ran before is not to be had.
    StoreUnavailable,
    /// The server has too much to do, or is shutting down; nothing ran.
    Overloaded,
    /// The request came as early data.
    TooEarly,
    /// The caller has too many keys in use; nothing ran.
    TooManyKeys,
    /// The route does not honour keys.
    NotSupported,
    /// The handler ended without a response, and may have taken effect.
    HandlerFailed,
    /// The server is set up wrongly; nothing ran.
    Misconfigured,
}

const SLUGS: [(&str, Slug); 19] = [
    ("idempotency-key-missing", Slug::KeyMissing),
    ("idempotency-key-invalid", Slug::KeyInvalid),
    ("idempotency-key-reused", Slug::KeyReused),
    ("idempotency-request-in-progress", Slug::RequestInProgress),
    ("idempotency-outcome-unknown", Slug::OutcomeUnknown),
    ("idempotency-result-unavailable", Slug::ResultUnavailable),
    ("idempotency-result-expired", Slug::ResultExpired),
    ("idempotency-result-out-of-reach", Slug::ResultOutOfReach),
    ("idempotency-scope-unresolved", Slug::ScopeUnresolved),
    ("idempotency-body-too-large", Slug::BodyTooLarge),
    ("idempotency-body-unreadable", Slug::BodyUnreadable),
    ("idempotency-body-timeout", Slug::BodyTimeout),
    ("idempotency-store-unavailable", Slug::StoreUnavailable),
    ("idempotency-overloaded", Slug::Overloaded),
    ("idempotency-too-early", Slug::TooEarly),
    ("idempotency-too-many-keys", Slug::TooManyKeys),
    ("idempotency-not-supported", Slug::NotSupported),
    ("idempotency-handler-failed", Slug::HandlerFailed),
    ("idempotency-misconfigured", Slug::Misconfigured),
];

/// What a client must do with the key, in the server's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum KeyAction {
    /// Send the same key again, or ask about it.
    Keep,
    /// Use another key for another request.
    New,
    /// Send one.
    Send,
    /// Keys mean nothing here.
    None,
}

/// An error body, as far as it says something about a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Problem {
    /// Which problem it is, where it is one about keys.
    pub(super) slug: Option<Slug>,
    /// Whether the same request with the same key may succeed later.
    pub(super) retryable: Option<bool>,
    /// What to do with the key.
    pub(super) key_action: Option<KeyAction>,
    /// When to try again.
    pub(super) retry_after: Option<Duration>,
    /// An opaque handle for whoever finds out what happened.
    pub(super) operation_ref: Option<String>,
    /// Stripe's `error.type` and `error.code`.
    pub(super) stripe: Option<StripeError>,
}

/// The part of Stripe's error object that is about keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct StripeError {
    /// The class of the error, such as `idempotency_error`.
    #[serde(rename = "type", default)]
    pub(super) kind: Option<String>,
    /// The error, such as `idempotency_key_in_use`.
    #[serde(default)]
    pub(super) code: Option<String>,
}

impl Problem {
    /// Reads an error body. Whatever is not understood is left out, because a body is the server's and may be anything.
    #[must_use]
    pub(super) fn read(body: &[u8]) -> Self {
        let Ok(serde_json::Value::Object(members)) = serde_json::from_slice(body) else {
            return Self::default();
        };
        let text = |name: &str| members.get(name)?.as_str();
        Self {
            slug: text("type").and_then(slug),
            retryable: members
                .get("retryable")
                .and_then(serde_json::Value::as_bool),
            key_action: members
                .get("key_action")
                .and_then(|action| KeyAction::deserialize(action).ok()),
            retry_after: members
                .get("retry_after")
                .and_then(serde_json::Value::as_u64)
                .map(Duration::from_secs),
            operation_ref: text("operation_ref").map(str::to_owned),
            stripe: members
                .get("error")
                .and_then(|error| StripeError::deserialize(error).ok()),
        }
    }

    /// Tells whether the body speaks of keys at all: without that, a member `retryable` may mean anything.
    #[must_use]
    pub(super) fn speaks_of_keys(&self) -> bool {
        self.slug.is_some() || self.key_action.is_some()
    }
}

/// The base of a problem's type is the operator's; the last segment is the contract.
fn slug(type_: &str) -> Option<Slug> {
    let delimits = |letter: char| !letter.is_ascii_alphanumeric() && !"-._~".contains(letter);
    let last = type_.rsplit(delimits).next()?;
    let known = SLUGS.iter().find(|(slug, _)| *slug == last)?;
    Some(known.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_known_by_the_last_segment_of_its_type() {
        for (text, expected) in SLUGS {
            for base in [
                "https://api.example.com/problems/",
                "urn:problem:",
                "/p#",
                "https://api.example.com/problems?type=",
                "",
            ] {
                let body = format!(r#"{{"type":"{base}{text}"}}"#);
                assert_eq!(Problem::read(body.as_bytes()).slug, Some(expected));
            }
        }
        for other in [
            r#"{"type":"https://api.example.com/problems/idempotency-key-reused-x"}"#,
            r#"{"type":"about:blank"}"#,
            r#"{"type":7}"#,
            "{}",
        ] {
            assert_eq!(Problem::read(other.as_bytes()).slug, None, "{other}");
        }
    }

    #[test]
    fn members_are_read_and_nonsense_is_left_out() {
        let problem = Problem::read(
            br#"{"retryable":true,"key_action":"keep","retry_after":3,"operation_ref":"op_1"}"#,
        );
        assert_eq!(problem.retryable, Some(true));
        assert_eq!(problem.key_action, Some(KeyAction::Keep));
        assert_eq!(problem.retry_after, Some(Duration::from_secs(3)));
        assert_eq!(problem.operation_ref.as_deref(), Some("op_1"));
        assert!(problem.speaks_of_keys());

        for nonsense in [
            &br#"{"retryable":"yes","key_action":"burn","retry_after":-1,"error":"no"}"#[..],
            b"[1]",
            b"",
            b"\xff",
        ] {
            assert_eq!(Problem::read(nonsense), Problem::default());
        }
    }

    #[test]
    fn stripe_s_error_object_is_read() {
        let problem =
            Problem::read(br#"{"error":{"type":"idempotency_error","code":"c","message":"m"}}"#);
        let stripe = problem.stripe.expect("it is there");
        assert_eq!(stripe.kind.as_deref(), Some("idempotency_error"));
        assert_eq!(stripe.code.as_deref(), Some("c"));
    }
}
