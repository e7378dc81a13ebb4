//! The records that need somebody, for a sampler.

use super::records::MOST;
use crate::{
    handle::Idempotency,
    store::{ListOrder, ListedPage, StoreError},
};

/// The first 10,000 records that need somebody, and whether there may be more; `None` if no index
/// leads to them.
pub(crate) async fn attention_at_hand(
    handle: &Idempotency,
) -> Result<Option<(ListedPage, bool)>, StoreError> {
    let Some(lists) = handle.store().lists() else {
        return Ok(None);
    };
    let listing = lists.list(ListOrder::Attention, None, MOST + 1);
    Ok(listing.await?.map(|mut page| {
        let most = MOST as usize;
        let is_capped = !page.is_last || page.records.len() > most;
        page.records.truncate(most);
        (page, is_capped)
    }))
}
