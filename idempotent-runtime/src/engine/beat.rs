//! One heartbeat.

use std::time::Duration;

use crate::{
    attempt::Attempt,
    engine::heartbeat::Shared,
    engine::lease::Lease,
    engine::swap::swap,
    observe::RecordChange,
    protocol::Beat,
    race::race,
    record::Version,
    store::{Store, StoreError, StoreErrorKind, Swap},
};

/// When the next heartbeat is due.
pub(crate) enum BeatResult {
    /// At this time of the holder's timer.
    Until(Duration),
    /// Likewise, but the store was not told.
    Failed(Duration),
    /// Not any more: the holding is over, or lost.
    Never,
}

/// Prolongs the lease of a holding that was claimed at `since` once. After a failure the next try
/// comes sooner; when the lease has run out meanwhile by the holder's own timer, the holder is
/// told, and the tries go on: the version may still stand.
pub(crate) async fn beat(
    store: &dyn Store,
    heartbeats: &Shared,
    lease: &Lease,
    since: Duration,
) -> BeatResult {
    let attempt = &lease.attempt;
    let length = lease.holding.lease();
    if heartbeats.timer.now().saturating_sub(since) > heartbeats.max_run_time {
        return outstayed(heartbeats, lease);
    }
    let mut seen = lease.version();
    while !lease.is_abandoned() {
        let sent_at = heartbeats.timer.now();
        let left = match lease.ends().saturating_sub(sent_at) {
            Duration::ZERO => length,
            left => left,
        };
        let version = Version::random();
        let draft = lease.heartbeat(version);
        let answer = race(
            swap(store, attempt.id(), Some(seen), &draft),
            heartbeats
                .timer
                .sleep_until(sent_at.saturating_add(left.min(length / 3))),
        )
        .await;
        match answer {
            Some(Ok(Swap::Applied(stamp))) => {
                lease.stands_at(stamp.version);
                lease.prolonged(sent_at);
                heartbeats.beaten(true);
                tell(heartbeats, attempt, RecordChange::Heartbeat);
                if lease.is_ending() {
                    // The store takes writes, so an ending that it has not taken need not wait for
                    // its turn.
                    lease.flush_now(heartbeats.timer.now());
                }
                return BeatResult::Until(sent_at.saturating_add(length / 3));
            }
            Some(Ok(Swap::Refused(snapshot))) => match lease.holding.refused_heartbeat(&snapshot) {
                Beat::Again(version) => {
                    // An earlier heartbeat stands, whose answer was lost.
                    if let Some(record) = &snapshot.record {
                        lease.lasts(sent_at, record.lease_end.since(snapshot.now));
                    }
                    seen = version;
                }
                Beat::Over => return BeatResult::Never,
                Beat::Lost => {
                    if !lease.is_ending() && !lease.is_abandoned() && attempt.lose() {
                        tell(heartbeats, attempt, RecordChange::LeaseLost);
                    }
                    return BeatResult::Never;
                }
            },
            unanswered => {
                let error = unanswered.and_then(Result::err);
                return failed(heartbeats, lease, error);
            }
        }
    }
    BeatResult::Never
}

/// The store did not take a heartbeat, or did not answer in time.
fn failed(heartbeats: &Shared, lease: &Lease, error: Option<StoreError>) -> BeatResult {
    let attempt = &lease.attempt;
    let silent = || StoreError::new(StoreErrorKind::Unavailable, "prolonging a lease");
    let error = error.unwrap_or_else(silent);
    let now = heartbeats.timer.now();
    let observers = &heartbeats.observers;
    observers.store_failed(attempt.operation(), &error, now);
    heartbeats.beaten(false);
    tell(heartbeats, attempt, RecordChange::HeartbeatFailed);
    let next = now.saturating_add(lease.holding.lease() / 12);
    if !lease.is_over(now) {
        return BeatResult::Failed(next.min(lease.ends()));
    }
    if attempt.lose() {
        tell(heartbeats, attempt, RecordChange::LeaseLost);
    }
    BeatResult::Failed(next)
}

fn tell(heartbeats: &Shared, attempt: &Attempt, change: RecordChange) {
    heartbeats.observers.changed(attempt, change);
}

/// A body that runs longer than the maximum hold time keeps what is left of its lease, and is told
/// when that ends.
fn outstayed(heartbeats: &Shared, lease: &Lease) -> BeatResult {
    let attempt = &lease.attempt;
    if !lease.is_over(heartbeats.timer.now()) {
        tracing::warn!(
            operation = attempt.operation(),
            id = attempt.id().to_hex(),
            "a body ran longer than the maximum hold time: its lease is not prolonged any more"
        );
        return BeatResult::Until(lease.ends());
    }
    if attempt.lose() {
        tell(heartbeats, attempt, RecordChange::LeaseLost);
    }
    BeatResult::Never
}
