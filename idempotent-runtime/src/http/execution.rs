//! One run of a handler, from its request to what is recorded of its response.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header::CONTENT_ENCODING, response::Parts};
use http_body::Body as HttpBody;
use tokio::sync::oneshot;
use tower_service::Service;

use crate::{
    call::RawEnding,
    error::BoxError,
    http::{
        IDEMPOTENT_REPLAYED, StoredResponse,
        body::{Body, Ended, Unfinished, Whole, read_to_end},
        client::{Own, Told},
        drain::Barred,
        grpc,
        guard::Asked,
        outcome::{Mark, Verdict, verdict},
        problem::{Kind, Problem},
        rules::{Protocol, Rules, Storage},
        settings::Settings,
    },
    policy::OnCrash,
    record::{OutcomeKind, RawOutcome},
    run::survive,
};

/// A handler that is to run. It runs in the task of its call, and tells the client's side, which may have gone away.
pub(crate) struct Execution<S, R, E> {
    service: S,
    terms: Terms,
    caller: Arc<[u8]>,
    client: oneshot::Sender<Own<R, E>>,
}

/// By what is decided what a response means.
struct Terms {
    settings: Arc<Settings>,
    rules: Arc<Rules>,
    asked: Asked,
    is_routed: bool,
}

/// What a run came to.
enum Came<R, E> {
    /// To something of which all is known.
    ToAnEnd(Told<R, E>, Verdict),
    /// To a response of which only the end is to be recorded.
    ToAStream(Response<Body<R>>, oneshot::Receiver<Ended>, Verdict),
}

impl<S, R, E> Execution<S, R, E> {
    pub(crate) fn new(
        service: S,
        settings: Arc<Settings>,
        rules: Arc<Rules>,
        asked: Asked,
        caller: Arc<[u8]>,
        is_routed: bool,
    ) -> (Self, oneshot::Receiver<Own<R, E>>) {
        let (client, own) = oneshot::channel();
        let execution = Self {
            service,
            terms: Terms {
                settings,
                rules,
                asked,
                is_routed,
            },
            caller,
            client,
        };
        (execution, own)
    }
}

impl<S, R, E> Execution<S, R, E>
where
    R: HttpBody<Data = Bytes>,
    R::Error: Into<BoxError>,
{
    /// Runs the handler, and says what is to be recorded.
    ///
    /// A panic of the service's, of the response's body, of the seal or of the renderer ends here: past this function it would be
    /// a crash of the call, after which the handler may run again.
    pub(crate) async fn run<B>(self, request: Request<Body<B>>) -> RawEnding
    where
        S: Service<Request<Body<B>>, Response = Response<R>, Error = E>,
    {
        let Self {
            service,
            terms,
            caller,
            client,
        } = self;
        let Settings { door, bounds, .. } = &*terms.settings;
        let _inside = match door.enter(&caller, *bounds) {
            Ok(inside) => inside,
            Err(barred) => return terms.refuse(barred).tell(client).await,
        };
        let answered = survive(async {
            let mut service = service;
            service.call(request).await
        });
        let (own, verdict) = match answered.await {
            Some(Ok(response)) => {
                let (mut head, body) = response.into_parts();
                let verdict = terms.judge(&mut head);
                match survive(terms.keep(head, body, verdict)).await {
                    Some(came) => return came.tell(client).await,
                    None => (Ok(()), terms.panicked(verdict.or(Some(Verdict::Store)))),
                }
            }
            Some(Err(error)) => (Err(error), Verdict::from(terms.rules.server_errors)),
            None => (Ok(()), terms.panicked(None)),
        };
        let told = || terms.fail(|response| own.map(|()| response), verdict);
        match catch_unwind(AssertUnwindSafe(told)) {
            Ok(came) => came.tell(client).await,
            Err(_) => ending(verdict, nothing()),
        }
    }
}

impl Terms {
    /// Says what a response means, before its body is read; `None` where it is said behind that.
    fn judge(&self, head: &mut Parts) -> Option<Verdict> {
        head.headers.remove(IDEMPOTENT_REPLAYED);
        let mark = head.extensions.remove::<Mark>();
        let errors = self.rules.server_errors;
        let verdict = match (head.status, mark) {
            (StatusCode::OK, None) if self.rules.protocol == Protocol::GrpcUnary => {
                let said = grpc::Code::of(&head.headers)?;
                self.of_outcome(grpc::verdict(said, errors))
            }
            // No handler said so, but a router that knows none.
            (StatusCode::NOT_FOUND, None) if !self.is_routed => Verdict::Release,
            (status, None) if self.rules.rejections.contains(&status) => Verdict::Release,
            (status, None) => self.of_outcome(verdict(status, None, errors)),
            (status, mark) => verdict(status, mark, errors),
        };
        Some(verdict)
    }

    /// Says what trailers of gRPC mean. Where they say nothing, nobody knows.
    fn judge_trailers(&self, trailers: Option<&HeaderMap>) -> Verdict {
        match trailers.and_then(grpc::Code::of) {
            Some(said) => self.of_outcome(grpc::verdict(said, self.rules.server_errors)),
            None => Verdict::Uncertain,
        }
    }

    /// An outcome that was not marked is worth what the route says, where it cannot be stored.
    fn of_outcome(&self, verdict: Verdict) -> Verdict {
        match verdict {
            Verdict::Store => self.rules.unrepeatable.into(),
            verdict => verdict,
        }
    }

    /// Says what a panic means, and tells operators of it: of a handler that has given no response, or of one whose response, which
    /// meant `given`, was being read.
    ///
    /// It is nobody's word that nothing happened. So it frees the key only where the handler may run again after a crash, too,
    /// and never where the handler has answered already.
    fn panicked(&self, given: Option<Verdict>) -> Verdict {
        let operation = &*self.settings.name;
        tracing::error!(operation, "a handler panicked");
        let on_crash = self.settings.handle.defaults().on_crash;
        let may_rerun = self.rules.on_crash.unwrap_or(on_crash) == OnCrash::Rerun;
        match (given, Verdict::from(self.rules.server_errors)) {
            (Some(Verdict::Uncertain), _) => Verdict::Uncertain,
            (None, Verdict::Release) if may_rerun => Verdict::Release,
            (_, Verdict::Release) => Verdict::Uncertain,
            (_, failed) => failed,
        }
    }

    /// Says what is recorded of a response that means this.
    async fn keep<R, E>(&self, head: Parts, body: R, verdict: Option<Verdict>) -> Came<R, E>
    where
        R: HttpBody<Data = Bytes>,
        R::Error: Into<BoxError>,
    {
        if verdict == Some(Verdict::Release) {
            let response = Response::from_parts(head, Body::untouched(body));
            return Came::to_an_end(Ok(response), Verdict::Release, nothing());
        }
        // What is said behind a body that is too long is for its client alone.
        let unread = verdict.unwrap_or_else(|| self.of_outcome(Verdict::Store));
        let limit = self.rules.max_response;
        let fits = |upper| upper <= limit as u64;
        let streams = !body.size_hint().upper().is_some_and(fits);
        // A unary response has an end, and servers of gRPC do not tell how far away that is.
        let is_unary = self.rules.protocol == Protocol::GrpcUnary;
        if streams && !is_unary {
            return Came::to_a_stream(head, Body::untouched(body), unread);
        }
        match read_to_end(body, limit).await {
            Ok(whole) => {
                let verdict =
                    verdict.unwrap_or_else(|| self.judge_trailers(whole.trailers.as_ref()));
                let outcome = self.stored(&head, &whole, verdict);
                let response = Response::from_parts(head, Body::whole(whole));
                Came::to_an_end(Ok(response), verdict, outcome)
            }
            Err(Unfinished::TooLong(body)) => Came::to_a_stream(head, body, unread),
            Err(Unfinished::Failed(body)) => {
                let response = Response::from_parts(head, body);
                Came::to_an_end(Ok(response), Verdict::Uncertain, nothing())
            }
        }
    }

    /// Says what is recorded of a handler that gave no response: what is recorded of a response of 500.
    fn fail<R, E>(
        &self,
        own: impl FnOnce(Response<Body<R>>) -> Result<Response<Body<R>>, E>,
        verdict: Verdict,
    ) -> Came<R, E> {
        let problem = Problem::new(Kind::HandlerFailed);
        let (head, bytes) = self.asked.respond(&self.settings, &problem).into_parts();
        let whole = Whole {
            bytes,
            trailers: None,
        };
        let outcome = self.stored(&head, &whole, verdict);
        let response = Response::from_parts(head, Body::whole(whole));
        Came::to_an_end(own(response), verdict, outcome)
    }

    /// Says what is recorded of a request whose handler is not let in.
    fn refuse<R, E>(&self, barred: Barred) -> Came<R, E> {
        let kind = match barred {
            Barred::Shut | Barred::Full => Kind::Overloaded,
            Barred::FullOfThisCaller => Kind::TooManyKeys,
        };
        let refused = self.asked.refuse(&self.settings, &Problem::new(kind));
        Came::to_an_end(Ok(refused), Verdict::Release, nothing())
    }

    fn stored(&self, head: &Parts, whole: &Whole, verdict: Verdict) -> RawOutcome {
        let is_stored = matches!(verdict, Verdict::Store | Verdict::StoreOrRelease);
        if !is_stored || self.rules.storage != Storage::Whole {
            return nothing();
        }
        let operation = &*self.settings.name;
        if head.headers.contains_key(CONTENT_ENCODING) {
            tracing::warn!(
                operation,
                "a response is stored compressed and is replayed only to clients that accept that: put compression outside of the layer"
            );
        }
        let (body, trailers) = (whole.bytes.clone(), whole.trailers.as_ref());
        let stored = StoredResponse::capture(head, body, trailers, &self.rules.headers).encode();
        let sealed = match &self.settings.seal {
            None => Ok(stored),
            // The handler has come to its response, so a seal that panics costs no more than one that fails.
            Some(seal) => catch_unwind(AssertUnwindSafe(|| seal.seal(stored)))
                .unwrap_or_else(|_| Err("the seal panicked".into())),
        };
        match sealed {
            Ok(bytes) if bytes.len() <= self.settings.handle.defaults().max_outcome => {
                RawOutcome::value(bytes)
            }
            Ok(_too_large) => nothing(),
            Err(error) => {
                tracing::error!(operation, %error, "a response cannot be sealed, so it is not stored");
                nothing()
            }
        }
    }
}

impl<R, E> Came<R, E> {
    fn to_an_end(
        response: Result<Response<Body<R>>, E>,
        verdict: Verdict,
        outcome: RawOutcome,
    ) -> Self {
        Came::ToAnEnd(Told { response, outcome }, verdict)
    }

    fn to_a_stream(head: Parts, body: Body<R>, verdict: Verdict) -> Self
    where
        R: HttpBody<Data = Bytes>,
    {
        let (body, ended) = body.watched();
        Came::ToAStream(Response::from_parts(head, body), ended, verdict)
    }

    /// Tells the client, and says what is to be recorded. Of a response that is given on, it says how that ended: well also where
    /// its client went away, because what the handler did is done when it answers, and uncertain where the handler itself broke
    /// it off.
    async fn tell(self, client: oneshot::Sender<Own<R, E>>) -> RawEnding {
        match self {
            Came::ToAnEnd(told, verdict) => {
                let outcome = told.outcome.clone();
                give(client, Own::Whole(told));
                ending(verdict, outcome)
            }
            Came::ToAStream(response, ended, verdict) => {
                give(client, Own::Streamed(response));
                match (ended.await, verdict) {
                    (Ok(Ended::Failed), _) | (_, Verdict::Uncertain) => {
                        RawEnding::Uncertain(nothing())
                    }
                    (Ok(Ended::Whole) | Err(_), Verdict::StoreOrRelease) => {
                        RawEnding::Release(nothing())
                    }
                    (Ok(Ended::Whole) | Err(_), _) => RawEnding::RecordWithoutOutcome(nothing()),
                }
            }
        }
    }
}

/// Gives it to the client's side. Where nobody takes it any more it ends here, and with it the watch over its body.
fn give<R, E>(client: oneshot::Sender<Own<R, E>>, own: Own<R, E>) {
    let given = catch_unwind(AssertUnwindSafe(|| drop(client.send(own))));
    if given.is_err() {
        tracing::error!("a response that nobody took panicked when it was dropped");
    }
}

fn ending(verdict: Verdict, outcome: RawOutcome) -> RawEnding {
    match verdict {
        Verdict::Store | Verdict::StoreOrRelease if outcome.kind == OutcomeKind::Value => {
            RawEnding::Record(outcome)
        }
        Verdict::Store | Verdict::Discard => RawEnding::RecordWithoutOutcome(outcome),
        Verdict::Release | Verdict::StoreOrRelease => RawEnding::Release(outcome),
        Verdict::Uncertain => RawEnding::Uncertain(outcome),
    }
}

fn nothing() -> RawOutcome {
    RawOutcome::not_replayable()
}
