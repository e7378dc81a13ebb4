//! The knowledge of an attempt about the steps of its body.

use std::sync::Arc;

use super::{Attempt, try_current};
use crate::{engine::lease::Lease, engine::steps::StepScope, error::Error, protocol::Ending};

tokio::task_local! {
    /// The attempt whose step runs here.
    pub(crate) static INSIDE: Attempt;
}

/// Resolves at once, except inside a body that is polled only to find its undos again: nothing else
/// of it goes on. A task that the body left behind learns so when the undos have ended.
pub(crate) async fn goes_forward() -> Result<(), Error> {
    let Some(attempt) = try_current().filter(Attempt::undoes) else {
        return Ok(());
    };
    let is_an_undo = INSIDE.try_with(|inside| inside.is(&attempt));
    match attempt.steps() {
        Some(scope) if !is_an_undo.unwrap_or(false) => scope.is_over().await,
        _ => return Ok(()),
    }
    let operation = Arc::clone(attempt.operation_name());
    Err(Error::LeaseLost { operation })
}

impl Attempt {
    /// Lets the body have steps.
    pub(crate) fn keep_steps(&self, scope: StepScope) {
        let _it_is_the_first = self.0.steps.set(scope);
    }

    /// Notes that the handle is switched off.
    pub(crate) fn switched_off(mut self) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.is_switched_off = true;
        }
        self
    }

    pub(crate) fn is_switched_off(&self) -> bool {
        self.0.is_switched_off
    }

    /// The steps of the attempt; `None` where it has no record, or one in a transaction.
    pub(crate) fn steps(&self) -> Option<&StepScope> {
        self.0.steps.get()
    }

    /// Whether the body is polled only to find its undos again.
    pub(crate) fn undoes(&self) -> bool {
        self.steps().is_some_and(StepScope::is_looking)
    }

    /// Keeps the search for undos going while a part of the body is on its way in another task.
    pub(super) fn is_looked_through(&self) -> Option<LookedThrough> {
        let scope = self.steps().filter(|scope| scope.is_looking())?;
        scope.begins();
        Some(LookedThrough(self.clone()))
    }

    /// Says that the body has failed for good: its steps are undone, whatever outcome is
    /// recorded of it.
    pub(crate) fn fail(&self) {
        if let Some(scope) = self.steps() {
            scope.fail();
        }
    }

    /// Whether it is of a number of a stream.
    pub(crate) fn is_of_number(&self) -> bool {
        self.0.child_of != self.0.id
    }

    /// Says that a step may have happened or not. The call becomes uncertain, whatever the body
    /// returns.
    pub(crate) fn doubt(&self) -> Error {
        if let Some(scope) = self.steps() {
            scope.doubt();
        }
        Error::Uncertain {
            operation: Arc::clone(self.operation_name()),
            id: *self.id(),
            // A number has no steps.
            number: None,
        }
    }

    /// Another attempt holds the record, or may.
    pub(crate) fn lease_lost(&self) -> Error {
        Error::LeaseLost {
            operation: Arc::clone(self.operation_name()),
        }
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        self.steps().is_some_and(StepScope::is_in_doubt)
    }

    /// Whether a step could not be recorded while the lease stood: nothing more is written.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.steps().is_some_and(StepScope::is_poisoned)
    }

    /// Tells how the call ends whose body ended so. From now on no step begins, and none is
    /// written.
    pub(crate) fn close_steps(&self, ending: Ending, lease: &Lease) -> Ending {
        let Some(scope) = self.steps() else {
            return ending;
        };
        scope.close();
        match ending {
            _ if scope.is_in_doubt() => Ending::Uncertain,
            Ending::Done(outcome)
                if lease.keeps_undos() && (outcome.is_error() || scope.has_failed()) =>
            {
                Ending::Undo(outcome)
            }
            Ending::Release | Ending::Unpolled if scope.has_steps() || lease.keeps_undos() => {
                Ending::GiveBack
            }
            ending => ending,
        }
    }
}

/// A part of a body that is polled only to find its undos again.
pub(super) struct LookedThrough(Attempt);

impl Drop for LookedThrough {
    fn drop(&mut self) {
        if let Some(scope) = self.0.steps() {
            scope.ends();
        }
    }
}
