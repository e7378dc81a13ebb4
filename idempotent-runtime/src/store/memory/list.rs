//! Lists of records in memory.

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
        let most = limit as usize;
        let all = |found: Found| (found.len() < most, found);
        let (is_last, found) = match order {
            ListOrder::Operation(name) => self.newest_of(name, after, most),
            ListOrder::Everything => all(self.scan(after.map(|it| it.id), limit).await?),
            ListOrder::Attention => all(self.needing_attention(after, most)),
        };
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
    /// The records, and whether none is older. One of them may be purged while it looks.
    fn newest_of(
        &self,
        operation: &str,
        after: Option<&ListPosition>,
        limit: usize,
    ) -> (bool, Found) {
        let after = after.map(|after| (after.created, after.id));
        let mut places: Vec<_> = Vec::new();
        for shard in &*self.shards {
            places.extend(shard.lock().newest.of(operation, after).take(limit));
        }
        places.sort_unstable_by_key(|place| Reverse(*place));
        let is_last = places.len() < limit;
        places.truncate(limit);
        let record = |(_, id)| Some((id, self.look(&id).record?));
        (is_last, places.into_iter().filter_map(record).collect())
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
