//! A call that is under way, without the types of its function: this code is compiled once, and not
//! again for every annotated function.

mod body;
mod end;
mod outcomes;
mod told;

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tracing::{Span, field};

#[cfg(feature = "_sql")]
pub(super) use self::outcomes::executed;
pub(crate) use self::{body::RunningBody, outcomes::is_kept};
#[cfg(feature = "_sql")]
use crate::observe::RecordChange;
use crate::{
    attempt::{Asking, Attempt, Stage, goes_forward, is_shut_out},
    engine::last_words::within,
    error::Error,
    identity::RecordId,
    observe::{CallOutcome, CallReport, UnprotectedReason},
    outcome::OutOfOrder,
    protocol::Ending,
    record::{FencingToken, Record, Time},
    request::{Asked, Protection, Request},
    run::{
        admit::{Admission, Admitting},
        held::HeldLease,
    },
    store::StoreErrorKind,
};

/// One call, from its claim to its answer.
///
/// # Cancel safety
///
/// Dropped while it waits, it changes nothing. Dropped while its claim is under way, the claim is
/// given up in the background. Dropped after the body was polled, the record ends as the state
/// machine says for a body that stopped.
pub(crate) struct ActiveCall {
    pub(crate) request: Request,
    span: Span,
    began: Option<Duration>,
    /// The body that makes the call, if one does.
    asking: Asking,
    /// The attempt that runs the body, once there is one.
    attempt: Option<Attempt>,
    /// The lease that is held while the body runs; none where it runs unprotected.
    pub(super) held: Option<HeldLease>,
    /// How the call came by its answer, if that is known yet.
    how: CallReport,
    outcome: CallOutcome,
    /// How long it has waited for others.
    waited: Duration,
    /// The kind of the error for which its outcome is not recorded yet.
    store_error: Option<StoreErrorKind>,
    /// Whether its body has run in a transaction of its own that has not committed, as far as is
    /// known.
    pub(crate) ran_in_own_transaction: bool,
    /// The change of a record that its transaction left to be settled, and its attempt.
    #[cfg(feature = "_sql")]
    pub(super) left: Option<(u32, RecordChange)>,
    progress: Progress,
    /// Whether code of the application's runs, which may panic.
    is_inside: AtomicBool,
}

/// The target of the span of a call, and of the event that ends it.
const TARGET: &str = "idempotent";

/// How far a call has come, for those that count calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Described,
    Begun,
    Told,
}

/// The answer to a call instead of a body of its own.
pub(crate) enum Instead {
    /// The outcome that a record holds.
    Recorded(Arc<Record>),
    /// There is no answer.
    Refused(Error),
    /// Its number is not the next one.
    OutOfOrder(OutOfOrder),
}

impl<E: Into<Error>> From<E> for Instead {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

/// A call that would wait for a lock which its own task holds.
pub(crate) const SHUT_OUT: Error = Error::InvalidPolicy(
    "a call inside this transaction is a part of it, because the database takes one writer at a time: end it with `run_in`, or give the function `tx`",
);

impl ActiveCall {
    /// Begins a call. It is boxed, so that the futures around it stay small enough to be moved.
    pub(crate) fn new(request: Request) -> Box<Self> {
        let (operation, id) = (&*request.operation, &request.id);
        // The id is known later if an older build may have given the record another one.
        let known = request.old_id.is_none().then(|| field::display(id));
        let span = tracing::info_span!(
            target: TARGET,
            "idempotent",
            operation,
            id = known,
            attempt = field::Empty,
            outcome = field::Empty
        );
        let handle = &request.handle;
        handle.link(&span, request.sent_by.as_ref());
        let asking = Asking::here(*id.as_bytes());
        let began = handle.observers().are_there().then(|| handle.timer().now());
        Box::new(Self {
            request,
            span,
            began,
            asking,
            attempt: None,
            held: None,
            how: CallReport::Refused,
            outcome: CallOutcome::Refused,
            waited: Duration::ZERO,
            store_error: None,
            ran_in_own_transaction: false,
            #[cfg(feature = "_sql")]
            left: None,
            progress: Progress::Described,
            is_inside: AtomicBool::new(false),
        })
    }

    /// Claims: the attempt that is to run the body, or what answers instead.
    pub(crate) async fn admit(&mut self) -> Result<Attempt, Instead> {
        self.begins();
        goes_forward().await?;
        let (admission, id) = match &self.request.protection {
            Protection::Record(_)
                if is_shut_out(self.request.handle.id()) && !self.request.is_held() =>
            {
                return Err(SHUT_OUT.into());
            }
            Protection::Record(asked) => match self.request.recall(asked) {
                Some((record, now)) => {
                    let found = Admission::Recorded {
                        record,
                        now,
                        waited: false,
                    };
                    (found, self.request.id)
                }
                // Boxed, so that the future of a call that finds its outcome does not hold room for
                // what claims one.
                None => {
                    let (admission, id, waited) = Box::pin(self.claim(asked)).await;
                    self.waited = waited;
                    (admission, id)
                }
            },
            Protection::None(why) => {
                let id = self.request.id;
                (Admission::Unprotected(*why, id), id)
            }
        };
        if self.request.old_id.is_some() {
            self.span.record("id", field::display(&id));
        }
        self.request.id = id;
        self.admitted(admission)
    }

    /// The admission, the id of the record that it is about, and how long the call has waited. An
    /// older build may have given the record another id.
    async fn claim(&self, asked: &Asked) -> (Admission, RecordId, Duration) {
        // Inside, so that the record names this span.
        let claim = self.span.in_scope(|| self.request.claim(asked));
        let mut admitting = Admitting::new(&self.request, &claim);
        let admission = within(&self.span, pin!(admitting.admit())).await;
        if let Admission::Run(_) = admission {
            self.request
                .handle
                .link(&self.span, admitting.before.as_ref());
        }
        (admission, admitting.id, admitting.waited_for)
    }

    /// Takes note that the call has begun: from here on, observers hear of its end.
    pub(crate) fn begins(&mut self) {
        if self.progress == Progress::Described {
            self.progress = Progress::Begun;
        }
        // A try before this one may have set them.
        (self.how, self.outcome) = (CallReport::Refused, CallOutcome::Refused);
    }

    /// Takes note that the call has waited for another one.
    #[cfg(feature = "_sql")]
    pub(crate) fn has_waited(&mut self, waited: Duration) {
        self.waited = self.waited.saturating_add(waited);
    }

    pub(super) fn admitted(&mut self, admission: Admission) -> Result<Attempt, Instead> {
        match admission {
            Admission::Run(held) => {
                let attempt = held.attempt().clone();
                self.held = Some(held);
                Ok(self.begun(attempt))
            }
            Admission::Recorded {
                record,
                now,
                waited,
            } => Err(self.recorded(record, now, waited)),
            Admission::Refused(error) => Err(Instead::Refused(error)),
            Admission::OutOfOrder(why) => Err(Instead::OutOfOrder(why)),
            Admission::Unprotected(why, id) => {
                let attempt = self.unprotected(why, id);
                Ok(self.begun(attempt))
            }
        }
    }

    /// Takes note of the attempt, which is over when the call is.
    pub(super) fn begun(&mut self, attempt: Attempt) -> Attempt {
        self.attempt.insert(attempt).clone()
    }

    fn recorded(&mut self, record: Arc<Record>, now: Time, waited: bool) -> Instead {
        let finished = record.finished.unwrap_or(now);
        let handle = &self.request.handle;
        handle.link(&self.span, record.holder.trace_parent.as_ref());
        self.how = CallReport::Replayed {
            finished,
            age: now.since(finished),
            attempt: record.attempt,
            waited,
            trace_parent: record.holder.trace_parent.clone(),
        };
        self.outcome = if waited {
            CallOutcome::ReplayedAfterWait
        } else {
            CallOutcome::Replayed
        };
        Instead::Recorded(record)
    }

    #[cold]
    fn unprotected(&mut self, why: UnprotectedReason, id: RecordId) -> Attempt {
        let _inside = self.span.enter();
        let operation = &*self.request.operation;
        match why {
            UnprotectedReason::StoreOutage => tracing::error!(
                operation,
                "the store is out of reach, the call runs unprotected"
            ),
            // The handle has said so, loudly, when it was built.
            UnprotectedReason::Disabled => {
                tracing::debug!(operation, ?why, "the call runs unprotected");
            }
            UnprotectedReason::OptedOut | UnprotectedReason::MissingKey => {
                tracing::warn!(operation, ?why, "the call runs unprotected");
            }
        }
        self.how = CallReport::Unprotected(why);
        self.outcome = CallOutcome::Unprotected;
        let attempt = self.request.attempt(id, 1, None, Stage::Body, false);
        match why {
            UnprotectedReason::Disabled => attempt.switched_off(),
            _ => attempt,
        }
    }

    /// Has the body made as a part of `attempt`. The code that makes it is the application's, too:
    /// where that panics, it may have done something.
    pub(crate) fn make<B>(&mut self, attempt: &Attempt, body: impl FnOnce(Attempt) -> B) -> B {
        if let Some(held) = &mut self.held {
            held.begin();
        }
        let _inside = self.span.enter();
        self.is_inside.store(true, Ordering::Relaxed);
        let body = attempt.make(|| body(attempt.clone()));
        self.is_inside.store(false, Ordering::Relaxed);
        body
    }

    /// Runs the body as a part of `attempt`.
    pub(crate) fn run<'a, B>(
        &'a mut self,
        attempt: &'a Attempt,
        body: Pin<&'a mut Option<B>>,
    ) -> RunningBody<'a, B> {
        RunningBody {
            call: self,
            attempt,
            body,
        }
    }

    fn poll_body<T>(
        &mut self,
        attempt: &Attempt,
        body: Pin<&mut dyn Future<Output = T>>,
        cx: &mut Context<'_>,
    ) -> Poll<T> {
        if let Some(held) = &mut self.held {
            held.begin();
        }
        self.poll(attempt, body, cx)
    }

    /// Polls what belongs to the body as a part of `attempt`.
    pub(crate) fn poll<T>(
        &self,
        attempt: &Attempt,
        work: Pin<&mut dyn Future<Output = T>>,
        cx: &mut Context<'_>,
    ) -> Poll<T> {
        let _inside = self.span.enter();
        self.is_inside.store(true, Ordering::Relaxed);
        let polled = attempt.poll(work, cx);
        self.is_inside.store(false, Ordering::Relaxed);
        polled
    }

    /// Says how the call ends if it is dropped, or code of the application panics, before
    /// [`end`](Self::end). The body has returned, so it must not look like one that stopped
    /// half-way.
    pub(crate) fn know(&self, ending: Ending) {
        if let Some(held) = &self.held {
            held.know(ending);
        }
    }

    pub(super) fn lease_lost(&self) -> Error {
        Error::LeaseLost {
            operation: Arc::clone(&self.request.operation),
        }
    }

    pub(super) fn executed(&mut self, attempt: &Attempt, outcome: CallOutcome, recorded: bool) {
        self.outcome = outcome;
        self.how = CallReport::Executed {
            attempt: attempt.number(),
            token: attempt.fencing_token().unwrap_or(FencingToken::from_u64(0)),
            recorded,
            taken_over: outcome == CallOutcome::LeaseLost,
        };
    }

    pub(crate) fn span(&self) -> &Span {
        &self.span
    }
}
