//! The journal that ends with the process.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use super::{ClientJournal, Ending, Entry, EntryId};
use crate::{record::Time, store::StoreError};

/// Remembers calls while the process lives: one intent is one call within it. It keeps a thousand, and forgets the oldest
/// that ended when there are more.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    entries: Mutex<HashMap<EntryId, Entry>>,
}

const MOST: usize = 1_000;

impl MemoryJournal {
    /// Makes an empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<EntryId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ClientJournal for MemoryJournal {
    async fn begin(&self, entry: &Entry) -> Result<Option<Entry>, StoreError> {
        let mut entries = self.entries();
        if let Some(standing) = entries.get(&entry.id) {
            return Ok(Some(standing.clone()));
        }
        if entries.len() >= MOST {
            let ended = entries.values().filter(|entry| entry.ending.is_some());
            let oldest = ended.min_by_key(|entry| entry.created);
            if let Some(id) = oldest.map(|entry| entry.id.clone()) {
                entries.remove(&id);
            }
        }
        entries.insert(entry.id.clone(), entry.clone());
        Ok(None)
    }

    async fn finish(
        &self,
        id: &EntryId,
        caller: &[u8; 32],
        ending: &Ending,
    ) -> Result<(), StoreError> {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.caller = Some(*caller);
            entry.ending = Some(ending.clone());
        }
        Ok(())
    }

    async fn forget(&self, id: &EntryId) -> Result<(), StoreError> {
        self.entries().remove(id);
        Ok(())
    }

    async fn unfinished(&self, limit: u32) -> Result<Vec<Entry>, StoreError> {
        let entries = self.entries();
        let open = entries.values().filter(|entry| entry.ending.is_none());
        let mut open: Vec<_> = open.cloned().collect();
        open.sort_by_key(|entry| (entry.created, entry.id.clone()));
        open.truncate(limit as usize);
        Ok(open)
    }

    async fn purge(&self, before: Time, limit: u32) -> Result<u64, StoreError> {
        let mut entries = self.entries();
        let old: Vec<_> = entries
            .values()
            .filter(|entry| entry.ending.is_some() && entry.created < before)
            .map(|entry| entry.id.clone())
            .take(limit as usize)
            .collect();
        for id in &old {
            entries.remove(id);
        }
        Ok(old.len() as u64)
    }
}
