//! A call that is being watched, from its begin to its one end.

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use http::Method;
use reqwest::{Request, Response};
use reqwest_middleware::Result;
use tracing::{Span, field};

use super::{AttemptEvent, AttemptResult, CallEnd, CallEnded, Observers};
use crate::policy::StopReason;
use idempotent_runtime::{__client::tell, clock::Timer};

/// The target of spans and events.
const TARGET: &str = "idempotent";

/// A call that is being watched. If it is dropped without an end, that is its end.
#[derive(Debug)]
pub(crate) struct Watched {
    observers: Observers,
    timer: Arc<dyn Timer>,
    server: String,
    method: Method,
    begun: Duration,
    span: Span,
    attempts: AtomicU32,
    resumed: AtomicBool,
    /// Its error is the one of the client beneath, or of a middleware inside.
    failed_inside: AtomicBool,
    has_ended: bool,
}

impl Watched {
    pub(crate) fn new(observers: &Observers, timer: &Arc<dyn Timer>, request: &Request) -> Self {
        let server = request.url().origin().ascii_serialization();
        let method = request.method().clone();
        let span = tracing::info_span!(
            target: TARGET,
            "idempotent.client",
            server,
            %method,
            resumed = field::Empty,
            attempts = field::Empty,
            outcome = field::Empty,
            reason = field::Empty,
        );
        Self {
            observers: observers.clone(),
            begun: timer.now(),
            timer: Arc::clone(timer),
            server,
            method,
            span,
            attempts: AtomicU32::new(0),
            resumed: AtomicBool::new(false),
            failed_inside: AtomicBool::new(false),
            has_ended: false,
        }
    }

    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// When the call began, by the timer.
    pub(crate) fn begun(&self) -> Duration {
        self.begun
    }

    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// The call goes on with one that stands open in the journal, whose key is this old.
    pub(crate) fn resumes(&self, age: Duration) {
        if !self.resumed.swap(true, Ordering::Relaxed) {
            self.span.record("resumed", true);
            tracing::info!(target: TARGET, ?age, "an open call of the journal is sent again with its key");
        }
    }

    /// An attempt begins. Returns when, by the timer.
    pub(crate) fn sends(&self) -> Duration {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        self.timer.now()
    }

    /// The attempt that began at `sent` ended. It is sent again after this pause, if at all.
    pub(crate) fn attempted(
        &self,
        sent: Duration,
        result: AttemptResult,
        resend_in: Option<Duration>,
    ) {
        let number = self.attempts.load(Ordering::Relaxed);
        let elapsed = self.timer.now().saturating_sub(sent);
        let name = result.name();
        match resend_in {
            Some(pause) => {
                tracing::debug!(target: TARGET, number, result = name, ?pause, "the call is sent again, with the same key");
            }
            None => {
                tracing::debug!(target: TARGET, number, result = name, "the last attempt ended");
            }
        }
        self.observers.tell(|it| {
            it.attempt(&AttemptEvent {
                server: &self.server,
                method: &self.method,
                number,
                result,
                elapsed,
                resend_in,
            });
        });
    }

    /// The error that the caller gets is not of this middleware's making. It may be one of another
    /// client of this kind, which a middleware inside uses.
    pub(crate) fn fails_inside(&self) {
        self.failed_inside.store(true, Ordering::Relaxed);
    }

    pub(crate) fn ends(mut self, sent: &Result<Response>) {
        let (end, reason) = match self.failed_inside.load(Ordering::Relaxed) {
            true => (CallEnd::Failed, None),
            false => CallEnd::of(sent),
        };
        self.ended(end, reason);
    }

    fn ended(&mut self, end: CallEnd, reason: Option<StopReason>) {
        self.has_ended = true;
        let attempts = self.attempts.load(Ordering::Relaxed);
        let elapsed = self.timer.now().saturating_sub(self.begun);
        self.observers.tell(|it| {
            it.ended(&CallEnded {
                server: &self.server,
                method: &self.method,
                end,
                reason,
                attempts,
                resumed: self.resumed.load(Ordering::Relaxed),
                elapsed,
            });
        });
        // A call may be dropped among the last things of a thread, where no subscriber can be told.
        tell(|| self.say(end, reason, attempts));
    }

    fn say(&self, end: CallEnd, reason: Option<StopReason>, attempts: u32) {
        self.span.record("attempts", attempts);
        self.span.record("outcome", end.name());
        if let Some(reason) = reason {
            self.span.record("reason", field::debug(reason));
        }
        let message = end.message();
        self.span.in_scope(|| match end {
            CallEnd::Unknown | CallEnd::KeyReused => tracing::info!(target: TARGET, "{message}"),
            _ => tracing::debug!(target: TARGET, "{message}"),
        });
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.has_ended {
            self.ended(CallEnd::Dropped, None);
        }
        let span = mem::replace(&mut self.span, Span::none());
        tell(|| drop(span));
    }
}
