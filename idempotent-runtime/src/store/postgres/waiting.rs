//! Waits for a record to move: it is told if that can be, and looks if not.

use std::{sync::Arc, time::Duration};

use super::{
    Inner, PostgresStore, calls::Mark, connection::Connected, listen::Notifications, rows::Protocol,
};
use crate::{
    identity::RecordId,
    record::Version,
    store::{StoreError, spawned::spawned},
};

/// How long a call that waits for a locked record looks at it before it tries again to note that.
/// It is four times as long after each time, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Inner {
    /// Notes that a call waits while version `seen` stands.
    pub(super) async fn mark(&self, id: &RecordId, seen: Version) -> Result<Mark, StoreError> {
        let marking = async |connected: &mut Connected| {
            let session = &mut connected.session();
            self.statements.mark(session, id, seen).await
        };
        self.connections.run("waiting for a record", marking).await
    }
}

impl PostgresStore {
    /// Notes that a call waits while version `seen` stands; `None` if no notification would come,
    /// or it cannot be noted. A server that takes no writes, because its disk is full for example,
    /// can still be looked at.
    async fn note(&self, id: &RecordId, seen: Version) -> Option<Mark> {
        if self.inner.statements.protocol != Protocol::Extended {
            return None;
        }
        let marked = match self.inner.inline_permit() {
            Some(_permit) => self.inner.mark(id, seen).await,
            None => {
                let (inner, id) = (Arc::clone(&self.inner), *id);
                let marking = async move { inner.mark(&id, seen).await };
                spawned("waiting for a record", marking).await
            }
        };
        if let Err(error) = &marked {
            tracing::debug!(%error, "no notification tells that a record moves, so waiters look by themselves");
        }
        marked.ok()
    }

    /// Waits until the record is no longer at version `seen`, or for so long.
    pub(super) async fn wait_for(
        &self,
        id: &RecordId,
        seen: Version,
        at_most: Duration,
    ) -> Result<(), StoreError> {
        let inner = &self.inner;
        let (mut left, mut pause) = (at_most, FIRST_PAUSE);
        loop {
            match self.note(id, seen).await {
                Some(Mark::Stands) => break,
                Some(Mark::Moved) => return Ok(()),
                // For a moment, mostly: by another call that notes the same.
                Some(Mark::Locked) if left > pause => {
                    self.wait_alone(id, seen, pause).await?;
                    left -= pause;
                    pause = pause.saturating_mul(4).min(LONGEST_PAUSE);
                }
                Some(Mark::Locked) | None => return self.wait_alone(id, seen, left).await,
            }
        }
        inner.listener.begin(&inner.waiters, || {
            let place = inner.connections.server().place.clone();
            Notifications::of(&inner.statements.channel, place, inner.connections.limits())
        });
        let interval = || inner.listener.poll_interval();
        inner.waiters.wait(self, id, seen, left, interval).await
    }
}
