//! The decision that a call has failed for good, and what is under way when it is taken.

use std::sync::Arc;

use idempotent_runtime::{
    Error, OnCrash, StoreErrorKind, current,
    record::State,
    step,
    testing::{Fault, Gate, On, StoreOperation},
};

use super::{BookError, Saga, a_moment, successor, verdict};
use crate::harness::{World, while_time_goes_on};

on_every_store![
    j24_a_call_that_is_given_up_without_undos_runs_nothing,
    j21_a_takeover_without_open_undos_runs_nothing,
    j21_a_decision_that_is_not_answered_is_written_again,
    j21_a_decision_that_stands_keeps_its_error_although_the_next_try_is_refused,
    j21_a_caller_that_leaves_while_steps_are_awaited_leaves_its_end,
    j22_no_step_begins_while_others_are_awaited,
    j22_a_task_that_the_body_left_behind_does_nothing_more,
];

async fn j24_a_call_that_is_given_up_without_undos_runs_nothing(world: World) {
    let pays = |owner: &crate::harness::Owner, gate: Option<Gate>| {
        let call = owner.call("pay").key("k").on_crash(OnCrash::Uncertain);
        let (call, at) = (call.classify_errors(verdict), world.clone());
        call.run(async move |_| {
            at.happened("charge");
            if let Some(gate) = gate {
                gate.pass().await;
            }
            Ok::<_, BookError>(())
        })
    };
    let (owner, gate) = (world.owner().await, Gate::new());
    let dead = tokio::spawn(pays(&owner, Some(gate.clone())));
    gate.arrived(1).await;
    owner.die_in(dead).await;
    let owner = successor(&world).await;
    let settle = owner.idem.settle("pay", None::<&str>, "k").expect("a key");
    settle
        .undo(&BookError::Refused)
        .await
        .expect("nobody holds it");
    for _ in 0..2 {
        assert_eq!(pays(&owner, None).await, Err(BookError::Refused));
    }
    assert_eq!(world.runs("charge"), 1);
}

async fn j21_a_takeover_without_open_undos_runs_nothing(world: World) {
    let call = |saga: &Saga| {
        let (call, saga) = (saga.owner.call("trip").key("k"), saga.clone());
        call.classify_errors(verdict).run(async move |_| {
            saga.world.happened("plain");
            saga.book("flight").await?;
            Err::<(), _>(BookError::Refused)
        })
    };
    let saga = Saga::of(&world, &world.owner().await);
    // The claim, that the record stays, and the decision come before it.
    let outcome = saga.owner.delays(StoreOperation::Swap, On::Call(4));
    let dead = tokio::spawn(call(&saga));
    outcome.arrived(1).await;
    saga.owner.die_in(dead).await;
    assert_eq!(world.record().await.state, State::Undoing);
    let saga = Saga::of(&world, &successor(&world).await);
    assert_eq!(call(&saga).await, Err(BookError::Refused));
    assert_eq!(
        (world.runs("plain"), saga.runs()),
        (1, ([1, 0, 0], [1, 0, 0]))
    );
}

async fn j21_a_decision_that_is_not_answered_is_written_again(world: World) {
    let faults = [
        Fault::LoseRequest,
        Fault::LoseAnswer,
        Fault::Fail(StoreErrorKind::Unavailable),
        Fault::Fail(StoreErrorKind::Full),
    ];
    for (round, fault) in (1..).zip(faults) {
        let owner = world.owner().await;
        let is_too_large = matches!(fault, Fault::Fail(StoreErrorKind::Full));
        owner
            .store
            .fault(StoreOperation::Ending, On::Call(1), fault);
        let saga = Saga::of(&world, &owner);
        assert_eq!(
            saga.call_in_time().await,
            Err(BookError::Refused),
            "{round}"
        );
        assert_eq!(saga.runs(), ([round; 3], [round; 3]));
        let again = saga.call().await;
        match is_too_large {
            false => assert_eq!(again, Err(BookError::Refused)),
            true => assert!(matches!(
                again,
                Err(BookError::Ours(Error::NotReplayable { .. }))
            )),
        }
        world
            .advance(std::time::Duration::from_secs(48 * 3600))
            .await;
    }
}

async fn j21_a_decision_that_stands_keeps_its_error_although_the_next_try_is_refused(world: World) {
    let owner = world.owner().await;
    let faults = [Fault::LoseAnswer, Fault::Fail(StoreErrorKind::Full)];
    for (call, fault) in (1..).zip(faults) {
        owner
            .store
            .fault(StoreOperation::Ending, On::Call(call), fault);
    }
    let saga = Saga::of(&world, &owner);
    assert_eq!(saga.call_in_time().await, Err(BookError::Refused));
    assert_eq!(saga.call().await, Err(BookError::Refused));
    assert_eq!(saga.runs(), ([1; 3], [1; 3]));
}

/// A task that the body leaves behind, in a step of it.
struct LeftBehind {
    gate: Gate,
}

impl LeftBehind {
    fn new() -> Self {
        Self { gate: Gate::new() }
    }

    /// Leaves a task behind that stands in a step of this name.
    async fn in_step(&self, name: &'static str) {
        let gate = self.gate.clone();
        let arrived = gate.arrivals() + 1;
        let body = async move |_| {
            gate.pass().await;
            Ok::<_, BookError>(())
        };
        tokio::spawn(current().enter(async move { step(name, body).await }));
        self.gate.arrived(arrived).await;
    }
}

async fn j21_a_caller_that_leaves_while_steps_are_awaited_leaves_its_end(world: World) {
    for (key, fails) in [("fails", true), ("ends", false)] {
        let saga = Saga::of(&world, &world.owner().await);
        let call = |is_first: bool| {
            let call = saga.owner.call("trip").key(key).classify_errors(verdict);
            let (saga, returns) = (saga.clone(), Gate::new());
            let returning = returns.clone();
            let ended = call.run(async move |_| {
                saga.book("flight").await?;
                if is_first {
                    LeftBehind::new().in_step("mail").await;
                }
                returning.open();
                tokio::spawn(async move { returning.pass().await });
                match fails {
                    true => Err(BookError::Refused),
                    false => Ok(7),
                }
            });
            (ended, returns)
        };
        let (ended, returns) = call(true);
        let caller = tokio::spawn(ended);
        returns.arrived(1).await;
        a_moment().await;
        caller.abort();
        assert!(caller.await.is_err(), "it waits for the task");
        let expected = match fails {
            true => Err(BookError::Refused),
            false => Ok(7),
        };
        saga.owner.settled().await;
        assert_eq!(call(false).0.await, expected, "{key}");
        // That of the one that fails, which comes first.
        assert_eq!(world.runs("undo flight"), 1, "{key}");
    }
}

async fn j22_no_step_begins_while_others_are_awaited(world: World) {
    let saga = Saga::of(&world, &world.owner().await);
    let left = Arc::new(LeftBehind::new());
    let (its, goes) = (Arc::clone(&left), Gate::new());
    let (at, went) = (world.clone(), goes.clone());
    let call = saga.owner.call("trip").key("k").classify_errors(verdict);
    let call = tokio::spawn(call.run(async move |_| {
        its.in_step("mail").await;
        tokio::spawn(current().enter(async move {
            // Steps may begin until the body has returned.
            for number in 0.. {
                let body = async |_| {
                    at.happened(&format!("late {number}"));
                    Ok::<_, BookError>(())
                };
                if step(("late", number), body).await.is_err() {
                    assert_eq!(at.runs(&format!("late {number}")), 0);
                    return went.pass().await;
                }
            }
        }));
        Err::<(), _>(BookError::Refused)
    }));
    goes.arrived(1).await;
    assert!(
        !call.is_finished(),
        "it waits for a step that is its first one"
    );
    left.gate.open();
    assert_eq!(call.await.expect("no panic"), Err(BookError::Refused));
}

async fn j22_a_task_that_the_body_left_behind_does_nothing_more(world: World) {
    let (came, mut comes) = tokio::sync::mpsc::unbounded_channel();
    let call = |saga: &Saga| {
        let (saga, came) = (saga.clone(), came.clone());
        let call = saga.owner.call("trip").key("k").classify_errors(verdict);
        call.run(async move |_| {
            let (its, booked) = (saga.clone(), Gate::new());
            let has_booked = booked.clone();
            tokio::spawn(current().enter(async move {
                its.book("flight").await.expect("it is booked");
                tokio::spawn(async move { has_booked.pass().await });
                let at = its.world.clone();
                let nested = its.owner.call("nested").key("k").run(async move |_| {
                    at.happened("nested");
                    Ok::<_, BookError>(())
                });
                came.send(nested.await).expect("the test waits for it");
            }));
            booked.arrived(1).await;
            saga.book("hotel").await?;
            Err::<(), _>(BookError::Refused)
        })
    };
    let (saga, gate) = (Saga::of(&world, &world.owner().await), Gate::new());
    let dead = tokio::spawn(call(&saga.clone().held_at("undo hotel", &gate)));
    gate.arrived(1).await;
    comes.recv().await.expect("it runs").expect("it ends well");
    saga.owner.die_in(dead).await;
    let saga = Saga::of(&world, &successor(&world).await);
    let timer = saga.owner.timer.clone();
    let answer = while_time_goes_on(&timer, call(&saga)).await;
    assert_eq!(answer, Err(BookError::Refused));
    let refused = comes
        .recv()
        .await
        .expect("it learns that nothing of it goes on");
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(world.runs("nested"), 1);
}
