//! Lists of records in memory. No index but that of what needs somebody is kept for them.

use std::{cmp::Reverse, ops::Bound, sync::Arc};

use async_trait::async_trait;

use super::MemoryStore;
use crate::{
    identity::RecordId,
    record::Record,
    store::{ListOrder, ListPosition, ListedPage, ListedRecord, RecordList, Store, StoreError},
};

#[async_trait]
impl RecordList for MemoryStore {
    async fn list(
        &self,
        order: ListOrder<'_>,
        after: Option<&ListPosition>,
        limit: u32,
    ) -> Result<Option<ListedPage>, StoreError> {
        let mut found = match order {
            ListOrder::Operation(name) => self.newest_of(name, after, limit as usize),
            ListOrder::Everything => self.scan(after.map(|it| it.id), limit).await?,
            ListOrder::Attention => self.needing_attention(after, limit as usize),
        };
        let is_last = found.len() < limit as usize;
        found.truncate(limit as usize);
        let records = found.iter();
        Ok(Some(ListedPage {
            now: self.clock.now(),
            records: records.map(|(id, it)| ListedRecord::of(*id, it)).collect(),
            damaged: 0,
            is_last,
        }))
    }
}

type Found = Vec<(RecordId, Arc<Record>)>;

impl MemoryStore {
    /// Looks at every record of the store, one shard after the other.
    fn newest_of(&self, operation: &str, after: Option<&ListPosition>, limit: usize) -> Found {
        let place = |id: &RecordId, record: &Record| Reverse((record.created, *id));
        let after = after.map(|after| Reverse((after.created, after.id)));
        let mut found: Found = Vec::new();
        for shard in &*self.shards {
            let cells = shard.lock();
            let of_it = cells.records.iter().filter(|(id, cell)| {
                *cell.record.subject.operation == *operation
                    && after.is_none_or(|after| place(id, &cell.record) > after)
            });
            found.extend(of_it.map(|(id, cell)| (*id, Arc::clone(&cell.record))));
        }
        if found.len() > limit && limit > 0 {
            found.select_nth_unstable_by_key(limit - 1, |(id, record)| place(id, record));
            found.truncate(limit);
        }
        found.sort_unstable_by_key(|(id, record)| place(id, record));
        found
    }

    fn needing_attention(&self, after: Option<&ListPosition>, limit: usize) -> Found {
        let mut found = Vec::new();
        let behind = after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.id));
        for shard in &*self.shards {
            let cells = shard.lock();
            let ids = cells.attention.range((behind, Bound::Unbounded));
            let records =
                ids.filter_map(|id| Some((*id, Arc::clone(&cells.records.get(id)?.record))));
            found.extend(records.take(limit - found.len()));
        }
        found
    }
}
