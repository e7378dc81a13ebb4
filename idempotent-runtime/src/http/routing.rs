//! The marks that a router outside of the layer has left on a request.

use std::borrow::Cow;
#[cfg(feature = "axum")]
use std::{
    future::{Future as _, ready},
    pin::pin,
    sync::LazyLock,
    task::{Context, Poll, Waker},
};

#[cfg(feature = "axum")]
use axum::{Router, body::Body, extract::MatchedPath, routing::get};
#[cfg(feature = "axum")]
use http::{Request, StatusCode};
use http::{Uri, request::Parts};
#[cfg(feature = "axum")]
use tower_service::Service as _;

/// The target as the client sent it: a router that nests another one takes off the beginning of the
/// path.
pub(crate) fn uri(head: &Parts) -> &Uri {
    original(head).unwrap_or(&head.uri)
}

/// The path as it is compared: two spellings are one if RFC 3986 says that they mean the same
/// (sections 6.2.2.1 and 6.2.2.2). So the digits of percent-encoded bytes are in upper case, and
/// letters, digits and `-._~` are not encoded.
pub(crate) fn normalised(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let mut parts = path.split('%');
    let mut normal = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        let is_encoded = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        match u8::from_str_radix(digits, 16) {
            Ok(byte) if is_encoded && is_unreserved(byte) => normal.push(char::from(byte)),
            Ok(_) if is_encoded => normal.extend(["%", &digits.to_ascii_uppercase()]),
            // It encodes nothing, and stays as it is.
            _ => normal.extend(["%", digits]),
        }
        normal.push_str(rest);
    }
    Cow::Owned(normal)
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// Tells whether a handler is there for the request, and says yes if that is unknown. A router
/// answers 404 by itself if there is none.
pub(crate) fn is_routed(head: &Parts) -> bool {
    original(head).is_none() || is_matched(head)
}

/// Tells whether a router has found no route for the request, so that its fallback answers. A
/// service that is nested (`nest_service`) is a route, also if it finds nothing inside.
pub(crate) fn is_for_the_fallback(head: &Parts) -> bool {
    original(head).is_some() && !is_matched(head) && !is_nested(head)
}

#[cfg(feature = "axum")]
fn original(head: &Parts) -> Option<&Uri> {
    let original = head.extensions.get::<axum::extract::OriginalUri>()?;
    Some(&original.0)
}

#[cfg(feature = "axum")]
fn is_matched(head: &Parts) -> bool {
    head.extensions.get::<MatchedPath>().is_some()
}

/// Axum tells only routers inside of a nested service that a request is for that service: their
/// paths have its prefix.
#[cfg(feature = "axum")]
fn is_nested(head: &Parts) -> bool {
    static INSIDE: LazyLock<Router> = LazyLock::new(|| {
        let has_prefix = |path: MatchedPath| {
            ready(
                (path.as_str() != "/")
                    .then_some(())
                    .ok_or(StatusCode::NOT_FOUND),
            )
        };
        Router::new().route("/", get(has_prefix))
    });
    let mut request = Request::new(Body::empty());
    *request.extensions_mut() = head.extensions.clone();
    let asked = pin!(INSIDE.clone().call(request));
    // It waits for nothing.
    match asked.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(found)) => found.status().is_success(),
        Poll::Ready(Err(never)) => match never {},
        Poll::Pending => true,
    }
}

#[cfg(not(feature = "axum"))]
fn is_nested(_: &Parts) -> bool {
    false
}

#[cfg(not(feature = "axum"))]
fn original(_: &Parts) -> Option<&Uri> {
    None
}

#[cfg(not(feature = "axum"))]
fn is_matched(_: &Parts) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::normalised;

    #[test]
    fn first_hour_21_a_path_has_one_spelling() {
        for (path, normal) in [
            ("/orders/a", "/orders/a"),
            ("/orders/%61", "/orders/a"),
            ("/%7euser/%2D%2e%5f", "/~user/-._"),
            ("/caf%c3%a9", "/caf%C3%A9"),
            ("/caf%C3%A9", "/caf%C3%A9"),
            ("/a%2fb", "/a%2Fb"),
            ("/%2561", "/%2561"),
            ("/%", "/%"),
            ("/%6", "/%6"),
            ("/%zz%61", "/%zza"),
            ("/%+1", "/%+1"),
            ("/%\u{e9}%61", "/%\u{e9}a"),
        ] {
            assert_eq!(normalised(path), normal, "{path}");
        }
    }
}
