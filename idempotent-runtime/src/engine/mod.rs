//! The parts that keep calls safe while they run: the attempt that a body asks about, the lease
//! that it holds, the steps that it has. They know neither a type of the user's nor the handle.
//!
//! A handle feeds it: its [`Parts`], which are the store, the timer, the observers and the
//! settings. One thread beside the calls prolongs every lease, and does the [`Job`](job::Job)s that
//! a call left behind: endings that the store did not take, and calls that were dropped. The thread
//! starts with the first lease, and ends when the handle is gone and no job is left. A job is given
//! up after `max_run_time`.
//!
//! A lease is held, then lost or ended, once. An attempt that has lost its lease writes nothing
//! more: neither a step nor an outcome.

pub(crate) mod attempt;
pub(crate) mod audit;
pub(crate) mod beat;
pub(crate) mod ending;
pub(crate) mod heartbeat;
#[cfg(feature = "_sql")]
pub(crate) mod in_process;
pub(crate) mod job;
pub(crate) mod last_words;
pub(crate) mod lease;
pub(crate) mod observe;
pub(crate) mod parts;
pub(crate) mod retries;
pub(crate) mod steps;
pub(crate) mod swap;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
#[cfg(feature = "_sql")]
use std::sync::{Mutex, Weak};

#[cfg(feature = "_sql")]
use self::in_process::InProcess;
use self::{
    audit::{AuditTrail, AuditWatch},
    heartbeat::Heartbeats,
    observe::Observers,
    parts::{Defaults, Parts},
};
use crate::{clock::Timer, codec::Coder, fingerprint::FingerprintKey, store::Store};

/// The parts of a handle that its calls share.
#[derive(Debug)]
pub(crate) struct Engine {
    id: u64,
    pub(crate) parts: Parts,
    heartbeats: Heartbeats,
    #[cfg(feature = "_sql")]
    in_process: InProcess,
    /// The relays that look for messages after a commit.
    #[cfg(feature = "_sql")]
    relays: Mutex<Vec<Weak<tokio::sync::Notify>>>,
    audit: Option<Arc<AuditWatch>>,
}

impl Engine {
    pub(crate) fn new(parts: Parts) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let heartbeats = Heartbeats::new(
            Arc::clone(&parts.store),
            Arc::clone(&parts.timer),
            parts.observers.clone(),
            parts.defaults.max_run_time,
        );
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            parts,
            heartbeats,
            #[cfg(feature = "_sql")]
            in_process: InProcess::default(),
            #[cfg(feature = "_sql")]
            relays: Mutex::default(),
            audit: None,
        }
    }

    /// The same with an audit, without which no call claims a record.
    pub(crate) fn audited(self, trail: Option<Arc<dyn AuditTrail>>) -> Self {
        let parts = &self.parts;
        let at = (&parts.store, &parts.timer);
        let audit =
            trail.map(|trail| AuditWatch::new(trail, at, &parts.holder_name, parts.about()));
        Self { audit, ..self }
    }

    /// The watch over an audit that has to be looked at before a record is written.
    pub(crate) fn unseen_audit(&self) -> Option<&Arc<AuditWatch>> {
        self.audit().filter(|audit| !audit.stands())
    }

    /// The watch over the audit, where there is one.
    pub(crate) fn audit(&self) -> Option<&Arc<AuditWatch>> {
        self.audit.as_ref()
    }

    /// Names the handle in this process.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.parts.store
    }

    pub(crate) fn timer(&self) -> &dyn Timer {
        &*self.parts.timer
    }

    pub(crate) fn observers(&self) -> &Observers {
        &self.parts.observers
    }

    pub(crate) fn coder(&self) -> &Coder {
        &self.parts.coder
    }

    pub(crate) fn fingerprint_key(&self) -> Option<&FingerprintKey> {
        self.parts.fingerprint_key.as_ref()
    }

    pub(crate) fn defaults(&self) -> &Defaults {
        &self.parts.defaults
    }

    pub(crate) fn heartbeats(&self) -> &Heartbeats {
        &self.heartbeats
    }

    /// The calls of this process that run in transactions.
    #[cfg(feature = "_sql")]
    pub(crate) fn in_process(&self) -> &InProcess {
        &self.in_process
    }

    /// Wakes a relay whenever a transactional call has committed.
    #[cfg(feature = "_sql")]
    pub(crate) fn wakes(&self, relay: &Arc<tokio::sync::Notify>) {
        let mut relays = crate::value::lock(&self.relays);
        relays.retain(|relay| relay.strong_count() > 0);
        relays.push(Arc::downgrade(relay));
    }

    /// Wakes the relays: a transactional call has committed, now or before.
    #[cfg(feature = "_sql")]
    pub(crate) fn has_committed(&self) {
        let relays = crate::value::lock(&self.relays);
        for relay in relays.iter().filter_map(Weak::upgrade) {
            relay.notify_one();
        }
    }
}
