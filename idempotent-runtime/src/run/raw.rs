//! The raw form: bytes in, bytes out.

use std::{future::Future, pin::pin, sync::Arc};

use crate::{
    attempt::Attempt,
    call::RawEnding,
    error::Error,
    lease::Ending,
    observe::How,
    record::RawOutcome,
    request::Request,
    run::underway::{Instead, Underway, is_kept},
};

pub(crate) async fn run_raw<F, B>(
    request: Box<Request>,
    body: F,
) -> Result<(RawOutcome, How), Error>
where
    F: FnOnce(Attempt) -> B,
    B: Future<Output = RawEnding>,
{
    let mut call = Underway::new(request);
    let left = match call.admit().await {
        Ok(attempt) => {
            let body = pin!(Some(body(attempt.clone())));
            Ok((call.run(&attempt, body).await, attempt))
        }
        Err(instead) => Err(instead),
    };
    let outcome = answer(&mut call, left).await;
    let how = call.answered(outcome.as_ref().err());
    Ok((outcome?, how))
}

async fn answer(
    call: &mut Underway,
    left: Result<(RawEnding, Attempt), Instead>,
) -> Result<RawOutcome, Error> {
    let instead = match left {
        Ok((left, attempt)) => {
            let (ending, own) = leave(call, left);
            match call.end(&attempt, ending).await {
                Some(instead) => instead,
                None => return Ok(own),
            }
        }
        Err(instead) => instead,
    };
    match instead {
        Instead::Refused(error) => Err(error),
        Instead::Recorded(record) => match &record.outcome {
            Some(outcome) if is_kept(&record) => Ok(outcome.clone()),
            _ => Err(Error::NotReplayable {
                operation: Arc::clone(&call.request.operation),
            }),
        },
    }
}

fn leave(call: &Underway, left: RawEnding) -> (Ending, RawOutcome) {
    let longest = call.request.handle.defaults().max_outcome;
    match left {
        RawEnding::Record(outcome) if outcome.bytes.len() <= longest => {
            (Ending::Done(outcome.clone()), outcome)
        }
        RawEnding::Record(outcome) | RawEnding::RecordWithoutOutcome(outcome) => {
            (Ending::Done(RawOutcome::not_replayable()), outcome)
        }
        RawEnding::Release(outcome) => (Ending::Release, outcome),
        RawEnding::Uncertain(outcome) => (Ending::Uncertain, outcome),
    }
}
