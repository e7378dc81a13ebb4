//! Waiting for the call that holds the record.

use std::time::Duration;

use super::Admitting;
use crate::{
    error::Error,
    observe::RecordChange,
    policy::InFlight,
    record::{Record, Time},
    run::{race, retries::RETRIES},
    store::{Snapshot, StoreError},
};

/// How long it is until the next look whether a stream has begun.
const NOTHING_STANDS: Duration = Duration::from_millis(50);

impl Admitting<'_> {
    /// For how much longer it may wait: its patience counts from the first time that there is a
    /// reason to.
    pub(super) fn patience(&mut self) -> Duration {
        let now = self.request.handle.timer().now();
        match self.request.in_flight {
            InFlight::Reject => Duration::ZERO,
            InFlight::Wait(at_most) => {
                let deadline = *self.deadline.get_or_insert(now.saturating_add(at_most));
                deadline.saturating_sub(now)
            }
        }
    }

    /// Waits until the record may have changed, and looks at it again; an error when the call may
    /// not wait (any longer).
    pub(super) async fn wait(
        &mut self,
        record: &Record,
        seen_at: Time,
        left: Duration,
    ) -> Result<Snapshot, Error> {
        let handle = &self.request.handle;
        let now = handle.timer().now();
        let patience = self.patience();
        if patience.is_zero() || !self.has_room() {
            return Err(self.in_progress(record, seen_at, left));
        }
        if !self.waited {
            self.waited = true;
            handle.observers().transition(
                &self.request.operation,
                &self.id,
                record.attempt,
                RecordChange::Waiting,
            );
        }
        let at_most = patience.min(left);
        let limit = handle.timer().sleep_until(now.saturating_add(at_most));
        let moved = handle.store().wait(&self.id, record.version, at_most);
        if let Some(Err(error)) = race(moved, limit).await {
            // The load that follows tells whether the store is there at all.
            tracing::debug!(%error, "waiting at the store failed");
            handle.timer().sleep(RETRIES[0].min(at_most)).await;
        }
        Ok(self.look_again().await?)
    }

    /// Whether there is room to wait. A call that has a place keeps it until it is admitted.
    fn has_room(&mut self) -> bool {
        match &self.request.room {
            Some(room) if self.place.is_none() => {
                self.place = room.enter();
                self.place.is_some()
            }
            _ => true,
        }
    }

    /// Waits until the stream may have moved, and looks at it again; an error when the call may not
    /// wait any longer.
    pub(super) async fn wait_for_gap(
        &mut self,
        expected: u64,
        record: Option<&Record>,
    ) -> Result<Snapshot, Error> {
        let handle = &self.request.handle;
        let now = handle.timer().now();
        let patience = self.claim.numbered.map_or(Duration::ZERO, |it| it.patience);
        let deadline = *self
            .gap_deadline
            .get_or_insert(now.saturating_add(patience));
        if now >= deadline {
            return Err(self.gap(expected));
        }
        self.waited = true;
        let limit = handle.timer().sleep_until(deadline);
        let left = deadline.saturating_sub(now);
        let moved = async {
            match record {
                Some(record) => handle.store().wait(&self.id, record.version, left).await,
                None => {
                    handle.timer().sleep(NOTHING_STANDS.min(left)).await;
                    Ok(())
                }
            }
        };
        if let Some(Err(error)) = race(moved, limit).await {
            tracing::debug!(%error, "waiting at the store failed");
            handle.timer().sleep(RETRIES[0].min(left)).await;
        }
        Ok(self.look_again().await?)
    }

    /// Looks at the record after waiting. Another call holds or held it, so no outage lets this
    /// call run unprotected: it looks until its patience ends.
    pub(super) async fn look_again(&self) -> Result<Snapshot, StoreError> {
        let timer = self.request.handle.timer();
        loop {
            match self.request.handle.store().load(&self.id).await {
                Err(error)
                    if error.is_transient()
                        && self
                            .deadline
                            .max(self.gap_deadline)
                            .is_some_and(|deadline| timer.now() < deadline) =>
                {
                    timer.sleep(RETRIES[1]).await;
                }
                answer => return answer,
            }
        }
    }
}
