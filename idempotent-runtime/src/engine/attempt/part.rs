//! The part of a body that runs here.

use std::sync::Arc;
#[cfg(feature = "_sql")]
use std::{collections::HashMap, sync::Mutex};

use super::{Attempt, refusals::Refusals};
use crate::record::StepName;
#[cfg(feature = "_sql")]
use crate::{identity::RecordId, record::Version, value::lock};

/// The part of a body that runs here: the body itself, or one run of a step or of an undo in it.
#[derive(Clone, Default)]
pub(super) struct Part(Option<Arc<Inside>>);

/// One run of a step, or of its undo.
struct Inside {
    refusals: Refusals,
    #[cfg(feature = "_sql")]
    step: StepName,
    #[cfg(feature = "_sql")]
    is_undo: bool,
    #[cfg(feature = "_sql")]
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

/// The messages that a part has sent, by what equal ones have in common. A place is free again
/// where the transaction of its message was rolled back.
#[cfg(feature = "_sql")]
#[derive(Default)]
pub(super) struct Sent(Mutex<HashMap<[u8; 32], Vec<Option<Version>>>>);

#[cfg(feature = "_sql")]
impl Sent {
    /// Returns the place of a message among equal ones, and whether it is new there. A clone is the
    /// same message.
    fn place(&self, digest: [u8; 32], message: Version) -> (u32, bool) {
        let mut sent = lock(&self.0);
        let equal = sent.entry(digest).or_default();
        let known = equal.iter().position(|it| *it == Some(message));
        let free = || equal.iter().position(Option::is_none);
        let place = known.or_else(free).unwrap_or(equal.len());
        equal.resize(equal.len().max(place + 1), None);
        equal[place] = Some(message);
        (u32::try_from(place).unwrap_or(u32::MAX), known.is_none())
    }
}

/// A message that a part has sent.
#[cfg(feature = "_sql")]
#[derive(Debug)]
pub(crate) struct Sending {
    by: Attempt,
    digest: [u8; 32],
    message: Version,
}

#[cfg(feature = "_sql")]
impl Sending {
    /// Frees the place of a message whose transaction was rolled back: the next run of the
    /// transaction sends it under the same id.
    pub(crate) fn forget(&self) {
        let sent = &self.by.sent().0;
        let mut sent = lock(sent);
        let equal = sent.get_mut(&self.digest).into_iter().flatten();
        for place in equal.filter(|it| **it == Some(self.message)) {
            *place = None;
        }
    }
}

impl Attempt {
    /// Returns the same attempt for a new run of a step, or of its undo. Each run counts its own
    /// messages, because a step that is replayed sends none.
    #[cfg_attr(
        not(feature = "_sql"),
        expect(unused_variables, reason = "no message is sent without a database")
    )]
    pub(crate) fn within(&self, step: StepName, is_undo: bool) -> Self {
        let inside = Inside {
            refusals: Refusals::default(),
            #[cfg(feature = "_sql")]
            step,
            #[cfg(feature = "_sql")]
            is_undo,
            #[cfg(feature = "_sql")]
            sent: Sent::default(),
        };
        Self(Arc::clone(&self.0), Part(Some(Arc::new(inside))))
    }

    /// Returns the name of the part that runs here, the place of a message that it sends, and the
    /// message if it is sent for the first time.
    #[cfg(feature = "_sql")]
    pub(crate) fn sends(
        &self,
        digest: [u8; 32],
        message: Version,
    ) -> (RecordId, u32, Option<Sending>) {
        let call = self.child_of();
        let of = match &self.1.0 {
            None => *call,
            Some(part) if part.is_undo => part.step.undo_in_call(call),
            Some(part) => part.step.in_call(call),
        };
        let (place, is_new) = self.sent().place(digest, message);
        let sending = is_new.then(|| Sending {
            by: self.clone(),
            digest,
            message,
        });
        (of, place, sending)
    }

    #[cfg(feature = "_sql")]
    fn sent(&self) -> &Sent {
        self.1.0.as_ref().map_or(&self.0.sent, |part| &part.sent)
    }
}
