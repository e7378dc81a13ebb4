//! Says what a handler's response, its trailers or its panic mean.

use std::panic::{AssertUnwindSafe, catch_unwind};

use http::{HeaderMap, StatusCode, response::Parts};
use http_body::Body as HttpBody;

use super::Terms;
use crate::{
    attempt::Attempt,
    http::{
        IDEMPOTENT_REPLAYED, grpc,
        headers::IDEMPOTENCY_STATUS,
        outcome::{ReplayHint, Verdict, verdict},
        rules::Protocol,
    },
    policy::OnCrash,
};

impl Terms {
    /// Says what a response means, before its body is read; `None` if it is said behind that.
    pub(super) fn judge(
        &self,
        head: &mut Parts,
        body: &impl HttpBody,
        attempt: &Attempt,
    ) -> Option<Verdict> {
        head.headers.remove(IDEMPOTENT_REPLAYED);
        head.headers.remove(IDEMPOTENCY_STATUS);
        let mark = head.extensions.remove::<ReplayHint>();
        let errors = self.guard.rules.server_errors;
        let verdict = match (head.status, mark) {
            // It may be no more than a refusal of ours in other words.
            (_, None) if self.has_failed(head) && attempt.is_refused() => match self.may_rerun() {
                true => Verdict::Release,
                false => Verdict::Uncertain,
            },
            (StatusCode::OK, None) if self.is_unary() => {
                let said = grpc::Code::of(&head.headers)?;
                self.of_outcome(grpc::verdict(said, errors))
            }
            // No handler said so. A router did, which knows no handler, at all or for this method.
            // If only the method has none, it sends no body, and names the other methods outside
            // of the layer.
            (StatusCode::NOT_FOUND, None) if !self.is_routed => Verdict::NotBegun,
            (StatusCode::METHOD_NOT_ALLOWED, None) if is_empty(body) => Verdict::NotBegun,
            (status, None) if self.guard.rules.rejections.contains(&status) => Verdict::Release,
            (status, None) => self.of_outcome(verdict(status, None, errors)),
            (status, mark) => verdict(status, mark, errors),
        };
        Some(verdict)
    }

    /// Whether the handler has failed, by the head of its response.
    pub(super) fn has_failed(&self, head: &Parts) -> bool {
        let Parts {
            status, headers, ..
        } = head;
        status.is_client_error()
            || status.is_server_error()
            || (self.is_unary() && grpc::has_failed(headers))
    }

    /// Says what trailers of gRPC mean. If they say nothing, the outcome is unknown.
    pub(super) fn judge_trailers(&self, trailers: Option<&HeaderMap>) -> Verdict {
        match trailers.and_then(grpc::Code::of) {
            Some(said) => self.of_outcome(grpc::verdict(said, self.guard.rules.server_errors)),
            None => Verdict::Uncertain,
        }
    }

    /// If an outcome that was not marked cannot be stored, the route says what it is worth.
    pub(super) fn of_outcome(&self, verdict: Verdict) -> Verdict {
        match verdict {
            Verdict::Store => self.guard.rules.unrepeatable.into(),
            verdict => verdict,
        }
    }

    /// Says what a panic means, and tells operators of it: of a handler that has given no response,
    /// or of one whose response, which meant `given`, was being read.
    ///
    /// A panic does not say that nothing happened. So it frees the key only if the handler may run
    /// again after a crash, too, and never if the handler has answered already.
    pub(super) fn panicked(&self, given: Option<Verdict>) -> Verdict {
        let operation = &*self.guard.settings.name;
        tracing::error!(operation, "a handler panicked");
        let may_rerun = self.may_rerun();
        match (given, Verdict::from(self.guard.rules.server_errors)) {
            (Some(Verdict::Uncertain), _) => Verdict::Uncertain,
            (None, Verdict::Release) if may_rerun => Verdict::Release,
            (_, Verdict::Release) => Verdict::Uncertain,
            (_, failed) => failed,
        }
    }

    fn may_rerun(&self) -> bool {
        let on_crash = self.guard.settings.handle.defaults().on_crash;
        self.guard.rules.on_crash.unwrap_or(on_crash) == OnCrash::Rerun
    }

    pub(super) fn is_unary(&self) -> bool {
        self.guard.rules.protocol == Protocol::GrpcUnary
    }
}

/// Whether there is nothing in it. If the body panics when it is asked, that is unknown, and counts
/// as no.
fn is_empty(body: &impl HttpBody) -> bool {
    catch_unwind(AssertUnwindSafe(|| body.is_end_stream())).unwrap_or(false)
}
