//! The failures of stores, for which requests are refused: told to operators, and not for each
//! request.

use std::{collections::HashMap, error::Error, sync::Mutex, time::Duration};

use crate::{
    http::unkept::Route,
    store::{StoreError, StoreErrorKind},
    value::lock,
};

/// Stands among the extensions of a response that tells of a store which a handler has asked.
#[derive(Clone, Debug)]
pub(crate) struct StoreFailed(pub(crate) StoreError);

/// How long it is until the next word about the same route and kind.
const PAUSE: Duration = Duration::from_secs(60);

/// When operators were told last, for each route and kind.
#[derive(Debug, Default)]
pub(crate) struct StoreFailures(Mutex<HashMap<(Box<str>, StoreErrorKind), Duration>>);

impl StoreFailures {
    /// Tells operators of a failure, once a route and kind a minute. A kind that does not heal by
    /// itself is an error.
    pub(crate) fn tell(&self, operation: &str, route: &Route, cause: &StoreError, now: Duration) {
        let (route, kind) = (route.name(), cause.kind());
        if !self.is_due(route, kind, now) {
            return;
        }
        let error: &(dyn Error + 'static) = cause;
        match cause.is_transient() {
            true => tracing::warn!(
                operation,
                route,
                ?kind,
                error,
                "the store failed, so requests are refused"
            ),
            false => tracing::error!(
                operation,
                route,
                ?kind,
                error,
                "the store failed, and requests are refused until it is mended"
            ),
        }
    }

    fn is_due(&self, route: &str, kind: StoreErrorKind, now: Duration) -> bool {
        let mut told = lock(&self.0);
        let last = told.get(&(route.into(), kind)).copied();
        let is_due = last.is_none_or(|last| now.saturating_sub(last) >= PAUSE);
        if is_due {
            told.insert((route.into(), kind), now);
        }
        is_due
    }
}
