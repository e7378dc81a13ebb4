//! The refusals that a body, or a step in it, was given and that stand: an `Err` of it may be no
//! more than one of them in other words, so it is no outcome.

use std::sync::{Arc, Mutex, Weak};

use super::{Attempt, Inner, part::Part, try_current};
#[cfg(feature = "_sql")]
use crate::record::Version;
use crate::{error::Error, outcome::FromRefusal, value::lock};

/// The calls, steps and messages that were refused, and have not succeeded since.
#[derive(Default)]
pub(super) struct Refusals(Mutex<Vec<[u8; 32]>>);

impl Refusals {
    fn note(&self, of: [u8; 32], is_refused: bool) {
        let mut refused = lock(&self.0);
        refused.retain(|it| *it != of);
        if is_refused {
            refused.push(of);
        }
    }

    fn stand(&self) -> bool {
        let refused = lock(&self.0);
        !refused.is_empty()
    }
}

/// Something that a body, or a step in it, asks for: a call, a step, a message. It does nothing
/// outside an attempt.
pub(crate) struct Asking {
    asker: Option<(Weak<Inner>, Part)>,
    of: [u8; 32],
}

impl Asking {
    /// The same for something without an id.
    pub(crate) fn of(asked: WithoutId) -> Self {
        Self::here([asked as u8; 32])
    }

    /// The same for something that has no id and may be asked for beside its like: only its own
    /// success takes its refusal back.
    #[cfg(feature = "_sql")]
    pub(crate) fn once() -> Self {
        let mut of = [0; 32];
        of[..16].copy_from_slice(&Version::random().to_bytes());
        Self::here(of)
    }

    /// Begins to ask for `of` in the body, or the step, that runs here.
    pub(crate) fn here(of: [u8; 32]) -> Self {
        let asker = try_current().map(|Attempt(inner, part)| (Arc::downgrade(&inner), part));
        Self { asker, of }
    }

    /// Notes the answer: an outcome takes an earlier refusal back.
    pub(crate) fn answered(&self, refusal: Option<&Error>) {
        self.note(refusal.is_some_and(|error| !error.is_answer()));
    }

    /// Makes the refusal into an error of a body's, and notes it.
    pub(crate) fn refuse<E: FromRefusal>(&self, error: Error) -> E {
        self.answered(Some(&error));
        E::from_refusal(error)
    }

    /// Notes whether it was refused.
    pub(crate) fn note(&self, is_refused: bool) {
        let Some((inner, part)) = &self.asker else {
            return;
        };
        if let Some(inner) = inner.upgrade() {
            let refusals = part.refusals().unwrap_or(&inner.refusals);
            refusals.note(self.of, is_refused);
        }
    }
}

impl Attempt {
    /// Whether a refusal stands that the body, or the step that runs here, was given.
    pub(crate) fn is_refused(&self) -> bool {
        let of_body = &self.0.refusals;
        self.1.refusals().unwrap_or(of_body).stand()
    }
}

/// Makes an error of ours into one of a body's, and notes that the body was refused what it asked
/// for.
pub(crate) fn refuse<E: FromRefusal>(asked: WithoutId, error: Error) -> E {
    Asking::of(asked).refuse(error)
}

/// Things that a body asks for and that have no id of their own.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum WithoutId {
    /// A call that was refused before it had a record.
    Call = 1,
    /// The outcome of a number.
    Number,
}
