//! One run of a handler, from its request to what is recorded of its response.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header::CONTENT_ENCODING, response::Parts};
use http_body::Body as HttpBody;
use tokio::sync::oneshot;
use tower_service::Service;

use crate::{
    attempt::Attempt,
    call::RawEnding,
    error::BoxError,
    http::{
        IDEMPOTENT_REPLAYED, StoredResponse,
        body::{Body, Ended, Unfinished, Whole, read_to_end},
        client::{Own, Told},
        drain::Barred,
        guard::Asked,
        outcome::{Mark, Verdict, verdict},
        problem::{Kind, Problem},
        rules::{Rules, Storage},
        settings::Settings,
    },
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
    pub(crate) async fn run<B>(self, attempt: &Attempt, request: Request<Body<B>>) -> RawEnding
    where
        S: Service<Request<Body<B>>, Response = Response<R>, Error = E>,
    {
        let Self {
            service,
            terms,
            caller,
            client,
        } = self;
        if let Some(refused) = terms.bring(attempt, &caller) {
            return refused.tell(client).await;
        }
        let Settings { door, bounds, .. } = &*terms.settings;
        let _inside = match door.enter(&caller, *bounds) {
            Ok(inside) => inside,
            Err(barred) => return terms.refuse(barred).tell(client).await,
        };
        let handler = async {
            let mut service = service;
            match service.call(request).await {
                Ok(response) => terms.keep(response).await,
                Err(error) => terms.fail(|_| Err(error)),
            }
        };
        let came = match survive(handler).await {
            Some(came) => came,
            None => {
                let operation = &*terms.settings.name;
                tracing::error!(operation, "a handler panicked");
                match catch_unwind(AssertUnwindSafe(|| terms.fail(Ok))) {
                    Ok(came) => came,
                    Err(_) => return ending(Verdict::from(terms.rules.server_errors), nothing()),
                }
            }
        };
        came.tell(client).await
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
            (status, mark) => verdict(status, mark, self.rules.server_errors),
        };
        if verdict == Verdict::Release {
            let response = Response::from_parts(head, Body::untouched(body));
            return Came::to_an_end(Ok(response), verdict, nothing());
        }
        let limit = self.rules.max_response;
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
        let (head, bytes) = self.asked.respond(&self.settings, &problem).into_parts();
        let whole = Whole {
            bytes,
            trailers: None,
        };
        let verdict = Verdict::from(self.rules.server_errors);
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
        if (verdict, self.rules.storage) != (Verdict::Store, Storage::Whole) {
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
        let Some(seal) = &self.settings.seal else {
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

impl Terms {
    /// Counts the run of a new key of this caller's; the refusal where it brings them too fast.
    fn bring<R, E>(&self, attempt: &Attempt, caller: &[u8]) -> Option<Came<R, E>> {
        let Settings { handle, .. } = &*self.settings;
        let new_keys = self.settings.new_keys.as_ref()?;
        let counted = new_keys.begin(attempt, caller, handle.timer());
        let refused = self.asked.refuse(&self.settings, &counted.err()?);
        Some(Came::to_an_end(Ok(refused), Verdict::Release, nothing()))
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
        Verdict::Store if outcome.kind == OutcomeKind::Value => RawEnding::Record(outcome),
        Verdict::Store | Verdict::Discard => RawEnding::RecordWithoutOutcome(outcome),
        Verdict::Release => RawEnding::Release(outcome),
        Verdict::Uncertain => RawEnding::Uncertain(outcome),
    }
}

fn nothing() -> RawOutcome {
    RawOutcome::not_replayable()
}
