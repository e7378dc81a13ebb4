//! How a step decides about what it finds under its name.

use std::sync::Arc;

use crate::{
    fingerprint::Fingerprinted,
    policy::OnCrash,
    record::{AttemptId, Record, State, Step, StepState, Version},
};

/// The decision of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepDecision {
    /// The body runs. The step is written over this version, or where nothing stands.
    Run(Option<Version>),
    /// The recorded outcome answers.
    Replay(Arc<Step>),
    /// The step is refused, because its name belongs to a step with other arguments.
    Changed(Arc<Step>),
    /// The reconciling function is asked: an attempt vanished while the step ran.
    Ask(Arc<Step>),
    /// The step is refused, because it may have happened or not.
    Uncertain(Arc<Step>),
}

/// Decides about what stands under the name of a step. `on_crash` is what the step chose now; the
/// stricter choice of both counts.
#[must_use]
pub fn decide_step(
    found: Option<&Arc<Step>>,
    fingerprint: &Fingerprinted,
    on_crash: OnCrash,
) -> StepDecision {
    let Some(step) = found else {
        return StepDecision::Run(None);
    };
    if step.fingerprint != *fingerprint {
        return StepDecision::Changed(Arc::clone(step));
    }
    match (step.state, step.on_crash.max(on_crash)) {
        (StepState::Done | StepState::Undone, _) => StepDecision::Replay(Arc::clone(step)),
        (StepState::Released, _) => StepDecision::Run(Some(step.version)),
        (StepState::Begun, OnCrash::Rerun) => StepDecision::Run(Some(step.version)),
        (StepState::Begun, OnCrash::Reconcile) if on_crash == OnCrash::Reconcile => {
            StepDecision::Ask(Arc::clone(step))
        }
        (StepState::Begun, _) => StepDecision::Uncertain(Arc::clone(step)),
    }
}

/// The states in which a record takes steps of its attempt. The attempt holds the record, or held
/// it last and left it uncertain.
pub const TAKING_STEPS: [State; 3] = [State::Running, State::Uncertain, State::Undoing];

/// Tells whether a record takes steps of this attempt.
#[must_use]
pub fn takes_steps(record: &Record, attempt_id: AttemptId) -> bool {
    record.attempt_id == attempt_id && TAKING_STEPS.contains(&record.state)
}
