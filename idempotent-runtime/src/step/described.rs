//! A step, described: everything that is known of it before it begins.

use std::sync::Arc;

use super::{AnyUndo, StepLabel};
use crate::{
    attempt::{Asking, Attempt, INSIDE, try_current},
    error::Error,
    fingerprint::Arguments,
    key::KeyError,
    policy::OnCrash,
    record::{StepName, label::named},
};

/// The name of a step, and its settings.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) label: &'static str,
    pub(super) name: Result<StepName, KeyError>,
    pub(super) arguments: Arguments,
    pub(super) version: u32,
    pub(super) on_crash: OnCrash,
    pub(super) undo: Option<AnyUndo>,
    /// Whether it is a `step_version`: it runs nothing, and takes the old path if nothing stands.
    pub(super) is_version: bool,
}

impl Described {
    pub(super) fn new(label: &'static str, name: &impl StepLabel) -> Self {
        Self {
            label,
            name: named(name),
            arguments: Arguments::new(),
            version: 0,
            on_crash: OnCrash::Rerun,
            undo: None,
            is_version: false,
        }
    }

    /// The attempt that the step is a part of, where a step can stand.
    pub(super) fn place(&self) -> Result<Attempt, Error> {
        let Some(attempt) = try_current() else {
            return Err(self.misplaced(
                "it is not in the body of an idempotent call; in a task spawned from one, use `attempt.enter(future)`",
            ));
        };
        let is_inside = INSIDE.try_with(|inside| inside.is(&attempt));
        if is_inside.unwrap_or(false) {
            return Err(self.misplaced("it is inside another step"));
        }
        match attempt.steps() {
            Some(_) => Ok(attempt),
            None if attempt.is_of_number() => {
                Err(self.misplaced("a call with a number has no steps"))
            }
            None if attempt.fencing_token().is_some() => Err(Error::StepInTransaction {
                operation: Arc::clone(attempt.operation_name()),
                step: self.label,
            }),
            None if self.strictest() == OnCrash::Rerun || attempt.is_switched_off() => Ok(attempt),
            None => Err(self
                .misplaced("the call runs unprotected, and nothing would keep that it has begun")),
        }
    }

    /// Begins to ask for it in the body that runs here.
    pub(super) fn asking(&self) -> Asking {
        let name = self.name.as_ref().map(|name| *name.as_bytes());
        Asking::here(name.unwrap_or_default())
    }

    /// The policy that a store of the step must keep to: a step with an undo must not be
    /// forgotten.
    pub(super) fn strictest(&self) -> OnCrash {
        match self.undo {
            Some(_) => OnCrash::Uncertain,
            None => self.on_crash,
        }
    }

    pub(super) fn never_undone(&self) -> Error {
        self.misplaced(
            "its undo would never run, because no `Err` of the call is recorded: let `on_error` say which ones are final, as `on_error = replay` or `ErrorVerdict::verdict` do",
        )
    }

    fn misplaced(&self, reason: &'static str) -> Error {
        let step = self.label;
        Error::MisplacedStep { step, reason }
    }
}
