//! A step of a body, as a store keeps it beside the record of its call.

use std::{fmt, ops::RangeInclusive, sync::Arc};

use super::{AttemptId, Note, RawOutcome, Version, codes::codes};
use crate::{
    fingerprint::Fingerprinted,
    framing::{Hex, write_framed},
    identity::RecordId,
    policy::OnCrash,
    sha256::sha256,
};

/// Names a step within its call: a hash of its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepName([u8; 32]);

/// From one name to another one, both included.
pub type StepNames = RangeInclusive<StepName>;

impl StepName {
    /// Every name.
    pub const ALL: StepNames = Self([0; 32])..=Self([u8::MAX; 32]);

    /// This name, and no other one.
    #[must_use]
    pub fn alone(self) -> StepNames {
        self..=self
    }

    /// Hashes a name that is framed already.
    pub(crate) fn of(framed: &[u8]) -> Self {
        let mut bytes = b"idempotent-runtime/step/1".to_vec();
        write_framed(&mut bytes, framed);
        Self(sha256(&mut bytes))
    }

    /// Takes a name as a store gave it back.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes, for a store to look for.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Names what the step hands downstream: no other step of any call has the same.
    pub(crate) fn in_call(&self, call: &RecordId) -> RecordId {
        self.part_of(call, b"idempotent-runtime/step-of/1")
    }

    /// Names the undo of the step, likewise.
    #[cfg(feature = "_sql")]
    pub(crate) fn undo_in_call(&self, call: &RecordId) -> RecordId {
        self.part_of(call, b"idempotent-runtime/undo-of/1")
    }

    fn part_of(&self, call: &RecordId, domain: &[u8]) -> RecordId {
        let mut bytes = [domain, call.as_bytes(), &self.0].concat();
        RecordId::from_bytes(sha256(&mut bytes))
    }
}

impl fmt::Debug for StepName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "StepName({}…)", Hex(&self.0[..4]))
    }
}

/// A step, as it stands beside the record of its call.
///
/// It belongs to one **life** of that record: from the claim that began it to the moment when it is
/// forgotten or begun again. Takeovers go on with a life. A life is known by the moment at which it
/// began, because the next one begins only after the outcome of the one before has expired.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// Its name within the call.
    pub name: StepName,
    /// The literal part of its name, for people.
    pub label: Arc<str>,
    /// Names this version of the step: drawn anew for every write.
    pub version: Version,
    /// Its state.
    pub state: StepState,
    /// The attempt of the call that writes it.
    pub attempt_id: AttemptId,
    /// The crash policy: what becomes of it when it has begun and its holder vanishes.
    pub on_crash: OnCrash,
    /// The fingerprint, which must be equal in a rerun.
    pub fingerprint: Fingerprinted,
    /// The outcome that answers a rerun; only in [`StepState::Done`] and [`StepState::Undone`].
    pub outcome: Option<RawOutcome>,
    /// Counts the steps of its life that have an undo; `None` where it has none. They are undone
    /// from the largest number down.
    pub undo: Option<u32>,
    /// The note about this version.
    pub note: Option<Arc<Note>>,
}

impl Step {
    /// Whether it is still to be undone when its call fails for good: it has a value, or it is
    /// unknown whether it happened.
    #[must_use]
    pub fn is_to_be_undone(&self) -> bool {
        ListedStep::from(self).is_to_be_undone()
    }
}

/// A step as a store lists it, without what it returned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListedStep {
    /// Its name within the call.
    pub name: StepName,
    /// The literal part of its name, for people.
    pub label: Arc<str>,
    /// Its state.
    pub state: StepState,
    /// Whether its outcome is an error.
    pub is_error: bool,
    /// As in the [`Step`].
    pub undo: Option<u32>,
    /// The note about this version.
    pub note: Option<Arc<Note>>,
}

impl ListedStep {
    /// As [`Step::is_to_be_undone`].
    #[must_use]
    pub fn is_to_be_undone(&self) -> bool {
        let is_open = matches!(self.state, StepState::Begun | StepState::Done);
        self.undo.is_some() && is_open && !self.is_error
    }
}

impl From<&Step> for ListedStep {
    fn from(step: &Step) -> Self {
        Self {
            name: step.name,
            label: Arc::clone(&step.label),
            state: step.state,
            is_error: step.outcome.as_ref().is_some_and(RawOutcome::is_error),
            undo: step.undo,
            note: step.note.clone(),
        }
    }
}

/// The state of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StepState {
    /// Its body has begun, and no outcome is recorded.
    Begun,
    /// Its outcome is recorded.
    Done,
    /// Nothing happened, by the word of its body or of an operator: it runs again.
    Released,
    /// Its undo is through.
    Undone,
}

impl StepState {
    /// Whether the recorded outcome answers, where one is.
    pub(crate) fn has_ended(self) -> bool {
        matches!(self, StepState::Done | StepState::Undone)
    }
}

codes! { StepState, "state": Begun = 1, Done = 2, Released = 3, Undone = 4 }
