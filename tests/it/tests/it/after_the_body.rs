//! Calls whose body has returned: from then on nothing may run it again, whatever the application's
//! own code does.

use std::{convert::Infallible, time::Duration};

use idempotent_runtime::{Error, OnCrash, Verdict, testing::Gate};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    answers::is_not_replayable,
    charge::{abort, settle},
    harness::{Owner, World},
};

on_every_store![
    a_panic_while_the_outcome_is_encoded_runs_nothing_again,
    a_panic_while_the_outcome_is_decoded_runs_nothing_again,
    a_panic_in_a_classifier_runs_nothing_again,
    a_reference_is_recorded_before_it_is_loaded,
    what_is_settled_is_kept_for_as_long_as_the_call_chose,
];

#[derive(Debug)]
struct NotWritten;

impl Serialize for NotWritten {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("planned: it is not written")
    }
}

impl<'de> Deserialize<'de> for NotWritten {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Ok(Self)
    }
}

#[derive(Debug, Serialize)]
struct NotRead;

impl<'de> Deserialize<'de> for NotRead {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("planned: it is not read")
    }
}

async fn panics<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) {
    let ended = tokio::spawn(call).await;
    assert!(ended.is_err_and(|ended| ended.is_panic()));
}

macro_rules! charge {
    ($world:expr, $owner:expr, $value:expr) => {{
        let (world, owner): (World, Owner) = ($world.clone(), $owner.clone());
        async move {
            let body = world.clone();
            let call = owner.call("charge").key("k");
            call.run(|_| async move {
                body.happened("k");
                Ok::<_, Error>($value)
            })
            .await
        }
    }};
}

async fn a_panic_while_the_outcome_is_encoded_runs_nothing_again(world: World) {
    let owner = world.owner().await;
    panics(charge!(world, owner, NotWritten)).await;
    owner.settled().await;

    let again = charge!(world, owner, NotWritten).await;

    assert!(is_not_replayable(&again), "{again:?}");
    assert_eq!(world.runs("k"), 1);
}

async fn a_panic_while_the_outcome_is_decoded_runs_nothing_again(world: World) {
    let owner = world.owner().await;
    panics(charge!(world, owner, NotRead)).await;
    owner.settled().await;

    let again = charge!(world, owner, NotRead).await;

    assert!(is_not_replayable(&again), "{again:?}");
    assert_eq!(world.runs("k"), 1);
}

/// A charge that fails, and whose classifier panics.
pub(crate) async fn declined(world: World, owner: Owner) -> Result<(), Error> {
    let call = owner.call("charge").key("k");
    let call = call.classify_errors(|_: &Error| -> Verdict { panic!("planned: it does not know") });
    let body = |_| async move {
        world.happened("k");
        Err(Error::InvalidPolicy("declined"))
    };
    call.run(body).await
}

async fn a_panic_in_a_classifier_runs_nothing_again(world: World) {
    let owner = world.owner().await;
    panics(declined(world.clone(), owner.clone())).await;
    owner.settled().await;

    let again = declined(world.clone(), owner).await;

    assert!(matches!(again, Err(Error::Uncertain { .. })), "{again:?}");
    assert_eq!(world.runs("k"), 1);
}

async fn a_reference_is_recorded_before_it_is_loaded(world: World) {
    let (owner, gate) = (world.owner().await, Gate::new());
    let charge = |gate: Gate| {
        let (body, owner) = (world.clone(), owner.clone());
        async move {
            let call = owner.call("charge").key("k").on_crash(OnCrash::Uncertain);
            let load = |number: u32| async move {
                gate.pass().await;
                Ok::<_, Infallible>(number)
            };
            call.reference(|number: &u32| *number, load)
                .run(|_| async move {
                    body.happened("k");
                    Ok::<_, Error>(7)
                })
                .await
        }
    };
    let first = tokio::spawn(charge(gate.clone()));
    gate.arrived(1).await;
    abort(first).await;

    let open = Gate::new();
    open.open();
    assert_eq!(charge(open).await.ok(), Some(7));
    assert_eq!(world.runs("k"), 1);
}

async fn what_is_settled_is_kept_for_as_long_as_the_call_chose(world: World) {
    const CHOSEN: Duration = Duration::from_secs(60 * 60);
    let (owner, operator) = (world.owner().await, world.owner().await);
    let gate = Gate::new();
    let charge = |gate: Gate| {
        let (body, owner) = (world.clone(), owner.clone());
        async move {
            let call = owner.call("charge").key("k").ttl(CHOSEN);
            let call = call.on_crash(OnCrash::Uncertain);
            call.run(|_| async move {
                body.happened("k");
                gate.pass().await;
                Ok::<_, Error>(1)
            })
            .await
        }
    };
    let dropped = tokio::spawn(charge(gate.clone()));
    gate.arrived(1).await;
    abort(dropped).await;
    owner.settled().await;

    let settled = settle(&operator, "k").with_value(&2).await;
    assert!(settled.is_ok());

    let record = world.record().await;
    let finished = record.finished.expect("it is finished");
    assert_eq!(record.expires.since(finished), CHOSEN);
    gate.open();
    assert_eq!(charge(gate).await.ok(), Some(2));
    assert_eq!(world.runs("k"), 1);
}
