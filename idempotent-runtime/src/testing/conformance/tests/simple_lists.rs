//! Lists of the store with one thing wrong.

use async_trait::async_trait;

use super::{Defect, simple::Simple};
use crate::{
    record::{Record, State},
    store::{ListOrder, ListPosition, ListedPage, ListedRecord, RecordList, Store, StoreError},
};

#[async_trait]
impl RecordList for Simple {
    async fn list(
        &self,
        order: ListOrder<'_>,
        after: Option<&ListPosition>,
        limit: u32,
    ) -> Result<Option<ListedPage>, StoreError> {
        let of_it = |record: &Record| match order {
            ListOrder::Everything => true,
            ListOrder::Operation(name) => *record.subject.operation == *name,
            ListOrder::Attention => {
                let is_settled = record.state == State::Done;
                let lists_it = self.defect == Defect::ListsTheSettled && is_settled;
                lists_it || record.state.needs_attention()
            }
        };
        let mut all = self.scan(None, u32::MAX).await?;
        all.retain(|(_, record)| of_it(record));
        if matches!(order, ListOrder::Operation(_)) {
            all.sort_by_key(|(id, record)| (record.created, *id));
            if self.defect != Defect::ListsOldestFirst {
                all.reverse();
            }
        }
        let place = after.and_then(|after| all.iter().position(|(id, _)| *id == after.id));
        let behind = all.iter().skip(place.map_or(0, |place| place + 1));
        let behind = behind.take(limit as usize);
        let records: Vec<_> = behind.map(|(id, it)| ListedRecord::of(*id, it)).collect();
        Ok(Some(ListedPage {
            now: self.now(),
            is_last: records.len() < limit as usize,
            damaged: 0,
            records,
        }))
    }
}
