//! Holders that vanish in a saga.

use idempotent_runtime::{
    Attempt, CallOutcome, Error, OnCrash, Reconciled, record::State, step, step_version,
    testing::Gate,
};

use super::{BookError, STEPS, Saga, not_undone, successor, verdict};
use crate::{
    charge::LEASE,
    harness::{World, while_time_goes_on},
};

on_every_store![
    j21_a_holder_that_vanishes_before_the_end_goes_on_forward,
    j21_a_holder_that_vanishes_in_an_undo_never_goes_forward,
    mend_35_undos_left_under_an_older_name_end_with_the_recorded_error,
    j22_a_step_that_the_body_comes_to_no_more_is_parked,
    j21_a_call_that_may_not_run_twice_is_undone_by_the_next_one,
    j21_a_reconciliation_that_found_a_failure_leaves_the_undos_to_the_next_call,
    j24_an_uncertain_call_is_undone_on_an_operator_s_word,
    j25_a_record_with_open_undos_does_not_expire,
    j22_nothing_else_goes_on_while_undos_are_looked_for,
    j22_a_version_that_was_added_since_takes_the_old_path,
];

async fn j21_a_holder_that_vanishes_before_the_end_goes_on_forward(world: World) {
    for step in STEPS {
        let before = world.runs("the end");
        Saga::of(&world, &world.owner().await)
            .vanishes_at(step)
            .await;
        let saga = Saga::of(&world, &successor(&world).await);
        assert_eq!(saga.call().await, Err(BookError::Refused));
        assert_eq!(saga.order(), ["car-1", "hotel-1", "flight-1"], "{step}");
        assert_eq!(world.runs("the end"), before + 1);
        world
            .advance(std::time::Duration::from_secs(48 * 3600))
            .await;
    }
    assert_eq!(
        Saga::of(&world, &world.owner().await).runs(),
        ([3; 3], [3; 3])
    );
}

async fn j21_a_holder_that_vanishes_in_an_undo_never_goes_forward(world: World) {
    for (round, step) in (1..).zip(STEPS) {
        let dead = Saga::of(&world, &world.owner().await);
        dead.vanishes_at(format!("undo {step}")).await;
        assert_eq!(world.record().await.state, State::Undoing);
        let owner = successor(&world).await;
        let saga = Saga::of(&world, &owner);
        let before = saga.runs().1;
        assert_eq!(saga.call().await, Err(BookError::Refused), "{step}");
        let (steps, after) = saga.runs();
        assert_eq!(steps, [round; 3], "no step ran again");
        assert_eq!(
            world.runs("the end"),
            round,
            "the body did not come to its end"
        );
        let place = STEPS.iter().position(|name| *name == step).expect("a step");
        for later in 0..3 {
            let again = usize::from(later <= place);
            assert_eq!(
                after[later],
                before[later] + again,
                "{step}: {}",
                STEPS[later]
            );
        }
        assert_eq!(world.record().await.state, State::Done);
        owner.assert_answers(&[CallOutcome::ExecutedAfterTakeover]);
        world
            .advance(std::time::Duration::from_secs(48 * 3600))
            .await;
    }
}

async fn mend_35_undos_left_under_an_older_name_end_with_the_recorded_error(world: World) {
    let dead = Saga::of(&world, &world.owner().await);
    dead.vanishes_at("undo hotel").await;
    assert_eq!(world.record().await.state, State::Undoing);
    let owner = successor(&world).await;
    let mut saga = Saga::of(&world, &owner);
    saga.is_renamed = true;
    for _ in 0..2 {
        assert_eq!(saga.call().await, Err(BookError::Refused));
    }
    assert_eq!(saga.runs(), ([1; 3], [1, 2, 1]));
    assert_eq!(world.record().await.state, State::Done);
    owner.assert_answers(&[CallOutcome::ExecutedAfterTakeover, CallOutcome::Replayed]);
}

async fn j22_a_step_that_the_body_comes_to_no_more_is_parked(world: World) {
    let dead = Saga::of(&world, &world.owner().await);
    dead.vanishes_at("undo car").await;
    let mut saga = Saga::of(&world, &successor(&world).await);
    saga.steps = 2;
    let ended = saga.call_in_time().await;
    let expected = (
        vec!["hotel".to_owned(), "flight".into()],
        vec!["car".into()],
    );
    assert_eq!(not_undone(&ended), Some(expected));
    saga.steps = 3;
    let settle = saga.owner.idem.settle("trip", None::<&str>, "k");
    settle.expect("a key").resume().await.expect("it is parked");
    assert_eq!(saga.call().await, Err(BookError::Refused));
    assert_eq!(saga.runs(), ([1; 3], [1, 1, 2]));
}

async fn j21_a_call_that_may_not_run_twice_is_undone_by_the_next_one(world: World) {
    let mut saga = Saga::of(&world, &world.owner().await);
    saga.on_crash = OnCrash::Uncertain;
    saga.vanishes_at("undo hotel").await;
    let mut saga = Saga::of(&world, &successor(&world).await);
    saga.on_crash = OnCrash::Uncertain;
    assert_eq!(saga.call().await, Err(BookError::Refused));
    assert_eq!(saga.runs(), ([1; 3], [1, 2, 1]));
}

async fn j21_a_reconciliation_that_found_a_failure_leaves_the_undos_to_the_next_call(world: World) {
    let call = |saga: &Saga| {
        let call = saga.owner.call("trip").key("k").arguments(&1);
        let (call, saga) = (call.classify_errors(verdict), saga.clone());
        let failed = async |_: Attempt| Reconciled::<(), _>::Failed(BookError::Refused);
        async move { call.reconcile(failed, async |_| saga.body().await).await }
    };
    let (saga, gate) = (Saga::of(&world, &world.owner().await), Gate::new());
    let dead = tokio::spawn(call(&saga.clone().held_at("hotel", &gate)));
    gate.arrived(1).await;
    saga.owner.die_in(dead).await;
    let saga = Saga::of(&world, &successor(&world).await);
    let answer = call(&saga).await;
    assert!(
        matches!(answer, Err(BookError::Ours(Error::LeaseLost { .. }))),
        "{answer:?}"
    );
    for _ in 0..2 {
        assert_eq!(call(&saga).await, Err(BookError::Refused));
    }
    assert_eq!(saga.runs(), ([1, 1, 0], [1, 1, 0]));
}

async fn j24_an_uncertain_call_is_undone_on_an_operator_s_word(world: World) {
    let mut saga = Saga::of(&world, &world.owner().await);
    saga.on_crash = OnCrash::Uncertain;
    saga.vanishes_at("hotel").await;
    let mut saga = Saga::of(&world, &successor(&world).await);
    saga.on_crash = OnCrash::Uncertain;
    let uncertain = saga.call().await;
    assert!(
        matches!(uncertain, Err(BookError::Ours(Error::Uncertain { .. }))),
        "{uncertain:?}"
    );
    let settle = saga.owner.idem.settle("trip", None::<&str>, "k");
    let settle = settle.expect("a key").undo(&BookError::Refused);
    settle.await.expect("nobody holds it");
    for _ in 0..2 {
        assert_eq!(saga.call().await, Err(BookError::Refused));
    }
    assert_eq!(saga.runs(), ([1, 1, 0], [1, 1, 0]));
    assert_eq!(world.runs("the end"), 0);
}

async fn j25_a_record_with_open_undos_does_not_expire(world: World) {
    Saga::of(&world, &world.owner().await)
        .vanishes_at("hotel")
        .await;
    world
        .advance(std::time::Duration::from_secs(400 * 24 * 3600))
        .await;
    let owner = world.owner().await;
    assert_eq!(owner.idem.purge().await.expect("it purges"), 0);
    let saga = Saga::of(&world, &owner);
    assert_eq!(saga.call().await, Err(BookError::Refused));
    assert_eq!(
        saga.runs(),
        ([1; 3], [1; 3]),
        "it went on with what stood there"
    );
}

async fn j22_nothing_else_goes_on_while_undos_are_looked_for(world: World) {
    let saga = Saga::of(&world, &world.owner().await);
    let call = |saga: &Saga, forward: bool| {
        let call = saga.owner.call("trip").key("k").classify_errors(verdict);
        let (saga, world) = (saga.clone(), world.clone());
        async move {
            let body = async |_| {
                saga.book("flight").await?;
                if !forward {
                    let nested = saga.owner.call("nested").key("k");
                    let nested = nested.run(async |_| {
                        world.happened("nested");
                        Ok::<_, BookError>(())
                    });
                    nested.await?;
                    let without_undo = async |_| {
                        world.happened("mail");
                        Ok::<_, BookError>(())
                    };
                    step("mail", without_undo).await?;
                }
                saga.at("flight").await;
                saga.book("hotel").await?;
                Err::<(), _>(BookError::Refused)
            };
            call.run(body).await
        }
    };
    let gate = Gate::new();
    let dead = tokio::spawn(call(&saga.clone().held_at("undo hotel", &gate), true));
    gate.arrived(1).await;
    saga.owner.die_in(dead).await;
    world.advance(LEASE).await;
    let impatient = world.owner_with(|builder| builder.step_grace("1s")).await;
    let saga = Saga::of(&world, &impatient);
    let (timer, ended) = (saga.owner.timer.clone(), call(&saga, false));
    let ended = while_time_goes_on(&timer, ended).await;
    let expected = (vec!["flight".to_owned()], vec!["hotel".to_owned()]);
    assert_eq!(
        not_undone(&ended),
        Some(expected),
        "the body waited at the nested call"
    );
    assert_eq!((world.runs("nested"), world.runs("mail")), (0, 0));
}

async fn j22_a_version_that_was_added_since_takes_the_old_path(world: World) {
    let dead = Saga::of(&world, &world.owner().await);
    dead.vanishes_at("undo car").await;
    let saga = Saga::of(&world, &successor(&world).await);
    let call = saga.owner.call("trip").key("k").arguments(&1);
    let answer = call.classify_errors(verdict).run(async |_| {
        let takes_new = step_version("two carriers").await?;
        world.happened(&format!("new path: {takes_new}"));
        saga.body().await
    });
    assert_eq!(answer.await, Err(BookError::Refused));
    assert_eq!(world.runs("new path: false"), 1);
    assert_eq!(saga.runs(), ([1; 3], [1, 1, 2]));
}
