//! The typed form: what a function returns, over the raw form that stores bytes.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
};

use crate::{
    attempt::{self, Attempt, Stage},
    error::{BoxError, Error, take_mark},
    lease::Ending,
    observe::CallReport,
    outcome::{Encoder, FromRefusal, Keep, OnError, Outcome, Stored, Unread, as_own},
    policy::{OnCrash, Verdict},
    record::{OutcomeKind, RawOutcome, Record},
    request::Request,
    run::{
        active_call::{ActiveCall, Instead, within},
        detached::outlive,
    },
};

/// How a typed call is stored and read.
pub(crate) struct Typed<P, K> {
    pub(crate) on_error: P,
    pub(crate) keep: K,
}

/// Runs a call whose body is there already, where it stays. What is not about the body stands elsewhere, so that it is
/// not compiled again for every body.
pub(crate) async fn run_pinned<R, P, K, B>(
    call: Result<Box<ActiveCall>, Box<Error>>,
    typed: Typed<P, K>,
    body: Pin<&mut Option<B>>,
) -> R
where
    R: Outcome,
    R::Error: FromRefusal,
    P: OnError<R::Error>,
    K: Keep<R::Value> + Clone,
    B: Future<Output = R>,
{
    let mut call = match call {
        Ok(call) => call,
        Err(error) => return R::from_result(Err(R::Error::from_refusal(*error))),
    };
    let instead = match call.admit().await {
        Ok(attempt) => {
            let own = call.run(&attempt, body).await;
            match typed.answer(&mut call, &attempt, own).await {
                Ok((own, _)) => return own,
                Err(instead) => instead,
            }
        }
        Err(instead) => instead,
    };
    typed.instead(&mut call, instead).await.0
}

/// Runs a call whose body is made when it is known which attempt runs it.
pub(crate) async fn run_typed<R, P, K, F, B>(
    mut call: Box<ActiveCall>,
    typed: Typed<P, K>,
    body: F,
) -> (R, CallReport)
where
    R: Outcome,
    R::Error: FromRefusal,
    P: OnError<R::Error>,
    K: Keep<R::Value> + Clone,
    F: FnOnce(Attempt) -> B,
    B: Future<Output = R>,
{
    let attempt = match call.admit().await {
        Ok(attempt) => attempt,
        Err(instead) => return typed.instead(&mut call, instead).await,
    };
    run_admitted(call, attempt, typed, body).await
}

/// The same, where the body and what comes after it has a task of its own: once the call is admitted, the caller's future may be
/// dropped, and the call runs on and is recorded. Dropped before, nothing is left behind.
pub(crate) async fn run_detached<R, P, K, F, B>(
    mut call: Box<ActiveCall>,
    typed: Typed<P, K>,
    body: F,
) -> (R, CallReport)
where
    R: Outcome + Send + 'static,
    R::Value: Send,
    R::Error: FromRefusal + Send,
    P: OnError<R::Error> + Send + Sync + 'static,
    K: Keep<R::Value, Reading: Send> + Clone + Send + Sync + 'static,
    F: FnOnce(Attempt) -> B + Send + 'static,
    B: Future<Output = R> + Send + 'static,
{
    let attempt = match call.admit().await {
        Ok(attempt) => attempt,
        Err(instead) => return typed.instead(&mut call, instead).await,
    };
    let operation = Arc::clone(&call.request.operation);
    let rest = Box::pin(run_admitted(call, attempt, typed, body));
    outlive(operation, rest).await.unwrap_or_else(|stopped| {
        let refusal = R::Error::from_refusal(stopped);
        (R::from_result(Err(refusal)), CallReport::Refused)
    })
}

async fn run_admitted<R, P, K, F, B>(
    mut call: Box<ActiveCall>,
    attempt: Attempt,
    typed: Typed<P, K>,
    body: F,
) -> (R, CallReport)
where
    R: Outcome,
    R::Error: FromRefusal,
    P: OnError<R::Error>,
    K: Keep<R::Value> + Clone,
    F: FnOnce(Attempt) -> B,
    B: Future<Output = R>,
{
    let own = {
        let body = pin!(Some(call.make(&attempt, body)));
        call.run(&attempt, body).await
    };
    match typed.answer(&mut call, &attempt, own).await {
        Ok(answer) => answer,
        Err(instead) => typed.instead(&mut call, instead).await,
    }
}

impl<P, K> Typed<P, K> {
    /// What the caller gets whose body returned `own`, and how it came about, or what answers it instead.
    async fn answer<R>(
        &self,
        call: &mut ActiveCall,
        attempt: &Attempt,
        own: R,
    ) -> Result<(R, CallReport), Instead>
    where
        R: Outcome,
        P: OnError<R::Error>,
        K: Keep<R::Value> + Clone,
    {
        let mut own = own.into_result();
        let ending = self.leave(call, attempt, &mut own).await;
        let reference = reference::<K, _>(&ending);
        match call.end(attempt, ending).await {
            Some(instead) => Err(instead),
            None => Ok(self.own(call, own, reference).await),
        }
    }

    /// Decides, as a part of the attempt, how what the body returned ends the call.
    pub(super) async fn leave<T, E>(
        &self,
        call: &ActiveCall,
        attempt: &Attempt,
        own: &mut Result<T, E>,
    ) -> Ending
    where
        P: OnError<E>,
        K: Keep<T> + Clone,
    {
        let mut leaving = pin!(leave(call, self, attempt, own));
        poll_fn(|cx| call.poll(attempt, leaving.as_mut(), cx)).await
    }

    /// Answers with what the body returned, or with what its `reference` leads to. Loading that is no part of the attempt, as it is
    /// none in a replay.
    pub(super) async fn own<R>(
        &self,
        call: &mut ActiveCall,
        mut own: Result<R::Value, R::Error>,
        reference: Option<RawOutcome>,
    ) -> (R, CallReport)
    where
        R: Outcome,
        P: OnError<R::Error>,
        K: Keep<R::Value> + Clone,
    {
        if let Some(reference) = reference {
            // Boxed, so that the future of every call does not hold room for it.
            let mut loading = Box::pin(load(&call.request, self, reference, &mut own));
            within(call.span(), loading.as_mut()).await;
        }
        (R::from_result(own), call.answered(None))
    }

    pub(super) async fn instead<R>(
        &self,
        call: &mut ActiveCall,
        instead: Instead,
    ) -> (R, CallReport)
    where
        R: Outcome,
        R::Error: FromRefusal,
        P: OnError<R::Error>,
        K: Keep<R::Value> + Clone,
    {
        let result = match instead {
            Instead::Recorded(record) => {
                within(call.span(), pin!(read(&call.request, self, &record))).await
            }
            Instead::Refused(error) => Err(error),
        };
        let how = call.answered(result.as_ref().err());
        let result = result.unwrap_or_else(|error| Err(R::Error::from_refusal(error)));
        (R::from_result(result), how)
    }
}

/// What the value is to be read back from once it is recorded.
fn reference<K: Keep<T>, T>(ending: &Ending) -> Option<RawOutcome> {
    match ending {
        Ending::Done(outcome) if K::LOADS && outcome.kind == OutcomeKind::Value => {
            Some(outcome.clone())
        }
        _ => None,
    }
}

/// Decides how the body's result ends the holding, and what its own caller gets: exactly what a
/// replay would give, wherever there can be one.
async fn leave<T, E, P, K>(
    call: &ActiveCall,
    typed: &Typed<P, K>,
    attempt: &Attempt,
    own: &mut Result<T, E>,
) -> Ending
where
    P: OnError<E>,
    K: Keep<T> + Clone,
{
    let request = &call.request;
    if attempt.stage() == Stage::Unknown {
        return Ending::Uncertain;
    }
    if attempt.fencing_token().is_none() {
        // It runs unprotected, and nothing is stored.
        return Ending::Release;
    }
    // The body has returned. Whatever panics in the application's code from here on, it must not look as if it had not.
    if let Err(error) = own {
        call.know(Ending::Uncertain);
        match typed.on_error.verdict(error, request.on_error) {
            Verdict::Replay => {}
            Verdict::Release => return Ending::Release,
            Verdict::Uncertain => return Ending::Uncertain,
        }
    }
    call.know(Ending::Done(RawOutcome::not_replayable()));
    let encoder = Encoder(request.handle.coder());
    let _of_other_encoders = take_mark();
    let (encoded, otherwise) = match own {
        Ok(value) => (
            typed.keep.encode(value, &encoder).map(RawOutcome::value),
            "the value cannot be encoded: let serde store it, or write `outcome = reference(save, load)`",
        ),
        Err(error) => (
            typed
                .on_error
                .encode(error, &encoder)
                .map(RawOutcome::error),
            "the `Err` cannot be encoded: let serde store it, or write `on_error = ErrorVerdict::verdict`, and `#[verdict(release)]` or `#[verdict(uncertain)]` on its variant",
        ),
    };
    let outcome = match fit_to_keep(request, encoded, otherwise) {
        Ok(outcome) => outcome,
        Err(ending) => return ending,
    };
    if K::LOADS && outcome.kind == OutcomeKind::Value {
        // The reference is what counts, and loading may take a while: it is recorded first.
        let stored = Stored::new(outcome.clone(), request.handle.coder().clone());
        return match K::reads(&stored) {
            Ok(_) => Ending::Done(outcome),
            Err(error) => not_replayable(request, &error),
        };
    }
    let mut reading = pin!(decode(request, typed, outcome.clone()));
    match poll_fn(|cx| as_own(|| reading.as_mut().poll(cx))).await {
        Ok(replayed) if is_copy::<_, _, P, K>(own, &replayed) => {
            *own = replayed;
            Ending::Done(outcome)
        }
        Ok(_) => not_replayable(
            request,
            &"it comes back as another value, as `Some(None)` and `Some(())` do in JSON: return another type, or give the handle another `codec`",
        ),
        Err(Unread::NotLoaded(error) | Unread::Undecodable(error)) => {
            not_replayable(request, &error)
        }
    }
}

fn is_copy<T, E, P: OnError<E>, K: Keep<T>>(own: &Result<T, E>, copy: &Result<T, E>) -> bool {
    match (own, copy) {
        (Ok(value), Ok(copy)) => K::is_copy(value, copy),
        (Err(error), Err(copy)) => P::is_copy(error, copy),
        _ => false,
    }
}

/// Gives the first caller what every later one gets, where its reference, which is recorded, can be read back. Where it cannot, a
/// replay may find what this load did not, and the caller has its own value.
async fn load<T, E, P, K>(
    request: &Request,
    typed: &Typed<P, K>,
    reference: RawOutcome,
    own: &mut Result<T, E>,
) where
    P: OnError<E>,
    K: Keep<T> + Clone,
{
    match decode(request, typed, reference).await {
        Ok(loaded) => *own = loaded,
        Err(why) => {
            let error = match &why {
                Unread::Undecodable(error) => error.to_string(),
                // What the application says may quote the value.
                Unread::NotLoaded(_) => "`load` failed".to_owned(),
            };
            tracing::warn!(operation = &*request.operation, %error, "a value cannot be read back through its reference");
        }
    }
}

/// The outcome as it is to be kept, or how the holding ends where it cannot be kept.
fn fit_to_keep(
    request: &Request,
    encoded: Result<RawOutcome, BoxError>,
    cannot_be_encoded: &str,
) -> Result<RawOutcome, Ending> {
    // The mark counts also where encoding went well: a type of the application's may put other words in the refusal's place.
    if take_mark() {
        return Err(match request.on_crash {
            OnCrash::Rerun => Ending::Release,
            _ => Ending::Uncertain,
        });
    }
    match encoded {
        Ok(outcome) if outcome.bytes.len() <= request.handle.defaults().max_outcome => {
            Ok(outcome.with_schema(request.version))
        }
        Ok(outcome) => Err(not_replayable(
            request,
            &format_args!("{} bytes", outcome.bytes.len()),
        )),
        // What a `Serialize` says may quote the value.
        Err(_) => Err(not_replayable(request, &cannot_be_encoded)),
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
    // Boxed for the same reason as what is loaded: it is rare, and may be large.
    let (stage, answer) = match Box::pin(ask()).await {
        Reconciled::Happened(value) => (Stage::Answered, Some(Ok(value))),
        Reconciled::Failed(error) => (Stage::Answered, Some(Err(error))),
        Reconciled::Unknown => {
            let operation = Arc::clone(attempt.operation_name());
            let id = *attempt.id();
            let refusal = Error::Uncertain { operation, id };
            (Stage::Unknown, Some(Err(R::Error::from_refusal(refusal))))
        }
        Reconciled::RunAgain => (Stage::RunAgain, None),
    };
    attempt.reach(stage);
    answer.map(R::from_result)
}
