//! Handles that are kept, one for each value of a label.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

/// How many values of a label have handles of their own. All others share the last one.
const MOST: usize = 200;

/// The value of a label that stands for all values beyond the first 200.
const OTHER: &str = "other";

/// A handle for each value of one label.
pub(super) struct Family<T> {
    label: &'static str,
    kept: RwLock<HashMap<Box<str>, Arc<T>>>,
}

impl<T> Family<T> {
    pub(super) fn new(label: &'static str) -> Self {
        Self {
            label,
            kept: RwLock::default(),
        }
    }

    /// Uses the handle of this value, which is made where it is missing, and the value that the
    /// metrics show.
    pub(super) fn with<R>(
        &self,
        value: &str,
        make: impl FnOnce(&str) -> T,
        using: impl FnOnce(&T, &str) -> R,
    ) -> R {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = kept.get(value) {
            return using(handle, value);
        }
        if let Some(other) = kept.get(OTHER).filter(|_| kept.len() >= MOST) {
            return using(other, OTHER);
        }
        drop(kept);
        let (handle, shown) = self.make(value, make);
        using(&handle, shown)
    }

    fn make<'v>(&self, value: &'v str, make: impl FnOnce(&str) -> T) -> (Arc<T>, &'v str) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let is_full = kept.len() >= MOST && !kept.contains_key(value);
        if is_full && !kept.contains_key(OTHER) {
            let label = self.label;
            tracing::warn!(
                label,
                "metrics show {MOST} values of a label: all others are `{OTHER}`"
            );
        }
        let shown = if is_full { OTHER } else { value };
        let handle = kept.entry(shown.into());
        let handle = handle.or_insert_with(|| Arc::new(make(shown)));
        (Arc::clone(handle), shown)
    }

    /// Does something with each handle.
    pub(super) fn for_each(&self, mut using: impl FnMut(&T)) {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        kept.values().for_each(|handle| using(handle));
    }
}
