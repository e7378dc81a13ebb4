//! The longest wait of a call for its journal: until the deadline of the call, and no longer.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use tracing::Instrument as _;

use crate::keys::Inner;
use crate::wire::deadline::before;
use crate::wire::send::Sending;
use idempotent_runtime::{StoreError, StoreErrorKind};

/// How long work goes on that no call waits for any more. A lock of a database is over by then, and
/// a journal that hangs keeps no more calls in memory than came in that time.
const AFTERWARDS: Duration = Duration::from_secs(60);

/// Work on a journal, which outlives the call that asks for it.
pub(crate) type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl Sending<'_> {
    /// Returns what the journal answers before the deadline of the call, or the work, which is not
    /// done by then. Work that is done at once is never late.
    pub(crate) async fn in_time<T>(&self, mut work: Work<T>) -> Result<T, Work<T>> {
        let end = self.begun.saturating_add(self.deadline);
        let answer = before(&*self.inner.timer, end, &mut work).await;
        answer.ok_or(work)
    }
}

/// Goes on with late work by itself, and gives it up after a while.
pub(crate) fn go_on(inner: &Arc<Inner>, work: impl Future<Output = ()> + Send + 'static) {
    let inner = Arc::clone(inner);
    let going_on = async move {
        let end = inner.timer.now().saturating_add(AFTERWARDS);
        if before(&*inner.timer, end, work).await.is_none() {
            tracing::warn!("the journal has not answered for a minute since a call ended");
        }
    };
    tokio::spawn(going_on.in_current_span());
}

/// The error of a call that had to wait for its journal until its deadline.
pub(crate) fn overdue(doing: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, doing)
        .with_source("the journal did not answer before the deadline of the call")
}
