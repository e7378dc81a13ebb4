//! Waiting for the call that holds the record.

use std::time::Duration;

use super::{Admission, Admitting};
use crate::{
    engine::retries::{RETRIES, Retries},
    error::Error,
    observe::RecordChange,
    policy::InFlight,
    race::race,
    record::{Record, Time},
    store::{Snapshot, StoreError, StoreErrorKind},
};

/// How long a claim is sent again to a store that is busy, at least.
const SHORTEST: Duration = Duration::from_secs(1);

/// How long it is until the next look whether a stream has begun.
const NOTHING_STANDS: Duration = Duration::from_millis(50);

impl Admitting<'_> {
    /// For how much longer it may wait. The time counts from the beginning of the call.
    pub(super) fn patience(&self) -> Duration {
        let now = self.request.handle.timer().now();
        self.deadline.saturating_sub(now)
    }

    /// Resolves when it is time to claim again after this error. A store that was busy for as long
    /// as this call may wait is not asked again: another call may be in its way. It gets a second
    /// at least, also where the call is not to wait.
    pub(super) async fn pause_after(
        &self,
        error: StoreError,
        retries: &mut Retries,
    ) -> Result<(), StoreError> {
        let timer = self.request.handle.timer();
        let until = self.deadline.max(self.began.saturating_add(SHORTEST));
        match error.kind() {
            StoreErrorKind::Busy if timer.now() >= until => Err(error),
            _ => retries.pause_after(error, timer).await,
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
            self.tell(record.attempt, RecordChange::Waiting);
        }
        let at_most = patience.min(left);
        let limit = handle.timer().sleep_until(now.saturating_add(at_most));
        let moved = handle.store().wait(&self.id, record.version, at_most);
        if let Some(Err(error)) = race(moved, limit).await {
            // The load that follows tells whether the store is there at all.
            tracing::debug!(%error, "waiting at the store failed");
            handle.timer().sleep(RETRIES[0].min(at_most)).await;
        }
        let stands = self.look_again(self.deadline).await;
        self.has_waited_since(now);
        Ok(stands?)
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
    ) -> Result<Snapshot, Admission> {
        let handle = &self.request.handle;
        let now = handle.timer().now();
        let deadline = self.gap_deadline;
        if now >= deadline {
            return Err(self.gap(expected));
        }
        self.waited = true;
        if self.request.in_flight != InFlight::Reject {
            // The number that comes at last may still run then.
            self.deadline = self.deadline.max(deadline);
        }
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
        let stands = self.look_again(deadline).await;
        self.has_waited_since(now);
        Ok(stands?)
    }

    fn has_waited_since(&mut self, began: Duration) {
        let now = self.request.handle.timer().now();
        self.waited_for += now.saturating_sub(began);
    }

    /// Looks at the record after waiting. Another call holds or held it, so no outage lets this
    /// call run unprotected: it looks until its patience ends.
    pub(super) async fn look_again(&self, until: Duration) -> Result<Snapshot, StoreError> {
        let timer = self.request.handle.timer();
        loop {
            match self.request.handle.store().load(&self.id).await {
                Err(error) if error.is_transient() && timer.now() < until => {
                    timer.sleep(RETRIES[1]).await;
                }
                answer => return answer,
            }
        }
    }
}
