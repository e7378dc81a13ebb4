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
