//! Handles that are kept, one for each value of a label.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use crate::value::{lock, opaque};

/// How many values of a label are shown. All others share the last one.
const MOST: usize = 200;

/// The value of a label that stands for all values beyond the first 200.
pub(super) const OTHER: &str = "other";

/// The values of each label that a recorder shows.
#[derive(Debug, Default)]
pub struct Shown(Mutex<BTreeMap<&'static str, BTreeSet<Box<str>>>>);

impl Shown {
    /// The value that is shown of a label for this one.
    fn of<'v>(&self, label: &'static str, value: &'v str) -> &'v str {
        let mut labels = lock(&self.0);
        let values = labels.entry(label).or_default();
        if values.contains(value) {
            return value;
        }
        if values.len() < MOST {
            values.insert(value.into());
            return value;
        }
        let is_first = values.insert(OTHER.into());
        drop(labels);
        if is_first {
            tracing::warn!(
                label,
                "metrics show {MOST} values of a label: all others are `{OTHER}`"
            );
        }
        OTHER
    }
}

/// A handle for each value of one label.
pub struct Family<T> {
    label: &'static str,
    shown: Arc<Shown>,
    kept: RwLock<HashMap<Box<str>, Arc<T>>>,
}

opaque!(Family<T>);

impl<T> Family<T> {
    /// Begins without a handle.
    pub fn new(label: &'static str, shown: &Arc<Shown>) -> Self {
        Self {
            label,
            shown: Arc::clone(shown),
            kept: RwLock::default(),
        }
    }

    /// Uses the handle of this value, which is made where it is missing, and the value that the
    /// metrics show. No lock is held meanwhile.
    pub fn with<R>(
        &self,
        value: &str,
        make: impl FnOnce(&str) -> T,
        using: impl FnOnce(&T, &str) -> R,
    ) -> R {
        if let Some(handle) = self.find(value) {
            return using(&handle, value);
        }
        let shown = self.shown.of(self.label, value);
        let handle = match self.find(shown) {
            Some(handle) => handle,
            None => self.keep(shown, make(shown)),
        };
        using(&handle, shown)
    }

    fn find(&self, value: &str) -> Option<Arc<T>> {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        kept.get(value).cloned()
    }

    /// Keeps a handle, unless another thread has made one meanwhile.
    fn keep(&self, value: &str, handle: T) -> Arc<T> {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.entry(value.into()).or_insert_with(|| Arc::new(handle));
        Arc::clone(kept)
    }

    /// Does something with each handle.
    pub(super) fn for_each(&self, using: impl FnMut(&Arc<T>)) {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let handles: Vec<_> = kept.values().cloned().collect();
        drop(kept);
        handles.iter().for_each(using);
    }
}
