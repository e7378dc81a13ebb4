//! Numbers that are missing: refused, waited for, or left out.

use std::time::Duration;

use idempotent_runtime::{
    CallOutcome, InFlight, RecordChange,
    sequence::{AcceptGaps, Decision, Sequence, Standing},
};

use super::{ApplyError, Decided, account, apply, assert_applied, assert_decided, begin};
use crate::harness::{Owner, World, while_time_goes_on};

on_every_store![
    a_number_waits_for_those_before_it,
    a_number_that_waits_in_vain_is_a_gap,
    i12_every_larger_number_is_applied_where_gaps_are_accepted,
    a_larger_number_passes_one_whose_holder_vanished,
    a_number_that_passed_another_and_did_nothing_puts_it_back,
];

async fn a_number_waits_for_those_before_it(world: World) {
    let owner = world.owner().await;
    let mut waiting = Vec::new();
    for number in [3, 2] {
        let (world, account) = (world.clone(), account(&owner).wait_for_gap("10s"));
        let applied = async move { apply(&world, &account, number).await };
        waiting.push((number, owner.spawn(applied)));
    }
    // The others look whether the stream has begun, by this timer.
    let (its, world_) = (account(&owner), world.clone());
    let first = while_time_goes_on(&owner.timer, async move {
        let first = apply(&world_, &its, 1).await;
        for (number, task) in waiting {
            assert_applied(task.await.expect("no panic"), number);
        }
        first
    });
    assert_applied(first.await, 1);
    for number in 1..=3 {
        assert_eq!(world.runs(&number.to_string()), 1);
    }
}

async fn a_number_that_waits_in_vain_is_a_gap(world: World) {
    let owner = world.owner().await;
    for last in [None, Some(1)] {
        if last.is_some() {
            assert_applied(apply(&world, &account(&owner), 1).await, 1);
        }
        let (world, account) = (world.clone(), account(&owner).wait_for_gap("100ms"));
        let waited = async move { apply(&world, &account, 3).await };
        let gap = Decision::Gap {
            expected: last.map_or(1, |last| last + 1),
            got: 3,
        };
        assert_decided(while_time_goes_on(&owner.timer, waited).await, gap);
    }
    let answers = owner.log.answers();
    let (gap, applied) = (CallOutcome::Gap, CallOutcome::Executed);
    assert_eq!(answers, [gap, applied, gap]);
}

fn newest(owner: &Owner) -> Sequence<AcceptGaps> {
    owner.idem.sequence("accounts", "account-7").accept_gaps()
}

async fn set(world: &World, newest: &Sequence<AcceptGaps>, number: u64) -> Decided {
    let call = newest.clone().number(number).arguments(&(number * 10));
    call.run(async |_| {
        world.happened(&number.to_string());
        Ok(number * 10)
    })
    .await
}

async fn i12_every_larger_number_is_applied_where_gaps_are_accepted(world: World) {
    let owner = world.owner().await;
    let newest = newest(&owner);
    for number in [3, 4, 9] {
        assert_applied(set(&world, &newest, number).await, number);
        assert_decided(
            set(&world, &newest, number).await,
            Decision::Replayed(number * 10),
        );
    }
    for left_out in [0, 5, 8] {
        assert_decided(
            set(&world, &newest, left_out).await,
            Decision::Past { last: 9 },
        );
        assert_eq!(world.runs(&left_out.to_string()), 0);
    }
    let answers = owner.log.answers();
    assert_eq!(answers.last(), Some(&CallOutcome::Past));
}

async fn a_larger_number_passes_one_whose_holder_vanished(world: World) {
    let dead = world.owner().await;
    let (_gate, task) = begin(&dead, &account(&dead), 1).await;
    dead.die_in(task).await;
    world.advance(Duration::from_secs(31)).await;

    let owner = world.owner().await;
    let newest = newest(&owner);
    let call = newest.clone().number(5);
    let passed = call.run(async |attempt| Ok::<_, ApplyError>(u64::from(attempt.is_takeover())));
    assert_decided(passed.await, Decision::Applied(1));
    owner.assert_steps(&[RecordChange::Passed, RecordChange::Recorded]);
    assert_decided(set(&world, &newest, 1).await, Decision::Past { last: 5 });
}

async fn a_number_that_passed_another_and_did_nothing_puts_it_back(world: World) {
    let dead = world.owner().await;
    let (_gate, task) = begin(&dead, &account(&dead), 1).await;
    dead.die_in(task).await;
    world.advance(Duration::from_secs(31)).await;

    let owner = world.owner().await;
    let newest = newest(&owner).in_flight(InFlight::Reject);
    let call = newest.clone().number(5);
    let failed = call.run(async |_| Err::<u64, _>(ApplyError::Refused)).await;
    assert!(matches!(failed, Err(ApplyError::Refused)), "{failed:?}");
    let standing = newest.position().await.expect("the store answers");
    let running = standing.running.expect("the abandoned one");
    assert_eq!((running.number, running.standing), (1, Standing::Vanished));
    // A takeover, and not a first run.
    let effects = set(&world, &newest, 1).await;
    assert_applied(effects, 1);
    let effects = world.effects().entries().expect("memory is read");
    assert_eq!(effects.last().map(|it| it.attempt), Some(2));
}
