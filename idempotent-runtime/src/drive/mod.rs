//! One call, from its description to its answer. This file has the order of things, and only this.
//!
//! A front describes the call (`request`). A call that cannot be described is refused, and nothing
//! was written. Any other call **claims**: its claim goes to the store as if nothing stood there,
//! and the protocol decides what a refusal means. So it holds the record, waits, or is answered by
//! what stands. A call that holds the record **runs its body**, once, as an attempt. Then it
//! **records** how the body ended, and only then its caller is answered.
//!
//! Two things vary. A [`Codec`] keeps the result of a body and makes the answer: `typed` for
//! functions, `raw` for bytes. The place of the claim is a lease ([`run`], [`run_pinned`],
//! [`run_detached`](run::run_detached)), the application's transaction ([`run_in`]), or one of our
//! own ([`transact`](transaction::transact), which tries the whole of it again). In a transaction
//! no heartbeat runs: the record commits and rolls back with the rows of the body.
//!
//! A body never runs without a claim that stands. Its outcome is told only after the write, or
//! after the store has failed to take it: then a job of the engine goes on trying. Dropped at any
//! await, a call leaves no lease without a job that ends it.
//!
//! Sizes decide the form of this code, and a test bounds them. An annotated function holds the
//! future of its call, and is compiled for each body. So the call itself is boxed, claiming is
//! compiled once and boxed inside, and a pinned body stays where it is. [`run_pinned`] answers in
//! one place: an answer in [`claim`], too, made each annotated function 32 bytes larger. A detached
//! call is carried out beside its codec (`typed`, `raw`), because generic code does not know that
//! the futures of a codec are `Send`. The expansion of `tx` claims, runs and records inline, over
//! [`Joined`](run::Joined).

pub(crate) mod request;
pub(crate) mod run;
#[cfg(feature = "_sql")]
pub mod transaction;

use std::{
    future::Future,
    pin::{Pin, pin},
};

use self::run::{ActiveCall, Codec, Instead};
#[cfg(feature = "_sql")]
use self::run::{Finished, ResultCodec, join};
use crate::{attempt::Attempt, error::Error};
#[cfg(feature = "_sql")]
use crate::{outcome::Outcome, store::SqlConnection};

/// A call that is described, or the reason why it cannot be run.
pub(crate) type DescribedCall = Result<Box<ActiveCall>, Box<Error>>;

/// Claims, runs a body that is made when it is known which attempt runs it, and records.
pub(crate) async fn run<R, C, F, B>(described: DescribedCall, codec: C, body: F) -> C::Answer
where
    C: Codec<R>,
    F: FnOnce(Attempt) -> B,
    B: Future<Output = R>,
{
    match claim(described, &codec).await {
        Ok((call, attempt)) => carry_out(call, attempt, codec, body).await,
        Err(answer) => answer,
    }
}

/// The same for a body that is there already, and stays where it is. Code that is not about the
/// body stands elsewhere, so that it is not compiled again for every body.
pub(crate) async fn run_pinned<R, C, B, T>(
    described: DescribedCall,
    codec: C,
    body: Pin<&mut Option<B>>,
    take: fn(C::Answer) -> T,
) -> T
where
    C: Codec<R>,
    B: Future<Output = R>,
{
    let mut call = match described {
        Ok(call) => call,
        Err(error) => return take(C::refused(*error)),
    };
    let instead = match admit(&mut call, &codec).await {
        Ok(attempt) => match run_and_record(&mut call, &attempt, &codec, body).await {
            Ok(answer) => return take(answer),
            Err(instead) => instead,
        },
        Err(instead) => instead,
    };
    take(codec.instead(&mut call, instead).await)
}

/// Runs a call as a part of the application's transaction.
#[cfg(feature = "_sql")]
pub(crate) async fn run_in<C, R, Q, F>(
    described: DescribedCall,
    codec: Q,
    connection: &mut C,
    body: F,
) -> Finished<Q::Answer>
where
    C: SqlConnection,
    R: Outcome,
    Q: ResultCodec<R>,
    F: AsyncFnOnce(&mut C) -> R,
{
    let mut joined = match join(described, codec, connection).await {
        Ok(joined) => joined,
        Err(answer) => return answer.into(),
    };
    let own = joined.make_and_run(|| body(&mut *connection)).await;
    joined.end(connection, own).await
}

/// Claims: the attempt that is to run the body, or the answer of what stands in its way.
pub(crate) async fn claim<R, C: Codec<R>>(
    described: DescribedCall,
    codec: &C,
) -> Result<(Box<ActiveCall>, Attempt), C::Answer> {
    let mut call = described.map_err(|error| C::refused(*error))?;
    match admit(&mut call, codec).await {
        Ok(attempt) => Ok((call, attempt)),
        Err(instead) => Err(codec.instead(&mut call, instead).await),
    }
}

/// Sends the claim: the attempt that is to run the body, or what answers instead.
fn admit<R, C: Codec<R>>(
    call: &mut ActiveCall,
    codec: &C,
) -> impl Future<Output = Result<Attempt, Instead>> {
    call.request.errors_can_end = codec.errors_can_end(&call.request);
    call.admit()
}

/// Carries out a call that has claimed: a detached one does it in a task of its own.
pub(crate) async fn carry_out<R, C, F, B>(
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
