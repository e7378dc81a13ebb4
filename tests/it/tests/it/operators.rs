//! Operators act on the record that a list has shown: on that version, by its id, and with a story
//! of it.

mod health;
mod invalidated;
mod revealed;
mod stories;

use std::{sync::Arc, time::Duration};

use idempotent_runtime::{
    BoxError, Error, Moved, NotSettled, OnCrash, OutcomeKind, RecordChange,
    operate::{RecordRow, StepState},
    sequence::Decision,
    step,
    testing::{Gate, On, StoreOperation},
};

use crate::harness::{Owner, World, not_settled};

on_every_store![
    an_act_for_another_version_changes_nothing,
    two_operators_at_once_settle_a_call_once,
    a_step_is_settled_in_the_version_that_was_looked_at,
    a_step_of_a_call_that_another_settles_meanwhile_is_moved,
    a_number_is_settled_by_the_id_of_its_record,
    what_is_parked_is_resumed_by_its_id,
];

async fn leave_uncertain(owner: &Owner, key: &str) {
    let call = owner.call("charge").key(key).uncertain_errors();
    let left = call.run(async |_| Err::<u64, _>(Error::InvalidPolicy("no answer")));
    assert!(left.await.is_err());
}

async fn charge(owner: &Owner, key: &str, receipt: u64) -> Result<u64, Error> {
    let call = owner.call("charge").key(key);
    call.run(async |_| Ok::<_, Error>(receipt)).await
}

/// The record that stands in the store, as a list shows it. There must be exactly one.
async fn row(owner: &Owner) -> RecordRow {
    let page = owner.idem.records().page(2).await;
    let mut rows = page.expect("the store answers").rows;
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.remove(0)
}

fn moved<T>(refused: Result<T, impl Into<BoxError>>) -> Option<Arc<Moved>> {
    let refused: BoxError = refused.err()?.into();
    match refused.downcast_ref::<Error>() {
        Some(Error::Moved { moved, .. }) => Some(Arc::clone(moved)),
        _ => None,
    }
}

async fn an_act_for_another_version_changes_nothing(world: World) {
    let owner = world.owner().await;
    leave_uncertain(&owner, "k").await;
    let seen = row(&owner).await;
    let settle = async || {
        let settle = owner.idem.settle_id(seen.id).await.expect("it stands");
        settle.at_version(seen.version)
    };
    settle()
        .await
        .by("anna")
        .with_value(&7_u64)
        .await
        .expect("nobody came between");
    let stands = row(&owner).await;

    let late = [
        moved(settle().await.by("ben").with_value(&8_u64).await),
        moved(settle().await.with_error(&"declined").await),
        moved(settle().await.as_done().await),
        moved(settle().await.resume().await),
        moved(settle().await.undo(&"declined").await),
        moved(settle().await.step("gateway").not_happened().await),
        moved(settle().await.step("gateway").undone().await),
        moved(owner.idem.resume_id(seen.id).at_version(seen.version).await),
        moved(
            owner
                .idem
                .invalidate(seen.id, "it is wrong")
                .at_version(seen.version)
                .await,
        ),
    ];

    for (act, moved) in late.into_iter().enumerate() {
        let moved = moved.unwrap_or_else(|| panic!("act {act} is refused as moved"));
        assert_eq!(
            (moved.by.as_deref(), moved.at),
            (Some("anna"), stands.finished),
            "act {act}"
        );
        assert_eq!(moved.version, stands.version, "act {act}");
    }
    assert_eq!(row(&owner).await, stands);
    assert_eq!(charge(&owner, "k", 9).await, Ok(7));
    assert_eq!(owner.log.count(RecordChange::Settled), 1);
}

async fn two_operators_at_once_settle_a_call_once(world: World) {
    let (owner, other) = (world.owner().await, world.owner().await);
    for round in 0..10_u64 {
        let key = format!("k-{round}");
        leave_uncertain(&owner, &key).await;
        let page = owner.idem.records().attention().page(2).await;
        let seen = page.expect("the store answers").rows.remove(0);
        let act = async |owner: &Owner, by: &'static str, receipt: u64| {
            let settle = owner.idem.settle_id(seen.id).await.expect("it stands");
            let settle = settle.at_version(seen.version).by(by);
            settle.with_value(&receipt).await
        };
        let (anna, ben) = tokio::join!(act(&owner, "anna", 1), act(&other, "ben", 2));
        let (winner, loser, receipt) = match (anna, ben) {
            (Ok(()), refused) => ("anna", refused, 1),
            (refused, Ok(())) => ("ben", refused, 2),
            both => panic!("one of them settles it: {both:?}"),
        };
        let moved = moved(loser).expect("the other one is refused as moved");
        assert_eq!(moved.by.as_deref(), Some(winner));
        assert_eq!(charge(&owner, &key, 9).await, Ok(receipt));
    }
}

/// A call whose holder vanished in its second step.
async fn vanish_in_a_step(world: &World) {
    let dead = world.owner().await;
    let gate = Gate::new();
    let its = gate.clone();
    let call = dead.call("trip").key("k").on_crash(OnCrash::Rerun);
    let task = dead.spawn(async move {
        let body = async |_| {
            step("flight", async |_| Ok::<_, Error>(1_u64)).await?;
            let asks = async |_| {
                its.pass().await;
                Ok::<_, Error>(2_u64)
            };
            step("hotel", asks).at_most_once().await
        };
        call.run(body).await
    });
    gate.arrived(1).await;
    dead.die_in(task).await;
    world.advance(Duration::from_secs(31)).await;
}

async fn a_step_is_settled_in_the_version_that_was_looked_at(world: World) {
    vanish_in_a_step(&world).await;
    let owner = world.owner().await;
    let id = row(&owner).await.id;
    let steps = owner.idem.steps(id).await.expect("the store answers");
    let of = |label: &str| steps.iter().find(|step| &*step.label == label).cloned();
    let (flight, hotel) = (
        of("flight").expect("it ran"),
        of("hotel").expect("it began"),
    );
    let value = flight.outcome.expect("it is done");
    assert_eq!(
        (flight.state, value.kind, value.bytes),
        (StepState::Done, OutcomeKind::Value, 1)
    );
    assert_eq!((hotel.state, hotel.outcome), (StepState::Begun, None));
    assert_eq!(hotel.on_crash, OnCrash::Uncertain);

    let settle = async || {
        let settle = owner.idem.settle_id(id).await.expect("it stands");
        settle.step_id(hotel.name)
    };
    let other = settle()
        .await
        .at_version(flight.version)
        .with_value(&7_u64)
        .await;
    assert!(moved(other).is_some());
    assert_eq!(owner.idem.steps(id).await.ok(), Some(steps));
    let by_anna = settle().await.at_version(hotel.version).by("anna");
    by_anna.with_value(&7_u64).await.expect("it has begun");
    let by_ben = settle().await.at_version(hotel.version).by("ben");
    let moved = moved(by_ben.with_value(&8_u64).await).expect("anna came before");
    assert_eq!((moved.by.as_deref(), moved.at), (Some("anna"), None));
    // The same word is hers alone: she may say it again, as after an answer that was lost.
    let by_cleo = settle().await.at_version(hotel.version).by("cleo");
    assert!(self::moved(by_cleo.with_value(&7_u64).await).is_some());
    let again = settle().await.at_version(hotel.version).by("anna");
    again.with_value(&7_u64).await.expect("it is her own");

    let call = owner.call("trip").key("k").on_crash(OnCrash::Rerun);
    let body = async |_| {
        step("flight", async |_| Ok::<_, Error>(3_u64)).await?;
        step("hotel", async |_| Ok::<_, Error>(4_u64))
            .at_most_once()
            .await
    };
    assert_eq!(call.run(body).await.ok(), Some(7));
}

/// Between the look at the step and the write of it.
async fn a_step_of_a_call_that_another_settles_meanwhile_is_moved(world: World) {
    vanish_in_a_step(&world).await;
    let (owner, other) = (world.owner().await, world.owner().await);
    let id = row(&owner).await.id;
    let steps = owner.idem.steps(id).await.expect("the store answers");
    let hotel = steps.iter().find(|step| &*step.label == "hotel");
    let hotel = hotel.expect("it began");
    let gate = owner.delays(StoreOperation::WriteStep, On::Next);

    let settle = owner.idem.settle_id(id).await.expect("it stands");
    let settle = settle.step_id(hotel.name).at_version(hotel.version);
    let meanwhile = async {
        gate.arrived(1).await;
        let settle = other.idem.settle_id(id).await.expect("it stands");
        let settled = settle.by("ben").with_value(&9_u64).await;
        settled.expect("nobody came between");
        gate.open();
    };
    let (late, ()) = tokio::join!(settle.with_value(&7_u64), meanwhile);
    let moved = moved(late).expect("ben came between");
    assert_eq!(moved.by.as_deref(), Some("ben"));
    assert_eq!(owner.idem.steps(id).await.ok(), Some(steps));
}

async fn a_number_is_settled_by_the_id_of_its_record(world: World) {
    let owner = world.owner().await;
    let account = owner.idem.sequence("accounts", "account-7").first(1);
    let leave = async |number: u64| {
        let call = account.clone().number(number).uncertain_errors();
        let left = call.run(async |_| Err::<u64, _>(Error::InvalidPolicy("no answer")));
        assert!(left.await.is_err());
    };
    leave(1).await;
    let seen = row(&owner).await;
    let settle = async || {
        owner
            .idem
            .settle_number_id(seen.id)
            .await
            .expect("it stops")
    };
    assert_eq!(settle().await.number(), 1);
    let first = settle().await.at_version(seen.version).by("anna");
    first.with_value(&7_u64).await.expect("it is uncertain");
    let at_rest = owner.idem.settle_number_id(seen.id).await;
    assert_eq!(
        not_settled(at_rest.map(drop)),
        Some(NotSettled::OtherNumber)
    );

    leave(2).await;
    let late = settle().await.at_version(seen.version).as_done().await;
    assert!(moved(late).is_some());
    let late = account.settle(2).at_version(seen.version).as_done().await;
    assert!(moved(late).is_some());
    let late = account.skip(2).at_version(seen.version).await;
    assert!(moved(late).is_some());
    settle().await.release().await.expect("it is uncertain");
    let second = account.number(2).run(async |_| Ok::<_, Error>(8_u64)).await;
    assert_eq!(second.ok(), Some(Decision::Applied(8)));
}

async fn what_is_parked_is_resumed_by_its_id(world: World) {
    let owner = world.owner_with(|builder| builder.max_takeovers(0)).await;
    let vanish = async |task: tokio::task::JoinHandle<()>, dead: Owner, gate: Gate| {
        gate.arrived(1).await;
        dead.die_in(task).await;
        world.advance(Duration::from_secs(31)).await;
    };
    let (dead, gate) = (world.owner().await, Gate::new());
    let (call, its) = (dead.call("charge").key("k"), gate.clone());
    let task = dead.spawn(async move {
        let body = async |_| {
            its.pass().await;
            Ok::<_, Error>(1_u64)
        };
        let _ = call.run(body).await;
    });
    vanish(task, dead, gate).await;
    assert!(matches!(
        charge(&owner, "k", 2).await,
        Err(Error::Parked { .. })
    ));

    let (dead, gate) = (world.owner().await, Gate::new());
    let (payouts, its) = (dead.idem.sequence("payouts", "m-7").first(1), gate.clone());
    let task = dead.spawn(async move {
        let body = async |_| {
            its.pass().await;
            Ok::<_, Error>(1_u64)
        };
        let _ = payouts.number(1).run(body).await;
    });
    vanish(task, dead, gate).await;
    let number = owner.idem.sequence("payouts", "m-7").first(1).number(1);
    let parked = number.run(async |_| Ok::<_, Error>(2_u64)).await;
    assert!(matches!(parked, Err(Error::Parked { .. })), "{parked:?}");

    let listed = owner.idem.records().attention().page(10).await;
    let listed = listed.expect("the store answers").rows;
    assert_eq!(listed.len(), 2, "{listed:?}");
    for row in &listed {
        let resume = owner.idem.resume_id(row.id).at_version(row.version);
        let resumed = resume.by("anna").because("the gateway is up again").await;
        assert_eq!(resumed, Ok(()), "{row:?}");
        let again = owner.idem.resume_id(row.id).at_version(row.version).await;
        assert_eq!(
            moved(again).and_then(|it| it.by.clone()).as_deref(),
            Some("anna")
        );
    }
    assert_eq!(charge(&owner, "k", 3).await, Ok(3));
    let number = owner.idem.sequence("payouts", "m-7").first(1).number(1);
    let applied = number.run(async |_| Ok::<_, Error>(4_u64)).await;
    assert_eq!(applied.ok(), Some(Decision::Applied(4)));
}
