//! The way from a body's result to its record and its answer: the part of a call that knows types
//! of the application's.

use super::active_call::{ActiveCall, Instead};
#[cfg(feature = "_sql")]
use crate::outcome::Outcome;
use crate::{
    attempt::Attempt, error::Error, protocol::Ending, record::RawOutcome, request::Request,
};

/// How the results of a body are kept and read back.
pub(crate) trait Codec<R> {
    /// The result of a body, as its own caller gets it.
    type Own;
    /// The answer to the call.
    type Answer;

    /// Whether no `Err` is ever recorded.
    #[cfg(feature = "_sql")]
    const RELEASES: bool = false;

    /// Tells whether an `Err` can be recorded.
    fn errors_can_end(&self, request: &Request) -> bool;

    /// Answers a call that never became one, or whose task is gone.
    fn refused(error: Error) -> Self::Answer;

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

/// A codec for functions, which return a `Result`.
#[cfg(feature = "_sql")]
pub(crate) trait ResultCodec<R: Outcome>:
    Codec<R, Own = Result<R::Value, R::Error>>
{
}

#[cfg(feature = "_sql")]
impl<R: Outcome, Q: Codec<R, Own = Result<R::Value, R::Error>>> ResultCodec<R> for Q {}
