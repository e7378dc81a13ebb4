//! Decides by its head whether a request passes, is rejected, or is guarded.

use std::{error::Error as StdError, iter::successors, sync::Arc};

use http::{HeaderValue, Method, header::UPGRADE, request::Parts};
use http_body::Body as HttpBody;
use http_body_util::LengthLimitError;

use crate::http::{
    body::Body,
    guard::{Guard, IsGuarded},
    patience::TooSlow,
    problem::{Kind, Problem},
    routing,
    rules::{EarlyData, Presence, Rules},
    settings::Settings,
};

/// The way of a request, by its head.
pub(crate) enum Route {
    /// No key protects it here, or a layer outside does.
    Pass,
    Reject(Box<Problem>, Arc<Rules>),
    Guard(Arc<Guard>),
}

impl Route {
    /// Decides without waiting for anything, so that a request which is refused for its head is
    /// refused before its body is asked for.
    pub(crate) fn of(settings: &Arc<Settings>, head: &Parts, body: &impl HttpBody) -> Self {
        let rules = settings.rules(routing::uri(head).path());
        if head.extensions.get::<IsGuarded>().is_some() {
            return Route::Pass;
        }
        let keys_count = rules.methods.contains(&head.method)
            && !is_for_another_protocol(head)
            && (rules.guards_fallback || !routing::is_for_the_fallback(head));
        let names = rules.reader.names();
        let has_key = || names.iter().any(|name| head.headers.contains_key(name));
        match (keys_count, rules.presence) {
            (true, Presence::Unsupported) if has_key() => {
                Route::reject(Problem::new(Kind::NotSupported), rules)
            }
            (true, Presence::Required) => Route::guard(settings, rules, head, body),
            (true, Presence::Optional) if has_key() => Route::guard(settings, rules, head, body),
            _ => Route::unprotected(rules, head, keys_count),
        }
    }

    /// A request that only reads may be repeated. A read does more if keys count for it.
    fn unprotected(rules: &Arc<Rules>, head: &Parts, keys_count: bool) -> Self {
        let only_reads = head.method.is_safe() && !keys_count;
        if rules.early_data == EarlyData::WithKey && is_early(head) && !only_reads {
            return Route::reject(too_early(keys_count.then_some(rules.presence)), rules);
        }
        Route::Pass
    }

    fn guard(
        settings: &Arc<Settings>,
        rules: &Arc<Rules>,
        head: &Parts,
        body: &impl HttpBody,
    ) -> Self {
        match admit(settings, rules, head, body) {
            Ok(guard) => Route::Guard(guard),
            Err(problem) => Route::reject(problem, rules),
        }
    }

    fn reject(problem: Problem, rules: &Arc<Rules>) -> Self {
        Route::Reject(Box::new(problem), Arc::clone(rules))
    }
}

/// A request by which a connection goes over to another protocol has no response that could be
/// replayed. By HTTP/1.1 only a GET asks for a WebSocket (RFC 6455, section 4.1), so the header
/// field does not free other requests from their keys. HTTP/2 in place of HTTP/1.1 is no such
/// protocol: some clients offer it with every request.
fn is_for_another_protocol(head: &Parts) -> bool {
    let is_websocket = || {
        let upgrade = head.headers.get(UPGRADE).map(HeaderValue::as_bytes);
        upgrade.is_some_and(|protocol| protocol.eq_ignore_ascii_case(b"websocket"))
    };
    head.method == Method::CONNECT || (head.method == Method::GET && is_websocket())
}

/// A client may send a key instead of waiting, if keys are optional. Otherwise a key would not
/// help.
fn too_early(presence: Option<Presence>) -> Problem {
    let problem = Problem::new(Kind::TooEarly);
    match presence {
        Some(Presence::Optional) => problem,
        _ => problem.where_keys_do_not_count(),
    }
}

/// The field has one value, 1, and counts as that whatever else it holds and however often it is
/// there (RFC 8470, section 5.1).
fn is_early(head: &Parts) -> bool {
    head.headers.contains_key("early-data")
}

fn admit(
    settings: &Arc<Settings>,
    rules: &Arc<Rules>,
    head: &Parts,
    body: &impl HttpBody,
) -> Result<Arc<Guard>, Problem> {
    let path = routing::uri(head).path();
    let Some(key) = rules.reader.read(&head.headers)? else {
        return Err(Problem::key_missing(&head.method, path, &rules.reader));
    };
    let caller = settings.caller(head)?;
    if settings.in_flight.is_closed() {
        return Err(Problem::new(Kind::Overloaded));
    }
    if body.size_hint().lower() > rules.max_request as u64 {
        return Err(too_large(rules));
    }
    Ok(Guard::new(settings, rules, key, caller, head))
}

pub(crate) fn too_large(rules: &Rules) -> Problem {
    let limit = rules.max_request;
    Problem::new(Kind::BodyTooLarge).with_detail(format!(
        "A request with a key may have a body of at most {limit} bytes. Nothing was done."
    ))
}

/// A body of unknown length that is longer than a limit outside of the layer breaks off there,
/// whenever it is sent again.
pub(crate) fn unreadable<B>(body: &Body<B>) -> Problem {
    let first = body
        .failure()
        .map(|failure| &**failure as &(dyn StdError + 'static));
    let mut causes = successors(first, |cause: &&(dyn StdError + 'static)| (*cause).source());
    let kind = causes.find_map(|cause| match cause {
        cause if cause.is::<LengthLimitError>() => Some(Kind::BodyTooLarge),
        cause if cause.is::<TooSlow>() => Some(Kind::BodyTimeout),
        _ => None,
    });
    Problem::new(kind.unwrap_or(Kind::BodyUnreadable))
}
