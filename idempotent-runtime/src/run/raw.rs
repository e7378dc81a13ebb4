//! The raw form: bytes in, bytes out.

use std::{future::Future, sync::Arc};

use crate::{
    attempt::Attempt,
    call::RawEnding,
    error::Error,
    lease::Ending,
    observe::How,
    record::RawOutcome,
    request::Request,
    run::{Came, execute},
};

pub(crate) async fn run_raw<F, B>(
    request: Box<Request>,
    body: F,
) -> Result<(RawOutcome, How), Error>
where
    F: FnOnce(Attempt) -> B,
    B: Future<Output = RawEnding>,
{
    let longest = request.handle.defaults().max_outcome;
    let (came, how) = execute(&request, |attempt| async {
        match body(attempt).await {
            RawEnding::Record(outcome) if outcome.bytes.len() <= longest => {
                (Ending::Done(outcome.clone()), outcome)
            }
            RawEnding::Record(outcome) | RawEnding::RecordWithoutOutcome(outcome) => {
                (Ending::Done(RawOutcome::not_replayable()), outcome)
            }
            RawEnding::Release(outcome) => (Ending::Release, outcome),
            RawEnding::Uncertain(outcome) => (Ending::Uncertain, outcome),
        }
    })
    .await;
    match came {
        Came::Ran(outcome) => Ok((outcome, how)),
        Came::Recorded(record) => match &record.outcome {
            Some(outcome) if super::is_kept(&record) => Ok((outcome.clone(), how)),
            _ => Err(Error::NotReplayable {
                operation: Arc::clone(&request.operation),
            }),
        },
        Came::Refused(error) => Err(error),
    }
}
