//! The typed form: the results of functions, over the raw form that stores bytes.

pub(crate) mod read;
pub(crate) mod record;

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
};

use self::{
    read::{load, read},
    record::{leave, reference},
};
use crate::{
    attempt::{self, Attempt, Stage},
    drive::{DescribedCall, carry_out, claim},
    engine::last_words::within,
    error::Error,
    observe::CallReport,
    outcome::{FromRefusal, Keep, OnError, OutOfOrder, Outcome, Whole},
    policy::Reconciled,
    protocol::Ending,
    record::RawOutcome,
    request::Request,
    run::{
        active_call::{ActiveCall, Instead},
        codec::Codec,
        detached::outlive,
    },
};

/// How a typed call is stored and read: what becomes of an `Err`, and how much of a value is kept.
/// The builders of calls and steps collect it.
#[cfg_attr(
    not(feature = "_sql"),
    expect(
        unreachable_pub,
        reason = "the expansion of `tx` names no type, and has one of it"
    )
)]
#[derive(Debug)]
pub struct Typed<P, K> {
    pub(crate) on_error: P,
    pub(crate) keep: K,
}

impl<P> Typed<P, Whole> {
    pub(crate) fn whole(on_error: P) -> Self {
        let keep = Whole;
        Self { on_error, keep }
    }
}

/// Runs a call with a task of its own for the body and everything after it. Once the call is
/// admitted, the caller's future may be dropped: the call runs on and is recorded. If it is dropped
/// before, nothing is left behind.
pub(crate) async fn run_detached<R, P, K, F, B>(
    described: DescribedCall,
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
    let (call, attempt) = match claim::<R, _>(described, &typed).await {
        Ok(claimed) => claimed,
        Err(answer) => return answer,
    };
    let operation = Arc::clone(&call.request.operation);
    let rest = Box::pin(carry_out(call, attempt, typed, body));
    outlive(operation, rest).await.unwrap_or_else(|stopped| {
        let refusal = attempt::refuse(attempt::WithoutId::Call, stopped);
        (R::from_result(Err(refusal)), CallReport::Refused)
    })
}

impl<R, P, K> Codec<R> for Typed<P, K>
where
    R: Outcome,
    R::Error: FromRefusal,
    P: OnError<R::Error>,
    K: Keep<R::Value> + Clone,
{
    type Own = Result<R::Value, R::Error>;
    type Answer = (R, CallReport);

    #[cfg(feature = "_sql")]
    const RELEASES: bool = P::RELEASES;

    fn errors_can_end(&self, request: &Request) -> bool {
        P::can_end(request.on_error)
    }

    fn refused(error: Error) -> (R, CallReport) {
        let refused = Err(R::Error::from_refusal(error));
        (R::from_result(refused), CallReport::Refused)
    }

    fn take(result: R) -> Self::Own {
        result.into_result()
    }

    // Each of these is the inherent one: another future around it would be compiled for every
    // annotated function.
    fn leave(
        &self,
        call: &ActiveCall,
        attempt: &Attempt,
        own: &mut Self::Own,
    ) -> impl Future<Output = Ending> {
        self.leave(call, attempt, own)
    }

    fn reference(ending: &Ending) -> Option<RawOutcome> {
        reference::<K, _>(ending)
    }

    fn own(
        &self,
        call: &mut ActiveCall,
        own: Self::Own,
        reference: Option<RawOutcome>,
    ) -> impl Future<Output = (R, CallReport)> {
        self.own(call, own, reference)
    }

    fn instead(
        &self,
        call: &mut ActiveCall,
        instead: Instead,
    ) -> impl Future<Output = (R, CallReport)> {
        self.instead(call, instead)
    }
}

impl<P, K> Typed<P, K> {
    /// The same with another rule for errors.
    pub(crate) fn with_on_error<Q>(self, on_error: Q) -> Typed<Q, K> {
        let keep = self.keep;
        Typed { on_error, keep }
    }

    /// The same with another rule for values.
    pub(crate) fn with_keep<Q>(self, keep: Q) -> Typed<P, Q> {
        let on_error = self.on_error;
        Typed { on_error, keep }
    }

    /// Decides, as a part of the attempt, how what the body returned ends the call.
    pub(crate) async fn leave<T, E>(
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

    /// Answers with what the body returned, or with what its `reference` leads to. Loading that is
    /// no part of the attempt, as it is none in a replay.
    pub(crate) async fn own<R>(
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
        let report = call.answered_itself(own.is_err());
        (R::from_result(own), report)
    }

    pub(crate) async fn instead<R>(
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
            Instead::OutOfOrder(why) => match P::out_of_order(why) {
                Some(error) => {
                    let how = call.answered_out_of_order(why);
                    return (R::from_result(Err(error)), how);
                }
                None => Err(OutOfOrder::NO_NUMBER),
            },
        };
        let how = call.answered(result.as_ref().err());
        let result = result.unwrap_or_else(|error| Err(R::Error::from_refusal(error)));
        (R::from_result(result), how)
    }
}

/// The first statement of a body whose crash policy is `reconcile(…)`. If this run is for that, it
/// asks what became of the attempt that vanished, and gives the answer that stands for the body's.
pub async fn reconcile<R, F, Fut>(ask: F) -> Option<R>
where
    R: Outcome,
    R::Error: FromRefusal,
    F: FnOnce() -> Fut,
    Fut: Future<Output = Reconciled<R::Value, R::Error>>,
{
    let attempt = attempt::try_current().filter(|attempt| attempt.stage() == Stage::Ask)?;
    // Boxed for the same reason as what is loaded: it is rare, and may be large.
    let (stage, answer) = match Box::pin(ask()).await {
        Reconciled::Happened(value) => (Stage::Answered, Some(Ok(value))),
        Reconciled::Failed(error) => (Stage::Answered, Some(Err(error))),
        Reconciled::Unknown => {
            let operation = Arc::clone(attempt.operation_name());
            let id = *attempt.id();
            let number = None;
            let refusal = Error::Uncertain {
                operation,
                id,
                number,
            };
            (Stage::Unknown, Some(Err(R::Error::from_refusal(refusal))))
        }
        Reconciled::RunAgain => (Stage::RunAgain, None),
    };
    attempt.reach(stage);
    answer.map(R::from_result)
}
