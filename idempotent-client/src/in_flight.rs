//! Calls that this process is making.

use std::sync::Arc;

use crate::journal::EntryId;
use crate::keys::Inner;

/// A call that this process is making.
#[derive(Debug)]
pub(crate) struct Live {
    inner: Arc<Inner>,
    pub(crate) id: EntryId,
}

impl Drop for Live {
    fn drop(&mut self) {
        self.inner.live().remove(&self.id);
    }
}

impl Inner {
    /// Marks a call as being made, until the guard is dropped; `None` where it is marked already.
    pub(crate) fn enter(self: &Arc<Self>, id: EntryId) -> Option<Live> {
        self.live().insert(id.clone()).then(|| Live {
            inner: Arc::clone(self),
            id,
        })
    }
}
