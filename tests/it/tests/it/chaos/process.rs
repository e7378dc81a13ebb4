//! The processes of a chaos run: how each begins and ends.

use std::{sync::Arc, time::Duration};

use idempotent_runtime::{Idempotency, Store, store::OutcomeCache, testing::Proxy};
use rand::RngExt;
use tokio::{runtime::Runtime, task::JoinHandle};

use super::{
    Chaos, PATIENCE,
    callers::{Call, Told},
    witness::{Link, Witness},
};
use crate::harness::runtime;

/// A process: a handle, and a runtime of its own.
pub(super) struct Process {
    pub(super) runtime: Option<Runtime>,
    pub(super) idem: Idempotency,
    pub(super) link: Arc<Link>,
    /// The proxy between it and its server, if there can be one.
    pub(super) proxy: Option<Proxy>,
}

impl Drop for Process {
    /// The work that it has begun is dropped, in the middle or not.
    fn drop(&mut self) {
        // The work that goes on without it is to come to its end.
        self.link.heal();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Chaos {
    /// Begins a process, with faults or without.
    pub(super) async fn begin(&mut self, is_bad: bool) {
        let proxy = match self.place.address() {
            Some(address) if is_bad => Some(Proxy::to(address).await.expect("a proxy")),
            _ => None,
        };
        let at = match &proxy {
            Some(proxy) => Some(proxy.address()),
            None => self.place.address(),
        };
        let faults = if is_bad { self.faults } else { 0 };
        let link = Arc::new(Link::new(self.rng.random(), faults, self.lease));
        if !is_bad {
            link.heal();
        }
        let runtime = runtime(1);
        let (place, answer) = (
            Arc::clone(&self.place),
            if is_bad { self.answer } else { PATIENCE },
        );
        let opening = runtime.spawn(async move {
            loop {
                // On a busy machine it may take longer than an answer may.
                if let Ok(store) = place.open(at, answer).await {
                    return store;
                }
            }
        });
        let store = opening.await.expect("no panic");
        let witness = Witness::new(store, Arc::clone(&link), Arc::clone(&self.ledger));
        let seen: Arc<dyn Store> = if self.is_tiered && is_bad {
            Arc::new(OutcomeCache::new(10).in_front_of(witness))
        } else {
            Arc::new(witness)
        };
        let ttl = if self.lasts || !is_bad {
            Duration::from_secs(3_600)
        } else {
            2 * self.lease
        };
        // On a busy machine an answer may take longer than leases that are to end in a chaos run. A
        // call that asks after the run would get none.
        let lease = if is_bad { self.lease } else { PATIENCE };
        let idem = Idempotency::builder(seen)
            .lease(lease)
            .ttl(ttl)
            .max_takeovers(self.budget)
            .build()
            .expect("the set-up is sound");
        self.processes.push(Process {
            runtime: Some(runtime),
            idem,
            link,
            proxy,
        });
    }

    /// Makes the call as a process does: the end of the process is the end of the call.
    pub(super) fn call(&self, process: usize, call: Call) -> JoinHandle<Option<Told>> {
        let Process { runtime, idem, .. } = &self.processes[process];
        let made = call.make(idem.clone(), Arc::clone(&self.ledger));
        runtime.as_ref().expect("it lives").spawn(made)
    }
}
