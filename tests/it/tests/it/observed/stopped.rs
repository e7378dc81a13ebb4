//! Reports of a body that did not come to its end.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
};

use super::*;

const ADVICE: &str = "`on_cancel = detach` lets it finish, unless its runtime ends";

#[idempotent(name = "observed.panics", key = key)]
async fn panics(key: u64) -> Result<(), Error> {
    panic!("a planned panic in the call {key}")
}

/// The guide lists the fields of the span. The event has none, so that each is said once.
#[tokio::test]
async fn the_end_of_a_call_is_said_in_words_and_each_field_once() {
    let world = World::memory().await;
    let owner = world.owner().await;
    let twice = async {
        for _ in 0..2 {
            let call = owner.enter(held(world.clone(), open(), "k".into(), 1));
            assert_eq!(call.await, Ok(1));
        }
    };

    let ((), said) = said_during(twice).await;

    for (outcome, message) in [
        ("executed", "idempotent: ran the body"),
        ("replayed", "idempotent: replayed the recorded outcome"),
    ] {
        let line = said.lines().find(|line| line.ends_with(message));
        let line = line.unwrap_or_else(|| panic!("{message}: {said}"));
        for field in [
            r#"operation="observed.held""#,
            " id=",
            " attempt=1",
            &format!(r#" outcome="{outcome}""#),
        ] {
            assert_eq!(line.matches(field).count(), 1, "{field} in {line}");
        }
    }
}

#[tokio::test]
async fn who_drops_a_body_is_told_how_it_could_finish() {
    let world = World::memory().await;
    let (owner, gate) = (world.owner().await, Gate::new());
    let dropped = async {
        let call = owner.enter(held(world.clone(), gate.clone(), "k".into(), 1));
        tokio::select! {
            _ = call => unreachable!("the gate is closed"),
            () = gate.arrived(1) => {}
        }
    };

    let ((), said) = said_during(dropped).await;

    assert!(said.contains(ADVICE), "{said}");
}

#[tokio::test]
async fn nobody_is_told_that_a_body_which_panicked_could_have_finished() {
    let owner = World::memory().await.owner().await;
    let panicked = async {
        let mut call = pin!(owner.enter(panics(1)));
        poll_fn(|cx| {
            let polled = catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(cx)));
            polled.map_or(Poll::Ready(true), |polled| polled.map(|_| false))
        })
        .await
    };

    let (panicked, said) = said_during(panicked).await;

    assert!(panicked);
    owner.log.await_step(RecordChange::Stopped).await;
    assert_eq!(owner.log.answers(), [CallOutcome::Panicked]);
    assert!(said.contains("a panic stopped a body half-way"), "{said}");
    assert!(!said.contains("on_cancel"), "{said}");
}
