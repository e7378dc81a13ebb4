//! The raw form: bytes in, bytes out.

use std::{future::Future, sync::Arc};

use crate::{
    attempt::Attempt,
    call::RawEnding,
    error::Error,
    lease::Ending,
    observe::How,
    record::{RawOutcome, Record},
    request::Request,
    run::execute,
};

pub(crate) async fn run_raw<F, B>(request: Request, body: F) -> Result<(RawOutcome, How), Error>
where
    F: FnOnce(Attempt) -> B,
    B: Future<Output = RawEnding>,
{
    let longest = request.handle.defaults().max_outcome;
    let run = |attempt: Attempt| async {
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
    };
    let operation = &request.operation;
    let read = |record: Arc<Record>| async move {
        match &record.outcome {
            Some(outcome) if super::is_kept(&record) => Ok(outcome.clone()),
            _ => Err(Error::NotReplayable {
                operation: Arc::clone(operation),
            }),
        }
    };
    let (answer, how) = execute(&request, run, read).await;
    answer.map(|outcome| (outcome, how))
}
