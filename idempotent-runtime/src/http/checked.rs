//! Rejections of extractors that free the key.

use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    response::{IntoResponse, Response},
};
use http::request::Parts;

use crate::http::Mark;

/// An extractor whose rejection frees the key, because the handler did not begin: `Checked(Json(order)): Checked<Json<Order>>`.
///
/// The layer sees responses and not who made them, so a rejection with 400 or 422 looks to it like the handler's own, and would
/// be stored. Inside of `Checked` it is marked as [`Retryable`](Mark::Retryable), unless it bears a mark already: a retry runs,
/// and so does a request that was put right and has the same key.
///
/// Where many handlers of a service take what may be rejected, [`Rules::rejections`](super::Rules::rejections) says it by the
/// status.
///
/// # Examples
///
/// ```
/// use axum::{Json, Router, routing::post};
/// use idempotent_runtime::http::Checked;
///
/// #[derive(serde::Deserialize)]
/// struct Order { item: String }
///
/// async fn place(Checked(Json(order)): Checked<Json<Order>>) -> String {
///     format!("ordered {}", order.item)
/// }
///
/// let router: Router = Router::new().route("/orders", post(place));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Checked<E>(pub E);

/// The rejection of an extractor inside of [`Checked`]: as its own, and marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rejected<R>(pub R);

impl<S, E> FromRequestParts<S> for Checked<E>
where
    S: Send + Sync,
    E: FromRequestParts<S>,
{
    type Rejection = Rejected<E::Rejection>;

    async fn from_request_parts(head: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let extracted = E::from_request_parts(head, state).await;
        extracted.map(Self).map_err(Rejected)
    }
}

impl<S, E> FromRequest<S> for Checked<E>
where
    S: Send + Sync,
    E: FromRequest<S>,
{
    type Rejection = Rejected<E::Rejection>;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        let extracted = E::from_request(request, state).await;
        extracted.map(Self).map_err(Rejected)
    }
}

impl<R: IntoResponse> IntoResponse for Rejected<R> {
    fn into_response(self) -> Response {
        let mut response = self.0.into_response();
        response
            .extensions_mut()
            .get_or_insert_with(|| Mark::Retryable);
        response
    }
}
