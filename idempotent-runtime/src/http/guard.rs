//! A request that is answered once for all its retries.

use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderMap, Method, Request, Response,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING},
    request::Parts,
};
use http_body::Body as HttpBody;
use tower_service::Service;

use crate::{
    call::CallBuilder,
    error::{BoxError, Error},
    handle::Status,
    http::{
        IDEMPOTENCY_KEY, IdempotencyKey, StoredResponse,
        body::{self, Body, Unfinished, read_to_end},
        client::{Heard, hear},
        execution::Execution,
        fingerprint::{Target, part},
        meeting::too_large,
        problem::{Kind, Mismatch, Problem},
        routing,
        rules::{Echo, KeyScope, MismatchDetails, Rules},
        scope::Caller,
        settings::Settings,
    },
    identity::RecordId,
    key::{Key, KeyPart},
    observe::How,
    outcome::{Recorded, Whole},
    record::RawOutcome,
};

/// A request that is to be answered once for all its retries.
pub(crate) struct Guard {
    settings: Arc<Settings>,
    rules: Arc<Rules>,
    key: IdempotencyKey,
    caller: Option<Caller>,
}

/// Stands among the extensions of a request that a layer guards, so that another one inside it lets it pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IsGuarded;

impl Guard {
    pub(crate) fn new(
        settings: &Arc<Settings>,
        rules: &Arc<Rules>,
        key: IdempotencyKey,
        caller: Option<Caller>,
    ) -> Self {
        Self {
            settings: Arc::clone(settings),
            rules: Arc::clone(rules),
            key,
            caller,
        }
    }

    /// Answers the request: by its handler, by the response that the handler gave to an earlier one, or by a refusal.
    ///
    /// # Cancel safety
    ///
    /// Dropped before the handler began, it leaves nothing behind; later, the handler runs on and its response is recorded.
    pub(crate) async fn answer<S, B, R>(
        self,
        service: S,
        mut head: Parts,
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
        let asked = Asked {
            method: head.method.clone(),
            headers: head.headers.clone(),
        };
        if let Some(problem) = self.too_many_keys(&head).await {
            return Ok(self.refuse(&asked, problem));
        }
        let whole = match read_to_end(body, self.rules.max_request).await {
            Ok(whole) => whole,
            Err(Unfinished::TooLong(_)) => return Ok(self.refuse(&asked, too_large(&self.rules))),
            Err(Unfinished::Failed(_)) => {
                return Ok(self.refuse(&asked, Problem::new(Kind::BodyUnreadable)));
            }
        };
        let identity = self.identity(&head);
        let call = self.describe(&identity, &head, &whole.bytes);
        head.extensions.insert(self.key.clone());
        head.extensions.insert(IsGuarded);
        let (execution, own) = Execution::new(
            service,
            Arc::clone(&self.settings),
            Arc::clone(&self.rules),
            asked.clone(),
            self.caller_id(),
            routing::is_routed(&head),
        );
        let request = Request::from_parts(head, Body::whole(whole));
        let call = call
            .run_raw_detached(move |attempt| async move { execution.run(&attempt, request).await });
        let mut response = match hear(call, own).await {
            Heard::Streamed(response) => response,
            Heard::Answered(Ok((outcome, _)), Some(own)) if own.outcome == outcome => {
                own.response?
            }
            Heard::Answered(Ok((outcome, how)), _) => self.replay(&asked, &outcome, &how),
            Heard::Answered(Err(error), _) => {
                let problem = self.problem(&error, &identity);
                self.refuse(&asked, problem)
            }
        };
        self.echo(&asked, &mut response);
        Ok(response)
    }

    /// The refusal of a new key of a caller that has brought as many as it may. One that is known is answered all the same, and
    /// where the store does not say so, its claim is what counts.
    async fn too_many_keys(&self, head: &Parts) -> Option<Problem> {
        let Settings { handle, name, .. } = &*self.settings;
        let new_keys = self.settings.new_keys.as_ref()?;
        let problem = new_keys.refusal(&self.caller_id(), handle.timer())?;
        let identity = self.identity(head);
        let known = handle.lookup(name, self.caller.as_ref(), &*identity).await;
        matches!(known, Ok(Status::Unknown | Status::Expired { .. })).then_some(problem)
    }

    /// What tells the caller from others; nothing where they share one space.
    fn caller_id(&self) -> Arc<[u8]> {
        let key = self.caller.as_ref().map(Key::from_part);
        // A caller that is no key is refused before a handler runs.
        key.and_then(Result::ok)
            .map_or_else(Arc::default, |key| key.framed().into())
    }

    /// What identifies the call beside its caller.
    fn identity(&self, head: &Parts) -> Box<dyn KeyPart + Send + Sync> {
        match self.rules.key_scope {
            KeyScope::Caller => Box::new(self.key.clone()),
            KeyScope::Route => {
                let path = routing::uri(head).path().to_owned();
                Box::new((head.method.to_string(), path, self.key.clone()))
            }
        }
    }

    fn describe(
        &self,
        identity: &(dyn KeyPart + Send + Sync),
        head: &Parts,
        body: &Bytes,
    ) -> CallBuilder<Recorded, Whole> {
        let rules = &*self.rules;
        let uri = routing::uri(head);
        let target = Target {
            path: uri.path(),
            query: uri.query(),
        };
        let call = self.settings.handle.call(&self.settings.name).key(identity);
        let mut call = rules
            .comparison
            .describe(call, head, &target, body)
            .in_flight(rules.in_flight);
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

    /// The response of an earlier run, where it can be given to this client.
    fn replay<R>(&self, asked: &Asked, outcome: &RawOutcome, how: &How) -> Response<Body<R>> {
        let stored = match self.open(&outcome.bytes) {
            Ok(stored) => stored,
            Err(error) => {
                tracing::error!(%error, operation = &*self.settings.name, "a stored response cannot be read");
                return self.refuse(asked, Problem::new(Kind::OutcomeUnknown));
            }
        };
        if !can_be_read(stored.headers(), &asked.headers) {
            return self.refuse(asked, Problem::new(Kind::ResultUnavailable));
        }
        let whole = body::Whole {
            bytes: stored.body().clone(),
            trailers: (!stored.trailers().is_empty()).then(|| stored.trailers().clone()),
        };
        let response = match how {
            How::Replayed { .. } => stored.into_replay(),
            // Another run won while this one's lease was lost: for this client its response is no replay of an earlier request.
            _ => stored.into_response(),
        };
        response.map(|_| Body::whole(whole))
    }

    fn open(&self, stored: &Bytes) -> Result<StoredResponse, BoxError> {
        let opened = match &self.settings.seal {
            None => stored.clone(),
            Some(seal) => seal.open(stored)?.into(),
        };
        Ok(StoredResponse::decode_shared(&opened)?)
    }

    fn problem(&self, error: &Error, identity: &(dyn KeyPart + Send + Sync)) -> Problem {
        let problem = Problem::from(error);
        match error {
            Error::InProgress { .. } | Error::LeaseLost { .. } => problem
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
            _ => problem,
        }
    }

    /// The beginning of the record's id, which stands in logs, too.
    fn reference(&self, identity: &(dyn KeyPart + Send + Sync)) -> Option<String> {
        let key = Key::from_part(identity).ok()?;
        let scope = match &self.caller {
            Some(caller) => Some(Key::from_part(caller).ok()?),
            None => None,
        };
        let scope = scope.as_ref().map(Key::framed);
        let id = RecordId::new(&self.settings.name, scope, key.framed());
        Some(format!("op_{id}"))
    }

    fn refuse<R>(&self, asked: &Asked, problem: Problem) -> Response<Body<R>> {
        asked.refuse(&self.settings, &problem)
    }

    fn echo<R>(&self, asked: &Asked, response: &mut Response<Body<R>>) {
        let names = self.rules.reader.names();
        let sent = names.iter().find_map(|name| asked.headers.get(name));
        if self.rules.echo == Echo::Key
            && let Some(sent) = sent
        {
            response.headers_mut().insert(IDEMPOTENCY_KEY, sent.clone());
        }
    }
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

/// Tells whether a client that accepts what it says can read a body that is stored in this coding. It is stored in one only where
/// compression stands inside of the layer, by mistake.
fn can_be_read(stored: &HeaderMap, request: &HeaderMap) -> bool {
    let Some(coding) = stored.get(CONTENT_ENCODING) else {
        return true;
    };
    let accepted = request.get_all(ACCEPT_ENCODING).iter();
    let mut accepted = accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let coding = coding.as_bytes();
    accepted.any(|item| {
        let mut words = item.split(';').map(str::trim);
        let name = words.next().unwrap_or_default();
        let is_refused = words.any(|word| matches!(word, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
        (name == "*" || name.as_bytes().eq_ignore_ascii_case(coding)) && !is_refused
    })
}

/// What a refusal needs to know of a request whose handler may have taken it already.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    method: Method,
    headers: HeaderMap,
}

impl Asked {
    pub(crate) fn refuse<R>(&self, settings: &Settings, problem: &Problem) -> Response<Body<R>> {
        self.respond(settings, problem).map(Body::from)
    }

    pub(crate) fn respond(&self, settings: &Settings, problem: &Problem) -> Response<Bytes> {
        settings
            .problems
            .respond(problem, &self.method, &self.headers)
    }
}
