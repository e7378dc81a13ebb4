//! Operators sign what they do: the store keeps who acted, and why, beside the version that they
//! wrote.

use std::{sync::Arc, time::Duration};

use idempotent_runtime::{
    BoxError, Error, OnCrash, Settle,
    record::{Note, State, StepName},
    sequence::Decision,
    step,
    testing::Gate,
};

use crate::harness::{Owner, World};

on_every_store![
    a_settled_call_keeps_who_settled_it_and_why,
    a_call_that_goes_on_takes_the_note_away,
    a_settled_step_keeps_its_note,
    a_number_keeps_the_note_of_what_was_done_with_it,
    a_note_that_is_too_long_changes_nothing,
];

const WHY: &str = "the dashboard shows it, row 7";

fn settle(owner: &Owner) -> Settle<'_> {
    let settle = owner.idem.settle("charge", None::<&str>, "k");
    settle.expect("a key")
}

async fn leave_uncertain(owner: &Owner) {
    let call = owner.call("charge").key("k").uncertain_errors();
    let left = call.run(async |_| Err::<u64, _>(Error::InvalidPolicy("no answer")));
    assert!(left.await.is_err());
}

/// Leaves a call behind whose holder vanished, in a body with one step that has begun.
async fn vanish(world: &World, on_crash: OnCrash) {
    let dead = world.owner().await;
    let call = dead.call("charge").key("k").on_crash(on_crash);
    let gate = Gate::new();
    let its = gate.clone();
    let task = dead.spawn(async move {
        let body = async |_| {
            let asks = async |_| {
                its.pass().await;
                Ok::<_, Error>(1_u64)
            };
            step("gateway", asks).at_most_once().await
        };
        call.run(body).await
    });
    gate.arrived(1).await;
    dead.die_in(task).await;
    world.advance(Duration::from_secs(31)).await;
}

fn note(by: Option<&str>, text: &str) -> Option<Arc<Note>> {
    let (by, text) = (by.map(Into::into), text.into());
    Some(Arc::new(Note { by, text }))
}

fn anna() -> Option<Arc<Note>> {
    note(Some("anna"), WHY)
}

async fn a_settled_call_keeps_who_settled_it_and_why(world: World) {
    let (owner, other) = (world.owner().await, world.owner().await);
    leave_uncertain(&owner).await;
    assert_eq!(world.record().await.note, None, "a program says nothing");

    let settled = settle(&other).by("anna").because(WHY).with_value(&7_u64);
    settled.await.expect("it is uncertain");

    let record = world.record().await;
    assert_eq!((record.state, &record.note), (State::Done, &anna()));
    let replayed = owner.call("charge").key("k");
    let replayed = replayed.run(async |_| Ok::<_, Error>(8_u64)).await;
    assert_eq!(replayed.ok(), Some(7));
    assert_eq!(world.record().await.note, anna(), "a replay writes nothing");
}

async fn a_call_that_goes_on_takes_the_note_away(world: World) {
    let owner = world.owner_with(|builder| builder.max_takeovers(0)).await;
    vanish(&world, OnCrash::Rerun).await;
    let resumed = settle(&owner).by("anna").because(WHY).resume().await;
    resumed.expect("the next call would park it");
    assert_eq!(world.record().await.note, anna());

    let call = owner.call("charge").key("k");
    assert_eq!(
        call.run(async |_| Ok::<_, Error>(8_u64)).await.ok(),
        Some(8)
    );

    let record = world.record().await;
    assert_eq!((record.state, &record.note), (State::Done, &None));
}

async fn a_settled_step_keeps_its_note(world: World) {
    let owner = world.owner().await;
    vanish(&world, OnCrash::Rerun).await;

    let step = settle(&owner).step("gateway").by("anna").because(WHY);
    step.with_value(&7_u64).await.expect("it has begun");

    let id = *settle(&owner).id();
    let store = world.store().await;
    let steps = store.steps().expect("every store here keeps steps");
    let listed = steps.list_steps(&id).await.expect("an answer");
    assert_eq!(listed[0].note, anna());
    let loaded = steps.load_steps(&id, &StepName::ALL).await;
    assert_eq!(loaded.expect("an answer")[0].note, anna());
    assert_eq!(
        world.record().await.note,
        anna(),
        "its call goes on behind it"
    );
}

async fn a_number_keeps_the_note_of_what_was_done_with_it(world: World) {
    let owner = world.owner().await;
    let account = owner.idem.sequence("accounts", "account-7").first(1);
    let in_doubt = account.clone().number(1).uncertain_errors();
    let left = in_doubt.run(async |_| Err::<u64, _>(Error::InvalidPolicy("no answer")));
    assert!(left.await.is_err());

    let number = account.settle(1).by("anna").because(WHY);
    number.with_value(&7_u64).await.expect("it is uncertain");
    assert_eq!(world.record().await.note, anna());
    let skipped = account.skip(2).because("its source rolled it back");
    skipped.await.expect("it is the next one");
    assert_eq!(
        world.record().await.note,
        note(None, "its source rolled it back")
    );

    let next = account.number(3).run(async |_| Ok::<_, Error>(8_u64)).await;
    assert_eq!(next.ok(), Some(Decision::Applied(8)));
    assert_eq!(world.record().await.note, None);
}

async fn a_note_that_is_too_long_changes_nothing(world: World) {
    let owner = world.owner().await;
    leave_uncertain(&owner).await;
    let before = world.record().await;
    let (name, reason) = ("n".repeat(256), "r".repeat(4096));

    let long_name = settle(&owner).by(format!("{name}n")).as_done().await;
    assert!(
        matches!(long_name, Err(Error::InvalidPolicy(_))),
        "{long_name:?}"
    );
    let long_reason = settle(&owner).because(format!("{reason}r")).as_done().await;
    assert!(
        matches!(long_reason, Err(Error::InvalidPolicy(_))),
        "{long_reason:?}"
    );
    assert_eq!(world.record().await, before);

    let longest = settle(&owner).by(&*name).because(&*reason).as_done().await;
    longest.expect("it is uncertain");
    assert_eq!(world.record().await.note, note(Some(&name), &reason));
}

/// An empty name is none, and an empty note is not kept.
#[tokio::test]
async fn an_empty_note_is_none() -> Result<(), BoxError> {
    let world = World::memory().await;
    let owner = world.owner().await;
    leave_uncertain(&owner).await;
    settle(&owner).by("").because("").as_done().await?;
    assert_eq!(world.record().await.note, None);
    Ok(())
}
