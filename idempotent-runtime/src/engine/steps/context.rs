//! The step that runs, as its body can ask about it.

use crate::{
    attempt::Attempt,
    record::{FencingToken, StepName},
};

/// A step that runs: the keys that it hands downstream.
#[derive(Clone, Debug)]
pub struct StepContext {
    pub(crate) attempt: Attempt,
    name: StepName,
    /// Whether the reconciling function is to be asked.
    pub(crate) asks: bool,
}

impl StepContext {
    pub(crate) fn new(attempt: &Attempt, name: StepName, asks: bool) -> Self {
        Self {
            attempt: attempt.clone(),
            name,
            asks,
        }
    }

    /// The attempt, for one run of the step.
    pub(crate) fn within(&self) -> Attempt {
        self.attempt.within(self.name, false)
    }

    /// A key for a downstream API: 32 lower-case hexadecimal digits. It is the same on every
    /// attempt of the call, and another one for another step, key, scope or operation. No
    /// [`child_key`](Attempt::child_key) of an attempt is equal to it.
    #[must_use]
    pub fn key(&self) -> String {
        self.child_key("step")
    }

    /// One more such key, for a step that calls several APIs.
    ///
    /// # Panics
    ///
    /// When `name` is empty.
    #[must_use]
    pub fn child_key(&self, name: &str) -> String {
        self.name.in_call(self.attempt.child_of()).child_key(name)
    }

    /// A number that grows with every claim of the call's key: a downstream system that keeps the
    /// largest one it has seen can refuse a holder that lost its lease. `None` where the call runs
    /// unprotected.
    #[must_use]
    pub fn token(&self) -> Option<FencingToken> {
        self.attempt.fencing_token()
    }
}
