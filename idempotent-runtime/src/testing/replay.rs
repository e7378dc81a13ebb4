//! The part of the kit that replays the steps of a call.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use crate::{
    Idempotency,
    attempt::{Attempt, Stage},
    engine::lease::Lease,
    engine::steps::Replay,
    engine::steps::StepScope,
    identity::RecordId,
    policy::{OnCrash, OnExpired},
    protocol::{Claim, Holding, Meaning},
    record::{AttemptId, FencingToken, Holder, LONGEST_TTL, Step, Subject, Version},
    step::StepDifference,
};

/// How long a body may stand where no step of it moves.
const STILL: Duration = Duration::from_secs(1);

/// Runs a body over the steps that are recorded of an earlier run of it, and runs no step's body:
/// a test that code which changed still goes on with the calls that are under way.
///
/// `steps` are those of one call, as [`load_steps`](crate::store::StepStore::load_steps) returns
/// them, and `idem` is a handle with the codec and the fingerprint key of the one that recorded
/// them. A step with a recorded outcome answers with it; any other one stays pending. The body may
/// end, or stand at a step that is not recorded once it has come to all that are: then there is no
/// difference. Gives what the body returned, where it ended.
///
/// The body's own code does run, and so do other calls in it. A body in which no step moves for a
/// second is taken to stand.
///
/// # Errors
///
/// The first [`StepDifference`].
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{Error, Idempotency, record::StepName, step, testing::replay_steps};
///
/// async fn ship(order: u64) -> Result<u64, Error> {
///     let paid = step("charge", async |_| Ok::<_, Error>(order)).arguments(&order).await?;
///     step("mail", async |_| Ok::<_, Error>(paid)).await
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let idem = Idempotency::memory();
/// idem.call("orders.ship").key("order-7").run(async |_| ship(7).await).await?;
///
/// let (id, _) = &idem.store().scan(None, 1).await?[0];
/// let store = idem.store().steps().expect("a store with steps");
/// let steps = store.load_steps(id, &StepName::ALL).await?;
/// assert_eq!(replay_steps(&idem, &steps, ship(7)).await?, Some(Ok(7)));
/// let changed = replay_steps(&idem, &steps, ship(8)).await;
/// assert!(changed.is_err_and(|difference| difference.to_string().contains("`charge`")));
/// # Ok(()) }
/// ```
pub async fn replay_steps<T>(
    idem: &Idempotency,
    steps: &[Arc<Step>],
    body: impl Future<Output = T>,
) -> Result<Option<T>, StepDifference> {
    let lease = Arc::new(unending());
    let attempt = &lease.attempt;
    let scope = StepScope::new(idem.engine(), &lease, Meaning::Takeover, true);
    attempt.keep_steps(scope.replaying(Replay::of(steps)));
    let Some(replay) = attempt.steps().and_then(StepScope::replay) else {
        unreachable!("the scope has just been given")
    };
    let mut body = pin!(attempt.enter(body));
    loop {
        let mut moved = pin!(tokio::time::timeout(STILL, replay.moved()));
        let course = poll_fn(|cx| match body.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(ReplayEnd::Ended(output)),
            Poll::Pending => moved.as_mut().poll(cx).map(|moved| match moved {
                Ok(()) => ReplayEnd::GoesOn,
                Err(_) => ReplayEnd::Stands,
            }),
        });
        let ended = match course.await {
            ReplayEnd::Ended(output) => Some(output),
            ReplayEnd::GoesOn if !replay.is_over() => continue,
            ReplayEnd::GoesOn | ReplayEnd::Stands => None,
        };
        return replay.difference().map_or(Ok(ended), Err);
    }
}

/// How far a body is.
enum ReplayEnd<T> {
    Ended(T),
    GoesOn,
    Stands,
}

/// A lease of no record, which does not end.
fn unending() -> Lease {
    let claim = Claim {
        subject: Arc::new(Subject::unknown()),
        attempt_id: AttemptId::random(),
        holder: Holder {
            label: "".into(),
            trace_parent: None,
        },
        on_crash: OnCrash::Rerun,
        lease: LONGEST_TTL,
        ttl: LONGEST_TTL,
        keep: Duration::ZERO,
        on_expired: OnExpired::Run,
        max_takeovers: 1,
        numbered: None,
        goes_on: false,
    };
    let holding = Holding::new(&claim, 2, OnCrash::Rerun, Meaning::Takeover);
    let (id, token) = (RecordId::from_bytes([0; 32]), FencingToken::from_u64(0));
    let attempt = Attempt::new(id, "replay".into(), 2, Some(token), Stage::Body);
    Lease::new(attempt, holding, Version::random(), Duration::ZERO)
}
