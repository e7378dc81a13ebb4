//! The path that a call takes when its code has changed.

use super::{described::Described, permit};
use crate::{
    error::Error,
    outcome::Released,
    run::typed::{Typed, read::replay, record::keep},
};

/// Tells whether a call takes the path that came with this name: calls that began before the code
/// had it finish on the old path.
///
/// The answer is recorded once, like a step, and is the same on every attempt. A call that begins
/// with this build takes the new path. A call takes the old one if an earlier attempt began it and
/// did not come here: it is unknown whether that attempt ran the old code. Delete the old path once
/// no such call is left. A call without a record takes the new path.
///
/// # Errors
///
/// As [`StepCall::run`](crate::step::StepCall::run).
///
/// # Cancel safety
///
/// As [`StepCall::run`](crate::step::StepCall::run).
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{Error, Idempotency, step, step_version};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let idem = Idempotency::memory();
/// let call = idem.call("orders.ship").key("order-42");
/// let carrier = call.run(async |_| {
///     if step_version("two carriers").await? {
///         step("choose", async |_| Ok::<_, Error>("fast".to_owned())).await
///     } else {
///         Ok("slow".to_owned())
///     }
/// });
/// assert_eq!(carrier.await?, "fast");
/// # Ok(()) }
/// ```
pub async fn step_version(name: &'static str) -> Result<bool, Error> {
    let described = Described {
        is_version: true,
        ..Described::new(name, &("step_version", name))
    };
    let asking = described.asking();
    let answer = recorded(described).await;
    asking.answered(answer.as_ref().err());
    answer
}

async fn recorded(described: Described) -> Result<bool, Error> {
    let typed = Typed::whole(Released);
    let (permit, stands) = match permit::begin(described).await? {
        permit::Begun::Unprotected(_) => return Ok(true),
        permit::Begun::Recorded(permit, step) => (permit, step),
        // The call began before the code had this name.
        permit::Begun::Run(permit) if permit.only_reads() => return Ok(false),
        permit::Begun::Run(mut permit) => {
            let mut takes_new = Ok::<_, Error>(permit.is_fresh());
            let kept = keep(&permit.place(), &typed, &mut takes_new).await;
            let Some(outcome) = kept else {
                return takes_new;
            };
            match permit.record(outcome).await? {
                None => return takes_new,
                Some(stands) => (permit, stands),
            }
        }
    };
    let described = permit.described();
    replay(&permit.place(), &described, &typed, stands.outcome.as_ref()).await?
}
