//! Rejections of extractors that free the key.

use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    response::{IntoResponse, Response},
};
use http::request::Parts;

use crate::http::ReplayHint;

/// An extractor whose rejection frees the key, because the handler did not begin:
/// `ReleaseOnReject(Json(order)): ReleaseOnReject<Json<Order>>`.
///
/// The layer sees responses and not who made them, so a rejection with 400 or 422 looks to it like
/// the handler's own, and would be stored. Inside of `ReleaseOnReject` it is marked as
/// [`Retryable`](ReplayHint::Retryable), unless it bears a mark already. A retry runs, and a
/// request that was put right and has the same key runs, too.
///
/// If many handlers of a service take input that may be rejected,
/// [`Rules::rejections`](super::Rules::rejections) says it by the status.
///
/// # Examples
///
/// ```
/// use axum::{Json, Router, routing::post};
/// use idempotent_runtime::http::ReleaseOnReject;
///
/// #[derive(serde::Deserialize)]
/// struct Order { item: String }
///
/// async fn place(ReleaseOnReject(Json(order)): ReleaseOnReject<Json<Order>>) -> String {
///     format!("ordered {}", order.item)
/// }
///
/// let router: Router = Router::new().route("/orders", post(place));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ReleaseOnReject<E>(pub E);

impl<S, E> FromRequestParts<S> for ReleaseOnReject<E>
where
    S: Send + Sync,
    E: FromRequestParts<S>,
{
    type Rejection = Response;

    async fn from_request_parts(head: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let extracted = E::from_request_parts(head, state).await;
        extracted.map(Self).map_err(release)
    }
}

impl<S, E> FromRequest<S> for ReleaseOnReject<E>
where
    S: Send + Sync,
    E: FromRequest<S>,
{
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        let extracted = E::from_request(request, state).await;
        extracted.map(Self).map_err(release)
    }
}

/// A rejection as a response that frees the key, unless it bears a hint already.
fn release(rejection: impl IntoResponse) -> Response {
    let mut response = rejection.into_response();
    response
        .extensions_mut()
        .get_or_insert(ReplayHint::Retryable);
    response
}
