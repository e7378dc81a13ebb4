//! The account: it applies the next event of its stream, and no other.

use idempotent_runtime::{
    Idempotency,
    sequence::{Decision, FromFirst, Sequence},
};
use sqlx::SqlitePool;

use super::{
    books::{self, ApplyError},
    plan::{Event, Events},
};

/// The stream of the account: it begins with 1, and no number may be missing.
pub(super) fn stream(idem: &Idempotency) -> Sequence<FromFirst> {
    idem.sequence("accounts", "account-7").first(1)
}

/// Applies an event if its number is the next one. The number moves in the transaction of the rows.
async fn apply(
    pool: &SqlitePool,
    stream: &Sequence<FromFirst>,
    event: &Event,
) -> Result<Decision<()>, ApplyError> {
    let call = stream.clone().number(event.number).arguments(event);
    call.transact(pool, async |tx| books::book(tx, event).await)
        .await
}

/// Applies the event that was delivered, and tells how many gaps it met. Behind a gap it goes back
/// in the source to the number that is missing.
pub(super) async fn deliver(
    pool: &SqlitePool,
    stream: &Sequence<FromFirst>,
    source: &Events,
    delivered: u64,
) -> Result<u32, ApplyError> {
    let mut gaps = 0;
    let mut number = delivered;
    loop {
        match apply(pool, stream, source.read(number)).await? {
            // Nothing ran, because numbers before it are missing.
            Decision::Gap { expected, .. } => {
                gaps += 1;
                number = expected;
            }
            // It is applied: by this call, or before.
            Decision::Applied(()) | Decision::Replayed(()) | Decision::Past { .. } => {
                if number == delivered {
                    return Ok(gaps);
                }
                number += 1;
            }
        }
    }
}
