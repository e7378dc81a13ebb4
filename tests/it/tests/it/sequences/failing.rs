//! Numbers that fail each time, and numbers that never come: both are told, and used up by hand.

use idempotent_runtime::{
    Error, NotSettled, RecordChange, StoreErrorKind,
    sequence::{Decision, FailingNumber},
    testing::{On, StoreOperation},
    transaction::SqlDatabase,
};

use super::{
    ApplyError, account, apply, assert_applied, assert_decided, begin, die_in, position,
    transactions::{place, plain, stream},
};
use crate::{
    harness::{Owner, Said, World, not_settled},
    transactions::{PlaceError, shop::Shop},
};

on_every_store![
    mend_21_a_number_that_fails_each_time_is_shown_and_skipped,
    mend_21_a_number_counts_its_own_failures_alone,
    failures_are_counted_whichever_process_runs_the_number,
    the_text_of_an_error_is_kept_where_that_is_said,
    a_larger_number_that_fails_is_settled_where_gaps_are_accepted,
    a_failure_that_cannot_be_kept_is_told_all_the_same,
    a_failure_stays_while_the_number_before_it_is_settled,
    mend_21_a_number_that_fails_is_settled_with_an_outcome,
    mend_21_a_number_that_fails_after_a_takeover_is_skipped,
    mend_21_a_refusal_names_the_number_that_is_uncertain,
    mend_21_a_refusal_names_the_number_that_is_parked,
    mend_33_a_number_that_never_comes_is_skipped,
    mend_33_only_the_next_number_is_skipped,
];

mod transacted {
    use super::*;

    on_every_database![
        mend_21_a_number_whose_transaction_fails_each_time_is_shown_and_skipped,
        mend_21_a_number_that_fails_in_a_transaction_of_yours_is_shown,
    ];
}

/// Says what was logged from here on by this thread.
fn listen() -> (Said, tracing::subscriber::DefaultGuard) {
    let said = Said::default();
    let writer = said.clone();
    let lines = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone());
    let listening = tracing::subscriber::set_default(lines.finish());
    (said, listening)
}

async fn fail(owner: &Owner, number: u64) {
    let call = account(owner).number(number).arguments(&(number * 10));
    let failed = call.run(async |_| Err::<u64, _>(ApplyError::Refused)).await;
    assert!(matches!(failed, Err(ApplyError::Refused)), "{failed:?}");
}

async fn failing(owner: &Owner) -> Option<FailingNumber> {
    position(&account(owner)).await.failing
}

async fn mend_21_a_number_that_fails_each_time_is_shown_and_skipped(world: World) {
    let owner = world.owner().await;
    let stream = account(&owner);
    for number in 1..=2 {
        let (said, listening) = listen();
        for attempts in 1..=4 {
            fail(&owner, number).await;
            let told = failing(&owner).await.expect("it fails");
            assert_eq!((told.number, told.attempts), (number, attempts));
            assert!(told.kind.ends_with("::ApplyError"), "{told:?}");
            assert_eq!(told.last_error, None);
            let lines = usize::from(attempts >= 3);
            assert_eq!(said.text().matches("fails again").count(), lines);
        }
        drop(listening);
        for part in [
            "WARN",
            "attempts=3",
            "refused for good",
            "sequence:accounts",
        ] {
            assert!(
                said.text().contains(part),
                "{part} is not in {}",
                said.text()
            );
        }
        if number == 1 {
            assert_applied(apply(&world, &stream, 1).await, 1);
            assert_eq!(failing(&owner).await, None);
        }
    }
    stream
        .skip(2)
        .because("a poisonous event")
        .await
        .expect("it fails");
    assert_eq!(owner.log.count(RecordChange::Skipped), 1);
    assert_eq!(failing(&owner).await, None);
    assert_decided(apply(&world, &stream, 2).await, Decision::Past { last: 2 });
    assert_applied(apply(&world, &stream, 3).await, 3);
}

async fn failures_are_counted_whichever_process_runs_the_number(world: World) {
    for failed in 1..=4 {
        fail(&world.owner().await, 1).await;
        let operator = world.owner().await;
        let told = failing(&operator).await.expect("it fails");
        assert_eq!((told.number, told.attempts), (1, failed));
        let note = world.record().await.note.clone().expect("a note");
        assert_eq!(note.by, None);
        let text = format!("number 1 failed, attempts {failed}, last with ");
        assert!(note.text.starts_with(&text), "{note:?}");
        assert!(!note.text.contains("refused"), "{note:?}");
    }
    let operator = world.owner().await;
    // While it runs, it is still shown.
    let (gate, task) = begin(&operator, &account(&operator), 1).await;
    assert_eq!(failing(&operator).await.map(|it| it.attempts), Some(4));
    let runs = account(&operator).skip(1).await;
    assert_eq!(not_settled(runs), Some(NotSettled::StillRunning));
    gate.open();
    assert_applied(task.await.expect("no panic"), 1);
    assert_eq!(failing(&operator).await, None);
    assert_eq!(world.record().await.note, None);
}

async fn the_text_of_an_error_is_kept_where_that_is_said(world: World) {
    let owner = world.owner().await;
    let call = account(&owner).keep_error_text().number(1);
    let failed = call.run(async |_| Err::<u64, _>(ApplyError::Refused)).await;
    assert!(failed.is_err());
    let told = failing(&owner).await.expect("it fails");
    assert_eq!(told.last_error.as_deref(), Some("refused for good"));
}

async fn a_larger_number_that_fails_is_settled_where_gaps_are_accepted(world: World) {
    let (owner, operator) = (world.owner().await, world.owner().await);
    let stream = |of: &Owner| of.idem.sequence("accounts", "account-7").accept_gaps();
    let call = stream(&owner).number(5).arguments(&50);
    let failed = call.run(async |_| Err::<u64, _>(ApplyError::Refused)).await;
    assert!(failed.is_err());
    let other = stream(&operator).settle(4).as_done().await;
    assert_eq!(not_settled(other), Some(NotSettled::OtherNumber));
    let settled = stream(&operator).settle(5).with_value(&50_u64).await;
    settled.expect("it failed");
    let copy = stream(&owner).number(5).arguments(&50);
    let copy = copy.run(async |_| Ok(0)).await;
    assert_decided(copy, Decision::Replayed(50));
}

async fn a_failure_that_cannot_be_kept_is_told_all_the_same(world: World) {
    let owner = world.owner().await;
    owner.fails(StoreOperation::Load, On::Every, StoreErrorKind::Other);
    fail(&owner, 1).await;
    assert_eq!(failing(&world.owner().await).await, None);
}

/// The handle that counts has not seen how the number before it ended.
async fn mend_21_a_number_counts_its_own_failures_alone(world: World) {
    let (owner, other) = (world.owner().await, world.owner().await);
    fail(&owner, 1).await;
    fail(&owner, 1).await;
    assert_applied(apply(&world, &account(&other), 1).await, 1);
    fail(&owner, 2).await;
    let told = failing(&owner).await.expect("it fails");
    assert_eq!((told.number, told.attempts), (2, 1));
}

async fn mend_21_a_number_that_fails_is_settled_with_an_outcome(world: World) {
    let (owner, operator) = (world.owner().await, world.owner().await);
    let (stream, settles) = (account(&owner), account(&operator));
    for number in 1..=3 {
        fail(&owner, number).await;
        let settle = || settles.settle(number);
        for refused in [settle().release().await, settle().resume().await] {
            assert_eq!(not_settled(refused), Some(NotSettled::OtherNumber));
        }
        match number {
            1 => settle().with_value(&10_u64).await.expect("a value"),
            2 => settle()
                .with_error(&ApplyError::Refused)
                .await
                .expect("an error"),
            _ => settle().as_done().await.expect("it happened"),
        }
        let call = stream.clone().number(number).arguments(&(number * 10));
        let copy = call.record_errors().run(async |_| Ok(0)).await;
        match number {
            1 => assert_decided(copy, Decision::Replayed(10)),
            2 => assert!(matches!(copy, Err(ApplyError::Refused)), "{copy:?}"),
            _ => {
                let error = copy.expect_err("it is not known").ours();
                assert!(matches!(error, Error::NotReplayable { .. }), "{error:?}");
            }
        }
        assert_eq!(failing(&owner).await, None);
    }
    // It never came, so that nothing is known of its arguments.
    let unknown = settles.settle(4).as_done().await;
    assert_eq!(not_settled(unknown), Some(NotSettled::OtherNumber));
    assert_applied(apply(&world, &stream, 4).await, 4);
}

async fn mend_21_a_number_that_fails_after_a_takeover_is_skipped(world: World) {
    let owner = world.owner().await;
    let stream = account(&owner);
    die_in(&world, |it| it, 1).await;
    for _ in 0..3 {
        fail(&owner, 1).await;
    }
    assert_eq!(failing(&owner).await.map(|it| it.attempts), Some(3));
    stream
        .skip(1)
        .because("it fails each time")
        .await
        .expect("it fails");
    assert_decided(apply(&world, &stream, 1).await, Decision::Past { last: 1 });
    assert_applied(apply(&world, &stream, 2).await, 2);
}

async fn mend_21_a_refusal_names_the_number_that_is_uncertain(world: World) {
    let owner = world.owner().await;
    let stream = account(&owner);
    let call = stream.clone().number(1).uncertain_errors();
    let failed = call.run(async |_| Err::<u64, _>(ApplyError::Refused)).await;
    assert!(failed.is_err());
    let larger = apply(&world, &stream, 2).await.expect_err("1 goes first");
    let larger = larger.ours();
    assert!(
        matches!(
            larger,
            Error::Uncertain {
                number: Some(1),
                ..
            }
        ),
        "{larger:?}"
    );
    assert!(
        larger.to_string().contains("`Sequence::settle(1)`"),
        "{larger}"
    );
}

async fn mend_21_a_refusal_names_the_number_that_is_parked(world: World) {
    let owner = world.owner().await;
    assert_applied(apply(&world, &account(&owner), 1).await, 1);
    let few = account(&owner).max_takeovers(0);
    die_in(&world, |it| it.max_takeovers(0), 2).await;
    // One call parks it, and the next one finds it parked.
    for _ in 0..2 {
        let larger = apply(&world, &few, 3).await.expect_err("2 goes first");
        let larger = larger.ours();
        assert!(
            matches!(
                larger,
                Error::Parked {
                    number: Some(2),
                    ..
                }
            ),
            "{larger:?}"
        );
        assert!(
            larger.to_string().contains("`Sequence::settle(2)`"),
            "{larger}"
        );
    }
}

async fn mend_33_a_number_that_never_comes_is_skipped(world: World) {
    let owner = world.owner().await;
    let stream = account(&owner).expires_after("1h");
    for number in [1, 3] {
        let gap = Decision::Gap {
            expected: number,
            got: number + 1,
        };
        assert_decided(apply(&world, &stream, number + 1).await, gap);
        let skipped = stream
            .skip(number)
            .because("its source rolled it back")
            .await;
        skipped.expect("it is the next one");
        assert_eq!(position(&stream).await.last, Some(number));
        let past = Decision::Past { last: number };
        assert_decided(apply(&world, &stream, number).await, past);
        assert_applied(apply(&world, &stream, number + 1).await, number + 1);
    }
    assert_eq!(owner.log.count(RecordChange::Skipped), 2);
}

async fn mend_33_only_the_next_number_is_skipped(world: World) {
    let owner = world.owner().await;
    let stream = account(&owner);
    let all = owner.idem.sequence("accounts", "account-7").accept_gaps();
    let refused = |result| assert_eq!(not_settled(result), Some(NotSettled::OtherNumber));
    for number in [0, 2, u64::MAX] {
        refused(stream.skip(number).because("it is not the next one").await);
    }
    refused(all.skip(1).because("any number may be the next one").await);
    assert_applied(apply(&world, &stream, 1).await, 1);
    refused(stream.skip(3).because("it is not the next one").await);
    refused(all.skip(2).because("any number may be the next one").await);
    let (gate, task) = begin(&owner, &stream, 2).await;
    let runs = stream.skip(2).because("it runs").await;
    assert_eq!(not_settled(runs), Some(NotSettled::StillRunning));
    gate.open();
    assert_applied(task.await.expect("no panic"), 2);
    assert_eq!(owner.log.count(RecordChange::Skipped), 0);
}

async fn mend_21_a_number_whose_transaction_fails_each_time_is_shown_and_skipped<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let stream = stream(&shop);
    for number in 1..=2 {
        for attempts in 1..=3 {
            let call = stream.clone().number(number);
            let failed = call.transact(shop.pool(), async |tx| {
                shop.order(tx, -1).await?;
                Err::<i64, _>(PlaceError::SoldOut)
            });
            assert!(matches!(failed.await, Err(PlaceError::SoldOut)));
            let failing = position(&stream).await.failing.expect("it fails");
            assert_eq!((failing.number, failing.attempts), (number, attempts));
        }
        match number {
            1 => stream.skip(1).because("it fails").await.expect("it fails"),
            _ => stream.settle(2).with_value(&2_i64).await.expect("it fails"),
        }
        assert_eq!(position(&stream).await.failing, None);
    }
    let copy = stream.clone().number(2);
    let copy = copy.transact(shop.pool(), async |_| Ok::<i64, PlaceError>(0));
    assert!(matches!(copy.await, Ok(Decision::Replayed(2))));
    assert_applied(plain(place(&shop, &stream, 3).await), 3);
    assert_eq!(shop.orders().await, [3]);
}

async fn mend_21_a_number_that_fails_in_a_transaction_of_yours_is_shown<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let stream = stream(&shop);
    for attempts in 1..=2 {
        let mut tx = shop.begin().await.expect("a transaction");
        let call = stream.clone().number(1);
        let staged = call.run_in(&mut *tx, async |_| Err::<i64, _>(PlaceError::SoldOut));
        let failed = staged.await.commit(tx).await;
        assert!(matches!(failed, Err(PlaceError::SoldOut)), "{failed:?}");
        let failing = position(&stream).await.failing.expect("it fails");
        assert_eq!((failing.number, failing.attempts), (1, attempts));
    }
}

async fn a_failure_stays_while_the_number_before_it_is_settled(world: World) {
    let owner = world.owner().await;
    let stream = account(&owner);
    let call = stream.clone().number(1).uncertain_errors();
    let failed = call.run(async |_| Err::<u64, _>(ApplyError::Refused)).await;
    assert!(failed.is_err());
    stream.settle(1).as_done().await.expect("it happened");
    fail(&owner, 2).await;
    fail(&owner, 2).await;
    stream
        .settle(1)
        .with_value(&10_u64)
        .await
        .expect("it lacks an outcome");
    let told = failing(&owner).await.expect("it fails");
    assert_eq!((told.number, told.attempts), (2, 2));
    assert_applied(apply(&world, &stream, 2).await, 2);
    assert_eq!(failing(&owner).await, None);
}
