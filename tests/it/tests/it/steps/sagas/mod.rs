//! Sagas: a call that fails for good undoes what its steps did.

mod beside;
mod by_hand;
mod dead_letters;
mod decisions;
mod ends;
mod failures;
mod heads;
mod leaving;
mod registered;
mod takeovers;
mod values;

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU32, Ordering},
};

use idempotent_runtime::{BoxError, Error, OnCrash, StepContext, Undo, step, testing::Gate};

use super::successor;
use crate::{
    booking::{BookError, verdict},
    harness::{Owner, World, while_time_goes_on},
};

const STEPS: [&str; 3] = ["flight", "hotel", "car"];

/// A call of three steps, each with an undo, that fails for good behind the last one.
#[derive(Clone)]
struct Saga {
    world: World,
    owner: Owner,
    /// Behind which step, or in which undo, it stands at a gate.
    gate: Option<(String, Gate)>,
    /// The step whose undo fails, and how often.
    failing: Option<(&'static str, Arc<AtomicU32>)>,
    /// The step whose body gives an error that is not recorded.
    unknown: Option<&'static str>,
    /// The step whose value is a hundred letters longer.
    long: Option<&'static str>,
    on_crash: OnCrash,
    /// Whether it is a later build, in which the operation has another name.
    is_renamed: bool,
    /// How many steps the body comes to.
    steps: usize,
    /// Each undo, as it was called.
    told: Arc<Mutex<Vec<Undo<String>>>>,
}

impl Saga {
    fn of(world: &World, owner: &Owner) -> Self {
        Self {
            world: world.clone(),
            owner: owner.clone(),
            gate: None,
            failing: None,
            unknown: None,
            long: None,
            on_crash: OnCrash::Rerun,
            is_renamed: false,
            steps: STEPS.len(),
            told: Arc::default(),
        }
    }

    fn held_at(mut self, spot: impl Into<String>, gate: &Gate) -> Self {
        self.gate = Some((spot.into(), gate.clone()));
        self
    }

    fn failing_to_undo(mut self, step: &'static str, times: u32) -> Self {
        self.failing = Some((step, Arc::new(AtomicU32::new(times))));
        self
    }

    async fn call(&self) -> Result<(), BookError> {
        let saga = self.clone();
        let call = match self.is_renamed {
            true => self.owner.call("journey").also_accept_name("trip"),
            false => self.owner.call("trip"),
        };
        let call = call.key("k").arguments(&1);
        let call = call.on_crash(self.on_crash).classify_errors(verdict);
        call.run(async |_| saga.body().await).await
    }

    /// The same while time goes on, so that what fails is tried again.
    async fn call_in_time(&self) -> Result<(), BookError> {
        let (timer, saga) = (self.owner.timer.clone(), self.clone());
        while_time_goes_on(&timer, async move { saga.call().await }).await
    }

    /// Dies at a spot: from then on nothing of the owner reaches the store.
    async fn vanishes_at(self, spot: impl Into<String>) {
        let (gate, owner) = (Gate::new(), self.owner.clone());
        let saga = self.held_at(spot, &gate);
        let call = tokio::spawn(async move { saga.call().await });
        gate.arrived(1).await;
        owner.die_in(call).await;
    }

    async fn body(&self) -> Result<(), BookError> {
        for name in &STEPS[..self.steps] {
            let _reference = self.book(name).await?;
            self.at(name).await;
        }
        self.world.happened("the end");
        Err(BookError::Refused)
    }

    /// One step, which gives a reference.
    async fn book(&self, name: &'static str) -> Result<String, BookError> {
        let (saga, is_unknown) = (self.clone(), self.unknown == Some(name));
        let rest = "x".repeat(100 * usize::from(self.long == Some(name)));
        let body = async |_: StepContext| {
            self.world.happened(name);
            match is_unknown {
                true => Err(BookError::Refused),
                false => Ok(format!("{name}-1{rest}")),
            }
        };
        let step = step(name, body).undo(move |undo| {
            let saga = saga.clone();
            async move { saga.undo(name, undo).await }
        });
        step.run().await
    }

    async fn undo(&self, name: &'static str, undo: Undo<String>) -> Result<(), BoxError> {
        let spot = format!("undo {name}");
        self.world.happened(&spot);
        self.was_told(undo);
        self.at(&spot).await;
        let less = |left: u32| left.checked_sub(1);
        let fails = self.failing.as_ref().is_some_and(|(step, times)| {
            *step == name
                && times
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
                    .is_ok()
        });
        match fails {
            true => Err("the gateway is busy".into()),
            false => Ok(()),
        }
    }

    fn was_told(&self, undo: Undo<String>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.push(undo);
    }

    async fn at(&self, spot: &str) {
        if let Some((_, gate)) = self.gate.as_ref().filter(|(held, _)| held == spot) {
            gate.pass().await;
        }
    }

    /// How often each step has run, and how often each undo.
    fn runs(&self) -> ([usize; 3], [usize; 3]) {
        let undos = STEPS.map(|name| self.world.runs(&format!("undo {name}")));
        (STEPS.map(|name| self.world.runs(name)), undos)
    }

    /// In which order the undos ran.
    fn order(&self) -> Vec<String> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let values = told.iter().map(|undo| undo.value().cloned());
        values.map(Option::unwrap_or_default).collect()
    }
}

fn not_undone(answer: &Result<(), BookError>) -> Option<(Vec<String>, Vec<String>)> {
    match answer {
        Err(BookError::Ours(Error::NotUndone { undone, left, .. })) => {
            Some((undone.clone(), left.clone()))
        }
        _ => None,
    }
}

/// Gives every other task its turn, many times: for what sends no word when it goes on.
async fn a_moment() {
    for _ in 0..5_000 {
        tokio::task::yield_now().await;
    }
}
