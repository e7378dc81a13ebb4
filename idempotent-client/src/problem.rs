//! Problem bodies (RFC 9457), and the word of a server in them about a key.

use std::time::Duration;

use idempotent_runtime::wire::{KeyAction, Kind};
use serde::Deserialize;
use serde_json::Value;

/// The part of an error body that says something about a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Which problem it is, where it is one about keys.
    pub(crate) kind: Option<Kind>,
    /// Whether the same request with the same key may succeed later.
    pub(crate) retryable: Option<bool>,
    /// Whether it says what to do with the key.
    pub(crate) has_key_action: bool,
    /// When to try again.
    pub(crate) retry_after: Option<Duration>,
    /// An opaque handle for an operator who finds out what happened.
    pub(crate) operation_ref: Option<String>,
    /// Stripe's `error.type` and `error.code`.
    pub(crate) stripe: Option<StripeError>,
}

/// The part of Stripe's error object that is about keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct StripeError {
    /// The class of the error, such as `idempotency_error`.
    #[serde(rename = "type", default)]
    pub(crate) kind: Option<String>,
    /// The error, such as `idempotency_key_in_use`.
    #[serde(default)]
    pub(crate) code: Option<String>,
}

impl Problem {
    /// Reads an error body. A part that is not understood is left out, because a body is the
    /// server's and may be anything.
    #[must_use]
    pub(crate) fn read(body: &[u8]) -> Self {
        let Ok(Value::Object(members)) = serde_json::from_slice(body) else {
            return Self::default();
        };
        let member = |name: &str| members.get(name);
        let text = |name: &str| member(name)?.as_str();
        Self {
            kind: text("type").and_then(kind),
            retryable: member("retryable").and_then(Value::as_bool),
            has_key_action: text("key_action").is_some_and(is_key_action),
            retry_after: member("retry_after")
                .and_then(Value::as_u64)
                .map(Duration::from_secs),
            operation_ref: text("operation_ref").map(str::to_owned),
            stripe: member("error").and_then(|error| StripeError::deserialize(error).ok()),
        }
    }

    /// Tells whether the body speaks of keys at all: without that, a member `retryable` may mean
    /// anything.
    #[must_use]
    pub(crate) fn speaks_of_keys(&self) -> bool {
        self.kind.is_some() || self.has_key_action
    }
}

fn is_key_action(text: &str) -> bool {
    KeyAction::ALL.iter().any(|action| action.as_str() == text)
}

/// The base of a problem's type is the operator's; the last segment is the contract.
fn kind(type_: &str) -> Option<Kind> {
    let delimits = |letter: char| !letter.is_ascii_alphanumeric() && !"-._~".contains(letter);
    let last = type_.rsplit(delimits).next()?;
    Kind::from_slug(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_known_by_the_last_segment_of_its_type() {
        for &expected in Kind::ALL {
            let text = expected.slug();
            for base in [
                "https://api.example.com/problems/",
                "urn:problem:",
                "/p#",
                "https://api.example.com/problems?type=",
                "",
            ] {
                let body = format!(r#"{{"type":"{base}{text}"}}"#);
                assert_eq!(Problem::read(body.as_bytes()).kind, Some(expected));
            }
        }
        for other in [
            r#"{"type":"https://api.example.com/problems/idempotency-key-reused-x"}"#,
            r#"{"type":"about:blank"}"#,
            r#"{"type":7}"#,
            "{}",
        ] {
            assert_eq!(Problem::read(other.as_bytes()).kind, None, "{other}");
        }
    }

    #[test]
    fn members_are_read_and_nonsense_is_left_out() {
        let problem = Problem::read(
            br#"{"retryable":true,"key_action":"keep","retry_after":3,"operation_ref":"op_1"}"#,
        );
        assert_eq!(problem.retryable, Some(true));
        assert!(problem.has_key_action);
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
