//! The method form on bytes, which layers for HTTP and queues use.

use std::future::Future;

use super::CallBuilder;
use crate::{
    attempt::Attempt,
    drive::run,
    error::Error,
    observe::CallReport,
    record::{RawEnding, RawOutcome},
    run::{Raw, run_raw_detached},
};

impl<P, K> CallBuilder<P, K> {
    /// Has the call wait for another one only in this room; it is refused as running if that is
    /// full.
    #[allow(dead_code, reason = "a front end calls it, where there is one")]
    pub(crate) fn waiting_room(mut self, room: crate::request::WaitingRoom) -> Self {
        self.call.waiting_room(room);
        self
    }

    /// Names the template of the path that its request came by.
    #[allow(dead_code, reason = "a front end calls it, where there is one")]
    pub(crate) fn route(mut self, route: &str) -> Self {
        self.call.route(route);
        self
    }

    /// Runs the call on bytes, as the layers for HTTP and queues do. The outcome that comes back is
    /// the body's own or the recorded one.
    ///
    /// The body itself says what becomes of its outcome. So nothing that was said of errors, of
    /// [`version`](Self::version), of [`upgrade`](Self::upgrade) or of a
    /// [`reference`](Self::reference) counts here. A replay comes in the schema version that stands
    /// in the record.
    ///
    /// # Errors
    ///
    /// One of ours when there is no answer.
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub async fn run_raw<F, B>(self, body: F) -> Result<(RawOutcome, CallReport), Error>
    where
        F: FnOnce(Attempt) -> B,
        B: Future<Output = RawEnding>,
    {
        run(self.call.describe(), Raw, body).await
    }

    /// Runs the call on bytes, and the body in a task of its own. Once the key is claimed, this
    /// future may be dropped: the call runs on and is recorded.
    ///
    /// # Errors
    ///
    /// As [`run_raw`](Self::run_raw).
    ///
    /// # Panics
    ///
    /// As [`run_detached`](Self::run_detached).
    ///
    /// # Cancel safety
    ///
    /// As [`run_detached`](Self::run_detached).
    pub fn run_raw_detached<F, B>(
        self,
        body: F,
    ) -> impl Future<Output = Result<(RawOutcome, CallReport), Error>> + Send + use<F, B, P, K>
    where
        F: FnOnce(Attempt) -> B + Send + 'static,
        B: Future<Output = RawEnding> + Send + 'static,
    {
        run_raw_detached(self.call.describe(), body)
    }
}
