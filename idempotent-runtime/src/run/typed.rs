//! The typed form: what a function returns, over the raw form that stores bytes.

use std::{
    future::Future,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::task::{AbortHandle, JoinHandle};
use tracing::Instrument;

use crate::{
    attempt::{self, Attempt, Stage},
    error::{Error, take_mark},
    handle,
    lease::Ending,
    observe::How,
    outcome::{Encoder, FromRefusal, Keep, OnError, Outcome, Stored, Unread},
    policy::{OnCrash, Verdict},
    record::{OutcomeKind, RawOutcome, Record},
    request::Request,
    run::{Left, execute},
};

/// How a typed call is stored and read.
pub(crate) struct Typed<P, K> {
    pub(crate) on_error: P,
    pub(crate) keep: K,
}

pub(crate) async fn run_typed<R, P, K, F, B>(
    request: Box<Request>,
    typed: Typed<P, K>,
    body: F,
) -> (R, How)
where
    R: Outcome,
    R::Error: FromRefusal,
    P: OnError<R::Error>,
    K: Keep<R::Value> + Clone,
    F: FnOnce(Attempt) -> B,
    B: Future<Output = R>,
{
    let (request, typed) = (&*request, &typed);
    let run = |attempt: Attempt| async move {
        let result = body(attempt.clone()).await.into_result();
        leave(request, typed, &attempt, result).await
    };
    let read = |record: Arc<Record>| async move { read(request, typed, &record).await };
    let (answer, how) = execute(request, run, read).await;
    let result = answer.unwrap_or_else(|error| Err(R::Error::from_refusal(error)));
    (R::from_result(result), how)
}

/// The same in a task of its own: once the body has begun, the caller's future may be dropped,
/// and the call runs on and is recorded. Dropped before, nothing is left behind.
pub(crate) async fn run_detached<R, P, K, F, B>(
    request: Box<Request>,
    typed: Typed<P, K>,
    body: F,
) -> (R, How)
where
    R: Outcome + Send + 'static,
    R::Value: Send,
    R::Error: FromRefusal + Send,
    P: OnError<R::Error> + Send + Sync + 'static,
    K: Keep<R::Value, Reading: Send> + Clone + Send + Sync + 'static,
    F: FnOnce(Attempt) -> B + Send + 'static,
    B: Future<Output = R> + Send + 'static,
{
    let mut task = Detached::new();
    let began = Arc::clone(&task.began);
    let call = run_typed(request, typed, move |attempt| async move {
        if began.swap(true, Ordering::AcqRel) {
            // The caller went away at this very moment, and this task is being aborted.
            attempt.reach(Stage::NeverBegan);
            std::future::pending::<()>().await;
        }
        body(attempt).await
    });
    let call = handle::enter_again(attempt::enter_again(call)).in_current_span();
    match task.spawn(call).await {
        Ok(answer) => answer,
        Err(stopped) => match stopped.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime shuts down and has taken the task; this future goes the same way.
            Err(_) => std::future::pending().await,
        },
    }
}

/// The caller's side of a detached call. Dropped before the body began, it takes the task along.
struct Detached {
    began: Arc<AtomicBool>,
    task: Option<AbortHandle>,
}

impl Detached {
    fn new() -> Self {
        Self {
            began: Arc::default(),
            task: None,
        }
    }

    fn spawn<T: Send + 'static>(
        &mut self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let task = tokio::spawn(call);
        self.task = Some(task.abort_handle());
        task
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        if let Some(task) = &self.task
            && !self.began.swap(true, Ordering::AcqRel)
        {
            task.abort();
        }
    }
}

/// Decides how the body's result ends the holding, and what its own caller gets: exactly what a
/// replay would give, wherever there can be one.
async fn leave<T, E, P, K>(
    request: &Request,
    typed: &Typed<P, K>,
    attempt: &Attempt,
    result: Result<T, E>,
) -> Left<Result<T, E>>
where
    P: OnError<E>,
    K: Keep<T> + Clone,
{
    if attempt.stage() == Stage::Unknown {
        return (Ending::Uncertain, result);
    }
    if attempt.fencing_token().is_none() {
        // It runs unprotected, and nothing is stored.
        return (Ending::Release, result);
    }
    let coder = request.handle.coder();
    if let Err(error) = &result {
        match typed.on_error.verdict(error, request.on_error) {
            Verdict::Replay => {}
            Verdict::Release => return (Ending::Release, result),
            Verdict::Uncertain => return (Ending::Uncertain, result),
        }
    }
    let _of_other_encoders = take_mark();
    let encoded = match &result {
        Ok(value) => {
            let bytes = typed.keep.encode(value, &Encoder(coder));
            bytes.map(RawOutcome::value)
        }
        Err(error) => {
            let bytes = typed.on_error.encode(error, &Encoder(coder));
            bytes.map(RawOutcome::error)
        }
    };
    let refused_within = take_mark();
    let outcome = match encoded {
        Ok(outcome) if outcome.bytes.len() <= request.handle.defaults().max_outcome => outcome,
        Err(_) if refused_within && request.on_crash == OnCrash::Rerun => {
            return (Ending::Release, result);
        }
        Err(_) if refused_within => return (Ending::Uncertain, result),
        Ok(outcome) => {
            return (
                not_replayable(request, &format_args!("{} bytes", outcome.bytes.len())),
                result,
            );
        }
        Err(error) => return (not_replayable(request, &error), result),
    };
    let outcome = outcome.with_schema(request.version);
    match decode(request, typed, outcome.clone()).await {
        Ok(replayed) => (Ending::Done(outcome), replayed),
        // The reference is what counts, and it is kept: a replay may find what this load did not.
        Err(Unread::NotLoaded(error)) => {
            tracing::warn!(operation = &*request.operation, %error, "a value cannot be read back through its reference");
            (Ending::Done(outcome), result)
        }
        Err(Unread::Undecodable(error)) => (not_replayable(request, &error), result),
    }
}

fn not_replayable(request: &Request, why: &dyn std::fmt::Display) -> Ending {
    tracing::warn!(
        operation = &*request.operation,
        id = %request.id.short(),
        %why,
        "an outcome cannot be stored or read back: duplicates will be told that it happened"
    );
    Ending::Done(RawOutcome::not_replayable())
}

async fn decode<T, E, P, K>(
    request: &Request,
    typed: &Typed<P, K>,
    outcome: RawOutcome,
) -> Result<Result<T, E>, Unread>
where
    P: OnError<E>,
    K: Keep<T> + Clone,
{
    let kind = outcome.kind;
    let stored = Stored::new(outcome, request.handle.coder().clone());
    match kind {
        OutcomeKind::Error => typed
            .on_error
            .decode(&stored)
            .map(Err)
            .map_err(Unread::Undecodable),
        _ => typed
            .keep
            .clone()
            .read(stored, request.version)
            .await
            .map(Ok),
    }
}

async fn read<T, E, P, K>(
    request: &Request,
    typed: &Typed<P, K>,
    record: &Record,
) -> Result<Result<T, E>, Error>
where
    P: OnError<E>,
    K: Keep<T> + Clone,
{
    let operation = || Arc::clone(&request.operation);
    match &record.outcome {
        Some(outcome) if outcome.kind != OutcomeKind::NotReplayable => {
            decode(request, typed, outcome.clone())
                .await
                .map_err(|why| match why {
                    Unread::Undecodable(error) => Error::Unreadable {
                        operation: operation(),
                        schema: outcome.schema,
                        source: error.into(),
                    },
                    Unread::NotLoaded(error) => Error::NotLoaded {
                        operation: operation(),
                        source: error.into(),
                    },
                })
        }
        _ => Err(Error::NotReplayable {
            operation: operation(),
        }),
    }
}

/// The first statement of a body whose crash policy is `reconcile(…)`: asks what became of the
/// attempt that vanished, when this run is for that, and gives the answer that then stands for the body's.
pub async fn reconcile<R, F, Fut>(ask: F) -> Option<R>
where
    R: Outcome,
    R::Error: FromRefusal,
    F: FnOnce() -> Fut,
    Fut: Future<Output = crate::policy::Reconciled<R::Value, R::Error>>,
{
    use crate::policy::Reconciled;

    let attempt = attempt::try_current().filter(|attempt| attempt.stage() == Stage::Ask)?;
    let (stage, answer) = match ask().await {
        Reconciled::Happened(value) => (Stage::Answered, Some(Ok(value))),
        Reconciled::Failed(error) => (Stage::Answered, Some(Err(error))),
        Reconciled::Unknown => {
            let operation = Arc::clone(attempt.operation_name());
            (
                Stage::Unknown,
                Some(Err(R::Error::from_refusal(Error::Uncertain { operation }))),
            )
        }
        Reconciled::RunAgain => (Stage::RunAgain, None),
    };
    attempt.reach(stage);
    answer.map(R::from_result)
}
