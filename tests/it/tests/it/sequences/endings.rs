//! Bodies that fail: released, recorded, or uncertain.

use idempotent_runtime::{Error, NotSettled, Verdict, sequence::Decision};
use serde::{Deserialize, Deserializer, Serialize};

use super::{ApplyError, Decided, account, apply, assert_applied, assert_decided, begin, position};
use crate::harness::{Owner, World, not_settled};

on_every_store![
    a_number_whose_body_fails_stays_unless_something_else_is_said,
    a_recorded_error_moves_the_number_and_answers_a_copy,
    a_recorded_error_that_cannot_be_read_back_is_its_own_caller_s,
    an_uncertain_error_stops_the_stream,
    a_classifier_decides_error_by_error,
    a_body_that_panics_or_is_dropped_leaves_its_number_to_a_takeover,
    a_number_whose_value_cannot_be_kept_is_counted_all_the_same,
    mend_13_a_number_whose_value_was_not_kept_is_settled_with_it,
    mend_13_a_number_is_not_settled_while_the_next_one_runs,
];

async fn fail(world: &World, owner: &Owner, number: u64) -> Decided {
    let call = account(owner).number(number).arguments(&(number * 10));
    call.run(async |_| {
        world.happened(&number.to_string());
        Err(ApplyError::Refused)
    })
    .await
}

async fn a_number_whose_body_fails_stays_unless_something_else_is_said(world: World) {
    let owner = world.owner().await;
    for number in 1..=2 {
        for _ in 0..2 {
            let failed = fail(&world, &owner, number).await;
            assert!(matches!(failed, Err(ApplyError::Refused)), "{failed:?}");
            let standing = position(&account(&owner)).await;
            assert_eq!(standing.running, None);
            assert_eq!(standing.last, (number > 1).then_some(number - 1));
        }
        assert_applied(apply(&world, &account(&owner), number).await, number);
        assert_eq!(world.runs(&number.to_string()), 3);
    }
}

async fn a_recorded_error_moves_the_number_and_answers_a_copy(world: World) {
    let owner = world.owner().await;
    for _ in 0..2 {
        let call = account(&owner).number(1).record_errors();
        let failed = call.run(async |_| {
            world.happened("1");
            Err::<u64, _>(ApplyError::Refused)
        });
        let failed = failed.await;
        assert!(matches!(failed, Err(ApplyError::Refused)), "{failed:?}");
    }
    assert_eq!(world.runs("1"), 1);
    assert_applied(apply(&world, &account(&owner), 2).await, 2);
}

/// An error that serde writes, and does not read.
#[derive(Debug, thiserror::Error, Serialize)]
enum Unreadable {
    #[error("refused for good")]
    Refused,
    #[error(transparent)]
    Ours(#[from] Error),
}

impl<'de> Deserialize<'de> for Unreadable {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom("it is not read"))
    }
}

async fn a_recorded_error_that_cannot_be_read_back_is_its_own_caller_s(world: World) {
    let owner = world.owner().await;
    let fail = || {
        let call = account(&owner).number(1).record_errors();
        call.run(async |_| Err::<u64, _>(Unreadable::Refused))
    };
    let own = fail().await;
    assert!(matches!(own, Err(Unreadable::Refused)), "{own:?}");
    let copy = fail().await;
    assert!(
        matches!(copy, Err(Unreadable::Ours(Error::NotReplayable { .. }))),
        "{copy:?}"
    );
    assert_applied(apply(&world, &account(&owner), 2).await, 2);
}

async fn an_uncertain_error_stops_the_stream(world: World) {
    let owner = world.owner().await;
    let call = account(&owner).number(1).uncertain_errors();
    let failed = call.run(async |_| Err::<u64, _>(ApplyError::Refused)).await;
    assert!(matches!(failed, Err(ApplyError::Refused)), "{failed:?}");
    for stopped in [1, 2] {
        let call = account(&owner).number(stopped);
        let uncertain = call.run(async |_| Ok::<u64, ApplyError>(0)).await;
        let uncertain = uncertain.expect_err("nobody knows").ours();
        assert!(
            matches!(uncertain, Error::Uncertain { .. }),
            "{uncertain:?}"
        );
    }
    account(&owner)
        .settle(1)
        .release()
        .await
        .expect("it did not happen");
    assert_applied(apply(&world, &account(&owner), 1).await, 1);
}

async fn a_classifier_decides_error_by_error(world: World) {
    let owner = world.owner().await;
    for (verdict, last) in [(Verdict::Release, None), (Verdict::Replay, Some(1))] {
        let call = account(&owner).number(1);
        let call = call.classify_errors(move |_: &ApplyError| verdict);
        let failed = call.run(async |_| Err::<u64, _>(ApplyError::Refused)).await;
        assert!(matches!(failed, Err(ApplyError::Refused)), "{failed:?}");
        assert_eq!(position(&account(&owner)).await.last, last, "{verdict:?}");
    }
    assert_applied(apply(&world, &account(&owner), 2).await, 2);
}

async fn a_body_that_panics_or_is_dropped_leaves_its_number_to_a_takeover(world: World) {
    let owner = world.owner().await;
    for number in 1..=2 {
        let its = account(&owner);
        let call = its.number(number).arguments(&(number * 10));
        let stopped = owner.spawn(async move {
            let body = async |_| match number {
                1 => panic!("the body panics"),
                _ => std::future::pending().await,
            };
            call.run(body).await as Decided
        });
        if number == 2 {
            owner
                .log
                .await_steps(idempotent_runtime::RecordChange::Claimed, 2)
                .await;
            stopped.abort();
        }
        assert!(stopped.await.is_err());
        owner.settled().await;
        let gap = Decision::Gap {
            expected: number,
            got: number + 1,
        };
        assert_decided(apply(&world, &account(&owner), number + 1).await, gap);
        assert_applied(apply(&world, &account(&owner), number).await, number);
        let effects = world.effects().entries().expect("memory is read");
        assert_eq!(effects.last().map(|it| it.attempt), Some(2));
    }
}

async fn a_number_whose_value_cannot_be_kept_is_counted_all_the_same(world: World) {
    let owner = world.owner_with(|builder| builder.max_outcome(8)).await;
    let long = || {
        let call = account(&owner).number(1);
        call.run(async |_| {
            world.happened("1");
            Ok::<_, ApplyError>("longer than that".to_owned())
        })
    };
    let applied = long().await.expect("its own caller has the value");
    assert_eq!(applied, Decision::Applied("longer than that".to_owned()));
    let copy = long().await.expect_err("it is not kept").ours();
    assert!(matches!(copy, Error::NotReplayable { .. }), "{copy:?}");
    assert_eq!(world.runs("1"), 1);
    assert_applied(apply(&world, &account(&owner), 2).await, 2);
}

async fn mend_13_a_number_whose_value_was_not_kept_is_settled_with_it(world: World) {
    let owner = world.owner_with(|builder| builder.max_outcome(8)).await;
    let account = account(&owner);
    let long = || {
        let call = account.clone().number(1);
        call.run(async |_| Ok::<_, ApplyError>("longer than that".to_owned()))
    };
    assert!(long().await.is_ok());
    let settled = account.settle(1).as_done().await;
    assert_eq!(not_settled(settled), Some(NotSettled::AlreadySettled));
    let settled = account.settle(1).with_value(&"short").await;
    settled.expect("its value is not known");
    let copy = long().await.expect("it is settled");
    assert_eq!(copy, Decision::Replayed("short".to_owned()));
    let other = account.settle(1).with_value(&"other").await;
    assert_eq!(not_settled(other), Some(NotSettled::AlreadySettled));
    assert_applied(apply(&world, &account, 2).await, 2);
}

async fn mend_13_a_number_is_not_settled_while_the_next_one_runs(world: World) {
    let owner = world.owner_with(|builder| builder.max_outcome(8)).await;
    let account = account(&owner);
    let call = account.clone().number(1);
    let long = call.run(async |_| Ok::<_, ApplyError>("longer than that".to_owned()));
    assert!(long.await.is_ok());
    let (gate, task) = begin(&owner, &account, 2).await;
    let settled = account.settle(1).with_value(&"short").await;
    assert_eq!(not_settled(settled), Some(NotSettled::StillRunning));
    gate.open();
    assert_applied(task.await.expect("no panic"), 2);
}
