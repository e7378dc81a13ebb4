//! The story of a record says what it is, what happened to it, and what can be done.

use std::time::Duration;

use idempotent_runtime::{
    BoxError, Error, NotSettled, OnCrash, identity::RecordId, operate::Explanation,
    sequence::Decision, step, testing::Gate,
};

use super::{charge, leave_uncertain, row, vanish_in_a_step};
use crate::{
    booking::{BookError, verdict},
    harness::{Owner, World, not_settled, while_time_goes_on},
};

on_every_store![every_record_has_a_story];

async fn every_record_has_a_story(world: World) {
    vanish_in_a_step(&world).await;
    let owner = world.owner().await;
    let id = row(&owner).await.id;
    let story = owner.idem.explain(id).await.expect("it stands");
    let [what, held, steps @ .., next, advice] = &story.sentences[..] else {
        panic!("{story}");
    };
    assert_eq!(what, "It is a call of `trip` with the key \"k\".");
    let began = "`owner-1` held it (attempt 1), and vanished: its lease ended ";
    assert!(held.starts_with(began), "{held}");
    let mut steps: Vec<_> = steps.iter().map(String::as_str).collect();
    steps.sort_unstable();
    assert_eq!(
        steps,
        [
            "Step `flight` is done, with a value of 1 bytes.",
            "Step `hotel` has begun, and no outcome is recorded.",
        ]
    );
    assert_eq!(next, "The next call takes over.");
    assert_eq!(
        advice,
        "If no call comes, call it again, or settle it by `settle_id(id)`."
    );
    assert_eq!((story.row.id, story.steps.len()), (id, 2));
    assert_eq!(story.row, row(&owner).await);
}

/// The sentences of the only record, in which every time is *T*.
async fn story(owner: &Owner) -> Vec<String> {
    let story = owner.idem.explain(row(owner).await.id).await;
    let story: Explanation = story.expect("it stands");
    let is_time = |word: &str| word.len() >= 27 && word.starts_with("20") && word.contains('T');
    let word = |word: &str| match is_time(word) {
        true => format!("T{}", &word[27..]),
        false => word.to_owned(),
    };
    let sentence = |sentence: &String| {
        let words: Vec<_> = sentence.split(' ').map(word).collect();
        words.join(" ")
    };
    story.sentences.iter().map(sentence).collect()
}

const CALL: &str = "It is a call of `charge` with the key \"k\".";

#[tokio::test]
async fn a_finished_call_answers_until_it_expires() -> Result<(), BoxError> {
    let world = World::memory().await;
    let owner = world.owner().await;
    charge(&owner, "k", 7).await?;
    let done = [
        CALL,
        "It is done since T: its value of 1 bytes answers duplicates until T.",
        "If it may not answer any more, `invalidate(id, reason)` has the next call run.",
    ];
    assert_eq!(story(&owner).await, done);
    let id = row(&owner).await.id;
    owner
        .idem
        .invalidate(id, "it is \"wrong\"")
        .by("anna")
        .await?;
    let released = [
        CALL,
        "It was released: nothing of it answers a call.",
        "anna wrote this version: \"it is \\\"wrong\\\"\".",
        "The next call runs.",
    ];
    assert_eq!(story(&owner).await, released);
    charge(&owner, "k", 8).await?;
    world.advance(Duration::from_secs(2 * 24 * 60 * 60)).await;
    let expired = [
        CALL,
        "It expired at T: it answers no call any more.",
        "The next call runs.",
    ];
    assert_eq!(story(&owner).await, expired);
    let none = owner.idem.explain(RecordId::from_bytes([1; 32])).await;
    let none = none.map(|story| panic!("{story}"));
    assert_eq!(not_settled(none), Some(NotSettled::UnknownKey));
    Ok(())
}

#[tokio::test]
async fn what_needs_somebody_says_what_can_be_done() -> Result<(), BoxError> {
    let world = World::memory().await;
    let owner = world.owner().await;
    leave_uncertain(&owner, "k").await;
    let uncertain = [
        CALL,
        "It is uncertain: the body began in `owner-1` (attempt 1), and nobody knows since T whether it happened.",
        "Find out whether it happened: `settle_id(id).await?.with_value(&value)`, `.with_error(&error)` or `.as_done()`.",
    ];
    assert_eq!(story(&owner).await, uncertain);
    owner
        .idem
        .settle_id(row(&owner).await.id)
        .await?
        .as_done()
        .await?;
    let lacks = [
        CALL,
        "It is done since T: its outcome could not be kept, and duplicates get `NotReplayable` until T.",
        "If its outcome is known, `settle_id(id).await?.with_value(&value)` has it answer duplicates.",
    ];
    assert_eq!(story(&owner).await, lacks);
    Ok(())
}

#[tokio::test]
async fn a_call_that_runs_says_who_holds_it_and_a_parked_one_how_it_goes_on() -> Result<(), BoxError>
{
    let world = World::memory().await;
    let (dead, gate) = (world.owner().await, Gate::new());
    let (call, its) = (dead.call("charge").key("k"), gate.clone());
    let task = dead.spawn(async move {
        let body = async |_| {
            its.pass().await;
            Ok::<_, Error>(1_u64)
        };
        let _ = call.run(body).await;
    });
    gate.arrived(1).await;
    let running = [
        CALL,
        "`owner-1` holds it (attempt 1), and its lease ends in 30 s.",
        "Nothing has to be done: duplicates wait or are told so.",
    ];
    assert_eq!(story(&dead).await, running);
    dead.die_in(task).await;
    world.advance(Duration::from_secs(60 * 60)).await;
    let owner = world.owner_with(|builder| builder.max_takeovers(0)).await;
    let vanished = [
        CALL,
        "`owner-1` held it (attempt 1), and vanished: its lease ended 59 min ago.",
        "The next call takes over.",
        "If no call comes, call it again, or settle it by `settle_id(id)`.",
    ];
    assert_eq!(story(&owner).await, vanished);
    assert!(charge(&owner, "k", 2).await.is_err());
    let parked = [
        CALL,
        "It is parked since T: its holders vanished too often, the last one was `owner-1` (attempt 1).",
        "`resume_id(id)` has the next call try again.",
        "If its outcome is known, `settle_id(id).await?` takes it: `.with_value(&value)`, `.with_error(&error)` or `.as_done()`.",
    ];
    assert_eq!(story(&owner).await, parked);
    owner.idem.resume_id(row(&owner).await.id).await?;
    let resumed = [
        CALL,
        "No process holds it; `owner-1` was the last one.",
        "The next call takes over.",
        "If no call comes, call it again, or settle it by `settle_id(id)`.",
    ];
    assert_eq!(story(&owner).await, resumed);
    Ok(())
}

#[tokio::test]
async fn an_uncertain_step_and_an_undo_are_told_by_their_names() -> Result<(), BoxError> {
    let world = World::memory().await;
    vanish_in_a_step(&world).await;
    let owner = world.owner().await;
    let call = owner.call("trip").key("k").on_crash(OnCrash::Rerun);
    let body = async |_| {
        step("flight", async |_| Ok::<_, Error>(1_u64)).await?;
        step("hotel", async |_| Ok::<_, Error>(2_u64))
            .at_most_once()
            .await
    };
    assert!(call.run(body).await.is_err());
    let story = story(&owner).await;
    let last = story.last().map(String::as_str);
    let advice = "Find out whether the step that has begun happened: `settle_id(id).await?.step(name).with_value(&value)` or `.not_happened()`. Then the next call goes on behind it.";
    assert_eq!(last, Some(advice));

    let world = World::memory().await;
    let owner = world.owner_with(|builder| builder.undo_timeout("1s")).await;
    let call = owner.call("trip").key("k").classify_errors(verdict);
    let body = async |_| {
        let flight = step("flight", async |_| Ok::<_, BookError>(1_u64));
        flight
            .undo(async |_| Err::<(), BoxError>("busy".into()))
            .await?;
        Err::<(), _>(BookError::Refused)
    };
    let timer = owner.timer.clone();
    let undone = while_time_goes_on(&timer, call.run(body)).await;
    assert!(undone.is_err());
    let parked = [
        "It is a call of `trip` with the key \"k\".",
        "It is parked since T: it failed for good, and its steps could not be undone in `owner-1`.",
        "Step `flight` is done, with a value of 1 bytes, and has an undo.",
        "`resume_id(id)` has the next call undo the rest.",
        "An undo that was done by hand is told by `settle_id(id).await?.step(name).undone()`.",
    ];
    assert_eq!(self::story(&owner).await, parked);
    Ok(())
}

#[tokio::test]
async fn a_stream_says_at_which_number_it_stops() -> Result<(), BoxError> {
    let world = World::memory().await;
    let owner = world.owner().await;
    let account = owner.idem.sequence("accounts", "account-7").first(1);
    let first = account.clone().number(1);
    let applied = first.run(async |_| Ok::<_, Error>(7_u64)).await?;
    assert_eq!(applied, Decision::Applied(7));
    let rests = [
        "It is a stream of numbered calls of `sequence:accounts` with the key \"account-7\".",
        "Its last number is 1.",
        "Nothing has to be done: the next number may come.",
    ];
    assert_eq!(story(&owner).await, rests);
    let second = account.clone().number(2).uncertain_errors();
    let left = second.run(async |_| Err::<u64, _>(Error::InvalidPolicy("no answer")));
    assert!(left.await.is_err());
    let stops = [
        "It is a stream of numbered calls of `sequence:accounts` with the key \"account-7\".",
        "Its last number is 1.",
        "Number 2 is uncertain: it began in `owner-1`, and nobody knows whether it happened. No other number runs.",
        "Find out whether it happened: `settle_number_id(id).await?.with_value(&value)`, `.with_error(&error)`, `.as_done()`, or `.release()` if it did not.",
    ];
    assert_eq!(story(&owner).await, stops);
    Ok(())
}
