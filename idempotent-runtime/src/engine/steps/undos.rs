//! The undos that an attempt knows.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, OnceLock},
};

use tokio::sync::{Notify, OnceCell};

use super::undo::AnyUndo;
use crate::{
    record::{ListedStep, RawOutcome, Step, StepName},
    store::StoreError,
    value::lock,
};

/// A step that has an undo, as it stands.
#[derive(Clone, Debug)]
pub(crate) struct Registered {
    pub(crate) step: Arc<Step>,
    /// The outcome that this attempt knows, although the store may not have taken it.
    pub(crate) outcome: Option<RawOutcome>,
    pub(crate) undo: AnyUndo,
}

/// The undos of an attempt, as the attempt knows them.
#[derive(Debug, Default)]
pub(crate) struct Undos {
    known: Mutex<HashMap<StepName, Registered>>,
    /// The next number, once it is known which ones an earlier attempt gave.
    next: OnceCell<Mutex<u32>>,
    /// Whether the record stays for as long as they are open.
    kept: OnceCell<()>,
    /// The steps whose undos are looked for, if the call has failed for good.
    sought: OnceLock<HashMap<StepName, ListedStep>>,
    /// The failure of a store that was asked for one of them.
    unreachable: OnceLock<StoreError>,
    /// Tells that one more was found.
    found: Notify,
}

impl Undos {
    /// `is_kept` tells whether the claim found that the record stays.
    pub(crate) fn new(is_kept: bool) -> Self {
        Self {
            kept: OnceCell::new_with(is_kept.then_some(())),
            ..Self::default()
        }
    }

    /// Notes how a step stands that has an undo.
    pub(crate) fn register(&self, step: Arc<Step>, undo: AnyUndo) {
        let registered = Registered {
            outcome: step.outcome.clone(),
            step: Arc::clone(&step),
            undo,
        };
        lock(&self.known).insert(step.name, registered);
        self.found.notify_one();
    }

    /// Notes another version of one as it stands, and the outcome that was to be written.
    pub(crate) fn moved(&self, step: Arc<Step>, outcome: Option<RawOutcome>) {
        if let Some(known) = lock(&self.known).get_mut(&step.name) {
            (known.step, known.outcome) = (step, outcome);
        }
    }

    /// The next number; `last` finds the largest one of earlier attempts.
    pub(crate) async fn number<E>(
        &self,
        last: impl Future<Output = Result<Option<u32>, E>>,
    ) -> Result<u32, E> {
        let first = async {
            let last = last.await?;
            Ok(Mutex::new(last.map_or(0, |last| last.saturating_add(1))))
        };
        let next = self.next.get_or_try_init(|| first).await?;
        let mut next = lock(next);
        *next = next.saturating_add(1);
        Ok(*next - 1)
    }

    /// Has the record kept, once.
    pub(crate) async fn keep<E>(&self, keep: impl Future<Output = Result<(), E>>) -> Result<(), E> {
        self.kept.get_or_try_init(|| keep).await.copied()
    }

    /// Whether the record is kept.
    pub(crate) fn are_kept(&self) -> bool {
        self.kept.initialized()
    }

    /// Those that are known, by the names of their steps.
    pub(crate) fn all(&self) -> HashMap<StepName, Registered> {
        lock(&self.known).clone()
    }

    /// Looks for the undos of these steps from now on.
    pub(crate) fn look_for<'a>(&self, steps: impl Iterator<Item = &'a ListedStep>) {
        let sought = steps.map(|step| (step.name, step.clone()));
        let _it_is_the_first = self.sought.set(sought.collect());
    }

    /// The step of this name, if its undo is looked for.
    pub(crate) fn sought(&self, name: &StepName) -> Option<ListedStep> {
        self.sought.get()?.get(name).cloned()
    }

    /// Whether all that is looked for is known.
    pub(crate) fn are_found(&self) -> bool {
        let (known, sought) = (lock(&self.known), self.sought.get());
        sought.is_some_and(|sought| sought.keys().all(|step| known.contains_key(step)))
    }

    /// Whether the undo of each of these steps that is open is known.
    pub(crate) fn know(&self, steps: &[ListedStep]) -> bool {
        let known = lock(&self.known);
        let mut open = steps.iter().filter(|step| step.is_to_be_undone());
        open.all(|step| known.contains_key(&step.name))
    }

    /// Notes that the store did not answer the search.
    pub(crate) fn are_out_of_reach(&self, error: &StoreError) {
        let _it_is_the_first = self.unreachable.set(error.clone());
    }

    /// The failure of a store that kept the search from finding all.
    pub(crate) fn out_of_reach(&self) -> Option<StoreError> {
        let missing = self.unreachable.get().filter(|_| !self.are_found());
        missing.cloned()
    }

    /// Resolves when it is.
    pub(crate) async fn found(&self) {
        while !self.are_found() {
            self.found.notified().await;
        }
    }
}
