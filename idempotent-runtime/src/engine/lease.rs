//! A lease that is held: the facts that its holder and the heartbeats beside it share.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;

use crate::{
    attempt::Attempt,
    protocol::Holding,
    record::{Draft, State, Version, micros},
    value::lock,
};

/// A lease, shared by the holder and the heartbeat thread.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) attempt: Attempt,
    pub(crate) holding: Holding,
    version: Mutex<Version>,
    /// When the lease ends by the holder's own timer, in microseconds: counted from before the
    /// write was sent, so it is never later than the store's.
    ends: AtomicU64,
    /// Whether the store is to know that the body has answered.
    has_answered: AtomicBool,
    ending: AtomicBool,
    abandoned: AtomicBool,
    /// Whether the record stays because undos are open.
    keeps_undos: AtomicBool,
    flush_now: Notify,
    /// When a flush was requested last, by the holder's own timer.
    flush_requested: Mutex<Option<Duration>>,
}

/// The shortest time between two tries out of turn of an ending that a caller waits for: a store
/// that answers looks may take no writes for long.
const HURRY: Duration = Duration::from_millis(100);

impl Lease {
    pub(crate) fn new(
        attempt: Attempt,
        holding: Holding,
        version: Version,
        sent_at: Duration,
    ) -> Self {
        let lease = Self {
            attempt,
            holding,
            version: Mutex::new(version),
            ends: AtomicU64::new(0),
            has_answered: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            keeps_undos: AtomicBool::new(false),
            flush_now: Notify::new(),
            flush_requested: Mutex::default(),
        };
        lease.prolonged(sent_at);
        lease
    }

    /// The version that this holder wrote last.
    pub(crate) fn version(&self) -> Version {
        *lock(&self.version)
    }

    pub(crate) fn stands_at(&self, version: Version) {
        *lock(&self.version) = version;
    }

    /// Notes that a write which was sent at `sent_at` prolonged the lease.
    pub(crate) fn prolonged(&self, sent_at: Duration) {
        self.lasts(sent_at, self.holding.lease());
    }

    /// Notes that a store which was asked at `sent_at` has the lease last for so much longer.
    pub(crate) fn lasts(&self, sent_at: Duration, left: Duration) {
        let ends = micros(sent_at.saturating_add(left));
        self.ends.fetch_max(ends.unsigned_abs(), Ordering::AcqRel);
    }

    /// The draft that prolongs it.
    pub(crate) fn heartbeat(&self, version: Version) -> Draft {
        self.kept(match self.has_answered.load(Ordering::Acquire) {
            true => self.holding.heartbeat_of_answered(version),
            false => self.holding.heartbeat(version),
        })
    }

    /// The same draft for a record that stays because undos are open.
    pub(crate) fn kept(&self, draft: Draft) -> Draft {
        match self.keeps_undos() && draft.state != State::Done {
            true => draft.with_open_undos(),
            false => draft,
        }
    }

    /// Says that undos are open: every write from here on except an outcome says so.
    pub(crate) fn keep_undos(&self) {
        self.keeps_undos.store(true, Ordering::Release);
    }

    pub(crate) fn keeps_undos(&self) -> bool {
        self.keeps_undos.load(Ordering::Acquire)
    }

    /// Says that the body has answered: every heartbeat from here on tells the store.
    pub(crate) fn answered(&self) {
        self.has_answered.store(true, Ordering::Release);
    }

    /// When the lease ends by the holder's own timer.
    pub(crate) fn ends(&self) -> Duration {
        Duration::from_micros(self.ends.load(Ordering::Acquire))
    }

    /// Tells whether the lease is over by the holder's own timer.
    pub(crate) fn is_over(&self, now: Duration) -> bool {
        self.ends() <= now
    }

    /// Says that the body is through and its ending is being written. Heartbeats go on, because the
    /// write may take longer than the lease; a refusal is for the ending to explain.
    pub(crate) fn start_completion(&self) {
        self.ending.store(true, Ordering::Release);
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    /// Says that a caller waits for the ending to be written.
    pub(crate) fn flush_now(&self, now: Duration) {
        let mut flush_requested = lock(&self.flush_requested);
        if flush_requested.is_none_or(|last| now.saturating_sub(last) >= HURRY) {
            *flush_requested = Some(now);
            self.flush_now.notify_one();
        }
    }

    /// Resolves when a flush is requested.
    pub(crate) async fn flush_requested(&self) {
        self.flush_now.notified().await;
    }

    /// Says that the holder is gone: no heartbeat may prolong a lease that is left to the next one.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }
}
