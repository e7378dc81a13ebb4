//! Settles requests whose outcome is unknown, with the response that their retries are to get.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;

use crate::{
    error::{BoxError, Error},
    handle::aimed,
    http::{HeaderPolicy, IdempotencyLayer, Seal, StoredResponse},
    key::KeyPart,
    operate,
    record::{RawOutcome, note::signed},
};

/// Settles one request, on an operator's word: made by [`IdempotencyLayer::settle`]. Only these
/// requests can be settled: one whose outcome is unknown, one that was given up, and one whose
/// process died, once its lease is over.
#[derive(Debug)]
#[must_use = "nothing is settled until it is said how"]
pub struct SettleResponse<'a> {
    record: operate::Settle<'a>,
    seal: Option<&'a Arc<dyn Seal>>,
    largest: usize,
}

impl IdempotencyLayer {
    /// Begins to settle the request with this key, after an operator found out what happened. Its
    /// retries are answered with *outcome unknown* until it is settled.
    ///
    /// `caller` is its name, as the layer's [`scope`](super::LayerBuilder::scope) gives it;
    /// `None::<&str>` if all callers share one space. Under
    /// [`KeyScope::Route`](super::KeyScope::Route), the key is `(method, path, key)`, each of them
    /// text, and the path in the normal form of RFC 3986: `/caf%C3%A9`, with nothing encoded that
    /// need not be.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`] when the key or the scope cannot be one.
    ///
    /// # Examples
    ///
    /// ```
    /// use http::{Response, StatusCode};
    /// use idempotent_runtime::{BoxError, http::IdempotencyLayer};
    ///
    /// async fn it_happened(layer: &IdempotencyLayer, user: u64, key: &str) -> Result<(), BoxError> {
    ///     // The gateway's dashboard shows the charge.
    ///     let response = Response::builder()
    ///         .status(StatusCode::CREATED)
    ///         .header("location", "/receipts/99")
    ///         .body("receipt 99")?;
    ///     layer.settle(Some(&user), key)?.with_response(response).await
    /// }
    /// ```
    pub fn settle<S, K>(&self, caller: Option<&S>, key: &K) -> Result<SettleResponse<'_>, Error>
    where
        S: KeyPart + ?Sized,
        K: KeyPart + ?Sized,
    {
        let settings = self.settings();
        let scope = caller.map(|caller| settings.scope.named(caller));
        Ok(SettleResponse {
            record: settings
                .handle
                .settle(&settings.name, scope.as_ref(), key)?,
            seal: settings.seal.as_ref(),
            largest: settings.handle.defaults().max_outcome,
        })
    }
}

impl SettleResponse<'_> {
    signed!(|it| it.record.note);
    aimed!(|it| it.record.for_version);

    /// It happened, or failed for good, with this response, which answers every retry from now on.
    ///
    /// It is sealed where the layer seals. An `http::Response` loses the header fields that
    /// [`HeaderPolicy::default`](super::HeaderPolicy) does not keep; a [`StoredResponse`] is kept
    /// as it is.
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] when there is nothing to settle. An error, too, when the seal or the
    /// store fails, or the response is larger than the handle's
    /// [`max_outcome`](crate::handle::Builder::max_outcome). Nothing is known to be settled then.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it has settled the request or has not; settled again, it stays as it was settled
    /// first.
    pub async fn with_response(self, response: impl Into<StoredResponse>) -> Result<(), BoxError> {
        let stored = response.into().encode();
        let bytes = match self.seal {
            Some(seal) => seal.seal(self.record.id(), stored)?,
            None => stored,
        };
        if bytes.len() > self.largest {
            return Err("the response is larger than the handle's `max_outcome`".into());
        }
        Ok(self.record.with_outcome(RawOutcome::value(bytes)).await?)
    }

    /// It happened, and there is no response to give: retries are told that there is a result that
    /// cannot be repeated.
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] when there is nothing to do, [`Error::Store`] when the store fails.
    pub async fn as_done(self) -> Result<(), Error> {
        self.record.as_done().await
    }

    /// Lets a request be tried again that was *given up*, because too many processes vanished that
    /// carried it out, or that the next retry would give up. An unknown outcome can only be
    /// settled.
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] when there is nothing to do, [`Error::Store`] when the store fails.
    pub async fn resume(self) -> Result<(), Error> {
        self.record.resume().await
    }
}

/// Keeps what [`HeaderPolicy::default`] keeps.
impl<B: Into<Bytes>> From<Response<B>> for StoredResponse {
    fn from(response: Response<B>) -> Self {
        let (head, body) = response.into_parts();
        Self::capture(&head, body, None, &HeaderPolicy::default())
    }
}
