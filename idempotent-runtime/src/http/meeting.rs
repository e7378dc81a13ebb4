//! What becomes of a request, as far as its head tells: handed on, refused, or guarded.

use std::{
    error::Error as StdError,
    iter::successors,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use http::{
    Extensions, HeaderMap, HeaderName, HeaderValue, Method, Response, header::UPGRADE,
    request::Parts,
};
use http_body::Body as HttpBody;
use http_body_util::LengthLimitError;

use crate::http::{
    arrival::TooSlow,
    body::Body,
    guard::{Guard, IsGuarded},
    problem::{Kind, Problem},
    routing,
    rules::{EarlyData, Presence, Rules},
    settings::Settings,
};

/// The header field by which a response says that a key was ignored, or that it is free again.
pub(crate) const IDEMPOTENCY_STATUS: HeaderName = HeaderName::from_static("idempotency-status");

/// What is to be done with a request.
pub(crate) enum Meeting {
    /// Nothing, but for what its response is to say. One that a layer outside guards is that layer's alone.
    HandOn(Option<Afterwards>),
    Refuse(Box<Problem>, Arc<Rules>),
    Guard(Arc<Guard>),
}

/// What is done with the response to a request that was handed on.
pub(crate) struct Afterwards {
    settings: Arc<Settings>,
    rules: Arc<Rules>,
    /// What the renderer may ask for; empty where there is none of the service's own.
    headers: HeaderMap,
    /// Whether the key was ignored, where the rules ask for that to be said.
    ignored: Option<Ignored>,
}

/// Stands among the extensions of a request whose response is to say that its key was ignored, and knows whether something inside took
/// the key all the same: another layer, or a handler by the extractor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ignored(Arc<AtomicBool>);

/// Says to the layers outside that somebody takes the key of a request, in whose extensions it is found.
pub(crate) fn take_key(extensions: &Extensions) {
    if let Some(Ignored(was_taken)) = extensions.get() {
        was_taken.store(true, Ordering::Relaxed);
    }
}

impl Afterwards {
    fn new(settings: &Arc<Settings>, rules: &Arc<Rules>, head: &Parts) -> Self {
        Self {
            settings: Arc::clone(settings),
            rules: Arc::clone(rules),
            headers: if settings.problems.ask_the_request() {
                head.headers.clone()
            } else {
                HeaderMap::new()
            },
            ignored: None,
        }
    }

    /// Lets whatever stands inside say that it takes the key.
    pub(crate) fn listen(&self, extensions: &mut Extensions) {
        if let Some(ignored) = &self.ignored {
            extensions.insert(ignored.clone());
        }
    }

    pub(crate) fn tell<R: HttpBody>(self, response: Response<R>) -> Response<Body<R>> {
        let (mut head, body) = response.into_parts();
        if let Some(Ignored(was_taken)) = self.ignored
            && !was_taken.load(Ordering::Relaxed)
        {
            let ignored = HeaderValue::from_static("ignored");
            head.headers.insert(IDEMPOTENCY_STATUS, ignored);
        }
        let (rules, headers) = (&self.rules, &self.headers);
        let retold = self.settings.retell(&mut head, &body, rules, headers);
        let body = retold.map_or_else(|| Body::untouched(body), Body::from);
        Response::from_parts(head, body)
    }
}

impl Meeting {
    /// Decides without waiting for anything, so that a request which is refused for its head is refused before its body is
    /// asked for.
    pub(crate) fn of(settings: &Arc<Settings>, head: &Parts, body: &impl HttpBody) -> Self {
        let rules = settings.rules(routing::uri(head).path());
        if head.extensions.get::<IsGuarded>().is_some() {
            return Meeting::HandOn(None);
        }
        let keys_count = rules.methods.contains(&head.method)
            && !is_for_another_protocol(head)
            && (rules.guards_fallback || !routing::is_for_the_fallback(head));
        let hand_on = |ignored| {
            // No key protects it here. What only reads may be repeated, and where keys count for a read, it does more.
            let only_reads = head.method.is_safe() && !keys_count;
            if rules.early_data == EarlyData::WithKey && is_early(head) && !only_reads {
                return Meeting::refuse(too_early(keys_count.then_some(rules.presence)), rules);
            }
            let mut afterwards = Afterwards::new(settings, rules, head);
            afterwards.ignored = ignored;
            Meeting::HandOn(Some(afterwards))
        };
        if !keys_count {
            return hand_on(None);
        }
        let names = rules.reader.names();
        let has_key = || names.iter().any(|name| head.headers.contains_key(name));
        match rules.presence {
            Presence::IgnoredAloud if has_key() => {
                // A layer outside may be listening already.
                let ignored = head.extensions.get::<Ignored>().cloned();
                return hand_on(Some(ignored.unwrap_or_default()));
            }
            Presence::Unsupported if has_key() => {
                return Meeting::refuse(Problem::new(Kind::NotSupported), rules);
            }
            Presence::Optional if !has_key() => return hand_on(None),
            Presence::Ignored | Presence::IgnoredAloud | Presence::Unsupported => {
                return hand_on(None);
            }
            Presence::Required | Presence::Optional => {}
        }
        take_key(&head.extensions);
        match admit(settings, rules, head, body) {
            Ok(guard) => Meeting::Guard(guard),
            Err(problem) => Meeting::refuse(problem, rules),
        }
    }

    fn refuse(problem: Problem, rules: &Arc<Rules>) -> Self {
        Meeting::Refuse(Box::new(problem), Arc::clone(rules))
    }
}

/// A request by which a connection goes over to another protocol has no response that could be replayed. By HTTP/1.1 only a GET
/// asks for a WebSocket (RFC 6455, section 4.1), so the header field does not free other requests from their keys. HTTP/2 in place
/// of HTTP/1.1 is no such protocol: some clients offer it with every request.
fn is_for_another_protocol(head: &Parts) -> bool {
    let is_websocket = || {
        let upgrade = head.headers.get(UPGRADE).map(HeaderValue::as_bytes);
        upgrade.is_some_and(|protocol| protocol.eq_ignore_ascii_case(b"websocket"))
    };
    head.method == Method::CONNECT || (head.method == Method::GET && is_websocket())
}

/// Whoever asks where a key is optional may send one instead of waiting. Elsewhere it would not help.
fn too_early(presence: Option<Presence>) -> Problem {
    let problem = Problem::new(Kind::TooEarly);
    match presence {
        Some(Presence::Optional) => problem,
        _ => problem.where_keys_do_not_count(),
    }
}

/// The field has one value, 1, and counts as that whatever else it holds and however often it is there (RFC 8470, section 5.1).
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
    if settings.door.is_shut() {
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

/// A body of unknown length that is longer than a limit outside of the layer breaks off there, whenever it is sent again.
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
