//! Steps that an operator settles.

use idempotent_runtime::{
    BoxError, Error, NotSettled, Settle, Verdict, record::State, step, testing::Gate,
};

use super::successor;
use crate::{
    answers::{is_not_replayable, is_uncertain},
    booking::{BookError, verdict},
    harness::{Owner, World, not_settled},
};

on_every_store![
    j26_a_step_that_happened_is_settled_with_its_value,
    j26_a_step_that_did_not_happen_runs_again,
    j26_a_step_that_failed_is_settled_with_its_error,
    j26_a_step_is_settled_before_a_call_finds_it_in_doubt,
    j26_what_cannot_be_settled_of_a_step_is_refused,
    mend_13_a_step_whose_value_was_not_kept_is_settled_with_it,
    mend_13_a_step_whose_value_was_not_kept_is_settled_with_an_error,
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
        let charge = charge.on_error(|_: &Error| Verdict::Replay);
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

/// A call whose step gives a value that is too long to be kept. Its first attempt fails behind it.
async fn reports(world: &World, owner: &Owner, fails: bool) -> Result<usize, BookError> {
    let call = owner.call("pay").key("k");
    let released = |_: &BookError| Verdict::Release;
    call.classify_errors(released)
        .run(async |_| {
            let body = async |_| {
                world.happened("report");
                Ok::<_, BookError>("x".repeat(100))
            };
            let report = step("report", body).on_error(verdict).await?;
            match fails {
                true => Err(BookError::Refused),
                false => Ok(report.len()),
            }
        })
        .await
}

/// Loses the value of the step, and gives the owner that finds it so.
async fn loses_the_report(world: &World) -> Owner {
    let owner = world.owner_with(|builder| builder.max_outcome(64)).await;
    let first = reports(world, &owner, true).await;
    assert_eq!(first, Err(BookError::Refused));
    let again = reports(world, &owner, false).await;
    let Err(BookError::Ours(error)) = again else {
        panic!("{again:?}");
    };
    assert!(is_not_replayable(&Err::<(), _>(error)));
    owner
}

async fn mend_13_a_step_whose_value_was_not_kept_is_settled_with_it(world: World) {
    let owner = loses_the_report(&world).await;
    let refused = settle(&owner).step("report").not_happened().await;
    assert_eq!(not_settled(refused), Some(NotSettled::AlreadySettled));
    for _ in 0..2 {
        let settled = settle(&owner).step("report").with_value(&"short").await;
        settled.expect("its value is not known");
    }
    let other = settle(&owner).step("report").with_value(&"other").await;
    assert_eq!(not_settled(other), Some(NotSettled::AlreadySettled));
    assert_eq!(reports(&world, &owner, false).await, Ok(5));
    assert_eq!(world.runs("report"), 1);
}

async fn mend_13_a_step_whose_value_was_not_kept_is_settled_with_an_error(world: World) {
    let owner = loses_the_report(&world).await;
    let settled = settle(&owner).step("report");
    let settled = settled.with_error(&BookError::Refused).await;
    settled.expect("its value is not known");
    let again = reports(&world, &owner, false).await;
    assert_eq!(again, Err(BookError::Refused));
    assert_eq!(world.runs("report"), 1);
}
