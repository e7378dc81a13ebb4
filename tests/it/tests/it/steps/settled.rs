//! Steps that an operator settles.

use idempotent_runtime::{BoxError, Error, NotSettled, Settle, record::State, step, testing::Gate};

use super::successor;
use crate::{
    answers::is_uncertain,
    harness::{Owner, World, not_settled},
};

on_every_store![
    j26_a_step_that_happened_is_settled_with_its_value,
    j26_a_step_that_did_not_happen_runs_again,
    j26_a_step_that_failed_is_settled_with_its_error,
    j26_a_step_is_settled_before_a_call_finds_it_in_doubt,
    j26_what_cannot_be_settled_of_a_step_is_refused,
];

/// A call of a step that runs at most once between two others.
async fn pays(world: &World, owner: &Owner, gate: Option<&Gate>) -> Result<String, Error> {
    let call = owner.call("pay").key("k");
    call.run(async |_| {
        let count = async |_| {
            world.happened("count");
            Ok::<_, Error>(())
        };
        step("count", count).await?;
        let charge = async |_| {
            world.happened("charge");
            if let Some(gate) = gate {
                gate.pass().await;
            }
            Ok::<_, Error>("charged".to_owned())
        };
        let charge = step("charge", charge).at_most_once();
        let charge = charge.on_error(|_: &Error| idempotent_runtime::Verdict::Replay);
        let receipt = charge.run().await?;
        step("mail", async |_| Ok::<_, Error>(())).await?;
        Ok(receipt)
    })
    .await
}

/// Dies in that step, and gives the next owner, with the lease over.
async fn dies_in_the_charge(world: &World) -> Owner {
    let (owner, gate) = (world.owner().await, Gate::new());
    let (its, at, held) = (owner.clone(), world.clone(), gate.clone());
    let call = tokio::spawn(async move { pays(&at, &its, Some(&held)).await });
    gate.arrived(1).await;
    owner.die_in(call).await;
    successor(world).await
}

fn settle(owner: &Owner) -> Settle<'_> {
    let settle = owner.idem.settle("pay", None::<&str>, "k");
    settle.expect("a key")
}

async fn j26_a_step_that_happened_is_settled_with_its_value(world: World) {
    let owner = dies_in_the_charge(&world).await;
    assert!(is_uncertain(&pays(&world, &owner, None).await));
    let settled = settle(&owner).step("charge").with_value(&"receipt-9");
    settled.await.expect("it is in doubt");
    for _ in 0..2 {
        assert_eq!(pays(&world, &owner, None).await, Ok("receipt-9".to_owned()));
    }
    assert_eq!((world.runs("count"), world.runs("charge")), (1, 1));
}

async fn j26_a_step_that_did_not_happen_runs_again(world: World) {
    let owner = dies_in_the_charge(&world).await;
    assert!(is_uncertain(&pays(&world, &owner, None).await));
    let settled = settle(&owner).step("charge").not_happened();
    settled.await.expect("it is in doubt");
    // It is at most once in the next attempt, too.
    drop(owner);
    let owner = dies_in_the_charge(&world).await;
    assert!(is_uncertain(&pays(&world, &owner, None).await));
    let settled = settle(&owner).step("charge").not_happened();
    settled.await.expect("it is in doubt again");
    assert_eq!(pays(&world, &owner, None).await, Ok("charged".to_owned()));
    assert_eq!((world.runs("count"), world.runs("charge")), (1, 3));
}

async fn j26_a_step_that_failed_is_settled_with_its_error(world: World) {
    let owner = dies_in_the_charge(&world).await;
    let error = Error::InvalidPolicy("declined");
    let settled = settle(&owner).step("charge").with_error(&error).await;
    // An error of ours is never an outcome.
    assert!(settled.is_err());
    let settled = settle(&owner).step("charge").with_error(&"declined").await;
    settled.expect("it is in doubt");
    let answer = pays(&world, &owner, None).await;
    assert!(
        matches!(answer, Err(Error::Unreadable { .. })),
        "{answer:?}"
    );
    assert_eq!(world.runs("charge"), 1);
}

async fn j26_a_step_is_settled_before_a_call_finds_it_in_doubt(world: World) {
    let owner = dies_in_the_charge(&world).await;
    assert_eq!(world.record().await.state, State::Running);
    let settled = settle(&owner).step("charge").with_value(&"receipt-9");
    settled.await.expect("its holder vanished");
    assert_eq!(pays(&world, &owner, None).await, Ok("receipt-9".to_owned()));
}

async fn j26_what_cannot_be_settled_of_a_step_is_refused(world: World) {
    let reason = |settled: Result<(), BoxError>| not_settled(settled).expect("it is refused");
    let owner = world.owner().await;
    let nothing = settle(&owner).step("charge").with_value(&1).await;
    assert_eq!(reason(nothing), NotSettled::UnknownOperation);
    let gate = Gate::new();
    let (its, at, held) = (owner.clone(), world.clone(), gate.clone());
    let call = tokio::spawn(async move { pays(&at, &its, Some(&held)).await });
    gate.arrived(1).await;
    let running = settle(&owner).step("charge").with_value(&1).await;
    assert_eq!(reason(running), NotSettled::StillRunning);
    owner.die_in(call).await;
    let owner = successor(&world).await;
    let unknown = settle(&owner).step("refund").with_value(&1).await;
    assert_eq!(reason(unknown), NotSettled::UnknownStep);
    let ended = settle(&owner).step("count").not_happened().await;
    assert_eq!(
        reason(ended.map_err(Into::into)),
        NotSettled::AlreadySettled
    );
    let long = "x".repeat(2_000);
    let long = settle(&owner).step(("charge", long)).not_happened().await;
    assert!(
        matches!(
            long,
            Err(Error::InvalidKey {
                part: "step name",
                ..
            })
        ),
        "{long:?}"
    );
    assert!(
        is_uncertain(&pays(&world, &owner, None).await),
        "nothing was settled"
    );
}
