//! The response of an annotated handler that is to tell its replays.

use axum::response::{IntoResponse, IntoResponseParts, Response, ResponseParts};
use http::HeaderValue;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{http::IDEMPOTENT_REPLAYED, outcome::is_own};

/// Stands among the extensions of a response that is a replay: see [`Replayable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Replayed;

/// Around the response of a handler that carries the attribute itself: a replay of it says so, by
/// `Idempotent-Replayed: true` and by
/// [`Replayed`] among its extensions.
///
/// It knows that it is a replay because it was read from its record. It is stored as the response
/// that it holds, so it may be put around a response, or taken away, while records stand. An error
/// that is replayed is not inside of it, and says nothing. An outcome that a `load` gives back says
/// nothing, either.
///
/// A layer around the handler has the last word on the header field, which speaks of its own
/// replays there; the extension stays.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{Error, http::{IdempotencyKey, Json, Replayable}, idempotent};
///
/// # #[derive(Clone)]
/// # struct User { id: u64 }
/// #[idempotent(name = "orders.place", key = key, scope = user.id, skip(user), on_cancel = detach)]
/// async fn place(
///     axum::Extension(user): axum::Extension<User>,
///     key: IdempotencyKey,
/// ) -> Result<Replayable<Json<u64>>, Error> {
///     Ok(Json(42).into())
/// }
/// ```
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
pub struct Replayable<R> {
    response: R,
    #[serde(skip)]
    replayed: Option<Replayed>,
}

impl<R> Replayable<R> {
    /// Whether it is a replay.
    #[must_use]
    pub fn is_replay(&self) -> bool {
        self.replayed.is_some()
    }

    /// The response that it holds.
    #[must_use]
    pub fn into_inner(self) -> R {
        self.response
    }
}

impl<R> From<R> for Replayable<R> {
    fn from(response: R) -> Self {
        Self {
            response,
            replayed: None,
        }
    }
}

impl<'de, R: Deserialize<'de>> Deserialize<'de> for Replayable<R> {
    fn deserialize<D: Deserializer<'de>>(record: D) -> Result<Self, D::Error> {
        Ok(Self {
            response: R::deserialize(record)?,
            replayed: (!is_own()).then_some(Replayed),
        })
    }
}

impl<R: IntoResponse> IntoResponse for Replayable<R> {
    fn into_response(self) -> Response {
        (self.replayed, self.response).into_response()
    }
}

impl IntoResponseParts for Replayed {
    type Error = std::convert::Infallible;

    fn into_response_parts(
        self,
        mut response: ResponseParts,
    ) -> Result<ResponseParts, Self::Error> {
        let headers = response.headers_mut();
        headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
        response.extensions_mut().insert(self);
        Ok(response)
    }
}
