//! The service around a service.

use std::{
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as HttpBody;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::{
    error::BoxError,
    http::{body::Body, execution::Execution, settings::Settings, triage::Route},
    value::opaque,
};

/// The service that an [`IdempotencyLayer`](super::IdempotencyLayer) makes of another one.
#[derive(Clone, Debug)]
pub struct IdempotencyService<S> {
    inner: S,
    settings: Arc<Settings>,
}

impl<S> IdempotencyService<S> {
    pub(crate) fn new(inner: S, settings: Arc<Settings>) -> Self {
        Self { inner, settings }
    }
}

impl<S, B, R> Service<Request<B>> for IdempotencyService<S>
where
    S: Service<Request<Body<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: HttpBody<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Response<Body<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, R, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (head, body) = request.into_parts();
        let state = match Route::of(&self.settings, &head, &body) {
            Route::Pass => {
                let request = Request::from_parts(head, Body::untouched(body));
                State::Passed {
                    future: self.inner.call(request),
                }
            }
            Route::Reject(problem, rules) => {
                self.settings.tell_refused(&problem, None);
                let refused = self
                    .settings
                    .refuse(&problem, &rules, &head.method, &head.headers);
                State::Rejected {
                    response: Some(refused.map(Body::from)),
                }
            }
            Route::Guard(guard) => {
                // The clone may not be ready; the one that is answers this request.
                let next = self.inner.clone();
                let inner = mem::replace(&mut self.inner, next);
                let execution = Execution::new(inner, head, Arc::clone(&guard));
                State::Guarded {
                    future: Box::pin(guard.answer(execution, body)),
                }
            }
        };
        ResponseFuture { state }
    }
}

pin_project! {
    /// The response to a request, to come.
    pub struct ResponseFuture<F, R, E> {
        #[pin]
        state: State<F, R, E>,
    }
}

pin_project! {
    #[project = Projected]
    enum State<F, R, E> {
        Passed {
            #[pin]
            future: F,
        },
        Rejected {
            response: Option<Response<Body<R>>>,
        },
        Guarded {
            future: Pin<Box<dyn Future<Output = Result<Response<Body<R>>, E>> + Send>>,
        },
    }
}

impl<F, R, E> Future for ResponseFuture<F, R, E>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: HttpBody,
{
    type Output = Result<Response<Body<R>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            Projected::Passed { future } => {
                let response = ready!(future.poll(cx))?;
                Poll::Ready(Ok(response.map(Body::untouched)))
            }
            Projected::Rejected { response } => match response.take() {
                Some(response) => Poll::Ready(Ok(response)),
                None => panic!("a response future was polled after it had given its response"),
            },
            Projected::Guarded { future } => future.as_mut().poll(cx),
        }
    }
}

opaque!(ResponseFuture<F, R, E>);
