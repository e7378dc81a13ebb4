//! The journal that ends with the process.

use std::{collections::HashMap, mem, sync::Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderMap;

use super::{ClientJournal, CorruptEntry, Ending, Entry, EntryId};
use crate::keys::lock;
use idempotent_runtime::{StoreError, StoreErrorKind, Time};

/// Remembers calls while the process lives: one intent is one call within it.
///
/// It has two bounds. Beyond 16 MiB of bodies and headers, the oldest calls lose theirs: an
/// unfinished one then reports [`Resend::BodyNotKept`](crate::Resend::BodyNotKept), one that ended
/// [`ClientError::ResultGone`](crate::ClientError::ResultGone), and their keys stay known. Beyond
/// 10 000 calls, the oldest that ended are forgotten, and their keys count as new. Unfinished ones
/// are never forgotten, however old they are, because their keys would count as new. If there are
/// 10 000 of them, a new call is refused with [`StoreErrorKind::Full`], and nothing is sent, until
/// [`IdempotencyKeys::forget`](crate::IdempotencyKeys::forget) makes room.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    entries: HashMap<EntryId, Entry>,
    /// How many bytes of bodies and headers the entries hold.
    bytes: usize,
}

const MOST: usize = 10_000;

const MOST_BYTES: usize = 16 << 20;

impl MemoryJournal {
    /// Makes an empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Calls {
    /// Forgets the oldest that ended, an eighth of all at once, so that not every call looks for
    /// them.
    fn make_room(&mut self) -> Result<(), StoreError> {
        if self.entries.len() < MOST {
            return Ok(());
        }
        let ended = self.oldest(|entry| entry.ending.is_some());
        if ended.is_empty() {
            let error = StoreError::new(StoreErrorKind::Full, "writing a call into the journal");
            return Err(error.with_source("as many calls as it remembers are unfinished"));
        }
        for id in ended.iter().take(MOST / 8) {
            self.remove(id);
        }
        Ok(())
    }

    /// Drops the oldest bodies and headers, a quarter of all at once, where there are too many.
    fn shed(&mut self) {
        if self.bytes <= MOST_BYTES {
            return;
        }
        for id in self.oldest(|entry| weight(entry) > 0) {
            if self.bytes <= MOST_BYTES / 4 * 3 {
                return;
            }
            self.change(&id, strip);
        }
    }

    fn oldest(&self, which: impl Fn(&Entry) -> bool) -> Vec<EntryId> {
        let mut entries: Vec<_> = self.entries.values().filter(|entry| which(entry)).collect();
        entries.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        entries.into_iter().map(|entry| entry.id.clone()).collect()
    }

    fn insert(&mut self, entry: Entry) {
        self.bytes += weight(&entry);
        self.entries.insert(entry.id.clone(), entry);
        self.shed();
    }

    fn change(&mut self, id: &EntryId, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.entries.get_mut(id) {
            self.bytes -= weight(entry);
            change(entry);
            self.bytes += weight(entry);
        }
    }

    fn remove(&mut self, id: &EntryId) {
        if let Some(entry) = self.entries.remove(id) {
            self.bytes -= weight(&entry);
        }
    }
}

/// How many bytes can be dropped of an entry.
fn weight(entry: &Entry) -> usize {
    let length = |headers: &HeaderMap, key: bool| -> usize {
        let lines = headers.iter();
        lines
            .filter(|(_, value)| key || !value.is_sensitive())
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum()
    };
    let answer = match &entry.ending {
        Some(Ending::Answered { headers, body, .. }) => {
            length(headers, true) + body.as_ref().map_or(0, Bytes::len)
        }
        _ => 0,
    };
    length(&entry.headers, false) + entry.body.as_ref().map_or(0, Bytes::len) + answer
}

/// Leaves the key, which is marked, as it is written: written in another way, it may be another key
/// to the server.
fn strip(entry: &mut Entry) {
    let headers = mem::take(&mut entry.headers);
    let key = headers.iter().filter(|(_, value)| value.is_sensitive());
    entry.headers = key.map(|(name, key)| (name.clone(), key.clone())).collect();
    entry.body = None;
    if let Some(Ending::Answered { headers, body, .. }) = &mut entry.ending {
        *headers = HeaderMap::new();
        *body = None;
    }
}

#[async_trait]
impl ClientJournal for MemoryJournal {
    async fn begin(&self, entry: &Entry) -> Result<Option<Entry>, StoreError> {
        let mut calls = lock(&self.calls);
        if let Some(standing) = calls.entries.get(&entry.id) {
            return Ok(Some(standing.clone()));
        }
        calls.make_room()?;
        calls.insert(entry.clone());
        Ok(None)
    }

    async fn find(&self, id: &EntryId) -> Result<Option<Entry>, StoreError> {
        Ok(lock(&self.calls).entries.get(id).cloned())
    }

    async fn take_up(
        &self,
        id: &EntryId,
        seen: Option<&[u8; 16]>,
        begun: &[u8; 16],
    ) -> Result<bool, StoreError> {
        let mut calls = lock(&self.calls);
        let Some(standing) = calls.entries.get_mut(id) else {
            return Ok(false);
        };
        let is_as_seen = standing.ending.is_none() && standing.begun.as_ref() == seen;
        if is_as_seen {
            standing.begun = Some(*begun);
        }
        Ok(is_as_seen)
    }

    async fn finish(
        &self,
        id: &EntryId,
        caller: &[u8; 32],
        ending: &Ending,
    ) -> Result<(), StoreError> {
        let mut calls = lock(&self.calls);
        calls.change(id, |entry| {
            entry.caller = Some(*caller);
            entry.ending = Some(ending.clone());
            // The request is no longer needed once its outcome is known.
            entry.body = None;
        });
        calls.shed();
        Ok(())
    }

    async fn withdraw(&self, id: &EntryId, begun: Option<&[u8; 16]>) -> Result<bool, StoreError> {
        let mut calls = lock(&self.calls);
        let standing = calls.entries.get(id);
        let is_theirs =
            standing.is_some_and(|entry| entry.ending.is_none() && entry.begun.as_ref() == begun);
        if is_theirs {
            calls.remove(id);
        }
        Ok(is_theirs)
    }

    async fn forget(&self, id: &EntryId) -> Result<(), StoreError> {
        lock(&self.calls).remove(id);
        Ok(())
    }

    async fn unfinished(&self, limit: u32) -> Result<Vec<Result<Entry, CorruptEntry>>, StoreError> {
        let calls = lock(&self.calls);
        let open = calls.oldest(|entry| entry.ending.is_none());
        let open = open.iter().take(limit as usize);
        Ok(open
            .filter_map(|id| calls.entries.get(id).cloned().map(Ok))
            .collect())
    }

    async fn count_unfinished(&self, limit: u32) -> Result<(u64, Option<Time>), StoreError> {
        let calls = lock(&self.calls);
        let open = calls.entries.values().filter(|it| it.ending.is_none());
        let oldest = open.clone().map(|it| it.created).min();
        Ok(((open.count() as u64).min(limit.into()), oldest))
    }

    async fn purge(&self, before: Time, limit: u32) -> Result<u64, StoreError> {
        let mut calls = lock(&self.calls);
        let mut old = calls.oldest(|entry| entry.ending.is_some() && entry.created < before);
        old.truncate(limit as usize);
        for id in &old {
            calls.remove(id);
        }
        Ok(old.len() as u64)
    }
}
