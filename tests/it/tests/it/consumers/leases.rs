//! Messages whose lease ended while their handler ran: the disposition follows the record.

use std::{io, time::Duration};

use idempotent_runtime::{
    Attempt, StoreErrorKind, Verdict,
    consumer::{Consumer, DeadLetterReason, Disposition},
    testing::Gate,
};

use super::{Refused, assert_ack, assert_dead, assert_retry, consumer, deliver};
use crate::harness::{Owner, World};

on_every_store![
    mend_02_a_lease_that_ended_by_the_local_clock_alone_changes_no_disposition,
    mend_02_the_outcome_of_another_attempt_is_a_replay,
    mend_02_the_error_of_another_attempt_is_a_dead_letter,
];

const LEASE: Duration = Duration::from_secs(31);

/// Has the store be away for longer than the lease. Nobody takes over, because the store's own
/// clock stands still.
async fn is_away(owner: &Owner, attempt: &Attempt) {
    owner.store.outage(StoreErrorKind::Unavailable);
    owner.timer.advance(LEASE);
    attempt.lost().await;
    owner.store.heal();
}

/// Delivers a message whose handler loses its lease by the clock, and ends so.
async fn late(owner: &Owner, consumer: &Consumer, id: &str, ends: Option<Verdict>) -> Disposition {
    let message = consumer.message(id).payload("an order").delivery(1);
    let message = message.classify_errors(move |_: &Refused| ends.unwrap_or(Verdict::Replay));
    message
        .run(async |attempt| {
            is_away(owner, &attempt).await;
            match ends {
                None => Ok(()),
                Some(_) => Err(Refused),
            }
        })
        .await
}

async fn mend_02_a_lease_that_ended_by_the_local_clock_alone_changes_no_disposition(world: World) {
    let owner = world.owner().await;
    let consumer = consumer(&owner);

    let released = late(&owner, &consumer, "released", Some(Verdict::Release)).await;
    let error = assert_retry(released).expect("the handler's own");
    assert_eq!(error.downcast_ref(), Some(&Refused));
    let uncertain = late(&owner, &consumer, "uncertain", Some(Verdict::Uncertain)).await;
    assert_dead(uncertain, DeadLetterReason::Uncertain);
    let failed = late(&owner, &consumer, "failed", Some(Verdict::Replay)).await;
    assert_dead(failed, DeadLetterReason::Failed);
    assert_ack(late(&owner, &consumer, "done", None).await, false);

    assert_ack(deliver(&world, &consumer, "released", 2).await, false);
    let again = deliver(&world, &consumer, "uncertain", 2).await;
    assert_dead(again, DeadLetterReason::Uncertain);
    assert_ack(deliver(&world, &consumer, "done", 2).await, true);
    assert_eq!(world.runs("released"), 1);
    assert_eq!(world.runs("uncertain") + world.runs("done"), 0);
}

/// Has a handler fail with a released error after its message was taken over by `other`.
async fn taken_over(world: &World, other: impl AsyncFnOnce(&Consumer)) -> Disposition {
    let (stale, next) = (world.owner().await, world.owner().await);
    let (gate, its) = (Gate::new(), consumer(&stale));
    let held = gate.clone();
    let task = stale.spawn(async move {
        let message = its.message("m").payload("an order").delivery(1);
        let handled = message.run(async |_| {
            held.pass().await;
            Err::<(), _>(Refused)
        });
        handled.await
    });
    gate.arrived(1).await;
    world.advance_store(LEASE).await;
    other(&consumer(&next)).await;
    gate.open();
    task.await.expect("no panic")
}

async fn mend_02_the_outcome_of_another_attempt_is_a_replay(world: World) {
    let late = taken_over(&world, async |next| {
        assert_ack(deliver(&world, next, "m", 2).await, false);
    });
    assert_ack(late.await, true);
    assert_eq!(world.runs("m"), 1);
}

async fn mend_02_the_error_of_another_attempt_is_a_dead_letter(world: World) {
    let late = taken_over(&world, async |next| {
        let message = next.message("m").payload("an order").record_errors();
        let failed = message.run(async |_| Err::<(), _>(Refused)).await;
        assert_dead(failed, DeadLetterReason::Failed);
    });
    assert_dead(late.await, DeadLetterReason::Failed);
    let consumer = consumer(&world.owner().await);
    let message = consumer.message("m").payload("an order");
    let again = message.run(async |_| -> io::Result<()> { panic!("it ran") });
    assert_dead(again.await, DeadLetterReason::Failed);
}
