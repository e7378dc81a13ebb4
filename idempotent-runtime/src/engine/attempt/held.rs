//! The records that the attempts around a call hold: a call of one of them would wait for itself.

use std::sync::{Arc, Weak, atomic::Ordering};

use super::{Attempt, CURRENT, Inner};
use crate::{identity::RecordId, record::AttemptId};

/// The way in which an attempt came to its record.
pub(super) struct Held {
    handle: u64,
    attempt_id: AttemptId,
    /// Whether its transaction keeps other connections of the store from writing.
    shuts_out: bool,
}

/// Tells whether the attempt that runs here, or one around it, holds the record of this id through
/// this handle. The store of another handle may be another one, where the id is another record's.
pub(crate) fn is_held(handle: u64, id: &RecordId) -> bool {
    let holds = |held: &Held| held.handle == handle;
    is_any_here(|inner| inner.id == *id && inner.holds(holds))
}

/// Tells whether a record is held by the attempt that runs here, or by one around it, through
/// whatever handle.
pub(crate) fn is_own(attempt_id: AttemptId) -> bool {
    let holds = |held: &Held| held.attempt_id == attempt_id;
    is_any_here(|inner| inner.holds(holds))
}

fn is_any_here(is: impl Fn(&Inner) -> bool) -> bool {
    let asked = CURRENT.try_with(|attempt| attempt.is_any(is));
    asked.unwrap_or(false)
}

/// Tells whether a transaction around here keeps every other connection of this handle's store from
/// writing.
pub(crate) fn is_shut_out(handle: u64) -> bool {
    is_any_here(|inner| inner.holds(|held| held.shuts_out && held.handle == handle))
}

impl Attempt {
    /// Notes that it holds its record through this handle, under this id, and whether other
    /// connections of the store are kept from writing meanwhile.
    pub(crate) fn holding(mut self, handle: u64, attempt_id: AttemptId, shuts_out: bool) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.held = Some(Held {
                handle,
                attempt_id,
                shuts_out,
            });
        }
        self
    }

    /// Whether `is` is true of this attempt or one around it.
    fn is_any(&self, is: impl Fn(&Inner) -> bool) -> bool {
        let mut around = self.0.around.iter().filter_map(Weak::upgrade);
        is(&self.0) || around.any(|around| is(&around))
    }
}

impl Inner {
    pub(super) fn is_held(&self) -> bool {
        self.holds(|_| true)
    }

    /// Whether it still holds its record, and in this way.
    fn holds(&self, way: impl FnOnce(&Held) -> bool) -> bool {
        self.held.as_ref().is_some_and(way) && !self.over.load(Ordering::Acquire)
    }
}
