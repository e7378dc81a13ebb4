//! What a router outside of the layer has done to a request.

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

/// The target as the client sent it: a router that nests another one takes off the beginning of the path.
pub(crate) fn uri(head: &Parts) -> &Uri {
    original(head).unwrap_or(&head.uri)
}

/// Tells whether a handler is there for the request, as far as is known: a router answers 404 by itself where there is none.
pub(crate) fn is_routed(head: &Parts) -> bool {
    original(head).is_none() || is_matched(head)
}

/// Tells whether a router has found no route for the request, so that its fallback answers. A service that is nested
/// (`nest_service`) is a route, whatever it finds inside.
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

/// Axum tells nobody that a request is for a nested service, but for routers inside of that: their paths have its prefix.
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
