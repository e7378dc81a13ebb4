//! Which routes give responses that a retry does not get again, so that operators are told once of
//! each route.

use std::{collections::HashSet, sync::Mutex};

#[cfg(feature = "axum")]
use axum::extract::MatchedPath;
use http::{HeaderMap, header::CONTENT_ENCODING, request::Parts};

use crate::value::lock;

/// The route that a router has found for a request, where that is known.
pub(crate) struct Route(#[cfg(feature = "axum")] Option<MatchedPath>);

impl Route {
    #[cfg_attr(not(feature = "axum"), expect(unused_variables))]
    pub(crate) fn of(head: &Parts) -> Self {
        Self(
            #[cfg(feature = "axum")]
            head.extensions.get().cloned(),
        )
    }

    /// The template of its path, where a router tells it.
    pub(crate) fn template(&self) -> Option<&str> {
        #[cfg(feature = "axum")]
        return self.0.as_ref().map(MatchedPath::as_str);
        #[cfg(not(feature = "axum"))]
        None
    }

    pub(crate) fn name(&self) -> &str {
        self.template().unwrap_or("no route")
    }
}

/// Says of a response that is given on as it comes why it is not kept, and what to do.
pub(crate) fn why(head: &HeaderMap, length: Option<u64>) -> &'static str {
    match length {
        _ if head.contains_key(CONTENT_ENCODING) => {
            "a response is compressed inside of the layer and is not kept for retries: put compression outside of the layer"
        }
        None => {
            "a response is streamed and is not kept for retries: give its body a known length, or say by `unrepeatable` or `storage` that this route streams"
        }
        Some(_) => {
            "a response is longer than `max_response` and is not kept for retries: raise `max_response`, or say by `unrepeatable` or `storage` that this route gives such"
        }
    }
}

pub(crate) const STORED_COMPRESSED: &str = "a response is stored compressed and is replayed only to clients that accept that: put compression outside of the layer";

pub(crate) const LARGER_THAN_AN_OUTCOME: &str = "a response is larger than `max_outcome` of the handle and is not kept for retries: raise `max_outcome`";

/// How many routes are remembered. A router has them in its code, so there are seldom more.
const MOST: usize = 256;

/// The routes of which operators were told.
#[derive(Debug, Default)]
pub(crate) struct Unkept(Mutex<HashSet<Box<str>>>);

impl Unkept {
    pub(crate) fn tell(&self, operation: &str, route: &Route, why: &str) {
        let route = route.name();
        let mut told = lock(&self.0);
        if told.len() < MOST && told.insert(route.into()) {
            drop(told);
            tracing::warn!(operation, route, "{why}");
        }
    }
}
