//! Failures of the store at the claim and at a look.

mod given_up;

use std::{error::Error as _, time::Duration};

use idempotent_runtime::{
    Builder, CallOutcome, Error, OnOutage, RecordChange,
    store::StoreErrorKind,
    testing::{Fault, On, StoreOperation},
};

use crate::{
    answers::{is_parked, is_uncertain},
    charge::{Charge, LEASE, Mode, is_told, lapsed_under, settle, vanished},
    harness::{Owner, World, said_during, while_time_goes_on},
};

on_every_store![
    e13_claim_fails_closed,
    e13_claim_fails_open,
    e13_a_call_that_runs_without_the_store_says_so,
    e13_claim_fails_read_only,
    e13_open_does_not_run_what_cannot_be_read,
    e13_open_does_not_run_beside_a_known_holder,
    e13_open_does_not_run_beside_a_holder_under_the_old_name,
    e14_lookup_fails,
    e14_a_look_that_fails_is_as_a_claim_that_fails,
    e14_a_look_at_the_old_identity_is_tried_again,
    e15_store_error_keeps_cause,
    e16_store_heals,
    e17_no_permission,
    e16_a_settlement_whose_answer_was_lost_is_recognised,
    e16_a_settlement_that_may_have_been_replaced_is_not_told,
];

/// Makes the call while the owner's time goes on, so that its claim is tried again and given up.
async fn during(owner: &Owner, charge: &Charge) -> crate::charge::Answer {
    while_time_goes_on(&owner.timer, charge.call()).await
}

async fn with_policy(world: &World, on_outage: OnOutage) -> Owner {
    let with_policy = |builder: Builder| builder.on_outage(on_outage);
    world.owner_with(with_policy).await
}

async fn away(world: &World, on_outage: OnOutage) -> Owner {
    let owner = with_policy(world, on_outage).await;
    owner.store.outage(StoreErrorKind::Unavailable);
    owner
}

fn is_store_error(answer: &crate::charge::Answer) -> bool {
    matches!(answer, Err(Error::Store(_)))
}

async fn e13_claim_fails_closed(world: World) {
    let owner = away(&world, OnOutage::Closed).await;
    let answer = during(&owner, &Charge::of(&world, &owner)).await;
    assert!(is_store_error(&answer), "{answer:?}");
    assert!(answer.is_err_and(|error| error.is_retryable()));
    assert_eq!(world.runs("k"), 0);
    assert_eq!(owner.log.answers(), [CallOutcome::StoreFailed]);
}

async fn e13_claim_fails_open(world: World) {
    let owner = away(&world, OnOutage::Open).await;
    for run in 1..=2 {
        let answer = during(&owner, &Charge::of(&world, &owner)).await;
        assert_eq!(answer, Ok("charged".into()));
        assert_eq!(world.runs("k"), run);
    }
    assert_eq!(owner.log.answers(), [CallOutcome::Unprotected; 2]);
    assert!(world.records().await.is_empty());
}

async fn e13_a_call_that_runs_without_the_store_says_so(world: World) {
    let owner = away(&world, OnOutage::Open).await;
    let call = Charge::of(&world, &owner).key("secret-key").call();

    let (answer, said) = said_during(async {
        let passing = async {
            loop {
                owner.timer.advance(Duration::from_millis(5));
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            answer = call => answer,
            () = passing => unreachable!("time does not end"),
        }
    })
    .await;

    assert_eq!(answer, Ok("charged".into()));
    let is_loud = |line: &&str| line.contains("ERROR") && line.contains("runs unprotected");
    let loud: Vec<_> = said.lines().filter(is_loud).collect();
    assert!(loud.len() == 1 && loud[0].contains("charge"), "{said}");
    assert!(!said.contains("secret-key"), "{said}");
}

async fn e13_claim_fails_read_only(world: World) {
    let before = world.owner().await;
    let done = Charge::of(&world, &before).key("done");
    done.charges().await;
    let owner = with_policy(&world, OnOutage::ReadOnly).await;
    owner.fails(StoreOperation::Swap, On::Every, StoreErrorKind::Denied);

    let replayed = Charge::of(&world, &owner).key("done").call().await;
    let call = Charge::of(&world, &owner).key("done").amount(2).call();
    let reused = call.await;
    let fresh = Charge::of(&world, &owner).key("fresh").call().await;

    assert_eq!(replayed, Ok("charged".into()));
    assert!(matches!(reused, Err(Error::KeyReused { .. })), "{reused:?}");
    assert!(is_store_error(&fresh), "{fresh:?}");
    assert_eq!((world.runs("done"), world.runs("fresh")), (1, 0));
}

async fn e13_open_does_not_run_what_cannot_be_read(world: World) {
    for kind in [
        StoreErrorKind::Corrupt,
        StoreErrorKind::Schema,
        StoreErrorKind::Denied,
        StoreErrorKind::Full,
    ] {
        let owner = with_policy(&world, OnOutage::Open).await;
        owner.fails(StoreOperation::Claim, On::Every, kind);
        let answer = Charge::of(&world, &owner).call().await;
        assert!(is_store_error(&answer), "{kind:?}: {answer:?}");
    }
    assert_eq!(world.runs("k"), 0);
}

async fn e13_open_does_not_run_beside_a_known_holder(world: World) {
    for (key, mode) in [("rerun", Mode::Rerun), ("once", Mode::Uncertain)] {
        lapsed_under(&world, key, mode).await;
        let owner = with_policy(&world, OnOutage::Open).await;
        // The first write meets the record. The writes that follow from it are never answered.
        for swap in 2..=4 {
            owner.fault(StoreOperation::Swap, On::Call(swap), Fault::LoseRequest);
        }

        let answer = during(&owner, &Charge::of(&world, &owner).key(key).mode(mode)).await;

        assert!(is_store_error(&answer), "{mode:?}: {answer:?}");
        assert_eq!(world.runs(key), 1, "{mode:?}");
    }
}

/// Calls what was `charge` under a new name, while time goes on.
async fn renamed(owner: &Owner) -> crate::charge::Answer {
    let call = owner.call("payments.charge").key("k").arguments(&1);
    let call = call.also_accept_name("charge");
    let call = call.run(|_| async { Ok::<_, Error>("ran".to_owned()) });
    while_time_goes_on(&owner.timer, call).await
}

async fn e13_open_does_not_run_beside_a_holder_under_the_old_name(world: World) {
    vanished(&world, Mode::Rerun).await;
    world.advance(2 * LEASE).await;
    let owner = with_policy(&world, OnOutage::Open).await;
    // The look at the old identity finds what the holder left; from then on nothing is answered.
    owner.fault(StoreOperation::Swap, On::Every, Fault::LoseRequest);

    let answer = renamed(&owner).await;

    assert!(is_store_error(&answer), "{answer:?}");
}

async fn e14_lookup_fails(world: World) {
    let owner = world.owner().await;
    Charge::of(&world, &owner).charges().await;
    owner.fails(StoreOperation::Load, On::Every, StoreErrorKind::Unavailable);

    let status = owner.idem.lookup("charge", None::<&str>, "k").await;
    assert!(matches!(status, Err(Error::Store(_))), "{status:?}");
    let answer = renamed(&owner).await;

    assert!(
        is_store_error(&answer),
        "it might have run under its old name: {answer:?}"
    );
    // A replay needs no look.
    Charge::of(&world, &owner).charges().await;
}

async fn e14_a_look_that_fails_is_as_a_claim_that_fails(world: World) {
    let before = world.owner().await;
    let done = Charge::of(&world, &before).call().await;
    assert_eq!(done, Ok("charged".into()));
    let of_policy = async |on_outage, operation| {
        let owner = with_policy(&world, on_outage).await;
        owner.fault(operation, On::Every, Fault::LoseRequest);
        let answer = renamed(&owner).await;
        (answer, owner.log.answers())
    };

    let (answer, answers) = of_policy(OnOutage::Open, StoreOperation::Load).await;
    assert_eq!(answer, Ok("ran".into()));
    assert_eq!(answers, [CallOutcome::Unprotected]);

    let (answer, answers) = of_policy(OnOutage::ReadOnly, StoreOperation::Load).await;
    assert!(is_store_error(&answer), "nothing new runs: {answer:?}");
    assert_eq!(answers, [CallOutcome::StoreFailed]);

    let (answer, answers) = of_policy(OnOutage::ReadOnly, StoreOperation::Swap).await;
    assert_eq!(answer, done, "what can be read is replayed");
    assert_eq!(answers, [CallOutcome::Replayed]);
}

async fn e14_a_look_at_the_old_identity_is_tried_again(world: World) {
    let owner = world.owner().await;
    let before = Charge::of(&world, &owner).call().await;
    assert_eq!(before, Ok("charged".into()));
    for look in 1..=2 {
        owner.fault(StoreOperation::Load, On::Call(look), Fault::LoseRequest);
    }

    let answer = renamed(&owner).await;

    assert_eq!(answer, before);
    assert_eq!(owner.store.calls(StoreOperation::Load), 3);
}

async fn e15_store_error_keeps_cause(world: World) {
    let owner = world.owner().await;
    owner.fails(StoreOperation::Claim, On::Every, StoreErrorKind::Full);
    let charge = Charge::of(&world, &owner).key("secret-key");
    let (answer, said) = said_during(charge.call()).await;
    let error = answer.expect_err("the store is full");
    let mut chain = vec![error.to_string()];
    let mut source = error.source();
    while let Some(error) = source {
        chain.push(error.to_string());
        source = error.source();
    }
    assert_eq!(
        chain,
        [
            "the store has no room left while writing a record: a planned fault",
            "a planned fault"
        ]
    );
    assert!(!format!("{error:?}").contains("secret-key"));

    // The span and the hash of the key say which call it was.
    owner.store.heal();
    charge.charges().await;
    let (id, _) = world.records().await.remove(0);
    let span = format!("operation=\"charge\" id={id}");
    assert!(
        said.contains(&span) && !said.contains("secret-key"),
        "{said}"
    );
}

async fn e16_store_heals(world: World) {
    let owner = away(&world, OnOutage::Closed).await;
    let answer = during(&owner, &Charge::of(&world, &owner)).await;
    assert!(is_store_error(&answer), "{answer:?}");

    owner.store.heal();

    assert_eq!(
        during(&owner, &Charge::of(&world, &owner)).await,
        Ok("charged".into())
    );
    assert_eq!(world.runs("k"), 1);
}

async fn e17_no_permission(world: World) {
    let owner = world.owner().await;
    owner.fails(StoreOperation::Swap, On::Every, StoreErrorKind::Denied);
    let answer = Charge::of(&world, &owner).call().await;
    assert!(is_store_error(&answer), "{answer:?}");
    assert!(!answer.is_err_and(|error| error.is_retryable()));
    assert_eq!(world.runs("k"), 0);
    assert_eq!(
        owner.store.calls(StoreOperation::Claim),
        1,
        "it is not tried in vain"
    );
}

async fn e16_a_settlement_whose_answer_was_lost_is_recognised(world: World) {
    for (key, fault) in [
        ("request", Fault::LoseRequest),
        ("answer", Fault::LoseAnswer),
    ] {
        lapsed_under(&world, key, Mode::Uncertain).await;
        let owner = world.owner().await;
        let call = Charge::of(&world, &owner).key(key).mode(Mode::Uncertain);
        assert!(is_uncertain(&call.call().await), "{key}");

        owner.fault(StoreOperation::Swap, On::Next, fault);
        let settled = settle(&owner, key).with_value(&"the bank knows").await;

        assert!(settled.is_ok(), "{key}");
        owner.assert_steps(&[RecordChange::LeftUncertain, RecordChange::Settled]);
        let answer = Charge::of(&world, &owner).key(key).call().await;
        assert_eq!(answer, Ok("the bank knows".into()), "{key}");
    }
}

/// Another call took the record over between the two requests. It is therefore unknown whether the
/// first one was carried out.
async fn e16_a_settlement_that_may_have_been_replaced_is_not_told(world: World) {
    lapsed_under(&world, "k", Mode::Rerun).await;
    let owner = world.owner_with(|builder| builder.max_takeovers(0)).await;
    is_told(&Charge::of(&world, &owner), is_parked).await;

    let swaps = owner.store.calls(StoreOperation::Swap);
    let (first, second) = (On::Call(swaps + 1), On::Call(swaps + 2));
    owner.fault(StoreOperation::Swap, first, Fault::LoseAnswer);
    let gate = owner.delays(StoreOperation::Swap, second);
    let its = owner.clone();
    let resuming = tokio::spawn(async move { settle(&its, "k").resume().await });
    gate.arrived(1).await;
    let other = world.owner().await;
    let answer = Charge::of(&world, &other).call().await;
    assert_eq!(answer, Ok("charged".into()), "it was resumed");
    gate.open();

    let resumed = resuming.await.expect("no panic");
    assert!(matches!(resumed, Err(Error::Store(_))), "{resumed:?}");
    assert_eq!(owner.log.steps(), [RecordChange::Parked]);
}
