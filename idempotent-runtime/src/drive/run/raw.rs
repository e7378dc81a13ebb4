//! The raw form: bytes in, bytes out.

use std::{future::Future, sync::Arc};

use crate::{
    attempt::Attempt,
    drive::{DescribedCall, carry_out, claim},
    error::Error,
    observe::CallReport,
    outcome::OutOfOrder,
    policy::OnCrash,
    protocol::Ending,
    record::RawEnding,
    record::RawOutcome,
    request::Request,
    run::{
        active_call::{ActiveCall, Instead, is_kept},
        codec::Codec,
        detached::outlive,
    },
};

/// Bytes, as they are kept.
pub(crate) struct Raw;

impl Codec<RawEnding> for Raw {
    type Own = RawEnding;
    type Answer = Result<(RawOutcome, CallReport), Error>;

    fn errors_can_end(&self, _: &Request) -> bool {
        true
    }

    fn refused(error: Error) -> Self::Answer {
        Err(error)
    }

    fn take(result: RawEnding) -> RawEnding {
        result
    }

    async fn leave(&self, call: &ActiveCall, attempt: &Attempt, own: &mut RawEnding) -> Ending {
        let longest = call.request.handle.defaults().max_outcome;
        match own {
            RawEnding::Record(outcome) if outcome.is_error() && attempt.is_refused() => {
                match call.request.on_crash {
                    OnCrash::Rerun => Ending::Release,
                    _ => Ending::Uncertain,
                }
            }
            RawEnding::Record(outcome) if outcome.bytes.len() <= longest => {
                Ending::Done(outcome.clone())
            }
            RawEnding::Record(_) | RawEnding::RecordWithoutOutcome(_) => {
                Ending::Done(RawOutcome::not_replayable())
            }
            RawEnding::Release(_) => Ending::Release,
            RawEnding::NotBegun(_) => Ending::Unpolled,
            RawEnding::Uncertain(_) => Ending::Uncertain,
        }
    }

    async fn own(
        &self,
        call: &mut ActiveCall,
        own: RawEnding,
        _: Option<RawOutcome>,
    ) -> Self::Answer {
        let (RawEnding::Record(outcome)
        | RawEnding::RecordWithoutOutcome(outcome)
        | RawEnding::Release(outcome)
        | RawEnding::NotBegun(outcome)
        | RawEnding::Uncertain(outcome)) = own;
        let report = call.answered_itself(outcome.is_error());
        Ok((outcome, report))
    }

    async fn instead(&self, call: &mut ActiveCall, instead: Instead) -> Self::Answer {
        let outcome = match instead {
            Instead::Refused(error) => Err(error),
            Instead::OutOfOrder(_) => Err(OutOfOrder::NO_NUMBER),
            Instead::Recorded(record) => match &record.outcome {
                Some(outcome) if is_kept(&record) => Ok(outcome.clone()),
                _ => Err(Error::NotReplayable {
                    operation: Arc::clone(&call.request.operation),
                }),
            },
        };
        let how = call.answered(outcome.as_ref().err());
        Ok((outcome?, how))
    }
}

/// Runs a call with a task of its own for the body and everything after it. Once the call is
/// admitted, the caller's future may be dropped: the call runs on and is recorded. If it is dropped
/// before, nothing is left behind.
pub(crate) async fn run_raw_detached<F, B>(
    described: DescribedCall,
    body: F,
) -> Result<(RawOutcome, CallReport), Error>
where
    F: FnOnce(Attempt) -> B + Send + 'static,
    B: Future<Output = RawEnding> + Send + 'static,
{
    let (call, attempt) = match claim(described, &Raw).await {
        Ok(claimed) => claimed,
        Err(answer) => return answer,
    };
    let operation = Arc::clone(&call.request.operation);
    outlive(operation, Box::pin(carry_out(call, attempt, Raw, body))).await?
}

#[cfg(test)]
mod tests {
    use std::{future::pending, task::Poll, time::Duration};

    use tokio::sync::{Notify, oneshot};

    use super::*;
    use crate::{Idempotency, InFlight, Status};

    fn ok() -> RawEnding {
        RawEnding::Record(RawOutcome::value("receipt"))
    }

    #[tokio::test]
    async fn mend_41_a_duplicate_of_a_call_whose_outcome_was_not_kept_is_not_replayable() {
        let idem = Idempotency::memory();
        let first = idem
            .call("raw")
            .key("k")
            .run_raw(|_| async { RawEnding::RecordWithoutOutcome(RawOutcome::value("receipt")) });
        let (outcome, _) = first.await.expect("its own caller gets it");
        assert_eq!(outcome, RawOutcome::value("receipt"));

        let again = idem.call("raw").key("k").run_raw(|_| pending()).await;

        assert!(
            matches!(again, Err(Error::NotReplayable { .. })),
            "{again:?}"
        );
    }

    #[tokio::test]
    async fn a_detached_call_whose_body_began_is_recorded_without_its_caller() {
        let idem = Idempotency::memory();
        let (begun, has_begun) = oneshot::channel();
        let goes_on = Arc::new(Notify::new());
        let gate = Arc::clone(&goes_on);
        let call = idem.call("raw").key("k").run_raw_detached(|_| async move {
            begun.send(()).expect("the test waits for it");
            gate.notified().await;
            ok()
        });
        let caller = tokio::spawn(call);
        has_begun.await.expect("the body begins");
        caller.abort();
        assert!(caller.await.is_err_and(|stopped| stopped.is_cancelled()));

        goes_on.notify_one();
        let again = idem.call("raw").key("k").run_raw(|_| pending()).await;

        let (outcome, how) = again.expect("it is recorded");
        assert_eq!(outcome, RawOutcome::value("receipt"));
        assert!(matches!(how, CallReport::Replayed { .. }), "{how:?}");
    }

    #[tokio::test]
    async fn a_detached_call_that_still_waits_goes_with_its_caller() {
        let idem = Idempotency::memory();
        let (begun, has_begun) = oneshot::channel();
        let first = idem.call("raw").key("k").run_raw_detached(|_| async move {
            begun.send(()).expect("the test waits for it");
            pending().await
        });
        let first = tokio::spawn(first);
        has_begun.await.expect("the body begins");
        let (held, gone) = oneshot::channel::<()>();
        let mut waiter = Box::pin(
            idem.call("raw")
                .key("k")
                .in_flight(InFlight::Wait(Duration::from_secs(3_600)))
                .run_raw_detached(move |_| async move {
                    drop(held);
                    ok()
                }),
        );
        let polled = std::future::poll_fn(|cx| Poll::Ready(waiter.as_mut().poll(cx))).await;
        assert!(polled.is_pending());

        drop(waiter);

        // The value that its body would have held is dropped with its task.
        assert!(gone.await.is_err());
        let status = idem.lookup("raw", None::<&str>, "k").await;
        assert!(
            matches!(status, Ok(Status::Processing { .. })),
            "{status:?}"
        );
        first.abort();
    }
}
