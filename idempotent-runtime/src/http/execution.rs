//! One run of a handler, from its request to what is recorded of its response.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header::CONTENT_ENCODING, response::Parts};
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
    settings: Arc<Settings>,
    rules: Arc<Rules>,
    asked: Asked,
    caller: Arc<[u8]>,
    is_routed: bool,
    client: oneshot::Sender<Own<R, E>>,
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
            settings,
            rules,
            asked,
            caller,
            is_routed,
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
    pub(crate) async fn run<B>(mut self, request: Request<Body<B>>) -> RawEnding
    where
        S: Service<Request<Body<B>>, Response = Response<R>, Error = E>,
    {
        let Settings { door, bounds, .. } = &*self.settings;
        let _inside = match door.enter(&self.caller, *bounds) {
            Ok(inside) => inside,
            Err(barred) => {
                let kind = match barred {
                    Barred::Shut | Barred::Full => Kind::Overloaded,
                    Barred::FullOfThisCaller => Kind::TooManyKeys,
                };
                let refused = self.asked.refuse(&self.settings, &Problem::new(kind));
                return self.end(Ok(refused), Verdict::Release, nothing());
            }
        };
        match survive(async { self.service.call(request).await }).await {
            Some(Ok(response)) => self.keep(response).await,
            Some(Err(error)) => self.fail(|_| Err(error)),
            None => {
                let operation = &*self.settings.name;
                tracing::error!(operation, "a handler panicked");
                self.fail(Ok)
            }
        }
    }

    /// Says what is recorded of a response.
    async fn keep(self, response: Response<R>) -> RawEnding {
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
            return self.end(Ok(response), verdict, nothing());
        }
        let limit = self.rules.max_response;
        let fits = |upper| upper <= limit as u64;
        if !body.size_hint().upper().is_some_and(fits) {
            return self.stream(head, Body::untouched(body), verdict).await;
        }
        match read_to_end(body, limit).await {
            Ok(whole) => {
                let outcome = self.stored(&head, &whole, verdict);
                let response = Response::from_parts(head, Body::whole(whole));
                self.end(Ok(response), verdict, outcome)
            }
            Err(Unfinished::TooLong(body)) => self.stream(head, body, verdict).await,
            Err(Unfinished::Failed(body)) => {
                let response = Response::from_parts(head, body);
                self.end(Ok(response), Verdict::Uncertain, nothing())
            }
        }
    }

    /// Gives on a response that is not stored, and says how it ended: well also where its client went away, because what the
    /// handler did is done when it answers, and uncertain where the handler itself broke it off.
    async fn stream(self, head: Parts, body: Body<R>, verdict: Verdict) -> RawEnding {
        let (body, ended) = body.watched();
        let response = Response::from_parts(head, body);
        // A response that nobody takes any more ends here, and with it its watch.
        drop(self.client.send(Own::Streamed(response)));
        match (ended.await, verdict) {
            (Ok(Ended::Failed), _) | (_, Verdict::Uncertain) => RawEnding::Uncertain(nothing()),
            (Ok(Ended::Whole) | Err(_), _) => RawEnding::RecordWithoutOutcome(nothing()),
        }
    }

    /// Says what is recorded of a handler that gave no response: what is recorded of a response of 500.
    fn fail(
        self,
        own: impl FnOnce(Response<Body<R>>) -> Result<Response<Body<R>>, E>,
    ) -> RawEnding {
        let problem = Problem::new(Kind::HandlerFailed);
        let (head, bytes) = self.asked.respond(&self.settings, &problem).into_parts();
        let whole = Whole {
            bytes,
            trailers: None,
        };
        let verdict = Verdict::from(self.rules.server_errors);
        let outcome = self.stored(&head, &whole, verdict);
        let response = Response::from_parts(head, Body::whole(whole));
        self.end(own(response), verdict, outcome)
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
        match &self.settings.seal {
            None => RawOutcome::value(stored),
            Some(seal) => seal.seal(stored).map_or_else(
                |error| {
                    tracing::error!(operation, %error, "a response cannot be sealed, so it is not stored");
                    nothing()
                },
                RawOutcome::value,
            ),
        }
    }

    fn end(
        self,
        own: Result<Response<Body<R>>, E>,
        verdict: Verdict,
        outcome: RawOutcome,
    ) -> RawEnding {
        let _went_away = self.client.send(Own::Whole(Told {
            response: own,
            outcome: outcome.clone(),
        }));
        match verdict {
            Verdict::Store if outcome.kind == OutcomeKind::Value => RawEnding::Record(outcome),
            Verdict::Store | Verdict::Discard => RawEnding::RecordWithoutOutcome(outcome),
            Verdict::Release => RawEnding::Release(outcome),
            Verdict::Uncertain => RawEnding::Uncertain(outcome),
        }
    }
}

fn nothing() -> RawOutcome {
    RawOutcome::not_replayable()
}
