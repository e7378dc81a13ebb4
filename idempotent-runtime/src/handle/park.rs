//! Parks a call that failed without an end, where nobody is to call it again.

use std::sync::Arc;

use crate::{
    error::Error,
    handle::{Idempotency, put},
    identity::RecordId,
    observe::RecordChange,
    protocol::{Settlement, settle},
    record::{State, Version},
    store::Swap,
};

impl Idempotency {
    /// Parks the call of this record if its holder gave it back while undos are open, so that an
    /// operator finds it. Returns whether nobody goes on with it.
    pub(crate) async fn park(&self, operation: &Arc<str>, id: &RecordId) -> Result<bool, Error> {
        let snapshot = self.store().load(id).await?;
        let Some(record) = snapshot.record else {
            return Ok(true);
        };
        let keep = self.defaults().audit_retention;
        let version = Version::random();
        let Some(draft) = settle(&record, &Settlement::Park, snapshot.now, keep, version) else {
            // It is held, or is about to be given back.
            return Ok(record.state != State::Running || !record.has_open_undos());
        };
        match put(self, id, record.version, &draft).await? {
            Swap::Applied(_) => {
                let (observers, change) = (self.observers(), RecordChange::Parked);
                observers.transition(operation, id, record.attempt, change);
                Ok(true)
            }
            Swap::Refused(_) => Ok(false),
        }
    }
}
