//! The handle: a store, the settings of calls that do not say otherwise, and the observers.
//!
//! A builder makes it, and checks every setting there. It keeps the engine, the declared functions
//! that it has met, and the tasks that purge. When its last clone is gone, the engine ends with the
//! last lease. An operator's word is written through it: [`Idempotency::settled`].
//!
//! Two functions of one name are refused at the first call of the second. A record that a call
//! could still decide is never settled.

mod builder;
mod identity;
mod open;
pub(crate) mod operation;
mod park;
mod purge;
mod scope;
mod settled;

use std::{
    collections::{BTreeMap, btree_map},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use self::purge::Purgers;
pub use self::{
    builder::Builder,
    purge::{PurgeHealth, PurgeTask},
    scope::AsHandle,
};
pub(crate) use self::{
    identity::{identify, identity},
    scope::{enter_again, in_force},
    settled::{aimed, is_about_to_be_recorded, is_meant, put},
};
use tracing::Span;

use crate::{
    attempt::Attempt,
    clock::Timer,
    codec::Coder,
    engine::{
        Engine,
        parts::{Defaults, Parts, Traces},
    },
    error::Error,
    fingerprint::FingerprintKey,
    key::Key,
    observe::{FrontEndEvent, Observers},
    operation::{Operation, Site},
    outcome::{Outline, Stored},
    record::Holder,
    store::{MemoryStore, Store},
};

/// Protects calls: it holds a store, and the settings of calls that do not say otherwise.
///
/// It is cheap to clone, and every clone is the same handle. When the last one is gone and no
/// call holds a record any more, its heartbeat thread ends.
///
/// Several runtimes may share one. On Redis their calls share connections, which one of the
/// runtimes drives. If that one has ended, another connection is opened. If it is there and rests,
/// such as a current-thread runtime between two `block_on`, a call from another one waits for as
/// long as the store waits for an answer. Give such runtimes a handle each there.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{Error, Idempotency, store::MemoryStore};
///
/// # async fn example() -> Result<(), Error> {
/// let idem = Idempotency::builder(MemoryStore::new()).ttl("24h").lease("30s").build()?;
/// let receipt = idem
///     .call("payments.charge")
///     .key("order-42")
///     .arguments(&1_200)
///     .run(|attempt| async move { Ok::<_, Error>(format!("charged as {}", attempt.child_key("gateway"))) })
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Idempotency(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    engine: Arc<Engine>,
    purgers: Purgers,
    operations: Mutex<BTreeMap<&'static str, &'static Site>>,
}

impl Idempotency {
    /// Names the handle in this process.
    pub(crate) fn id(&self) -> u64 {
        self.0.engine.id()
    }

    /// Begins to set up a handle over a store.
    pub fn builder(store: impl Store) -> Builder {
        Builder::new(Arc::new(store))
    }

    /// A handle over a store in memory: for tests, and for one process that may forget.
    #[must_use]
    pub fn memory() -> Self {
        Self::from_parts(Parts::new(Arc::new(MemoryStore::new())))
    }

    /// A handle over a store, with the defaults of [`Builder`].
    pub fn new(store: impl Store) -> Self {
        Self::from_parts(Parts::new(Arc::new(store)))
    }

    pub(crate) fn from_parts(parts: Parts) -> Self {
        Self::from_engine(Engine::new(parts))
    }

    fn from_engine(engine: Engine) -> Self {
        Self(Arc::new(Inner {
            engine: Arc::new(engine),
            purgers: Purgers::default(),
            operations: Mutex::default(),
        }))
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.0.engine
    }

    fn parts(&self) -> &Parts {
        &self.0.engine.parts
    }

    fn sites(&self) -> MutexGuard<'_, BTreeMap<&'static str, &'static Site>> {
        let sites = self.0.operations.lock();
        sites.unwrap_or_else(PoisonError::into_inner)
    }

    /// The annotated functions that this handle has [seen](Operation::is_seen), by name: these are
    /// protected. With the feature `inventory`, those of the whole program, before their first
    /// call: all that the linker knows.
    #[must_use]
    pub fn operations(&self) -> Vec<Operation> {
        let linked = operation::linked().map(|site| (site.name, Operation::of(site, false)));
        let mut all: BTreeMap<_, _> = linked.collect();
        let sites = self.sites();
        all.extend(
            sites
                .values()
                .map(|site| (site.name, Operation::of(site, true))),
        );
        all.into_values().collect()
    }

    /// Tells whether the store accepts the crash policies of these operations: ask when the program
    /// starts, instead of at the first call.
    /// [`operations`](Self::operations) of a handle in a test gives the list.
    ///
    /// # Errors
    ///
    /// [`Error::Store`], of the kind [`Configuration`](crate::StoreErrorKind::Configuration), where
    /// the store does not [accept](Store::accepts) one of them.
    pub fn check_operations(&self, operations: &[Operation]) -> Result<(), Error> {
        let usual = self.defaults().on_crash;
        for operation in operations {
            let on_crash = operation.on_crash.unwrap_or(usual);
            self.parts().store.accepts(on_crash)?;
        }
        Ok(())
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &dyn Store {
        &*self.parts().store
    }

    /// Ends every [`PurgeTask`] of the handle. It resolves to `true` when they have ended, no call
    /// holds a record and no write in the background is left. Each write is done by then, or was
    /// given up with an error in the log. It resolves to `false` after `at_most`. It does not stop
    /// new calls: stop taking requests first.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it may have told the purgers to end, and changes nothing else. It may be called
    /// again.
    pub async fn shutdown(&self, at_most: Duration) -> bool {
        let limit = self.timer().sleep(at_most);
        let drained = async {
            self.0.purgers.stop().await;
            self.0.engine.heartbeats().drained().await;
            if let Some(audit) = self.0.engine.audit() {
                audit.stop().await;
            }
        };
        crate::race::race(drained, limit).await.is_some()
    }

    /// Takes note of an annotated function.
    pub(crate) fn meet(&self, site: &'static Site) -> Result<(), Error> {
        if site.is_known_to(self.0.engine.id()) {
            return Ok(());
        }
        if let Some(on_crash) = site.policy.on_crash {
            self.parts().store.accepts(on_crash)?;
        }
        let mut operations = self.sites();
        match operations.entry(site.name) {
            btree_map::Entry::Occupied(known) if !std::ptr::eq(*known.get(), site) => {
                return Err(Error::DuplicateOperation {
                    operation: Arc::clone(site.name()),
                });
            }
            btree_map::Entry::Occupied(_) => {}
            btree_map::Entry::Vacant(vacant) => {
                vacant.insert(site);
                site.warn_of_an_impossible_old_name();
            }
        }
        site.becomes_known_to(self.0.engine.id());
        Ok(())
    }

    /// Whether an annotated function of this name could read an outcome back; yes if this handle
    /// has seen no call of it.
    pub(crate) fn can_read(&self, operation: &str, stored: &Stored, said: Outline) -> bool {
        let sites = self.sites();
        let site = sites.get(operation);
        site.is_none_or(|site| site.can_read(stored, said))
    }

    /// The schema version of the outcomes of an annotated function that this handle has seen. The
    /// function is found by its name or by the one that it had in an older build. It is 0 for any
    /// other.
    pub(crate) fn version_of(&self, operation: &str) -> u32 {
        let operations = self.sites();
        let renamed = || {
            let mut seen = operations.values();
            seen.find(|site| site.also_accept == Some(operation))
        };
        let site = operations.get(operation).or_else(renamed);
        site.map_or(0, |site| site.policy.version)
    }

    /// The readable bytes of a key or scope, or nothing if the handle redacts them.
    pub(crate) fn shown(&self, key: Option<Key>) -> Vec<u8> {
        match key {
            Some(key) if !self.parts().redact_keys => key.into_readable(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn holder(&self) -> Holder {
        let trace_parent = self.parts().traces.as_ref().and_then(Traces::current);
        Holder {
            label: Arc::clone(&self.parts().holder_name),
            trace_parent: trace_parent.map(Arc::from),
        }
    }

    /// Links a span to the one that stored this `traceparent`.
    pub(crate) fn link(&self, span: &Span, trace_parent: Option<&Arc<str>>) {
        if let (Some(traces), Some(trace_parent)) = (&self.parts().traces, trace_parent) {
            traces.link(span, trace_parent);
        }
    }

    pub(crate) fn defaults(&self) -> &Defaults {
        &self.parts().defaults
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.parts().enabled
    }

    pub(crate) fn fingerprint_key(&self) -> Option<&FingerprintKey> {
        self.parts().fingerprint_key.as_ref()
    }

    pub(crate) fn coder(&self) -> &Coder {
        &self.parts().coder
    }

    pub(crate) fn timer(&self) -> &dyn Timer {
        &*self.parts().timer
    }

    pub(crate) fn observers(&self) -> &Observers {
        &self.parts().observers
    }

    /// Tells the observers of a request that a front end has refused by itself.
    pub fn tell_refused(&self, event: &FrontEndEvent<'_>) {
        self.observers().front_end(event);
    }

    /// Says for a front end that the body of `attempt` has answered, and that its answer is still
    /// being given away, as a stream is. From here on the body does not run again if this process
    /// dies: its outcome is uncertain then.
    ///
    /// It waits until the store knows, for a twelfth of the lease and a second at most; then
    /// heartbeats go on trying.
    pub async fn has_answered(&self, attempt: &Attempt) {
        self.0.engine.heartbeats().answered(attempt).await;
    }
}
