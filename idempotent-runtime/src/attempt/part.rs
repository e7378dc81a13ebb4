//! The part of a body that runs here.

use std::sync::Arc;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use super::{Attempt, refusals::Refusals};
use crate::record::StepName;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
use crate::{identity::RecordId, record::Version};

/// The part of a body that runs here: the body itself, or one run of a step or of an undo in it.
#[derive(Clone, Default)]
pub(super) struct Part(Option<Arc<Inside>>);

/// One run of a step, or of its undo.
struct Inside {
    refusals: Refusals,
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    step: StepName,
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    is_undo: bool,
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    sent: Sent,
}

impl Part {
    /// Whether it is the body itself.
    pub(super) fn is_body(&self) -> bool {
        self.0.is_none()
    }

    /// The refusals that a step, or its undo, was given; `None` in the body itself.
    pub(super) fn refusals(&self) -> Option<&Refusals> {
        self.0.as_ref().map(|inside| &inside.refusals)
    }
}

/// The messages that a part has sent, by what equal ones have in common.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
#[derive(Default)]
pub(super) struct Sent(Mutex<HashMap<[u8; 32], Vec<Version>>>);

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
impl Sent {
    /// Returns how many equal messages were sent before this one. A clone is the same message.
    fn count(&self, digest: [u8; 32], message: Version) -> u32 {
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let equal = sent.entry(digest).or_default();
        let place = equal.iter().position(|it| *it == message);
        let place = place.unwrap_or_else(|| {
            equal.push(message);
            equal.len() - 1
        });
        u32::try_from(place).unwrap_or(u32::MAX)
    }
}

impl Attempt {
    /// Returns the same attempt for a new run of a step, or of its undo. Each run counts its own
    /// messages, because a step that is replayed sends none.
    #[cfg_attr(
        not(any(feature = "mysql", feature = "postgres", feature = "sqlite")),
        expect(unused_variables, reason = "no message is sent without a database")
    )]
    pub(crate) fn within(&self, step: StepName, is_undo: bool) -> Self {
        let inside = Inside {
            refusals: Refusals::default(),
            #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
            step,
            #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
            is_undo,
            #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
            sent: Sent::default(),
        };
        Self(Arc::clone(&self.0), Part(Some(Arc::new(inside))))
    }

    /// Names the part that runs here, and counts a message that it sends.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    pub(crate) fn sends(&self, digest: [u8; 32], message: Version) -> (RecordId, u32) {
        let call = self.child_of();
        match &self.1.0 {
            None => (*call, self.0.sent.count(digest, message)),
            Some(part) => {
                let of = match part.is_undo {
                    true => part.step.undo_in_call(call),
                    false => part.step.in_call(call),
                };
                (of, part.sent.count(digest, message))
            }
        }
    }
}
