//! Outcomes of which only a reference is kept: `outcome = reference(save, load)`.

use std::{collections::HashMap, io, sync::Mutex};

use idempotent_runtime::{
    CallOutcome, Error, OutcomeKind, StoreError, StoreErrorKind, idempotent, record::State,
    try_current,
};

use crate::{
    answers::{is_not_replayable, is_unreadable},
    harness::World,
};

on_every_store![
    a_value_is_read_back_through_its_reference,
    a_load_that_fails_on_a_replay_is_worth_trying_again,
    a_load_that_fails_in_the_first_run_leaves_a_reference_that_can_be_replayed,
    a_reference_that_cannot_be_decoded_is_unreadable,
    a_reference_that_was_never_to_be_decoded_is_not_recorded,
    a_value_that_becomes_a_reference_is_not_taken_for_one,
    a_load_is_no_part_of_an_attempt,
];

/// A value without serde.
#[derive(Clone, Debug, PartialEq)]
struct Invoice {
    number: u64,
    text: String,
}

/// A database that can be out of reach.
#[derive(Default)]
struct Invoices {
    rows: Mutex<HashMap<u64, Invoice>>,
    out_of_reach: Mutex<Option<io::ErrorKind>>,
}

impl Invoices {
    fn insert(&self, number: u64) -> Invoice {
        let text = format!("invoice {number}");
        let invoice = Invoice { number, text };
        let mut rows = self.rows.lock().expect("not poisoned");
        rows.insert(number, invoice.clone());
        invoice
    }

    async fn find(&self, number: u64) -> Result<Invoice, io::Error> {
        if let Some(why) = *self.out_of_reach.lock().expect("not poisoned") {
            return Err(why.into());
        }
        let rows = self.rows.lock().expect("not poisoned");
        rows.get(&number)
            .cloned()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn fail(&self, why: Option<io::ErrorKind>) {
        *self.out_of_reach.lock().expect("not poisoned") = why;
    }
}

#[idempotent(
    name = "references.invoice",
    key = order,
    skip(world, invoices),
    outcome = reference(|invoice: &Invoice| invoice.number, |number| invoices.find(number)),
)]
async fn invoice(world: &World, invoices: &Invoices, order: u64) -> Result<Invoice, Error> {
    world.happened("invoice");
    Ok(invoices.insert(100 + order))
}

async fn a_value_is_read_back_through_its_reference(world: World) {
    let (owner, invoices) = (world.owner().await, Invoices::default());

    let first = owner.enter(invoice(&world, &invoices, 7)).await;
    let second = owner.enter(invoice(&world, &invoices, 7)).await;

    assert_eq!(first.expect("it ran").number, 107);
    assert_eq!(second.expect("it is replayed").text, "invoice 107");
    let kept = world.record().await.outcome.clone();
    assert_eq!(kept.expect("it is done").bytes, &b"107"[..]);
    assert_eq!(world.runs("invoice"), 1);
}

async fn a_load_that_fails_on_a_replay_is_worth_trying_again(world: World) {
    let (owner, invoices) = (world.owner().await, Invoices::default());
    let first = owner.enter(invoice(&world, &invoices, 7)).await;
    let before = world.record().await;

    invoices.fail(Some(io::ErrorKind::ConnectionRefused));
    let error = owner
        .enter(invoice(&world, &invoices, 7))
        .await
        .expect_err("the database is out of reach");

    assert!(error.is_retryable(), "{error:?}");
    let Error::NotLoaded { source, .. } = &error else {
        panic!("{error:?}")
    };
    let why = source.inner().downcast_ref::<io::Error>();
    assert_eq!(
        why.map(io::Error::kind),
        Some(io::ErrorKind::ConnectionRefused)
    );
    owner.assert_answers(&[CallOutcome::Executed, CallOutcome::NotReplayable]);

    invoices.fail(None);
    assert_eq!(owner.enter(invoice(&world, &invoices, 7)).await, first);
    assert_eq!(world.record().await, before);
    assert_eq!(world.runs("invoice"), 1);
}

async fn a_load_that_fails_in_the_first_run_leaves_a_reference_that_can_be_replayed(world: World) {
    let (owner, invoices) = (world.owner().await, Invoices::default());
    invoices.fail(Some(io::ErrorKind::ConnectionRefused));

    let first = owner.enter(invoice(&world, &invoices, 7)).await;

    assert_eq!(first.as_ref().map(|invoice| invoice.number), Ok(107));
    let record = world.record().await;
    assert_eq!(record.state, State::Done);
    let kept = record.outcome.clone().expect("it is done");
    assert_eq!((kept.kind, &*kept.bytes), (OutcomeKind::Value, &b"107"[..]));

    invoices.fail(None);
    assert_eq!(owner.enter(invoice(&world, &invoices, 7)).await, first);
    assert_eq!(world.runs("invoice"), 1);
}

/// A reference as another build stored it.
async fn a_reference_that_cannot_be_decoded_is_unreadable(world: World) {
    let (owner, invoices) = (world.owner().await, Invoices::default());
    let call = owner.call("references.invoice").key(&7);
    let older = call.argument("order", &7);
    let stored = older
        .run(|_| async { Ok::<_, Error>("text".to_owned()) })
        .await;
    assert_eq!(stored, Ok("text".into()));

    let answer = owner.enter(invoice(&world, &invoices, 7)).await;

    assert!(is_unreadable(&answer), "{answer:?}");
    assert!(answer.is_err_and(|error| !error.is_retryable()));
}

/// An example is NaN, a number that JSON does not have.
async fn a_reference_that_was_never_to_be_decoded_is_not_recorded(world: World) {
    let owner = world.owner().await;
    let call = || {
        let load = |weight: f64| async move { Ok::<_, Error>(weight) };
        let call = owner.call("references.weight").key("k");
        call.reference(|weight: &f64| *weight, load)
            .run(|_| async { Ok::<_, Error>(f64::NAN) })
    };

    assert!(call().await.is_ok_and(f64::is_nan), "the first run");

    let replay = call().await;
    assert!(is_not_replayable(&replay), "{replay:?}");
}

/// A build that counts `version` up tells its own values from those of the build before.
async fn a_value_that_becomes_a_reference_is_not_taken_for_one(world: World) {
    let (old, new) = (world.owner().await, world.owner().await);
    let cents = old.call("references.changed").key("k");
    let cents = cents.run(|_| async { Ok::<_, Error>(1_250_u64) }).await;
    assert_eq!(cents, Ok(1_250));

    // The invoice of that number is another customer's.
    let call = new.call("references.changed").key("k").version(1);
    let invoice = call.reference(
        |_: &String| 7_u64,
        |number: u64| async move { Ok::<_, Error>(format!("invoice {number}")) },
    );
    let answer = invoice.run(|_| async { Ok::<_, Error>("invoice 7".to_owned()) });
    let answer = answer.await;

    assert!(
        matches!(answer, Err(Error::Unreadable { schema: 0, .. })),
        "{answer:?}"
    );
}

/// A replay has no attempt. A `load` that asks for one has to find that out in the first run.
async fn a_load_is_no_part_of_an_attempt(world: World) {
    let owner = world.owner().await;
    let call = || {
        let load = |_: bool| async { Ok::<_, Error>(try_current().is_some()) };
        let call = owner.call("references.attempt").key("k");
        call.reference(|saved: &bool| *saved, load)
            .run(|_| async { Ok::<_, Error>(try_current().is_some()) })
    };

    assert_eq!(call().await, Ok(false), "the first run");
    assert_eq!(call().await, Ok(false), "a replay");
}

/// An error of ours in `load` says itself whether to try again.
#[tokio::test]
async fn an_error_of_ours_in_a_load_keeps_its_word() {
    let owner = World::memory().await.owner().await;
    for (kind, retryable) in [
        (StoreErrorKind::Unavailable, true),
        (StoreErrorKind::Corrupt, false),
    ] {
        let key = format!("{kind:?}");
        let call = || {
            let call = owner.call("references.ours").key(&key);
            let load = move |_: u64| async move {
                Err::<u64, Error>(StoreError::new(kind, "loading an invoice").into())
            };
            call.reference(|value: &u64| *value, load)
                .run(|_| async { Ok::<_, Error>(1) })
        };
        assert_eq!(call().await, Ok(1));
        let error = call().await.expect_err("it cannot be loaded");
        assert!(matches!(error, Error::NotLoaded { .. }), "{error:?}");
        assert_eq!(error.is_retryable(), retryable, "{error:?}");
    }
}
