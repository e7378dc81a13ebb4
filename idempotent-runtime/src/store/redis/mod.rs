//! The store for people who run Redis or Valkey.

mod attention;
mod builder;
mod calls;
mod durability;
#[cfg(any(
    feature = "tls-rustls-aws-lc-rs",
    feature = "tls-rustls-ring-native-roots",
    feature = "tls-rustls-ring-webpki"
))]
mod encryption;
mod failure;
mod link;
mod listen;
#[cfg(all(test, feature = "testing"))]
mod mutants;
mod outcomes;
mod prefix;
mod rows;
mod scripts;
mod shared;
mod steps;
mod walk;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use redis::Client;

use self::{
    attention::Purged,
    durability::Forgetful,
    link::Link,
    listen::Published,
    prefix::KeyPrefix,
    scripts::Scripts,
    shared::SharedLooks,
    walk::{Walk, WalkPlace},
};
pub use self::{builder::RedisBuilder, outcomes::RedisOutcomes};
use crate::{
    identity::RecordId,
    policy::OnCrash,
    record::{Draft, ListedStep, Record, State, Step, StepNames, TokenRule, Version},
    store::{
        RecordList, Snapshot, StepStore, StepWrite, Store, StoreError, StoreErrorKind, StoreHealth,
        Swap,
        moment::Moment,
        notifications::Listener,
        version_cache::VersionCache,
        waiters::{Waiters, look::PollInterval},
    },
    value::{lock, opaque},
};

/// Keeps records in Redis 7 or newer, or Valkey (tested with 8.0): one server, or a cluster with
/// the feature `redis-cluster`. Clones are the same store.
///
#[doc = include_str!("store.md")]
#[derive(Clone)]
pub struct RedisStore {
    inner: Arc<Inner>,
}

struct Inner {
    link: Arc<Link>,
    /// The servers to listen at; empty if the application keeps them to itself.
    places: Arc<[Client]>,
    scripts: Arc<Scripts>,
    prefix: KeyPrefix,
    waiters: Arc<Waiters>,
    listener: Arc<Listener>,
    versions: Arc<VersionCache>,
    /// The looks at records that are known to be done.
    looks: SharedLooks<Result<Option<Snapshot>, StoreError>>,
    /// The place where the last purge found enough: the next one goes on there, and not where
    /// nothing is left to find.
    purged_to: Mutex<Option<WalkPlace>>,
    at_most_once: bool,
}

impl RedisStore {
    /// Connects to the server that a URL names.
    ///
    /// # Errors
    ///
    /// As [`RedisBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::builder().connect(url).await
    }

    /// Connects to a cluster, of which the URLs name some nodes.
    ///
    /// # Errors
    ///
    /// As [`RedisBuilder::connect`].
    #[cfg(feature = "redis-cluster")]
    #[cfg_attr(docsrs, doc(cfg(feature = "redis-cluster")))]
    pub async fn connect_cluster<U: AsRef<str>>(
        urls: impl IntoIterator<Item = U>,
    ) -> Result<Self, StoreError> {
        Self::builder().connect_cluster(urls).await
    }

    /// Sets up a store with options.
    pub fn builder() -> RedisBuilder {
        RedisBuilder::new()
    }
}

// Without the places, which know the password.
opaque!(
    RedisStore,
    |it| prefix = it.inner.prefix,
    link = it.inner.link,
    at_most_once = it.inner.at_most_once
);

impl RedisStore {
    /// The ids behind `after`, so many at most, in their order.
    async fn lowest(
        &self,
        after: Option<RecordId>,
        limit: usize,
        doing: &'static str,
    ) -> Result<BTreeSet<RecordId>, StoreError> {
        let mut lowest = BTreeSet::new();
        let mut walk = Walk::over(&self.inner, doing).await?;
        while let Some(ids) = walk.step().await? {
            let behind = |id: &RecordId| after.is_none_or(|after| *id > after);
            lowest.extend(ids.into_iter().filter(behind));
            while lowest.len() > limit {
                lowest.pop_last();
            }
        }
        Ok(lowest)
    }

    /// Those of these records that still stand, in the order of their ids.
    async fn listed(
        &self,
        ids: BTreeSet<RecordId>,
        doing: &'static str,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        let mut listed = Vec::with_capacity(ids.len());
        let mut ids = ids.into_iter().peekable();
        while ids.peek().is_some() {
            let some = ids.by_ref().take(walk::AT_ONCE);
            let look = move |inner: Arc<Inner>, id| async move { inner.listed(id, doing).await };
            let found = walk::each(&self.inner, some, look).await?;
            listed.extend(found.into_iter().flatten());
        }
        listed.sort_unstable_by_key(|(id, _)| *id);
        Ok(listed)
    }
}

#[async_trait]
impl Store for RedisStore {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        let sent_at = Moment::now();
        let snapshot = self.inner.load(id, "loading a record").await?;
        self.inner.versions.observe(id, &snapshot, sent_at);
        Ok(snapshot)
    }

    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        const DOING: &str = "writing a record";
        let inner = &self.inner;
        // A claim or takeover draws a token. A holder may say any time that it must not run again.
        let begins = next.state == State::Running && next.token != TokenRule::Keep;
        if begins {
            self.accepts(next.on_crash)?;
        }
        if seen.is_none() && next.subject.is_none() {
            // Nothing can begin without a subject.
            return self.load(id).await.map(Swap::Refused);
        }
        if seen.is_none()
            && let Some(known) = inner.versions.done(id)
            && let Some(snapshot) = inner
                .looks
                .look(id, || inner.again(id, &known, DOING))
                .await?
        {
            return Ok(Swap::Refused(snapshot));
        }
        let sent_at = Moment::now();
        let answer = inner.swap(id, seen, next, DOING).await?;
        inner
            .versions
            .record_write(id, seen, next, &answer, sent_at);
        if matches!(answer, Swap::Applied(_)) {
            inner.waiters.wake(id);
        }
        Ok(answer)
    }

    async fn wait(
        &self,
        id: &RecordId,
        seen: Version,
        at_most: Duration,
    ) -> Result<(), StoreError> {
        let inner = &self.inner;
        if inner.places.is_empty() || !inner.notes_waiter(id, seen).await {
            let waiting = inner
                .waiters
                .wait(self, id, seen, at_most, || PollInterval::POLLING);
            return waiting.await;
        }
        inner.listener.begin(&inner.waiters, || Published {
            places: Arc::clone(&inner.places),
            link: Arc::clone(&inner.link),
            channel: inner.prefix.channel(),
            stream: None,
        });
        let interval = || inner.listener.poll_interval();
        inner.waiters.wait(self, id, seen, at_most, interval).await
    }

    async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        const DOING: &str = "purging expired records";
        let (mut left, mut repaired) = (limit as usize, 0);
        if left == 0 {
            return Ok(0);
        }
        let last = lock(&self.inner.purged_to).take();
        let mut walk = Walk::from(&self.inner, last, DOING).await?;
        while let Some(ids) = walk.step().await? {
            let mut ids = ids.into_iter().peekable();
            while left > 0 && ids.peek().is_some() {
                let some = ids.by_ref().take(left.min(walk::AT_ONCE));
                let forget = move |inner: Arc<Inner>, id| async move {
                    inner.forget(&id, keep, DOING).await
                };
                for purged in walk::each(&self.inner, some, forget).await? {
                    match purged {
                        Purged::Deleted(id) => {
                            left -= 1;
                            self.inner.waiters.wake(&id);
                        }
                        Purged::Repaired => repaired += 1,
                        Purged::Stays => {}
                    }
                }
            }
            if left == 0 {
                *lock(&self.inner.purged_to) = walk.place();
                break;
            }
        }
        if left > 0 {
            self.repair_sets(repaired, DOING).await;
        }
        Ok(u64::from(limit) - left as u64)
    }

    async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        const DOING: &str = "listing records";
        let (limit, mut after) = (limit as usize, after);
        let mut listed = Vec::new();
        loop {
            let wanted = limit - listed.len();
            let lowest = self.lowest(after, wanted, DOING).await?;
            let (found, last) = (lowest.len(), lowest.last().copied());
            listed.extend(self.listed(lowest, DOING).await?);
            // Some may be gone by now, and others are behind them.
            if found < wanted || listed.len() == limit {
                return Ok(listed);
            }
            after = last;
        }
    }

    fn health(&self) -> StoreHealth {
        StoreHealth::of(None, Some(self.inner.listener.health()))
    }

    fn accepts(&self, on_crash: OnCrash) -> Result<(), StoreError> {
        if on_crash == OnCrash::Rerun || self.inner.at_most_once {
            return Ok(());
        }
        let error = StoreError::new(StoreErrorKind::Configuration, "accepting a crash policy");
        Err(error.with_source(Forgetful))
    }

    /// A connection of its own, on the thread that beats: blocked user code stalls the other. There
    /// is none over a connection of the application's.
    fn name(&self) -> &'static str {
        "redis"
    }

    async fn for_heartbeats(&self) -> Result<Option<Arc<dyn Store>>, StoreError> {
        let inner = &self.inner;
        let Some(link) = inner.link.another() else {
            return Ok(None);
        };
        Ok(Some(Arc::new(Self {
            inner: Arc::new(Inner {
                link: Arc::new(link),
                places: Arc::clone(&inner.places),
                scripts: Arc::clone(&inner.scripts),
                prefix: inner.prefix.clone(),
                waiters: Arc::clone(&inner.waiters),
                listener: Arc::clone(&inner.listener),
                versions: Arc::clone(&inner.versions),
                looks: SharedLooks::new(),
                purged_to: Mutex::default(),
                at_most_once: inner.at_most_once,
            }),
        })))
    }

    fn lists(&self) -> Option<&dyn RecordList> {
        Some(self)
    }

    fn steps(&self) -> Option<&dyn StepStore> {
        Some(self)
    }
}

#[async_trait]
impl StepStore for RedisStore {
    async fn load_steps(
        &self,
        call: &RecordId,
        names: &StepNames,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        self.inner.load_steps(call, names).await
    }

    async fn list_steps(&self, call: &RecordId) -> Result<Vec<ListedStep>, StoreError> {
        self.inner.list_steps(call).await
    }

    async fn write_step(
        &self,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        self.accepts(next.on_crash)?;
        self.inner.write_step(call, seen, next).await
    }
}

#[cfg(test)]
mod tests {
    mod golden;
}
