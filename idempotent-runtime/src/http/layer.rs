//! The layer.

use std::{sync::Arc, time::Duration};

use tower_layer::Layer;

use crate::{
    error::Error,
    handle::Idempotency,
    http::{
        scope::Scope,
        service::IdempotencyService,
        settings::{LayerBuilder, MissingScope, Settings},
    },
};

/// Makes a repeated request safe: a request that carries an `Idempotency-Key` runs once, and its
/// retries get the same response.
///
/// It goes around a service that answers `http` requests: an axum router, or anything of tower. Put
/// authentication outside of it, so that it knows who calls and a revoked caller gets no replay.
/// Put compression, CORS, rate limits and timeouts outside, too, so that nothing that they add is
/// stored. Nothing that changes the request's body belongs between it and the handler.
///
/// The handler runs in a task of its own: a client that goes away, and a timeout outside, change
/// nothing.
///
/// It is cheap to clone, and every clone shares its settings.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{Error, Idempotency, http::IdempotencyLayer};
///
/// #[derive(Clone)]
/// struct User { id: u64 }
///
/// # fn layer() -> Result<IdempotencyLayer, Error> {
/// let layer = IdempotencyLayer::builder(Idempotency::memory())
///     .scope("user", |request| request.extensions.get::<User>().map(|user| user.id))
///     .build()?;
/// # Ok(layer) }
/// ```
#[derive(Clone, Debug)]
pub struct IdempotencyLayer(Arc<Settings>);

impl IdempotencyLayer {
    /// Begins to set up a layer over a handle.
    pub fn builder(handle: Idempotency) -> LayerBuilder<MissingScope> {
        LayerBuilder::new(handle)
    }

    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.0
    }

    /// Ends the service: from now on no handler begins. It resolves to `true` when all that run
    /// have ended and their outcomes are recorded, or to `false` after `at_most`.
    ///
    /// A request with a key is refused with 503. An earlier request whose body is still arriving,
    /// or which waits for another one, is refused so if its handler would have to run.
    ///
    /// It does not wait for responses that still stream, because a client may take any time to
    /// read. Their handlers have answered, and that is what is recorded. The responses go on while
    /// the server lets them; if one breaks off after that, its key does not tell.
    ///
    /// Call it when the server has stopped to accept connections, or together with that.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it goes on refusing requests. It may be called again.
    pub async fn shutdown(&self, at_most: Duration) -> bool {
        let Settings {
            handle, in_flight, ..
        } = &*self.0;
        in_flight.close();
        let limit = handle.timer().sleep(at_most);
        let drained = async {
            in_flight.empty().await;
            handle.engine().heartbeats().drained().await;
        };
        crate::race::race(drained, limit).await.is_some()
    }
}

impl LayerBuilder<Scope> {
    /// Finishes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] when a pattern, the name, a bound, a duration or the status of a
    /// refusal or of a rejection cannot be one. Or when rules ask for what there is not: `on_crash`
    /// with `Reconcile`, `on_expired` with `Refuse` over a handle that keeps nothing, or gRPC
    /// without the header fields that make a response one.
    pub fn build(self) -> Result<IdempotencyLayer, Error> {
        Ok(IdempotencyLayer(Arc::new(self.finish()?)))
    }
}

impl<S> Layer<S> for IdempotencyLayer {
    type Service = IdempotencyService<S>;

    fn layer(&self, inner: S) -> IdempotencyService<S> {
        IdempotencyService::new(inner, Arc::clone(&self.0))
    }
}
