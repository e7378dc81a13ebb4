//! The parts that axum needs beyond tower: extractors, and our types as responses and parts of
//! them.

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use axum::{
    extract::{
        FromRequest, FromRequestParts, OptionalFromRequestParts, Request, rejection::JsonRejection,
    },
    response::{IntoResponse, IntoResponseParts, Response, ResponseParts},
};
use bytes::Bytes;
use http::{HeaderMap, Method, request::Parts};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    attempt::try_current,
    error::{BoxError, Error},
    http::{
        Body, IdempotencyKey, IdempotencyLayer, IdempotencyService, KeyReader, ReplayHint,
        outcome::AboutAnotherCall,
        problem::{Kind, Problem, Problems},
        routing,
        store_failures::StoreFailed,
    },
};

/// The request's key, for a handler that carries the attribute itself: the one that a layer outside
/// has read, else the one in `Idempotency-Key`. Refuses a request without one;
/// `Option<IdempotencyKey>` does not.
///
/// The extractor does not know who calls, and a layer may not stand around every route, so the
/// handler names its caller by `scope`. Two callers who took the same key would otherwise get one
/// outcome. Take the caller that the authentication found.
///
/// ```
/// use axum::{Extension, extract::Path};
/// use idempotent_runtime::{Error, http::{IdempotencyKey, Json}, idempotent};
///
/// #[derive(Clone)]
/// struct User { id: u64 }
///
/// #[idempotent(name = "orders.pay", key = key, scope = user.id, skip(user), on_cancel = detach)]
/// async fn pay(
///     Extension(user): Extension<User>,
///     key: IdempotencyKey,
///     Path(order): Path<u64>,
/// ) -> Result<Json<String>, Error> {
///     Ok(Json(format!("order {order} is paid")))
/// }
/// ```
impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(head: &mut Parts, _: &S) -> Result<Self, Problem> {
        let reader = KeyReader::new();
        find(head, &reader)?
            .ok_or_else(|| Problem::key_missing(&head.method, routing::uri(head).path(), &reader))
    }
}

/// A malformed key is refused here, too: its sender expects to be protected.
impl<S: Sync> OptionalFromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(head: &mut Parts, _: &S) -> Result<Option<Self>, Problem> {
        find(head, &KeyReader::new())
    }
}

fn find(head: &Parts, reader: &KeyReader) -> Result<Option<IdempotencyKey>, Problem> {
    match head.extensions.get::<IdempotencyKey>() {
        Some(key) => Ok(Some(key.clone())),
        None => Ok(reader.read(&head.headers)?),
    }
}

/// The response has the usual types and is in JSON, even if the
/// [`problems`](super::LayerBuilder::problems) of a layer around the handler say otherwise. A
/// service with types of its own makes the response by [`Problems::respond`].
///
/// If a layer guards the request, the response is marked by the kind of the problem:
/// [`Retryable`](ReplayHint::Retryable) if nothing was executed or a retry is promised,
/// [`Uncertain`](ReplayHint::Uncertain) if the outcome is unknown,
/// [`NotStored`](ReplayHint::NotStored) if it happened and its result is gone. A handler that has
/// done something of its own before says with another [`ReplayHint`] what a retry may do.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let response = Problems::new().respond(&self, &Method::POST, &HeaderMap::new());
        let mut response = response.map(axum::body::Body::from);
        if matches!(
            self.kind(),
            Kind::RequestInProgress | Kind::ResultOutOfReach
        ) {
            response.extensions_mut().insert(AboutAnotherCall);
        }
        (mark(self.kind()), response).into_response()
    }
}

/// As the problem document that says what the client can do, so that `?` is enough in a handler
/// that returns `Result<_, Error>`.
///
/// If a layer guards the request, the error is that of a call which the handler made. Then a key
/// that is used already, or is none, is the key of that call and not the client's, and the problem
/// is [`InnerCallRefused`](Kind::InnerCallRefused).
impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let problem = match try_current() {
            Some(_) => Problem::of_inner_call(&self),
            None => Problem::from(&self),
        };
        let mut response = problem.into_response();
        if let Error::Store(cause) = self {
            response.extensions_mut().insert(StoreFailed(cause));
        }
        response
    }
}

fn mark(kind: Kind) -> Option<ReplayHint> {
    match kind {
        Kind::OutcomeUnknown => Some(ReplayHint::Uncertain),
        Kind::ResultUnavailable | Kind::ResultExpired => Some(ReplayHint::NotStored),
        // The layer's policy says what a failure means.
        Kind::HandlerFailed => None,
        Kind::KeyMissing
        | Kind::KeyInvalid
        | Kind::KeyReused
        | Kind::InnerCallRefused
        | Kind::ScopeUnresolved
        | Kind::BodyTooLarge
        | Kind::BodyUnreadable
        | Kind::BodyTimeout
        | Kind::StoreUnavailable
        | Kind::Overloaded
        | Kind::TooEarly
        | Kind::TooManyKeys
        | Kind::NotSupported
        | Kind::Misconfigured => Some(ReplayHint::Retryable),
        // The document tells the client to come again with the same key, so that must reach the
        // handler.
        Kind::RequestInProgress | Kind::ResultOutOfReach => Some(ReplayHint::Retryable),
    }
}

impl IntoResponseParts for ReplayHint {
    type Error = Infallible;

    fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Infallible> {
        response.extensions_mut().insert(self);
        Ok(response)
    }
}

/// JSON in requests and responses, as axum's `Json` is, which a record can hold as well. A handler
/// that carries the attribute itself returns it: axum's own type cannot be stored.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Json<T>(pub T);

impl<T, S> FromRequest<S> for Json<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = JsonRejection;

    async fn from_request(request: Request, state: &S) -> Result<Self, JsonRejection> {
        let axum::Json(value) = axum::Json::from_request(request, state).await?;
        Ok(Self(value))
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        axum::Json(self.0).into_response()
    }
}

impl IdempotencyLayer {
    /// The same layer for a `ServiceBuilder` of axum: the services inside of it are given axum's
    /// own body, as `from_fn` and other middleware of axum ask for.
    ///
    /// ```
    /// use axum::{Router, middleware::from_fn, extract::Request, middleware::Next, response::Response, routing::post};
    /// use idempotent_runtime::{Error, Idempotency, http::IdempotencyLayer};
    /// use tower::ServiceBuilder;
    ///
    /// async fn audit(request: Request, next: Next) -> Response {
    ///     next.run(request).await
    /// }
    ///
    /// # fn app() -> Result<Router, Error> {
    /// let idempotency = IdempotencyLayer::builder(Idempotency::memory()).shared_by_all_callers().build()?;
    /// let layers = ServiceBuilder::new().layer(from_fn(audit)).layer(idempotency.for_axum()).layer(from_fn(audit));
    /// let app: Router = Router::new().route("/charges", post(async || "charged")).layer(layers);
    /// # Ok(app) }
    /// ```
    #[must_use]
    pub fn for_axum(&self) -> AxumIdempotencyLayer {
        AxumIdempotencyLayer(self.clone())
    }
}

/// An [`IdempotencyLayer`] around a service that is given axum's own body: see
/// [`IdempotencyLayer::for_axum`].
#[derive(Clone, Debug)]
pub struct AxumIdempotencyLayer(IdempotencyLayer);

impl<S> Layer<S> for AxumIdempotencyLayer {
    type Service = IdempotencyService<WithAxumBody<S>>;

    fn layer(&self, inner: S) -> Self::Service {
        self.0.layer(WithAxumBody(inner))
    }
}

/// Gives a service axum's own body.
#[derive(Clone, Debug)]
pub struct WithAxumBody<S>(S);

impl<S, B> Service<http::Request<Body<B>>> for WithAxumBody<S>
where
    S: Service<Request>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body<B>>) -> S::Future {
        self.0.call(request.map(axum::body::Body::new))
    }
}
