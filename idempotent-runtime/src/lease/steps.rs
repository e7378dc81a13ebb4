//! What a step does about what it finds under its name.

use std::sync::Arc;

use crate::{
    fingerprint::Fingerprinted,
    policy::OnCrash,
    record::{AttemptId, Record, State, Step, StepState, Version},
};

/// What a step does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepDecision {
    /// Its body runs. What it writes, it writes over this version, or where nothing stands.
    Run(Option<Version>),
    /// It answers with the recorded outcome.
    Replay(Arc<Step>),
    /// It refuses: the name belongs to a step with other arguments.
    Changed(Arc<Step>),
    /// It asks what became of an attempt that vanished while the step ran.
    Ask(Arc<Step>),
    /// It refuses: nobody knows whether it happened.
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
        (StepState::Done, _) => StepDecision::Replay(Arc::clone(step)),
        (StepState::Begun, OnCrash::Rerun) => StepDecision::Run(Some(step.version)),
        (StepState::Begun, OnCrash::Reconcile) if on_crash == OnCrash::Reconcile => {
            StepDecision::Ask(Arc::clone(step))
        }
        (StepState::Begun, _) => StepDecision::Uncertain(Arc::clone(step)),
    }
}

/// Tells whether a record takes steps of this attempt: it holds the record, or held it last and
/// nobody has settled it since.
#[must_use]
pub fn takes_steps(record: &Record, attempt_id: AttemptId) -> bool {
    record.attempt_id == attempt_id && matches!(record.state, State::Running | State::Uncertain)
}
