//! One run of a handler, from its request to what is recorded of its response.

mod judge;
mod streaming;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
};

use bytes::Bytes;
use http::{Request, Response, header::CONTENT_ENCODING, request, response::Parts};
use http_body::Body as HttpBody;
use tokio::sync::oneshot;
use tower_service::Service;

use self::streaming::ending_of_stream;
use crate::{
    attempt::Attempt,
    call::RawEnding,
    error::BoxError,
    http::{
        StoredResponse,
        body::{Body, Unfinished, Whole, read_to_end},
        grpc,
        guard::{Guard, IsGuarded},
        in_flight_limit::{Bounds, Occupant, Permit},
        outcome::{AboutAnotherCall, Verdict},
        problem::{Kind, Problem},
        response_channel::{HandlerReply, OPEN, RELEASED, Reply, send},
        routing,
        rules::Storage,
        settings::Settings,
        store_failures::StoreFailed,
        streamed::Watch,
        unkept,
    },
    identity::RecordId,
    race::survive_in_place,
    record::{OutcomeKind, RawOutcome},
};

/// A handler that is to run, and its request. It is boxed, because it is handed from one future to
/// the next until it is known whether it runs.
pub(crate) struct Execution<S> {
    service: S,
    pub(crate) head: request::Parts,
    pub(crate) body: Whole,
    guard: Arc<Guard>,
}

/// The terms that decide what a response means.
struct Terms {
    guard: Arc<Guard>,
    record: RecordId,
    is_routed: bool,
}

/// The result of a run.
enum Captured<R, E> {
    /// A reply of which all is known.
    Buffered(Box<HandlerReply<R, E>>, Verdict),
    /// A response of which only the end is to be recorded.
    Streaming(Box<Response<Body<R>>>, Watch<R>, Verdict),
}

impl<S> Execution<S> {
    /// Puts together what a handler needs, except the request's body, which is still to be read.
    pub(crate) fn new(service: S, head: request::Parts, guard: Arc<Guard>) -> Box<Self> {
        Box::new(Self {
            service,
            head,
            body: Whole::default(),
            guard,
        })
    }

    /// Runs the handler in the task of its call, tells the client's side, which may have gone away,
    /// and says what is to be recorded.
    ///
    /// A panic of the service's, of the response's body, of the seal or of the renderer ends here.
    /// Past this function it would be a crash of the call, after which the handler may run again.
    pub(crate) async fn run<B, R, E>(
        mut self: Box<Self>,
        attempt: Attempt,
        mut client: oneshot::Sender<Reply<R, E>>,
    ) -> RawEnding
    where
        S: Service<Request<Body<B>>, Response = Response<R>, Error = E>,
        R: HttpBody<Data = Bytes>,
        R::Error: Into<BoxError>,
    {
        let terms = Terms {
            guard: Arc::clone(&self.guard),
            record: *attempt.id(),
            is_routed: routing::is_routed(&self.head),
        };
        let guard = &*terms.guard;
        let mut inside = match terms.acquire(&attempt) {
            Ok(inside) => inside,
            Err(mut refused) => {
                if attempt.is_takeover() {
                    refused.set_status(OPEN);
                }
                send(client, Reply::Whole(refused));
                return RawEnding::NotBegun(nothing());
            }
        };
        self.head.extensions.insert(guard.callers_key());
        self.head.extensions.insert(IsGuarded);
        // In blocks, here and below, so that this future holds room for one of the two at a time.
        let answered = {
            let answering = pin!(self.answer());
            survive_in_place(answering).await
        };
        let (own, verdict) = match answered {
            Some(Ok(response)) => {
                match terms.deliver(response, &attempt, &mut inside, client).await {
                    Ok(ending) => return ending,
                    Err((verdict, back)) => {
                        client = back;
                        (Ok(()), terms.panicked(verdict.or(Some(Verdict::Store))))
                    }
                }
            }
            Some(Err(error)) => (Err(error), Verdict::from(guard.rules.server_errors)),
            None => (Ok(()), terms.panicked(None)),
        };
        attempt.fail();
        let told = || terms.fail(|response| own.map(|()| response), verdict);
        match catch_unwind(AssertUnwindSafe(told)) {
            Ok(told) => tell(told, verdict, client),
            Err(_) => ending(verdict, nothing()),
        }
    }

    async fn answer<B, R, E>(self: Box<Self>) -> Result<Response<R>, E>
    where
        S: Service<Request<Body<B>>, Response = Response<R>, Error = E>,
    {
        let Self {
            mut service,
            head,
            body,
            guard: _,
        } = *self;
        let request = Request::from_parts(head, Body::whole(body));
        service.call(request).await
    }
}

impl Terms {
    /// Lets the handler in; the refusal if it may not begin.
    fn acquire<R, E>(&self, attempt: &Attempt) -> Result<Permit, Box<HandlerReply<R, E>>> {
        // An effect that an earlier handler may have begun is not left unfinished for want of room.
        let bounds = if attempt.is_takeover() {
            Bounds::NONE
        } else {
            self.guard.settings.bounds
        };
        let inside = self.guard.acquire(Occupant::Handler, bounds);
        inside.map_err(|problem| self.refused(&problem))
    }

    fn refused<R, E>(&self, problem: &Problem) -> Box<HandlerReply<R, E>> {
        Box::new(HandlerReply {
            response: Ok(self.guard.refuse_in_any_case(problem)),
            outcome: nothing(),
        })
    }

    /// Gives a response to the client's side, and says what is to be recorded of it. If its body or
    /// its seal panics, the client's side comes back, with the verdict on the response.
    async fn deliver<R, E>(
        &self,
        response: Response<R>,
        attempt: &Attempt,
        inside: &mut Permit,
        client: oneshot::Sender<Reply<R, E>>,
    ) -> Result<RawEnding, (Option<Verdict>, oneshot::Sender<Reply<R, E>>)>
    where
        R: HttpBody<Data = Bytes>,
        R::Error: Into<BoxError>,
    {
        let (mut head, body) = response.into_parts();
        if self.has_failed(&head) {
            attempt.fail();
        }
        let verdict = self.judge(&mut head, &body, attempt);
        self.tell_store_failed(&mut head);
        let is_its_own = head.extensions.remove::<AboutAnotherCall>().is_none();
        if let Some(stage) = verdict.and_then(Verdict::stage) {
            attempt.reach(stage);
        }
        let captured = {
            let capturing = pin!(self.capture(head, body, verdict, attempt));
            survive_in_place(capturing).await
        };
        match captured {
            Some(Captured::Buffered(mut told, verdict)) => {
                if matches!(verdict, Verdict::NotBegun | Verdict::Release) && is_its_own {
                    let is_free = !attempt.is_takeover();
                    told.set_status(if is_free { RELEASED } else { OPEN });
                }
                Ok(tell(told, verdict, client))
            }
            Some(Captured::Streaming(response, watch, verdict)) => {
                if let Some(stage) = verdict.stage() {
                    self.reach_while_streaming(attempt, stage).await;
                }
                // The handler has answered, and how long its client takes to read is not its
                // matter.
                inside.becomes(Occupant::Stream);
                send(client, Reply::Streamed(response));
                Ok(ending_of_stream(self.watch(watch).await, verdict))
            }
            None => Err((verdict, client)),
        }
    }

    /// Tells operators of a store that the handler has asked, and that has failed.
    fn tell_store_failed(&self, head: &mut Parts) {
        if let Some(StoreFailed(cause)) = head.extensions.remove() {
            let route = &self.guard.route;
            self.guard.settings.tell_store_failed(route, &cause);
        }
    }

    /// Says what is recorded of a response that means this.
    async fn capture<R, E>(
        &self,
        head: Parts,
        body: R,
        verdict: Option<Verdict>,
        attempt: &Attempt,
    ) -> Captured<R, E>
    where
        R: HttpBody<Data = Bytes>,
        R::Error: Into<BoxError>,
    {
        if let Some(verdict @ (Verdict::NotBegun | Verdict::Release)) = verdict {
            let response = Response::from_parts(head, Body::untouched(body));
            return Captured::buffered(Ok(response), verdict, nothing());
        }
        // Trailers behind a body that is too long are for its client alone.
        let unread = verdict.unwrap_or_else(|| self.of_outcome(Verdict::Store));
        let limit = self.guard.rules.max_response;
        let length = body.size_hint().upper();
        let streams = length.is_none_or(|upper| upper > limit as u64);
        // A unary response has an end, and servers of gRPC do not tell how far away that is.
        if streams && !self.is_unary() {
            self.tell_unkept(unread, unkept::why(&head.headers, length));
            return self.streaming(head, Body::untouched(body), unread);
        }
        match read_to_end(body, limit).await {
            Ok(whole) => {
                let trailers = whole.trailers.as_ref();
                if self.is_unary() && trailers.is_some_and(grpc::has_failed) {
                    attempt.fail();
                }
                let verdict = verdict.unwrap_or_else(|| self.judge_trailers(trailers));
                let outcome = self.stored(&head, &whole, verdict);
                let response = Response::from_parts(head, Body::whole(whole));
                Captured::buffered(Ok(response), verdict, outcome)
            }
            Err(Unfinished::TooLong(body)) => self.streaming(head, body, unread),
            Err(Unfinished::Failed(body)) => {
                let response = Response::from_parts(head, body);
                Captured::buffered(Ok(response), Verdict::Uncertain, nothing())
            }
        }
    }

    /// Says what is recorded of a handler that gave no response: the same as of a response of 500.
    fn fail<R, E>(
        &self,
        own: impl FnOnce(Response<Body<R>>) -> Result<Response<Body<R>>, E>,
        verdict: Verdict,
    ) -> Box<HandlerReply<R, E>> {
        let problem = Problem::new(Kind::HandlerFailed);
        let (head, bytes) = self.guard.respond(&problem).into_parts();
        let whole = Whole {
            bytes,
            trailers: None,
        };
        let outcome = self.stored(&head, &whole, verdict);
        let response = own(Response::from_parts(head, Body::whole(whole)));
        Box::new(HandlerReply { response, outcome })
    }

    /// Tells operators of a response that no retry gets, if the rules neither say nor expect that.
    fn tell_unkept(&self, verdict: Verdict, why: &str) {
        let Settings { unkept, name, .. } = &*self.guard.settings;
        let is_meant = self.guard.rules.storage != Storage::Whole || verdict != Verdict::Store;
        if !is_meant && !self.is_unary() {
            unkept.tell(name, &self.guard.route, why);
        }
    }

    fn stored(&self, head: &Parts, whole: &Whole, verdict: Verdict) -> RawOutcome {
        let is_stored = matches!(verdict, Verdict::Store | Verdict::StoreOrRelease);
        if !is_stored || self.guard.rules.storage != Storage::Whole {
            return nothing();
        }
        let operation = &*self.guard.settings.name;
        if head.headers.contains_key(CONTENT_ENCODING) {
            self.tell_unkept(Verdict::Store, unkept::STORED_COMPRESSED);
        }
        let (body, trailers) = (whole.bytes.clone(), whole.trailers.as_ref());
        let stored =
            StoredResponse::capture(head, body, trailers, &self.guard.rules.headers).encode();
        let sealed = match &self.guard.settings.seal {
            None => Ok(stored),
            // The handler has come to its response, so a seal that panics costs no more than one
            // that fails.
            Some(seal) => catch_unwind(AssertUnwindSafe(|| seal.seal(&self.record, stored)))
                .unwrap_or_else(|_| Err("the seal panicked".into())),
        };
        match sealed {
            Ok(bytes) if bytes.len() <= self.guard.settings.handle.defaults().max_outcome => {
                RawOutcome::value(bytes)
            }
            Ok(_too_large) => {
                self.tell_unkept(verdict, unkept::LARGER_THAN_AN_OUTCOME);
                nothing()
            }
            Err(error) => {
                tracing::error!(operation, %error, "a response cannot be sealed, so it is not stored");
                nothing()
            }
        }
    }
}

impl<R, E> Captured<R, E> {
    fn buffered(
        response: Result<Response<Body<R>>, E>,
        verdict: Verdict,
        outcome: RawOutcome,
    ) -> Self {
        Captured::Buffered(Box::new(HandlerReply { response, outcome }), verdict)
    }
}

/// Tells the client's side, and says what is to be recorded.
fn tell<R, E>(
    told: Box<HandlerReply<R, E>>,
    verdict: Verdict,
    client: oneshot::Sender<Reply<R, E>>,
) -> RawEnding {
    let outcome = told.outcome.clone();
    send(client, Reply::Whole(told));
    ending(verdict, outcome)
}

fn ending(verdict: Verdict, outcome: RawOutcome) -> RawEnding {
    match verdict {
        Verdict::Store | Verdict::StoreOrRelease if outcome.kind == OutcomeKind::Value => {
            RawEnding::Record(outcome)
        }
        Verdict::Store | Verdict::Discard => RawEnding::RecordWithoutOutcome(outcome),
        Verdict::NotBegun => RawEnding::NotBegun(outcome),
        Verdict::Release | Verdict::StoreOrRelease => RawEnding::Release(outcome),
        Verdict::Uncertain => RawEnding::Uncertain(outcome),
    }
}

fn nothing() -> RawOutcome {
    RawOutcome::not_replayable()
}
