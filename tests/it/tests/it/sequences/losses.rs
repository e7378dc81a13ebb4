//! Answers that are lost or late, and writes that fail.

use std::time::Duration;

use idempotent_runtime::{
    Error, InFlight, RecordChange, StoreErrorKind,
    sequence::Decision,
    testing::{Fault, On, StoreOperation},
};

use super::{ApplyError, account, apply, assert_applied, assert_decided, begin, position};
use crate::harness::{World, while_time_goes_on};

on_every_store![
    a_lost_answer_to_a_claim_or_an_ending_changes_nothing,
    a_number_whose_outcome_is_not_recorded_is_not_said_to_be_applied,
    a_claim_that_is_given_up_leaves_the_number,
    a_slow_body_keeps_its_number_and_the_last_outcome,
];

async fn a_lost_answer_to_a_claim_or_an_ending_changes_nothing(world: World) {
    let owner = world.owner().await;
    let account = account(&owner);
    for (number, operation) in [
        (1, StoreOperation::Claim),
        (2, StoreOperation::Claim),
        (3, StoreOperation::Ending),
    ] {
        owner.fault(operation, On::Call(1), Fault::LoseAnswer);
        let (its, world_) = (account.clone(), world.clone());
        let applied = async move { apply(&world_, &its, number).await };
        let applied = while_time_goes_on(&owner.timer, applied).await;
        match applied {
            Err(ApplyError::Ours(Error::Store(_))) if operation == StoreOperation::Ending => {}
            applied => assert_applied(applied, number),
        }
        owner.store.heal();
        assert_eq!(world.runs(&number.to_string()), 1, "{operation:?}");
        assert_eq!(position(&account).await.last, Some(number));
    }
    assert_decided(apply(&world, &account, 3).await, Decision::Replayed(30));
}

async fn a_number_whose_outcome_is_not_recorded_is_not_said_to_be_applied(world: World) {
    let owner = world.owner().await;
    let account = account(&owner);
    owner.fails(
        StoreOperation::Ending,
        On::Every,
        StoreErrorKind::Unavailable,
    );
    let (its, world_) = (account.clone(), world.clone());
    let unwritten = async move { apply(&world_, &its, 1).await };
    let unwritten = while_time_goes_on(&owner.timer, unwritten).await;
    let error = unwritten.expect_err("it is not recorded").ours();
    assert!(error.is_retryable(), "{error:?}");
    owner.store.heal();
    let (its, world_) = (account.clone(), world.clone());
    let again = async move { apply(&world_, &its, 1).await };
    let again = while_time_goes_on(&owner.timer, again).await;
    assert_decided(again, Decision::Replayed(10));
    assert_eq!(world.runs("1"), 1);
}

async fn a_claim_that_is_given_up_leaves_the_number(world: World) {
    let owner = world.owner().await;
    let account = account(&owner);
    for number in 1..=2 {
        let gate = owner.delays_answer(StoreOperation::Claim, On::Every);
        let (its, world_) = (account.clone(), world.clone());
        let dropped = owner.spawn(async move { apply(&world_, &its, number).await });
        gate.arrived(1).await;
        dropped.abort();
        assert!(dropped.await.is_err());
        gate.open();
        owner.store.heal();
        owner.settled().await;
        let standing = position(&account).await;
        assert_eq!(standing.running, None, "{standing:?}");
        assert_eq!(standing.last, (number > 1).then_some(number - 1));
        assert_applied(apply(&world, &account, number).await, number);
        assert_eq!(world.runs(&number.to_string()), 1);
    }
}

async fn a_slow_body_keeps_its_number_and_the_last_outcome(world: World) {
    let (one, other) = (world.owner().await, world.owner().await);
    let (slow, other) = (account(&one), account(&other).in_flight(InFlight::Reject));
    assert_applied(apply(&world, &slow, 1).await, 1);
    let (gate, task) = begin(&one, &slow, 2).await;
    for beat in 1..=6 {
        world.advance(Duration::from_secs(10)).await;
        one.log.await_steps(RecordChange::Heartbeat, beat).await;
        assert_decided(apply(&world, &other, 1).await, Decision::Replayed(10));
        let held = apply(&world, &other, 2)
            .await
            .expect_err("it is held")
            .ours();
        assert!(matches!(held, Error::InProgress { .. }), "{held:?}");
    }
    gate.open();
    assert_applied(task.await.expect("no panic"), 2);
    assert_decided(apply(&world, &other, 2).await, Decision::Replayed(20));
}
