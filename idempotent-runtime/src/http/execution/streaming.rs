//! A response that is given on as it comes, and what is recorded of it.

use http::{Response, response::Parts};

use super::{Captured, Terms, nothing};
use crate::{
    attempt::{Attempt, Stage},
    call::RawEnding,
    http::{
        body::Body,
        guard::Guard,
        outcome::Verdict,
        streamed::{Ended, Watch},
    },
};

impl Terms {
    pub(super) fn streaming<R, E>(
        &self,
        head: Parts,
        body: Body<R>,
        verdict: Verdict,
    ) -> Captured<R, E> {
        let (body, watch) = body.watched(&self.guard.settings.handle);
        let response = Box::new(Response::from_parts(head, body));
        Captured::Streaming(response, watch, verdict)
    }

    /// Tells the store how far a handler has come whose response streams, before the client gets
    /// it: this process may die while the body is sent.
    pub(super) async fn reach_while_streaming(&self, attempt: &Attempt, stage: Stage) {
        attempt.reach(stage);
        // Boxed, so that the future of every run does not hold room for it.
        Box::pin(self.guard.settings.handle.has_answered(attempt)).await;
    }

    /// Watches a response to its end. The end of the service is the end of the watch: the response
    /// goes on, and no shutdown waits for a client that reads.
    pub(super) async fn watch<R>(&self, watch: Watch<R>) -> Option<Ended> {
        let Guard {
            settings, rules, ..
        } = &*self.guard;
        let timer = settings.handle.timer();
        let watching = watch.end(timer, rules.stream_patience, settings.in_flight.closed());
        Box::pin(watching).await
    }
}

/// Says how a response ended that is given on. It ended well also if its client went away or did
/// not read on, because the handler's effect is complete when it answers. It is uncertain if the
/// handler itself broke it off.
pub(super) fn ending_of_stream(ended: Option<Ended>, verdict: Verdict) -> RawEnding {
    match (ended, verdict) {
        (Some(Ended::Failed), _) | (_, Verdict::Uncertain) => RawEnding::Uncertain(nothing()),
        (Some(Ended::Whole) | None, Verdict::StoreOrRelease) => RawEnding::Release(nothing()),
        (Some(Ended::Whole) | None, _) => RawEnding::RecordWithoutOutcome(nothing()),
    }
}
