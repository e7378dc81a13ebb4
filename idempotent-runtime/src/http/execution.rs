//! One run of a handler, from its request to what is recorded of its response.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header::CONTENT_ENCODING, request, response::Parts};
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
        guard::{Guard, IsGuarded},
        outcome::{Mark, Verdict, verdict},
        problem::{Kind, Problem},
        routing,
        rules::Storage,
        settings::Settings,
    },
    record::{OutcomeKind, RawOutcome},
    run::survive_in_place,
};

/// A handler that is to run, and its request. It is boxed, because it is handed from one future to the next until it is known
/// whether it runs.
pub(crate) struct Execution<S> {
    service: S,
    pub(crate) head: request::Parts,
    pub(crate) body: Whole,
    guard: Arc<Guard>,
}

/// By what is decided what a response means.
struct Terms {
    guard: Arc<Guard>,
    is_routed: bool,
}

/// What a run came to.
enum Came<R, E> {
    /// To something of which all is known.
    ToAnEnd(Box<Told<R, E>>, Verdict),
    /// To a response of which only the end is to be recorded.
    ToAStream(Box<Response<Body<R>>>, oneshot::Receiver<Ended>, Verdict),
}

impl<S> Execution<S> {
    /// Puts together what a handler needs, but for the request's body, which is still to be read.
    pub(crate) fn new(service: S, head: request::Parts, guard: Arc<Guard>) -> Box<Self> {
        Box::new(Self {
            service,
            head,
            body: Whole::default(),
            guard,
        })
    }

    /// Runs the handler in the task of its call, tells the client's side, which may have gone away, and says what is to be
    /// recorded.
    ///
    /// A panic of the service's, of the response's body, of the seal or of the renderer ends here: past this function it would be
    /// a crash of the call, after which the handler may run again.
    pub(crate) async fn run<B, R, E>(
        mut self: Box<Self>,
        client: oneshot::Sender<Own<R, E>>,
    ) -> RawEnding
    where
        S: Service<Request<Body<B>>, Response = Response<R>, Error = E>,
        R: HttpBody<Data = Bytes>,
        R::Error: Into<BoxError>,
    {
        let terms = Terms {
            guard: Arc::clone(&self.guard),
            is_routed: routing::is_routed(&self.head),
        };
        let guard = &*terms.guard;
        let Settings { door, bounds, .. } = &*guard.settings;
        let _inside = match door.enter(&guard.caller_id(), *bounds) {
            Ok(inside) => inside,
            Err(barred) => {
                let told = terms.refuse(barred);
                return tell(told, Verdict::Release, client);
            }
        };
        self.head.extensions.insert(guard.key.clone());
        self.head.extensions.insert(IsGuarded);
        let handler = pin!(async {
            let Self {
                mut service,
                head,
                body,
                ..
            } = *self;
            let request = Request::from_parts(head, Body::whole(body));
            match service.call(request).await {
                Ok(response) => terms.keep(response).await,
                Err(error) => terms.fail(|_| Err(error)),
            }
        });
        let came = match survive_in_place(handler).await {
            Some(came) => came,
            None => {
                let operation = &*guard.settings.name;
                tracing::error!(operation, "a handler panicked");
                match catch_unwind(AssertUnwindSafe(|| terms.fail(Ok))) {
                    Ok(came) => came,
                    Err(_) => return ending(Verdict::from(guard.rules.server_errors), nothing()),
                }
            }
        };
        let (ended, verdict) = match came {
            Came::ToAnEnd(told, verdict) => return tell(told, verdict, client),
            Came::ToAStream(response, ended, verdict) => {
                give(client, Own::Streamed(response));
                (ended, verdict)
            }
        };
        // It ended well also where its client went away, because what the handler did is done when it answers, and is uncertain
        // where the handler itself broke it off.
        match (ended.await, verdict) {
            (Ok(Ended::Failed), _) | (_, Verdict::Uncertain) => RawEnding::Uncertain(nothing()),
            (Ok(Ended::Whole) | Err(_), _) => RawEnding::RecordWithoutOutcome(nothing()),
        }
    }
}

impl Terms {
    /// Says what is recorded of a response.
    async fn keep<R, E>(&self, response: Response<R>) -> Came<R, E>
    where
        R: HttpBody<Data = Bytes>,
        R::Error: Into<BoxError>,
    {
        let (mut head, body) = response.into_parts();
        head.headers.remove(IDEMPOTENT_REPLAYED);
        let mark = head.extensions.remove::<Mark>();
        let verdict = match (head.status, mark) {
            // No handler said so, but a router that knows none.
            (StatusCode::NOT_FOUND, None) if !self.is_routed => Verdict::Release,
            (status, mark) => verdict(status, mark, self.guard.rules.server_errors),
        };
        if verdict == Verdict::Release {
            let response = Response::from_parts(head, Body::untouched(body));
            return Came::to_an_end(Ok(response), verdict, nothing());
        }
        let limit = self.guard.rules.max_response;
        let fits = |upper| upper <= limit as u64;
        if !body.size_hint().upper().is_some_and(fits) {
            return Came::to_a_stream(head, Body::untouched(body), verdict);
        }
        match read_to_end(body, limit).await {
            Ok(whole) => {
                let outcome = self.stored(&head, &whole, verdict);
                let response = Response::from_parts(head, Body::whole(whole));
                Came::to_an_end(Ok(response), verdict, outcome)
            }
            Err(Unfinished::TooLong(body)) => Came::to_a_stream(head, body, verdict),
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
    ) -> Came<R, E> {
        let problem = Problem::new(Kind::HandlerFailed);
        let (head, bytes) = self.guard.respond(&problem).into_parts();
        let whole = Whole {
            bytes,
            trailers: None,
        };
        let verdict = Verdict::from(self.guard.rules.server_errors);
        let outcome = self.stored(&head, &whole, verdict);
        let response = Response::from_parts(head, Body::whole(whole));
        Came::to_an_end(own(response), verdict, outcome)
    }

    /// Says what is recorded of a request whose handler is not let in.
    fn refuse<R, E>(&self, barred: Barred) -> Box<Told<R, E>> {
        let kind = match barred {
            Barred::Shut | Barred::Full => Kind::Overloaded,
            Barred::FullOfThisCaller => Kind::TooManyKeys,
        };
        let refused = self.guard.refuse(&Problem::new(kind));
        Box::new(Told {
            response: Ok(refused),
            outcome: nothing(),
        })
    }

    fn stored(&self, head: &Parts, whole: &Whole, verdict: Verdict) -> RawOutcome {
        let Guard {
            settings, rules, ..
        } = &*self.guard;
        if (verdict, rules.storage) != (Verdict::Store, Storage::Whole) {
            return nothing();
        }
        let operation = &*settings.name;
        if head.headers.contains_key(CONTENT_ENCODING) {
            tracing::warn!(
                operation,
                "a response is stored compressed and is replayed only to clients that accept that: put compression outside of the layer"
            );
        }
        let (body, trailers) = (whole.bytes.clone(), whole.trailers.as_ref());
        let stored = StoredResponse::capture(head, body, trailers, &rules.headers).encode();
        let Some(seal) = &settings.seal else {
            return RawOutcome::value(stored);
        };
        // The handler has come to its response, so a seal that panics costs no more than one that fails.
        let sealed = catch_unwind(AssertUnwindSafe(|| seal.seal(stored)))
            .unwrap_or_else(|_| Err("the seal panicked".into()));
        sealed.map_or_else(
            |error| {
                tracing::error!(operation, %error, "a response cannot be sealed, so it is not stored");
                nothing()
            },
            RawOutcome::value,
        )
    }
}

impl<R, E> Came<R, E> {
    fn to_an_end(
        response: Result<Response<Body<R>>, E>,
        verdict: Verdict,
        outcome: RawOutcome,
    ) -> Self {
        Came::ToAnEnd(Box::new(Told { response, outcome }), verdict)
    }

    fn to_a_stream(head: Parts, body: Body<R>, verdict: Verdict) -> Self
    where
        R: HttpBody<Data = Bytes>,
    {
        let (body, ended) = body.watched();
        let response = Box::new(Response::from_parts(head, body));
        Came::ToAStream(response, ended, verdict)
    }
}

/// Tells the client's side, and says what is to be recorded.
fn tell<R, E>(
    told: Box<Told<R, E>>,
    verdict: Verdict,
    client: oneshot::Sender<Own<R, E>>,
) -> RawEnding {
    let outcome = told.outcome.clone();
    give(client, Own::Whole(told));
    ending(verdict, outcome)
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
        Verdict::Store if outcome.kind == OutcomeKind::Value => RawEnding::Record(outcome),
        Verdict::Store | Verdict::Discard => RawEnding::RecordWithoutOutcome(outcome),
        Verdict::Release => RawEnding::Release(outcome),
        Verdict::Uncertain => RawEnding::Uncertain(outcome),
    }
}

fn nothing() -> RawOutcome {
    RawOutcome::not_replayable()
}
