//! One call, from its claim to its answer: the state machine's decisions carried out on a store.

mod admit;
mod beat;
mod ending;
mod held;
mod job;
pub(crate) mod keeper;
mod lease;
mod raw;
mod typed;

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::Poll,
};

pub use self::typed::reconcile;
pub(crate) use self::{
    raw::run_raw,
    typed::{Typed, run_detached, run_typed},
};
use tracing::{Instrument, field};

use crate::{
    attempt::{Attempt, Stage},
    error::Error,
    lease::{Claim, Ending, Meaning},
    observe::{Answer, Answered, How, Unprotected},
    record::{OutcomeKind, Record},
    request::{Protection, Request},
    run::{
        admit::{Admission, admit},
        ending::Ended,
        held::Held,
    },
};

/// What a body leaves: how the holding ends, and what its own caller gets.
pub(crate) type Left<X> = (Ending, X);

/// What a call came to.
enum Came<X> {
    /// Its own body ran.
    Ran(X),
    /// A record answers it.
    Recorded(Arc<Record>),
    /// There is no answer.
    Refused(Error),
}

/// Runs one call: claims, runs the body if the claim stands, records how it ended, and gives the
/// body's value or what `read` makes of the record that answers.
///
/// # Cancel safety
///
/// Dropped while it waits, it changes nothing. Dropped while its claim is under way, the claim is
/// given up in the background. Dropped after the body was polled, the record ends as the state
/// machine says for a body that stopped.
pub(crate) async fn execute<X, F, B, D, R>(
    request: &Request,
    body: F,
    read: D,
) -> (Result<X, Error>, How)
where
    F: FnOnce(Attempt) -> B,
    B: Future<Output = Left<X>>,
    D: FnOnce(Arc<Record>) -> R,
    R: Future<Output = Result<X, Error>>,
{
    let (operation, id) = (&*request.operation, &request.id);
    let span = tracing::info_span!("idempotent", operation, %id, answer = field::Empty);
    let observers = request.handle.observers();
    let began = observers.are_there().then(|| request.handle.timer().now());
    let answering = async {
        let (came, how, answer) = answer(request, body).await;
        let result = match came {
            Came::Ran(value) => Ok(value),
            Came::Recorded(record) => read(record).await,
            Came::Refused(error) => Err(error),
        };
        let answer = result.as_ref().map_or_else(answer_of, |_| answer);
        (result, how, answer)
    };
    let (result, how, answer) = answering.instrument(span.clone()).await;
    span.record("answer", field::debug(answer));
    if let Some(began) = began {
        let elapsed = request.handle.timer().now().saturating_sub(began);
        observers.answered(&Answered {
            operation,
            id: Some(*id),
            answer,
            elapsed,
        });
    }
    (result, how)
}

async fn answer<X, F, B>(request: &Request, body: F) -> (Came<X>, How, Answer)
where
    F: FnOnce(Attempt) -> B,
    B: Future<Output = Left<X>>,
{
    let claim = match &request.protection {
        Protection::Record(claim) => claim,
        Protection::None(why) => return run_unprotected(request, *why, body).await,
    };
    match admit(request, claim).await {
        Admission::Run(held) => run(request, claim, held, body).await,
        Admission::Recorded {
            record,
            now,
            waited,
        } => {
            let finished = record.finished.unwrap_or(now);
            let how = How::Replayed {
                finished,
                age: now.since(finished),
                attempt: record.attempt,
                waited,
                trace_parent: record.holder.trace_parent.clone(),
            };
            let answer = if waited {
                Answer::ReplayedAfterWait
            } else {
                Answer::Replayed
            };
            (Came::Recorded(record), how, answer)
        }
        Admission::Refused(error) => refuse(error),
        Admission::Unprotected(why) => run_unprotected(request, why, body).await,
    }
}

fn refuse<X>(error: Error) -> (Came<X>, How, Answer) {
    let answer = answer_of(&error);
    (Came::Refused(error), How::Refused, answer)
}

fn answer_of(error: &Error) -> Answer {
    match error {
        Error::InProgress { .. } => Answer::InProgress,
        Error::KeyReused { .. } => Answer::KeyReused,
        Error::Uncertain { .. } => Answer::Uncertain,
        Error::Parked { .. } => Answer::Parked,
        Error::LeaseLost { .. } => Answer::LeaseLost,
        Error::Unreadable { .. } | Error::NotLoaded { .. } | Error::NotReplayable { .. } => {
            Answer::NotReplayable
        }
        Error::Store(_) => Answer::StoreFailed,
        _ => Answer::Refused,
    }
}

fn is_kept(record: &Record) -> bool {
    record
        .outcome
        .as_ref()
        .is_some_and(|outcome| outcome.kind != OutcomeKind::NotReplayable)
}

async fn run<X, F, B>(
    request: &Request,
    claim: &Claim,
    mut held: Held,
    body: F,
) -> (Came<X>, How, Answer)
where
    F: FnOnce(Attempt) -> B,
    B: Future<Output = Left<X>>,
{
    let attempt = held.attempt().clone();
    let meaning = held.meaning();
    let (ending, value) = held.poll(body).await;
    let answer = match (meaning, attempt.stage()) {
        (_, Stage::Answered) => Answer::Reconciled,
        (_, Stage::Unknown) => Answer::Uncertain,
        (Meaning::Fresh, _) => Answer::Executed,
        _ => Answer::ExecutedAfterTakeover,
    };
    let executed = |recorded| How::Executed {
        attempt: attempt.number(),
        token: attempt
            .fencing_token()
            .unwrap_or(crate::record::FencingToken::from_u64(0)),
        recorded,
    };
    match held.end(ending).await {
        Ok(Ended::Stands) => (Came::Ran(value), executed(true), answer),
        Ok(Ended::StoodAlready(record)) if is_kept(&record) => {
            (Came::Recorded(record), executed(true), answer)
        }
        Ok(Ended::StoodAlready(_)) => (Came::Ran(value), executed(true), answer),
        // After a release the key may have gone to a call with other arguments: its outcome is not ours.
        Ok(Ended::Lost(Some(record)))
            if record.subject.fingerprint == claim.subject.fingerprint =>
        {
            (Came::Recorded(record), executed(false), Answer::LeaseLost)
        }
        Ok(Ended::Lost(_)) => refuse(Error::LeaseLost {
            operation: Arc::clone(&request.operation),
        }),
        Err(_) => (Came::Ran(value), executed(false), answer),
    }
}

async fn run_unprotected<X, F, B>(
    request: &Request,
    why: Unprotected,
    body: F,
) -> (Came<X>, How, Answer)
where
    F: FnOnce(Attempt) -> B,
    B: Future<Output = Left<X>>,
{
    let operation = &*request.operation;
    match why {
        Unprotected::StoreOutage => tracing::error!(
            operation,
            "the store is out of reach, the call runs unprotected"
        ),
        // The handle has said so, loudly, when it was built.
        Unprotected::Disabled => {
            tracing::debug!(operation, ?why, "the call runs unprotected");
        }
        Unprotected::OptedOut | Unprotected::MissingKey => {
            tracing::warn!(operation, ?why, "the call runs unprotected");
        }
    }
    let attempt = Attempt::new(
        request.id,
        Arc::clone(&request.operation),
        1,
        None,
        Stage::Body,
    );
    let body = body(attempt.clone());
    let (_, value) = attempt.enter(body).await;
    (Came::Ran(value), How::Unprotected(why), Answer::Unprotected)
}

/// Awaits `work`; `None` where it panics, so that a store which does so takes nothing else along.
pub(crate) async fn survive<F: Future>(work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)));
        polled.map_or(Poll::Ready(None), |poll| poll.map(Some))
    })
    .await
}

/// Awaits `work`, but no longer than `limit`; `None` where that ended first.
pub(crate) async fn race<F: Future>(work: F, limit: impl Future<Output = ()>) -> Option<F::Output> {
    let (mut work, mut limit) = (pin!(work), pin!(limit));
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => limit.as_mut().poll(cx).map(|()| None),
    })
    .await
}
