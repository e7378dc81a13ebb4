//! What a router outside of the layer has done to a request.

use http::{Uri, request::Parts};

/// The target as the client sent it: a router that nests another one takes off the beginning of the path.
pub(crate) fn uri(head: &Parts) -> &Uri {
    original(head).unwrap_or(&head.uri)
}

/// Tells whether a handler is there for the request, as far as is known: a router answers 404 by itself where there is none.
pub(crate) fn is_routed(head: &Parts) -> bool {
    original(head).is_none() || is_matched(head)
}

#[cfg(feature = "axum")]
fn original(head: &Parts) -> Option<&Uri> {
    let original = head.extensions.get::<axum::extract::OriginalUri>()?;
    Some(&original.0)
}

#[cfg(feature = "axum")]
fn is_matched(head: &Parts) -> bool {
    head.extensions
        .get::<axum::extract::MatchedPath>()
        .is_some()
}

#[cfg(not(feature = "axum"))]
fn original(_: &Parts) -> Option<&Uri> {
    None
}

#[cfg(not(feature = "axum"))]
fn is_matched(_: &Parts) -> bool {
    true
}
