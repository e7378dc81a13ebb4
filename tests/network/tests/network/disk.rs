//! A journal on a disk, which takes time that no clock of the simulation knows.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use idempotent_client::{
    ClientJournal, SqliteJournal,
    journal::{CorruptEntry, Ending, Entry, EntryId},
};
use idempotent_runtime::{StoreError, record::Time};

/// Counts what a disk is at. The clock of the simulation waits for it: else a machine under load
/// would let the deadlines of calls pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk(Arc<AtomicUsize>);

impl Disk {
    pub(crate) fn is_busy(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }

    fn begins(&self) -> Busy<'_> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Busy(&self.0)
    }
}

struct Busy<'a>(&'a AtomicUsize);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A journal in a file.
#[derive(Debug)]
pub(crate) struct OnDisk {
    pub(crate) file: SqliteJournal,
    pub(crate) disk: Disk,
}

#[async_trait]
impl ClientJournal for OnDisk {
    async fn begin(&self, entry: &Entry) -> Result<Option<Entry>, StoreError> {
        let _busy = self.disk.begins();
        self.file.begin(entry).await
    }

    async fn find(&self, id: &EntryId) -> Result<Option<Entry>, StoreError> {
        let _busy = self.disk.begins();
        self.file.find(id).await
    }

    async fn take_up(
        &self,
        id: &EntryId,
        seen: Option<&[u8; 16]>,
        begun: &[u8; 16],
    ) -> Result<bool, StoreError> {
        let _busy = self.disk.begins();
        self.file.take_up(id, seen, begun).await
    }

    async fn finish(
        &self,
        id: &EntryId,
        caller: &[u8; 32],
        ending: &Ending,
    ) -> Result<(), StoreError> {
        let _busy = self.disk.begins();
        self.file.finish(id, caller, ending).await
    }

    async fn withdraw(&self, id: &EntryId, begun: Option<&[u8; 16]>) -> Result<bool, StoreError> {
        let _busy = self.disk.begins();
        self.file.withdraw(id, begun).await
    }

    async fn forget(&self, id: &EntryId) -> Result<(), StoreError> {
        let _busy = self.disk.begins();
        self.file.forget(id).await
    }

    async fn unfinished(&self, limit: u32) -> Result<Vec<Result<Entry, CorruptEntry>>, StoreError> {
        let _busy = self.disk.begins();
        self.file.unfinished(limit).await
    }

    async fn purge(&self, before: Time, limit: u32) -> Result<u64, StoreError> {
        let _busy = self.disk.begins();
        self.file.purge(before, limit).await
    }
}
