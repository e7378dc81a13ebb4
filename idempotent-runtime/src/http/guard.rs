//! A request that is answered once for all its retries.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
};

use bytes::Bytes;
use http::{
    HeaderMap, Method, Request, Response, StatusCode, header::ACCEPT_ENCODING, request::Parts,
};
use http_body::Body as HttpBody;
use tokio::sync::oneshot;
use tower_service::Service;

use crate::{
    call::CallBuilder,
    error::{BoxError, Error},
    http::{
        IdempotencyKey, StoredResponse,
        body::{self, Body},
        coding::can_be_read,
        execution::Execution,
        fingerprint::{Target, part},
        grpc,
        in_flight_limit::Occupant,
        problem::{Kind, Mismatch, Problem, ProblemJson},
        response_channel::{Received, recv},
        routing,
        rules::{KeyScope, MismatchDetails, Protocol, ReplayOfCreated, Rules},
        scope::Requester,
        settings::Settings,
        unkept::Route,
    },
    identity::RecordId,
    key::{Key, KeyError, KeyPart, KeyWriter},
    observe::CallReport,
    outcome::{Recorded, Whole},
    policy::InFlight,
    record::RawOutcome,
    request::waiting_room::{WaitingPlace, WaitingRoom},
};

/// A request that is to be answered once for all its retries.
pub(crate) struct Guard {
    pub(crate) settings: Arc<Settings>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) key: IdempotencyKey,
    caller: Option<Requester>,
    /// The parts of the request that an answer may need, because the handler may have taken the
    /// request already.
    method: Method,
    headers: HeaderMap,
    pub(crate) route: Route,
}

/// The identity of a call beside its caller: its key, and its method and path if a key is for one
/// route.
struct Identity<'a> {
    route: Option<Box<(String, String)>>,
    key: &'a IdempotencyKey,
}

impl KeyPart for Identity<'_> {
    fn write(&self, writer: &mut KeyWriter) {
        match &self.route {
            None => self.key.write(writer),
            Some(route) => (&route.0, &route.1, self.key).write(writer),
        }
    }
}

/// Stands among the extensions of a request that a layer guards, so that another one inside it lets
/// it pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IsGuarded;

impl Guard {
    pub(crate) fn new(
        settings: &Arc<Settings>,
        rules: &Arc<Rules>,
        key: IdempotencyKey,
        caller: Option<Requester>,
        head: &Parts,
    ) -> Arc<Self> {
        Arc::new(Self {
            settings: Arc::clone(settings),
            rules: Arc::clone(rules),
            key,
            caller,
            method: head.method.clone(),
            headers: remembered(settings, rules, &head.headers),
            route: Route::of(head),
        })
    }

    /// Answers the request: by its handler, by the response that the handler gave to an earlier
    /// one, or by a refusal.
    ///
    /// # Cancel safety
    ///
    /// Dropped before the handler began, it leaves nothing behind; later, the handler runs on and
    /// its response is recorded.
    pub(crate) async fn answer<S, B, R>(
        self: Arc<Self>,
        mut execution: Box<Execution<S>>,
        body: B,
    ) -> Result<Response<Body<R>>, S::Error>
    where
        S: Service<Request<Body<B>>, Response = Response<R>> + Send + 'static,
        S::Future: Send,
        S::Error: Send,
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
        R: HttpBody<Data = Bytes> + Send + 'static,
        R::Error: Into<BoxError>,
    {
        if let Err(problem) = self.prepare(&mut execution, body).await {
            let record = self.record(&self.identity(&execution.head)).ok();
            self.settings.tell_refused(&problem, record);
            return Ok(self.refuse(&problem));
        }
        let sent = &execution.body.bytes;
        let identity = self.identity(&execution.head);
        let call = self.describe(&identity, &execution.head, sent);
        let call = self.waiting_in_a_place(call);
        let (client, own) = oneshot::channel();
        let call = pin!(call.run_raw_detached(move |attempt| execution.run(attempt, client)));
        let mut response = match recv(call, own).await {
            Received::Streamed(response) => *response,
            Received::Answered(Ok((outcome, how)), Some(own)) if own.outcome == outcome => {
                own.given(&how)?
            }
            Received::Answered(Ok((outcome, how)), _) => self.replay(&outcome, &how, &identity),
            Received::Answered(Err(error), _) => {
                let problem = self.problem(&error, &identity);
                self.refuse(&problem)
            }
        };
        self.rules.repeat_key(&self.headers, &mut response);
        Ok(response)
    }

    /// Gets everything there that a claim needs, its body above all; the refusal of a request that
    /// comes to no claim.
    async fn prepare<S, B>(&self, execution: &mut Execution<S>, body: B) -> Result<(), Problem>
    where
        B: HttpBody<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        execution.body = self.read(body).await?;
        let is_grpc = self.rules.protocol == Protocol::GrpcUnary;
        if is_grpc && !grpc::is_one_message(&execution.body.bytes) {
            return Err(Problem::new(Kind::NotSupported).with_detail(
                "An idempotency key is supported for unary calls, which send one message. Nothing was done.",
            ));
        }
        Ok(())
    }

    /// The bytes that tell the caller from others; nothing if they share one space.
    pub(crate) fn caller_id(&self) -> Arc<[u8]> {
        let key = self.caller.as_ref().map(Key::from_part);
        // A caller that is no key is refused before a handler runs.
        key.and_then(Result::ok)
            .map_or_else(Arc::default, |key| key.framed().into())
    }

    /// The key as a handler gets it. Calls that the handler makes by it have no scope of this
    /// layer's, so it names the caller itself.
    pub(crate) fn callers_key(&self) -> IdempotencyKey {
        match &self.caller {
            Some(caller) => self.key.of_caller(caller),
            None => self.key.clone(),
        }
    }

    fn identity(&self, head: &Parts) -> Identity<'_> {
        Identity {
            route: match self.rules.key_scope {
                KeyScope::Caller => None,
                KeyScope::Route => {
                    let path = routing::normalised(routing::uri(head).path()).into_owned();
                    Some(Box::new((head.method.to_string(), path)))
                }
            },
            key: &self.key,
        }
    }

    fn describe(
        &self,
        identity: &Identity<'_>,
        head: &Parts,
        body: &Bytes,
    ) -> CallBuilder<Recorded, Whole> {
        let rules = &*self.rules;
        let uri = routing::uri(head);
        let target = Target {
            path: &routing::normalised(uri.path()),
            query: uri.query(),
        };
        let Settings { handle, name, .. } = &*self.settings;
        let call = CallBuilder::new(handle, Arc::clone(name)).key(identity);
        let mut call = rules
            .comparison
            .describe(call, head, &target, body)
            .in_flight(rules.in_flight)
            .on_expired(rules.on_expired);
        if let Some(route) = self.route.template() {
            call = call.route(route);
        }
        if let Some(caller) = &self.caller {
            call = call.scope(caller);
        }
        if let Some(ttl) = rules.ttl {
            call = call.ttl(ttl);
        }
        if let Some(lease) = rules.lease {
            call = call.lease(lease);
        }
        if let Some(on_crash) = rules.on_crash {
            call = call.on_crash(on_crash);
        }
        if let Some(on_outage) = rules.on_outage {
            call = call.on_outage(on_outage);
        }
        call
    }

    /// Has a call that waits for another one take the place of a handler, because it keeps its
    /// body.
    fn waiting_in_a_place<P, K>(self: &Arc<Self>, call: CallBuilder<P, K>) -> CallBuilder<P, K> {
        if self.rules.in_flight == InFlight::Reject {
            return call;
        }
        let guard = Arc::clone(self);
        call.waiting_room(WaitingRoom::new(move || {
            let place = guard.acquire(Occupant::Pending, guard.settings.bounds);
            Some(Box::new(place.ok()?) as WaitingPlace)
        }))
    }

    /// The response of an earlier run, if it can be given to this client.
    fn replay<R>(
        &self,
        outcome: &RawOutcome,
        how: &CallReport,
        identity: &Identity<'_>,
    ) -> Response<Body<R>> {
        let stored = match self.open(&outcome.bytes, identity) {
            Ok(stored) => stored,
            Err(error) => {
                tracing::error!(%error, operation = &*self.settings.name, "a stored response cannot be read");
                return self.refuse(&Problem::new(Kind::OutcomeUnknown));
            }
        };
        if !can_be_read(stored.headers(), &self.headers) {
            return self.refuse(&Problem::new(Kind::ResultUnavailable));
        }
        let whole = body::Whole {
            bytes: stored.body().clone(),
            trailers: (!stored.trailers().is_empty()).then(|| stored.trailers().clone()),
        };
        let response = match how {
            CallReport::Replayed { .. } => {
                let mut replay = stored.into_replay();
                if self.rules.replay_of_created == ReplayOfCreated::Ok
                    && replay.status() == StatusCode::CREATED
                {
                    *replay.status_mut() = StatusCode::OK;
                }
                replay
            }
            // Another run won while this one's lease was lost: for this client its response is no
            // replay of an earlier request.
            _ => stored.into_response(),
        };
        response.map(|_| Body::whole(whole))
    }

    fn open(&self, stored: &Bytes, identity: &Identity<'_>) -> Result<StoredResponse, BoxError> {
        let opened = match &self.settings.seal {
            None => stored.clone(),
            Some(seal) => seal.open(&self.record(identity)?, stored)?.into(),
        };
        Ok(StoredResponse::decode_shared(&opened)?)
    }

    fn problem(&self, error: &Error, identity: &Identity<'_>) -> Problem {
        let problem = Problem::from(error);
        match error {
            Error::Store(cause) => {
                self.settings.tell_store_failed(&self.route, cause);
                problem
            }
            Error::InProgress { silent: true, .. } => {
                problem.with_status(self.rules.in_flight_status)
            }
            Error::InProgress { .. } | Error::LeaseLost { .. } | Error::Stopped { .. } => problem
                .with_status(self.rules.in_flight_status)
                .with_retry_after(self.rules.retry_after),
            Error::KeyReused { differing, .. } => {
                let problem = problem.with_status(self.rules.mismatch_status);
                match self.rules.mismatch_details {
                    MismatchDetails::Hidden => problem,
                    MismatchDetails::Named => problem.with_mismatch(named(differing)),
                }
            }
            Error::Uncertain { .. } | Error::Parked { .. } => match self.reference(identity) {
                Some(reference) => problem.with_operation_ref(reference),
                None => problem,
            },
            // A name that no caller can have names no caller, either.
            Error::InvalidKey { part: "scope", .. } => {
                let operation = &*self.settings.name;
                tracing::info!(
                    operation,
                    "a request is refused because its caller is no key"
                );
                problem.with_status(self.settings.unscoped_status)
            }
            _ => problem,
        }
    }

    /// The beginning of the record's id, which stands in logs, too.
    fn reference(&self, identity: &Identity<'_>) -> Option<String> {
        let id = self.record(identity).ok()?;
        Some(format!("op_{id}"))
    }

    /// The record's id.
    fn record(&self, identity: &Identity<'_>) -> Result<RecordId, KeyError> {
        let key = Key::from_part(identity)?;
        let scope = self.caller.as_ref().map(Key::from_part).transpose()?;
        let scope = scope.as_ref().map(Key::framed);
        Ok(RecordId::new(&self.settings.name, scope, key.framed()))
    }

    pub(crate) fn refuse<R>(&self, problem: &Problem) -> Response<Body<R>> {
        self.respond(problem).map(Body::from)
    }

    /// The same where a handler was to run: a panic of the renderer would count as one of the
    /// handler, which has not begun. A problem that the renderer cannot tell is told in JSON.
    pub(crate) fn refuse_in_any_case<R>(&self, problem: &Problem) -> Response<Body<R>> {
        let refused = catch_unwind(AssertUnwindSafe(|| self.refuse(problem)));
        refused.unwrap_or_else(|_| {
            let Settings { name, problems, .. } = &*self.settings;
            tracing::error!(operation = &**name, "a renderer panicked");
            let problems = problems.clone().renderer(ProblemJson);
            let told = problems.respond(problem, &self.method, &self.headers);
            told.map(Body::from)
        })
    }

    pub(crate) fn respond(&self, problem: &Problem) -> Response<Bytes> {
        self.settings
            .refuse(problem, &self.rules, &self.method, &self.headers)
    }
}

/// The header fields of a request that an answer may depend on. They are all fields if a renderer
/// of the service's own may ask for any. Otherwise they are the few that this layer asks for,
/// because most requests have none of those.
fn remembered(settings: &Settings, rules: &Rules, headers: &HeaderMap) -> HeaderMap {
    if settings.problems.ask_the_request() {
        return headers.clone();
    }
    let asked_for = [&ACCEPT_ENCODING, &grpc::GRPC_ACCEPT_ENCODING];
    let mut remembered = HeaderMap::new();
    for name in asked_for.into_iter().chain(rules.repeated()) {
        for value in headers.get_all(name) {
            remembered.append(name, value.clone());
        }
    }
    remembered
}

fn named(differing: &[String]) -> impl Iterator<Item = Mismatch> {
    differing.iter().filter_map(|name| match name.as_str() {
        part::METHOD => Some(Mismatch::Method),
        part::TARGET => Some(Mismatch::Target),
        part::CONTENT_TYPE => Some(Mismatch::ContentType),
        part::HEADERS => Some(Mismatch::Header),
        part::BODY => Some(Mismatch::Body),
        _ => None,
    })
}
