//! Operators: they look, settle and skip, and never move a number back.

use idempotent_runtime::{
    Error, NotSettled, RecordChange, Status,
    sequence::{Decision, Position},
};

use super::{ApplyError, account, apply, assert_applied, assert_decided, begin, die_in, position};
use crate::harness::{World, not_settled};

on_every_store![
    only_the_number_at_which_a_stream_stops_is_settled,
    a_number_is_settled_in_every_way,
    a_parked_number_is_resumed,
    a_stream_is_not_settled_as_a_plain_call,
];

async fn only_the_number_at_which_a_stream_stops_is_settled(world: World) {
    let owner = world.owner().await;
    let account = account(&owner);
    assert_eq!(position(&account).await, Position::default());
    assert_eq!(
        not_settled(account.settle(1).as_done().await),
        Some(NotSettled::OtherNumber)
    );
    assert_applied(apply(&world, &account, 1).await, 1);
    assert_eq!(
        not_settled(account.settle(1).as_done().await),
        Some(NotSettled::AlreadySettled)
    );
    assert_eq!(
        not_settled(account.settle(2).as_done().await),
        Some(NotSettled::OtherNumber)
    );

    let (gate, task) = begin(&owner, &account, 2).await;
    for (number, why) in [
        (1, NotSettled::AlreadySettled),
        (2, NotSettled::StillRunning),
        (3, NotSettled::OtherNumber),
    ] {
        assert_eq!(
            not_settled(account.settle(number).as_done().await),
            Some(why)
        );
        let skipped = account.skip(number).because("impatience").await;
        assert_eq!(not_settled(skipped), Some(why));
    }
    gate.open();
    assert_applied(task.await.expect("no panic"), 2);
    assert_eq!(owner.log.count(RecordChange::Settled), 0);
    assert_eq!(owner.log.count(RecordChange::Skipped), 0);
}

async fn a_number_is_settled_in_every_way(world: World) {
    let owner = world.owner().await;
    let account = account(&owner);
    for number in 1..=4 {
        let call = account.clone().number(number).arguments(&(number * 10));
        let call = call.uncertain_errors();
        let failed = call.run(async |_| Err::<u64, _>(ApplyError::Refused)).await;
        assert!(failed.is_err());
        let resumed = account.settle(number).resume().await;
        assert_eq!(not_settled(resumed), Some(NotSettled::NotParked));
        let skipped = account.skip(number).because("it is not parked").await;
        assert_eq!(not_settled(skipped), Some(NotSettled::NotParked));
        let settle = account.settle(number);
        match number {
            1 => settle.with_value(&10_u64).await.expect("a value"),
            2 => settle
                .with_error(&ApplyError::Refused)
                .await
                .expect("an error"),
            3 => settle.as_done().await.expect("it happened"),
            _ => settle.release().await.expect("it did not happen"),
        }
        let call = account.clone().number(number).arguments(&(number * 10));
        let call = call.record_errors();
        let copy = call.run(async |_| Ok(number * 10)).await;
        match number {
            1 => assert_decided(copy, Decision::Replayed(10)),
            2 => assert!(matches!(copy, Err(ApplyError::Refused)), "{copy:?}"),
            3 => {
                let error = copy.expect_err("it is not known").ours();
                assert!(matches!(error, Error::NotReplayable { .. }), "{error:?}");
            }
            _ => assert_applied(copy, 4),
        }
    }
    assert_eq!(owner.log.count(RecordChange::Settled), 4);
}

async fn a_parked_number_is_resumed(world: World) {
    let owner = world.owner().await;
    let few = account(&owner).max_takeovers(0);
    die_in(&world, |it| it.max_takeovers(0), 1).await;
    let parked = apply(&world, &few, 1)
        .await
        .expect_err("one is too many")
        .ours();
    assert!(matches!(parked, Error::Parked { .. }), "{parked:?}");
    let released = few.settle(1).release().await;
    assert_eq!(not_settled(released), Some(NotSettled::NotParked));
    few.settle(1).resume().await.expect("it is parked");
    assert_applied(apply(&world, &few, 1).await, 1);
    assert_applied(apply(&world, &few, 2).await, 2);
}

async fn a_stream_is_not_settled_as_a_plain_call(world: World) {
    let owner = world.owner().await;
    let account = account(&owner);
    assert_applied(apply(&world, &account, 1).await, 1);
    let call = account.clone().number(2).uncertain_errors();
    let failed = call.run(async |_| Err::<u64, _>(ApplyError::Refused)).await;
    assert!(failed.is_err());
    let settle = owner
        .idem
        .settle("sequence:accounts", None::<&str>, "account-7");
    let settled = settle.expect("a key").as_done().await;
    assert_eq!(not_settled(settled), Some(NotSettled::IsSequence));
    let status = owner
        .idem
        .lookup("sequence:accounts", None::<&str>, "account-7");
    assert!(matches!(status.await, Ok(Status::Uncertain)));
    assert_eq!(position(&account).await.last, Some(1));
}
