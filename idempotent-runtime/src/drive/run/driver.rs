//! The driver of calls that hold a lease: claim, body, record and answer, in this order. A detached
//! call claims here, too, and carries the rest out in a task of its own. A [`Codec`] keeps the
//! result of a body and makes the answer.
//!
//! A body runs only after its claim. It is answered only after its record is written, or after the
//! store failed to take it.

use std::{
    future::Future,
    pin::{Pin, pin},
};

use super::active_call::{ActiveCall, Instead};
use crate::{
    attempt::Attempt, error::Error, protocol::Ending, record::RawOutcome, request::Request,
};

/// How the results of a body are kept and read back.
pub(crate) trait Codec<R> {
    /// The result of a body, as its own caller gets it.
    type Own;
    /// The answer to the call.
    type Answer;

    /// Tells whether an `Err` can be recorded.
    fn errors_can_end(&self, request: &Request) -> bool;

    /// Answers a call that never became one.
    fn refused(&self, error: Error) -> Self::Answer;

    /// Takes the result of a body.
    fn take(result: R) -> Self::Own;

    /// Decides, as a part of the attempt, how the result ends the call.
    async fn leave(&self, call: &ActiveCall, attempt: &Attempt, own: &mut Self::Own) -> Ending;

    /// The reference that the value is to be read back from once it is recorded.
    fn reference(_: &Ending) -> Option<RawOutcome> {
        None
    }

    /// Answers with the result of the call's own body.
    async fn own(
        &self,
        call: &mut ActiveCall,
        own: Self::Own,
        reference: Option<RawOutcome>,
    ) -> Self::Answer;

    /// Answers with something else.
    async fn instead(&self, call: &mut ActiveCall, instead: Instead) -> Self::Answer;
}

/// Claims, then runs a body that is made when it is known which attempt runs it.
pub(crate) async fn run<R, C, F, B>(mut call: Box<ActiveCall>, codec: C, body: F) -> C::Answer
where
    C: Codec<R>,
    F: FnOnce(Attempt) -> B,
    B: Future<Output = R>,
{
    match claim(&mut call, &codec).await {
        Ok(attempt) => carry_out(call, attempt, codec, body).await,
        Err(instead) => codec.instead(&mut call, instead).await,
    }
}

/// The same for a body that is there already, and stays where it is. Code that is not about the
/// body stands elsewhere, so that it is not compiled again for every body.
pub(crate) async fn run_pinned<R, C, B, T>(
    call: Result<Box<ActiveCall>, Box<Error>>,
    codec: C,
    body: Pin<&mut Option<B>>,
    take: fn(C::Answer) -> T,
) -> T
where
    C: Codec<R>,
    B: Future<Output = R>,
{
    let mut call = match call {
        Ok(call) => call,
        Err(error) => return take(codec.refused(*error)),
    };
    let instead = match claim(&mut call, &codec).await {
        Ok(attempt) => match run_and_record(&mut call, &attempt, &codec, body).await {
            Ok(answer) => return take(answer),
            Err(instead) => instead,
        },
        Err(instead) => instead,
    };
    take(codec.instead(&mut call, instead).await)
}

/// Claims: the attempt that is to run the body, or what answers instead.
pub(super) fn claim<R, C: Codec<R>>(
    call: &mut ActiveCall,
    codec: &C,
) -> impl Future<Output = Result<Attempt, Instead>> {
    call.request.errors_can_end = codec.errors_can_end(&call.request);
    call.admit()
}

/// Carries out a call that has claimed, which a detached call does in a task of its own.
pub(super) async fn carry_out<R, C, F, B>(
    mut call: Box<ActiveCall>,
    attempt: Attempt,
    codec: C,
    body: F,
) -> C::Answer
where
    C: Codec<R>,
    F: FnOnce(Attempt) -> B,
    B: Future<Output = R>,
{
    let done = {
        let body = pin!(Some(call.make(&attempt, body)));
        run_and_record(&mut call, &attempt, &codec, body).await
    };
    match done {
        Ok(answer) => answer,
        Err(instead) => codec.instead(&mut call, instead).await,
    }
}

/// Runs the body, and records how it ended; what answers the call in its place.
async fn run_and_record<R, C, B>(
    call: &mut ActiveCall,
    attempt: &Attempt,
    codec: &C,
    body: Pin<&mut Option<B>>,
) -> Result<C::Answer, Instead>
where
    C: Codec<R>,
    B: Future<Output = R>,
{
    if attempt.undoes() {
        return Err(Box::pin(call.find_and_undo(attempt, body)).await);
    }
    let mut own = C::take(call.run(attempt, body).await);
    let ending = codec.leave(call, attempt, &mut own).await;
    let reference = C::reference(&ending);
    match call.end(attempt, ending).await {
        Some(instead) => Err(instead),
        None => Ok(codec.own(call, own, reference).await),
    }
}
