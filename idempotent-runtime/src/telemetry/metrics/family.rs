//! Handles that are kept, one for each value of a label.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, OnceLock},
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

/// The value of a cell, which is made where it is missing. No lock is held meanwhile: a recorder
/// may come back here while it makes one.
pub fn made<T>(cell: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    if let Some(made) = cell.get() {
        return made;
    }
    let _another_may_stand = cell.set(make());
    cell.get().expect("it is set")
}

/// A handle for each value of one label. A handle that is there once stays, so that no lock is
/// needed to find it.
pub struct Family<T> {
    label: &'static str,
    shown: Arc<Shown>,
    chains: [Link<T>; CHAINS],
}

/// The number of chains, over which the values are spread by their hashes.
const CHAINS: usize = 64;

/// The place of the next handle of a chain.
type Link<T> = OnceLock<Box<Kept<T>>>;

struct Kept<T> {
    value: Box<str>,
    handle: T,
    next: Link<T>,
}

opaque!(Family<T>);

impl<T> Family<T> {
    /// Begins without a handle.
    pub fn new(label: &'static str, shown: &Arc<Shown>) -> Self {
        Self {
            label,
            shown: Arc::clone(shown),
            chains: std::array::from_fn(|_| Link::new()),
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
        if let Ok(handle) = self.find(value) {
            return using(handle, value);
        }
        let shown = self.shown.of(self.label, value);
        let handle = match self.find(shown) {
            Ok(handle) => handle,
            Err(end) => keep(end, shown, make(shown)),
        };
        using(handle, shown)
    }

    /// Returns the handle of this value, or the end of its chain.
    fn find(&self, value: &str) -> Result<&T, &Link<T>> {
        let mut link = &self.chains[chain(value)];
        while let Some(kept) = link.get() {
            if *kept.value == *value {
                return Ok(&kept.handle);
            }
            link = &kept.next;
        }
        Err(link)
    }

    /// Does something with each handle.
    pub(super) fn for_each(&self, mut using: impl FnMut(&T)) {
        for mut link in &self.chains {
            while let Some(kept) = link.get() {
                using(&kept.handle);
                link = &kept.next;
            }
        }
    }
}

/// Keeps a handle at the end of its chain, unless another thread has kept one meanwhile.
fn keep<'k, T>(mut end: &'k Link<T>, value: &str, handle: T) -> &'k T {
    let mut new = Box::new(Kept {
        value: value.into(),
        handle,
        next: Link::new(),
    });
    loop {
        let refused = end.set(new).err();
        let kept = end.get().expect("it is set");
        if *kept.value == *value {
            return &kept.handle;
        }
        (end, new) = (&kept.next, refused.expect("another value is set"));
    }
}

/// The chain of a value, by FNV-1a. A program chooses the values, and few of them are kept.
fn chain(value: &str) -> usize {
    let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let hash = value.bytes().fold(0x811c_9dc5, mix);
    (hash >> 16 ^ hash) as usize % CHAINS
}
