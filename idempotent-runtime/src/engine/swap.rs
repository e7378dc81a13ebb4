//! The answer of a store to a write.

use crate::{
    identity::RecordId,
    record::{Draft, Version},
    store::{Store, StoreError, StoreErrorKind, Swap},
};

/// Puts `next` where version `seen` stands.
pub(crate) async fn swap(
    store: &dyn Store,
    id: &RecordId,
    seen: Option<Version>,
    next: &Draft,
) -> Result<Swap, StoreError> {
    answered(seen, store.swap(id, seen, next).await)
}

/// The answer of a store to a write over `seen`. If that is refused and `seen` still stands, it
/// would be refused for ever. Something in the database drops it, or a store that we did not write
/// is not what it has to be.
///
/// It is for futures that every call makes: in them, [`swap`] would take as much room again as the
/// future it waits for.
pub(crate) fn answered(
    seen: Option<Version>,
    answer: Result<Swap, StoreError>,
) -> Result<Swap, StoreError> {
    if let (Some(seen), Ok(Swap::Refused(snapshot))) = (seen, &answer)
        && let Some(record) = &snapshot.record
        && record.version == seen
    {
        let error = StoreError::new(StoreErrorKind::Denied, "writing a record");
        return Err(error.with_source(
            "nothing is written over what stands there as it was seen: row-level security has no policy by which this user updates it, or a trigger or rule drops the update",
        ));
    }
    answer
}
