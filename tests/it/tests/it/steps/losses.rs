//! Stores that fail, and leases that end, while steps run.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use idempotent_runtime::{
    Error, Idempotency, RecordChange, Store, StoreError, current,
    identity::RecordId,
    record::{Draft, Record, State, Step, StepNames, Version},
    step,
    store::{Snapshot, StepStore, StepWrite, StoreErrorKind, Swap},
    testing::{Fault, Gate, On, StoreOperation},
};

use super::{PARTS, Trip, successor};
use crate::{
    charge::LEASE,
    harness::{World, while_time_goes_on},
};

on_every_store![
    a_lost_answer_to_a_step_is_recognised,
    a_step_waits_while_the_store_is_away_for_less_than_the_lease,
    a_step_that_cannot_be_recorded_ends_the_attempt,
    a_step_that_the_store_refuses_is_done_and_not_replayable,
    a_stale_holder_records_no_step_and_begins_none,
    a_holder_that_was_left_uncertain_may_still_record_its_step,
    a_step_that_is_recorded_late_does_not_stand,
    a_look_that_fails_is_tried_again,
    the_first_write_of_a_step_that_ran_twice_counts,
];

async fn a_lost_answer_to_a_step_is_recognised(world: World) {
    let owner = world.owner().await;
    owner.fault(StoreOperation::WriteStep, On::Call(2), Fault::LoseAnswer);
    let trip = Trip::of(&world, &owner);
    let call = trip.clone();
    let answer = while_time_goes_on(&owner.timer, async move { call.call().await }).await;
    assert!(answer.is_ok(), "{answer:?}");
    assert_eq!(trip.runs(), [1; PARTS as usize]);
    assert_eq!(owner.store.calls(StoreOperation::WriteStep), 5);
}

async fn a_step_waits_while_the_store_is_away_for_less_than_the_lease(world: World) {
    let owner = world.owner().await;
    for call in 1..=8 {
        owner.fails(
            StoreOperation::WriteStep,
            On::Call(call),
            StoreErrorKind::Unavailable,
        );
    }
    let trip = Trip::of(&world, &owner);
    let call = trip.clone();
    let answer = while_time_goes_on(&owner.timer, async move { call.call().await }).await;
    assert!(answer.is_ok(), "{answer:?}");
    assert_eq!(trip.runs(), [1; PARTS as usize]);
}

/// From then on the attempt writes nothing, and the next one runs that step again.
async fn a_step_that_cannot_be_recorded_ends_the_attempt(world: World) {
    let owner = world.owner().await;
    let (trip, gate) = (Trip::of(&world, &owner), Gate::new());
    let body = trip.clone();
    let held = gate.clone();
    let call = owner.call("trip").key("k").arguments(&PARTS).lease("1s");
    let call = tokio::spawn(call.run(async move |attempt| {
        body.part(1).await?;
        held.pass().await;
        let lost = body.part(2).await;
        assert!(matches!(lost, Err(Error::Store(_))), "{lost:?}");
        assert!(attempt.is_lost());
        let next = body.part(3).await;
        assert!(matches!(next, Err(Error::LeaseLost { .. })), "{next:?}");
        Ok::<_, Error>(vec!["nobody gets this".to_owned()])
    }));
    gate.arrived(1).await;
    owner.store.outage(StoreErrorKind::Unavailable);
    gate.open();
    let answer = while_time_goes_on(&owner.timer, async { call.await.expect("no panic") }).await;
    assert!(matches!(answer, Err(Error::LeaseLost { .. })), "{answer:?}");
    assert!(owner.log.steps().contains(&RecordChange::LeaseLost));
    owner.store.heal();
    let writes = owner.store.calls(StoreOperation::Outcome);

    let owner = successor(&world).await;
    let next = Trip::of(&world, &owner);
    next.call().await.expect("it goes on");
    assert_eq!(next.runs(), [1, 2, 1, 1]);
    assert_eq!(trip.owner.store.calls(StoreOperation::Outcome), writes);
}

async fn a_step_that_the_store_refuses_is_done_and_not_replayable(world: World) {
    let owner = world.owner().await;
    owner.fails(StoreOperation::WriteStep, On::Call(2), StoreErrorKind::Full);
    let trip = Trip::of(&world, &owner);
    let answer = trip.clone().failing_after(2).call().await;
    assert!(matches!(answer, Err(Error::InvalidPolicy(_))), "{answer:?}");
    let answer = trip.call().await;
    assert!(
        matches!(&answer, Err(Error::NotReplayable { operation, .. }) if &**operation == "trip: part"),
        "{answer:?}"
    );
    assert_eq!(trip.runs(), [1, 1, 0, 0]);
}

async fn a_stale_holder_records_no_step_and_begins_none(world: World) {
    let stale = Trip::of(&world, &world.owner().await);
    let (gate, body) = (Gate::new(), stale.clone());
    let held = gate.clone();
    let call = stale.owner.call("trip").key("k").arguments(&PARTS);
    let call = tokio::spawn(call.run(async move |_| {
        body.part(1).await?;
        let paused = async |_| {
            body.world.happened("part 2");
            held.pass().await;
            Ok::<_, Error>("late".to_owned())
        };
        let late = step(("part", 2), paused).arguments(&2).await;
        assert!(matches!(late, Err(Error::LeaseLost { .. })), "{late:?}");
        let next = body.part(3).await;
        assert!(matches!(next, Err(Error::LeaseLost { .. })), "{next:?}");
        late.map(|it| vec![it])
    }));
    gate.arrived(1).await;
    world.advance_store(LEASE).await;
    let trip = Trip::of(&world, &world.owner().await);
    let first = trip.call().await.expect("it takes over");
    assert_eq!(trip.runs(), [1, 2, 1, 1]);
    gate.open();
    let answer = call.await.expect("no panic");
    assert_eq!(answer, Ok(first), "it gets the outcome that counts");
    assert_eq!(trip.runs(), [1, 2, 1, 1]);
}

async fn a_holder_that_was_left_uncertain_may_still_record_its_step(world: World) {
    let owner = world.owner().await;
    let gate = Gate::new();
    let held = gate.clone();
    let once = |owner: &crate::harness::Owner| {
        let call = owner.call("once").key("k");
        call.on_crash(idempotent_runtime::OnCrash::Uncertain)
    };
    let paused = async move |_| {
        held.pass().await;
        Ok::<_, Error>(7)
    };
    let call = tokio::spawn(once(&owner).run(async |_| step("a", paused).await));
    gate.arrived(1).await;
    world.advance_store(LEASE).await;
    let other = world.owner().await;
    let answer = once(&other).run(async |_| Ok::<_, Error>(8)).await;
    assert!(crate::answers::is_uncertain(&answer), "{answer:?}");
    gate.open();
    assert_eq!(call.await.expect("no panic"), Ok(7));
    assert_eq!(world.record().await.state, State::Done);
}

/// A step in a task that outlives its call.
async fn a_step_that_is_recorded_late_does_not_stand(world: World) {
    let owner = world.owner_with(|builder| builder.step_grace("0s")).await;
    let gate = Gate::new();
    let held = gate.clone();
    let call = owner.call("trip").key("k");
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let answer = call
        .run(async |_| {
            let late = async move |_| {
                held.pass().await;
                Ok::<_, Error>(1)
            };
            let late = current().enter(async move { step("late", late).await });
            assert!(sender.send(tokio::spawn(late)).is_ok());
            gate.arrived(1).await;
            Ok::<_, Error>(2)
        })
        .await;
    assert_eq!(answer, Ok(2));
    gate.open();
    let late = receiver
        .await
        .expect("it was sent")
        .await
        .expect("no panic");
    assert!(matches!(late, Err(Error::LeaseLost { .. })), "{late:?}");
    assert_eq!(owner.store.calls(StoreOperation::WriteStep), 0);
}

async fn a_look_that_fails_is_tried_again(world: World) {
    let trip = Trip::of(&world, &world.owner().await);
    trip.vanishes_after(2).await;
    let owner = successor(&world).await;
    for call in 1..=3 {
        owner.fails(
            StoreOperation::LoadSteps,
            On::Call(call),
            StoreErrorKind::Unavailable,
        );
    }
    let trip = Trip::of(&world, &owner);
    let call = trip.clone();
    let answer = while_time_goes_on(&owner.timer, async move { call.call().await }).await;
    assert!(answer.is_ok(), "{answer:?}");
    assert_eq!(trip.runs(), [1; PARTS as usize]);
}

/// A store in which the first write of a step lands late, although no caller waits for it any more.
#[derive(Debug)]
struct Late {
    store: Arc<dyn Store>,
    writes: AtomicU32,
    gate: Gate,
    landed: Gate,
}

#[async_trait]
impl Store for Late {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        self.store.load(id).await
    }

    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        self.store.swap(id, seen, next).await
    }

    async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        self.store.purge(limit, keep).await
    }

    async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        self.store.scan(after, limit).await
    }

    fn steps(&self) -> Option<&dyn StepStore> {
        Some(self)
    }
}

#[async_trait]
impl StepStore for Late {
    async fn load_steps(
        &self,
        call: &RecordId,
        names: &StepNames,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        let store = self.store.steps().expect("the store keeps steps");
        store.load_steps(call, names).await
    }

    async fn write_step(
        &self,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        if self.writes.fetch_add(1, Ordering::SeqCst) > 0 {
            let store = self.store.steps().expect("the store keeps steps");
            return store.write_step(call, seen, next).await;
        }
        let (store, call, next) = (Arc::clone(&self.store), *call, next.clone());
        let (gate, landed) = (self.gate.clone(), self.landed.clone());
        tokio::spawn(async move {
            gate.pass().await;
            let store = store.steps().expect("the store keeps steps");
            let written = store.write_step(&call, seen, &next).await;
            assert!(matches!(written, Ok(StepWrite::Written)), "{written:?}");
            landed.open();
        });
        std::future::pending().await
    }
}

async fn the_first_write_of_a_step_that_ran_twice_counts(world: World) {
    let (gate, landed) = (Gate::new(), Gate::new());
    let idem = Idempotency::new(Late {
        store: world.store().await,
        writes: AtomicU32::new(0),
        gate: gate.clone(),
        landed: landed.clone(),
    });
    let call = idem.call("trip").key("k");
    let answer = call.run(async |_| {
        tokio::select! {
            biased;
            _ = step("a", async |_| Ok::<_, Error>(1)) => panic!("its write has no answer"),
            () = gate.arrived(1) => {}
        }
        let second = async |_| {
            world.happened("second");
            gate.open();
            landed.pass().await;
            Ok::<_, Error>(2)
        };
        step("a", second).await
    });
    assert_eq!(answer.await, Ok(1));
    assert_eq!(world.runs("second"), 1);
}
