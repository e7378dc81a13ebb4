//! A build that gives an operation another identity, rolled out beside the one before it.

use std::{
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use idempotent_runtime::{
    Attempt, CallEvent, Error, InFlight, Observer, RecordChange, RecordEvent, idempotent,
    identity::RecordId,
    testing::{Gate, On, StoreOperation},
};
use tokio::task::JoinHandle;

use crate::harness::{Owner, World, said_during};

on_every_store![
    b26_who_waited_under_the_old_name_goes_on_under_the_new_one,
    b26_who_saw_the_old_name_held_goes_on_under_the_new_one,
    b26_what_both_names_have_the_old_one_answers,
    b26_a_claim_under_the_new_name_is_given_up_under_it,
    b26_what_was_released_under_the_old_name_runs_under_the_new_one,
    b26_what_was_released_under_the_old_name_is_answered_by_what_ran_under_the_new_one,
    b26_what_was_taken_up_under_the_old_name_hands_the_same_keys_downstream,
    b26_what_is_settled_under_the_old_name_is_read_by_the_function_that_accepts_it,
    mend_35_span_log_and_observer_name_the_record_that_stands,
];

#[idempotent(name = "roll_out.new", also_accept = "roll_out.old", key = order, skip(world, ends))]
async fn charge(world: World, ends: Gate, order: &'static str) -> Result<usize, Error> {
    world.happened(order);
    ends.pass().await;
    Ok(world.runs(order))
}

/// A record kept for twice this time by the build before is gone after three times this time.
const SHORT: Duration = Duration::from_secs(1);

/// Runs the call as the build before does, until the gate is opened. Then it fails, and its error
/// is not kept.
async fn runs_before(old: &Owner) -> (JoinHandle<Result<(), Error>>, Gate) {
    let gate = Gate::new();
    let ends = gate.clone();
    let call = old.call("roll_out.old").key("k").argument("order", "k");
    let call = call.ttl(SHORT * 2).lease(SHORT);
    let call = tokio::spawn(call.release_errors().run(move |_| async move {
        ends.pass().await;
        Err(Error::AlreadyInstalled)
    }));
    gate.arrived(1).await;
    (call, gate)
}

/// The first of two duplicates learns that the release has expired while the second one runs: it
/// answers both.
async fn one_runs(world: World, first: &Owner, learns: Gate, before: impl AsyncFnOnce()) {
    let (second, ends) = (world.owner().await, Gate::new());
    let waited = first.spawn(charge(world.clone(), ends.clone(), "k"));
    before().await;
    learns.arrived(1).await;
    world.advance(SHORT * 3).await;
    let ran = second.spawn(charge(world.clone(), ends.clone(), "k"));
    ends.arrived(1).await;
    learns.open();
    ends.open();

    assert_eq!(ran.await.expect("no panic"), Ok(1));
    assert_eq!(waited.await.expect("no panic"), Ok(1));
    assert_eq!(world.runs("k"), 1);
}

async fn b26_who_waited_under_the_old_name_goes_on_under_the_new_one(world: World) {
    let (old, first) = (world.owner().await, world.owner().await);
    let (runs, fails) = runs_before(&old).await;
    // The first look finds the old name held; the second one comes after the wait.
    let learns = first.delays(StoreOperation::Load, On::Call(2));

    let released = async || {
        first.log.await_step(RecordChange::Waiting).await;
        fails.open();
        assert!(runs.await.expect("no panic").is_err());
    };
    one_runs(world, &first, learns, released).await;
}

async fn b26_who_saw_the_old_name_held_goes_on_under_the_new_one(world: World) {
    let (old, first) = (world.owner().await, world.owner().await);
    let (runs, fails) = runs_before(&old).await;
    let learns = first.delays_answer(StoreOperation::Load, On::Call(1));

    let released = async || {
        learns.arrived(1).await;
        fails.open();
        assert!(runs.await.expect("no panic").is_err());
    };
    one_runs(world, &first, learns.clone(), released).await;
}

async fn b26_what_was_released_under_the_old_name_runs_under_the_new_one(world: World) {
    let (old, new) = (world.owner().await, world.owner().await);
    let before = old.call("roll_out.old").key("k").release_errors();
    let failed = before.run(async |_| Err::<String, _>(Error::AlreadyInstalled));
    assert_eq!(failed.await, Err(Error::AlreadyInstalled));

    let again = |name: &'static str| {
        let call = new.call("roll_out.new").also_accept_name("roll_out.old");
        let call = call.key("k");
        call.run(async move |_| Ok::<_, Error>(name.to_owned()))
    };
    assert_eq!(again("first").await, Ok("first".into()));
    assert_eq!(again("second").await, Ok("first".into()));

    let own = new.call("roll_out.new").key("k");
    let own = own.run(async |_| Ok::<String, Error>("third".into())).await;
    assert_eq!(own, Ok("first".into()));
}

/// An old process that still serves knows nothing of the new name. It reports only of itself that
/// it did nothing.
async fn b26_what_was_released_under_the_old_name_is_answered_by_what_ran_under_the_new_one(
    world: World,
) {
    let (old, new) = (world.owner().await, world.owner().await);
    let again = || {
        let call = new.call("roll_out.new").also_accept_name("roll_out.old");
        let body = async |attempt: Attempt| Ok::<_, Error>(attempt.child_key("gateway"));
        call.key("k").run(body)
    };
    let ran = again().await;
    let late = old.call("roll_out.old").key("k").release_errors();
    let late = late.run(async |_| Err::<String, _>(Error::AlreadyInstalled));
    assert_eq!(late.await, Err(Error::AlreadyInstalled));

    assert_eq!(again().await, ran);
    new.assert_steps(&[RecordChange::Claimed, RecordChange::Recorded]);
}

async fn b26_what_was_taken_up_under_the_old_name_hands_the_same_keys_downstream(world: World) {
    let (old, new) = (world.owner().await, world.owner().await);
    let (sent, never) = (Gate::new(), Gate::new());
    let (seen, body_sent) = (Arc::new(OnceLock::new()), sent.clone());
    let told = Arc::clone(&seen);
    let dies = tokio::spawn(
        old.call("roll_out.old")
            .key("k")
            .run(move |attempt| async move {
                told.set(attempt.child_key("gateway")).expect("once");
                body_sent.open();
                never.pass().await;
                Ok::<_, Error>(String::new())
            }),
    );
    sent.pass().await;
    old.die_in(dies).await;
    world.advance(Duration::from_secs(30)).await;

    let call = new.call("roll_out.new").also_accept_name("roll_out.old");
    let body = async |attempt: Attempt| Ok::<_, Error>(attempt.child_key("gateway"));

    assert_eq!(call.key("k").run(body).await.as_ref().ok(), seen.get());
}

#[idempotent(name = "roll_out.counted", also_accept = "roll_out.before", key = order, version = 3)]
async fn counted(order: &str) -> Result<String, Error> {
    Ok(order.into())
}

async fn b26_what_is_settled_under_the_old_name_is_read_by_the_function_that_accepts_it(
    world: World,
) {
    let (old, new) = (world.owner().await, world.owner().await);
    let before = old.call("roll_out.before").key("k").argument("order", "k");
    let unknown = before.uncertain_errors();
    let unknown = unknown.run(async |_| Err::<(), _>(Error::AlreadyInstalled));
    assert_eq!(unknown.await, Err(Error::AlreadyInstalled));
    let told = new.enter(counted("k")).await;
    assert!(matches!(told, Err(Error::Uncertain { .. })), "{told:?}");

    let settle = new.idem.settle("roll_out.before", None::<&str>, "k");
    let settled = settle.expect("a key").with_value(&"found").await;

    assert!(settled.is_ok(), "{settled:?}");
    assert_eq!(new.enter(counted("k")).await, Ok("found".into()));
}

/// Both builds ran the call, each under its own name. A call that accepts both names gets one
/// answer, always the same.
async fn b26_what_both_names_have_the_old_one_answers(world: World) {
    let owner = world.owner().await;
    for name in ["roll_out.old", "roll_out.new"] {
        let own = async move |_| Ok::<_, Error>(name.to_owned());
        let answer = owner.call(name).key("k").run(own).await;
        assert_eq!(answer, Ok(name.into()));
    }

    let both = owner.call("roll_out.new").also_accept_name("roll_out.old");
    let answer = both.key("k").run(async |_| Ok("a third".into())).await;

    assert_eq!(answer, Ok::<String, Error>("roll_out.old".into()));
}

/// A caller that goes on under the new name and then goes away leaves no claim there to wait for.
async fn b26_a_claim_under_the_new_name_is_given_up_under_it(world: World) {
    let (old, first) = (world.owner().await, world.owner().await);
    let ends = Gate::new();
    let (runs, fails) = runs_before(&old).await;
    let learns = first.delays(StoreOperation::Load, On::Call(2));
    let claims = first.delays_answer(StoreOperation::Claim, On::Call(1));
    let waits = first.spawn(charge(world.clone(), ends.clone(), "k"));
    first.log.await_step(RecordChange::Waiting).await;
    fails.open();
    assert!(runs.await.expect("no panic").is_err());
    learns.arrived(1).await;
    world.advance(SHORT * 3).await;
    learns.open();
    claims.arrived(1).await;

    waits.abort();
    assert!(waits.await.is_err());
    first.settled().await;

    ends.open();
    let second = world
        .owner_with(|builder| builder.in_flight(InFlight::Reject))
        .await;
    assert_eq!(second.enter(charge(world.clone(), ends, "k")).await, Ok(1));
}

/// Keeps the ids that an observer is told of.
#[derive(Clone, Default)]
struct Ids(Arc<Mutex<Vec<String>>>);

impl Ids {
    fn note(&self, id: &RecordId) {
        self.0.lock().expect("no panic").push(id.to_string());
    }
}

impl Observer for Ids {
    fn transition(&self, transition: &RecordEvent<'_>) {
        self.note(&transition.id);
    }

    fn answered(&self, answered: &CallEvent<'_>) {
        self.note(&answered.id.expect("it has a record"));
    }
}

/// Makes a call that accepts both names. Returns its answer and every id that is told of it,
/// perhaps only its beginning.
async fn told(world: &World, key: &str, order: &str) -> (Result<String, Error>, Vec<String>) {
    let ids = Ids::default();
    let new = world.owner_with(|builder| builder.observer(ids.clone()));
    let new = new.await;
    let call = new.call("roll_out.new").also_accept_name("roll_out.old");
    let call = call.key(key).argument("order", order);
    let (answer, said) = said_during(call.run(async |_| Ok("new".to_owned()))).await;
    let words = said.split(|letter: char| !letter.is_ascii_hexdigit());
    let in_log: Vec<_> = words.filter(|word| word.len() >= 8).collect();
    assert!(!in_log.is_empty(), "{said}");
    let mut all = ids.0.lock().expect("no panic").clone();
    assert!(!all.is_empty());
    all.extend(in_log.into_iter().map(str::to_owned));
    (answer, all)
}

async fn mend_35_span_log_and_observer_name_the_record_that_stands(world: World) {
    let (old, gone) = (world.owner().await, world.owner().await);
    let before = |owner: &Owner, key| {
        let call = owner.call("roll_out.old").key(key).lease(SHORT);
        call.argument("order", "k")
    };
    let ended = before(&old, "ended").run(async |_| Ok::<_, Error>("old".to_owned()));
    assert_eq!(ended.await, Ok("old".into()));
    let (runs, never) = (Gate::new(), Gate::new());
    let (begun, held) = (runs.clone(), never.clone());
    let stopped = before(&gone, "stopped").run(async move |_| {
        begun.open();
        held.pass().await;
        Ok::<_, Error>(String::new())
    });
    let stopped = tokio::spawn(stopped);
    runs.pass().await;
    gone.die_in(stopped).await;
    world.advance(SHORT).await;

    for (key, order, answer) in [
        ("ended", "k", Some("old")),
        ("ended", "another", None),
        ("stopped", "k", Some("new")),
        ("neither", "k", Some("new")),
    ] {
        let (answered, ids) = told(&world, key, order).await;
        assert_eq!(
            answered.as_deref().ok(),
            answer,
            "{key} {order}: {answered:?}"
        );
        let mut records = world.records().await.into_iter();
        let stands = records.find(|(_, record)| record.subject.key == key.as_bytes());
        let stands = stands.expect("a record").0.to_string();
        for id in ids {
            assert!(
                stands.starts_with(&id),
                "{key} {order}: {id} is not of {stands}"
            );
        }
    }
}
