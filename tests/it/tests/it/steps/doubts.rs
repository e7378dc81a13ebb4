//! Steps of which it is unknown whether they happened.

use idempotent_runtime::{
    Error, Reconciled, Verdict,
    record::State,
    step,
    testing::{Gate, StoreOperation},
};

use super::successor;
use crate::{
    answers::is_uncertain,
    harness::{Owner, World},
};

on_every_store![
    j03_a_step_at_most_once_that_began_makes_the_call_uncertain,
    j03_a_reconciling_step_asks_instead_of_running_again,
    j03_a_step_at_most_once_does_not_run_again_in_its_attempt,
    mend_33_a_step_at_most_once_that_was_given_up_is_uncertain_in_its_attempt,
    an_error_that_nobody_understands_makes_the_call_uncertain,
    a_doubt_that_the_body_swallows_counts_all_the_same,
    a_step_at_most_once_costs_two_writes,
];

/// Dies within a step of a call.
async fn dies_in_a_step(world: &World, reconciles: bool) {
    let owner = world.owner().await;
    let gate = Gate::new();
    let (held, at) = (gate.clone(), world.clone());
    let body = async move |_| {
        at.happened("charge");
        held.pass().await;
        Ok::<_, Error>("charged".to_owned())
    };
    let call = owner.call("pay").key("k");
    let call = tokio::spawn(call.run(async move |_| match reconciles {
        false => step("charge", body).at_most_once().await,
        true => {
            let ask = async |_| Reconciled::<String, Error>::Unknown;
            step("charge", body).reconcile(ask).await
        }
    }));
    gate.arrived(1).await;
    owner.die_in(call).await;
}

async fn pays_at_most_once(world: &World, owner: &Owner) -> Result<String, Error> {
    let call = owner.call("pay").key("k");
    call.run(async |_| {
        let body = async |_| {
            world.happened("charge");
            Ok::<_, Error>("charged".to_owned())
        };
        step("charge", body).at_most_once().await
    })
    .await
}

async fn j03_a_step_at_most_once_that_began_makes_the_call_uncertain(world: World) {
    dies_in_a_step(&world, false).await;
    let owner = successor(&world).await;
    for _ in 0..2 {
        let answer = pays_at_most_once(&world, &owner).await;
        assert!(is_uncertain(&answer), "{answer:?}");
    }
    assert_eq!(world.record().await.state, State::Uncertain);
    assert_eq!(world.runs("charge"), 1);
}

async fn j03_a_reconciling_step_asks_instead_of_running_again(world: World) {
    dies_in_a_step(&world, true).await;
    let owner = successor(&world).await;
    let pays = async |found: Reconciled<String, Error>| {
        let call = owner.call("pay").key("k");
        call.run(async |_| {
            let body = async |_| {
                world.happened("charge");
                Ok::<_, Error>("charged".to_owned())
            };
            let ask = async move |_| found;
            step("charge", body).reconcile(ask).await
        })
        .await
    };
    let failed = pays(Reconciled::Failed(Error::InvalidPolicy("not there"))).await;
    assert!(matches!(failed, Err(Error::InvalidPolicy(_))), "{failed:?}");
    let found = pays(Reconciled::Happened("found".to_owned())).await;
    assert_eq!(found, Ok("found".to_owned()));
    let again = pays(Reconciled::RunAgain).await;
    assert_eq!(again, Ok("found".to_owned()));
    assert_eq!(world.runs("charge"), 1);

    world
        .advance(std::time::Duration::from_secs(48 * 3600))
        .await;
    dies_in_a_step(&world, true).await;
    let owner = successor(&world).await;
    let call = owner.call("pay").key("k");
    let answer = call
        .run(async |_| {
            let body = async |_| Ok::<_, Error>("charged".to_owned());
            let ask = async |_| Reconciled::Unknown;
            step("charge", body).reconcile(ask).await
        })
        .await;
    assert!(is_uncertain(&answer), "{answer:?}");
    assert_eq!(world.record().await.state, State::Uncertain);
}

async fn j03_a_step_at_most_once_does_not_run_again_in_its_attempt(world: World) {
    let owner = world.owner().await;
    let call = owner.call("pay").key("k");
    let answer = call
        .run(async |_| {
            let fails = async |_| {
                world.happened("charge");
                Err::<String, _>(Error::InvalidPolicy("a planned error"))
            };
            assert!(step("charge", fails).at_most_once().await.is_err());
            let again = step("charge", fails).at_most_once().await;
            assert!(
                matches!(again, Err(Error::DuplicateStep { .. })),
                "{again:?}"
            );
            again
        })
        .await;
    assert!(answer.is_err());
    let answer = pays_at_most_once(&world, &owner).await;
    assert!(is_uncertain(&answer), "{answer:?}");
    assert_eq!(world.runs("charge"), 1);
}

async fn mend_33_a_step_at_most_once_that_was_given_up_is_uncertain_in_its_attempt(world: World) {
    let owner = world.owner().await;
    let call = owner.call("pay").key("k");
    let answer = call
        .run(async |_| {
            let gate = Gate::new();
            let charge = async |_| {
                world.happened("charge");
                gate.pass().await;
                Ok::<_, Error>("charged".to_owned())
            };
            // The body's own time-out is over once the step is at work.
            tokio::select! {
                biased;
                done = step("charge", charge).at_most_once().run() => panic!("{done:?}"),
                () = gate.arrived(1) => {}
            }
            let again = step("charge", charge).at_most_once().run().await;
            assert!(is_uncertain(&again), "{again:?}");
            // A body that goes on all the same has no outcome.
            Ok::<_, Error>("not charged".to_owned())
        })
        .await;
    assert!(is_uncertain(&answer), "{answer:?}");
    assert_eq!(world.record().await.state, State::Uncertain);
    assert_eq!(world.runs("charge"), 1);
}

async fn an_error_that_nobody_understands_makes_the_call_uncertain(world: World) {
    let owner = world.owner().await;
    let call = owner.call("pay").key("k");
    let answer = call
        .release_errors()
        .run(async |_| {
            let fails = async |_| Err::<String, _>(Error::InvalidPolicy("which one?"));
            let uncertain = |_: &Error| idempotent_runtime::Unrecorded::Uncertain;
            step("charge", fails).on_error(uncertain).await
        })
        .await;
    assert!(is_uncertain(&answer), "{answer:?}");
    assert_eq!(world.record().await.state, State::Uncertain);
}

async fn a_doubt_that_the_body_swallows_counts_all_the_same(world: World) {
    dies_in_a_step(&world, false).await;
    let owner = successor(&world).await;
    let call = owner.call("pay").key("k");
    let answer = call
        .run(async |_| {
            let body = async |_| Ok::<_, Error>("charged".to_owned());
            let charged = step("charge", body).at_most_once().await;
            Ok::<_, Error>(charged.unwrap_or_else(|_| "paid all the same".to_owned()))
        })
        .await;
    assert!(is_uncertain(&answer), "{answer:?}");
    assert_eq!(world.record().await.state, State::Uncertain);
}

async fn a_step_at_most_once_costs_two_writes(world: World) {
    let owner = world.owner().await;
    let answer = pays_at_most_once(&world, &owner).await;
    assert_eq!(answer, Ok("charged".to_owned()));
    assert_eq!(owner.store.calls(StoreOperation::WriteStep), 2);
    assert_eq!(owner.store.calls(StoreOperation::LoadSteps), 0);
    let _: Verdict = Verdict::Replay;
}
