//! The part of a body that sends a message.

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::Attempt;
use crate::record::StepName;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
use crate::{identity::RecordId, record::Version};

/// The part of a body that runs here: the body itself, or one run of a step or of an undo in it.
#[derive(Clone, Default)]
pub(super) struct Part {
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    inside: Option<Arc<Inside>>,
}

/// One run of a step, or of its undo.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
struct Inside {
    step: StepName,
    is_undo: bool,
    sent: Sent,
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
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    pub(crate) fn within(&self, step: StepName, is_undo: bool) -> Self {
        let sent = Sent::default();
        let inside = Some(Arc::new(Inside {
            step,
            is_undo,
            sent,
        }));
        Self(Arc::clone(&self.0), Part { inside })
    }

    /// Returns the same attempt: no message is sent without a database.
    #[cfg(not(any(feature = "mysql", feature = "postgres", feature = "sqlite")))]
    pub(crate) fn within(&self, _: StepName, _: bool) -> Self {
        self.clone()
    }

    /// Names the part that runs here, and counts a message that it sends.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    pub(crate) fn sends(&self, digest: [u8; 32], message: Version) -> (RecordId, u32) {
        let call = self.child_of();
        match &self.1.inside {
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
