//! Which layers over a handle have one name, so that their keys stand in one space.

use std::sync::{Arc, Mutex, Once, PoisonError, Weak};

use crate::http::settings::Settings;

/// The layers over one handle, for as long as they are there.
#[derive(Debug)]
pub(crate) struct Namesakes {
    layers: Mutex<Vec<Weak<Settings>>>,
    told: Once,
}

impl Namesakes {
    pub(crate) fn new() -> Self {
        Self {
            layers: Mutex::default(),
            told: Once::new(),
        }
    }

    /// Takes note of a layer, and tells operators once where callers of it and of another one may be taken for each other.
    pub(crate) fn meet(&self, newcomer: &Arc<Settings>) {
        if self
            .enter(newcomer)
            .iter()
            .any(|other| may_meet(other, newcomer))
        {
            self.told.call_once(|| {
                tracing::warn!(
                    operation = &*newcomer.name,
                    "two layers over one handle have one name and a scope each, so a caller of one may be given what a caller of the other was: give each a `.name(…)` of its own, or, where their callers are the same, clones of one `Scope`"
                );
            });
        }
    }

    /// Adds a layer, and gives all others that are there. What of them ends meanwhile, ends where the list is not locked.
    fn enter(&self, newcomer: &Arc<Settings>) -> Vec<Arc<Settings>> {
        let mut layers = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
        let others = layers.iter().filter_map(Weak::upgrade).collect();
        layers.retain(|layer| layer.strong_count() > 0);
        layers.push(Arc::downgrade(newcomer));
        others
    }
}

fn may_meet(one: &Settings, other: &Settings) -> bool {
    one.name == other.name && one.scope.may_confuse(&other.scope)
}
