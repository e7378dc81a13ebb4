//! The store for people who run Redis or Valkey.

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
mod steps;
mod walk;

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use redis::Client;

pub use self::{builder::RedisBuilder, outcomes::RedisOutcomes};
use self::{
    durability::Forgetful,
    link::Link,
    listen::Published,
    prefix::KeyPrefix,
    scripts::Scripts,
    walk::{Place, Walk},
};
use crate::{
    identity::RecordId,
    policy::OnCrash,
    record::{Draft, Record, State, Step, StepNames, TokenRule, Version},
    store::{
        Snapshot, StepWrite, Store, StoreError, StoreErrorKind, Swap,
        moment::Moment,
        notifications::Listener,
        version_cache::VersionCache,
        waiters::{Waiters, look::PollInterval},
    },
};

/// Keeps records in Redis 7 or newer, or Valkey (tested with 8.0): one server, or a cluster with
/// the feature `redis-cluster`. Clones are the same store.
///
/// If an outcome exceeds `proto-max-bulk-len`, 512 MiB unless set, only its existence is recorded,
/// a lease later; duplicates get [`Error::NotReplayable`](crate::Error::NotReplayable).
///
/// The clock is the server's. A first call costs two round trips, a replay one: each is one script
/// over one key, or one command. The store remembers up to 8,192 records that it wrote or saw
/// lately, without outcomes, mostly under a kilobyte each, and sends less to complete them. The
/// first call costs three if such a record went too early. Redis expires done or released records,
/// after what the handle [keeps](crate::Builder::audit_retention); held or unsettled ones stay.
///
/// # What Redis can lose
///
/// Redis answers before a write is safe. The effect depends on how the server is set up:
///
/// | when | what is forgotten | what follows | shown by |
/// |---|---|---|---|
/// | a primary is lost, also of a cluster, and its replica takes over | what the replica had not received yet: under load, up to a third of the last writes | a body that ran may run again | [`f32_a_primary_that_is_killed_takes_along_what_its_replica_had_not_received`] |
/// | the server is killed, only snapshots (the default) | everything since the last snapshot | the same | [`a_server_that_is_killed_forgets_what_no_snapshot_holds`] |
/// | the server is restarted, neither snapshots nor an append-only file | everything | the same | [`a_server_that_keeps_no_file_forgets_everything_at_a_restart`] |
/// | the server is killed, `appendonly yes` with `appendfsync everysec` | about the last second | the same | [`a_server_that_synchronises_every_second_forgets_the_last_one`] |
/// | the server is killed, `appendonly yes` with `appendfsync always` | nothing | | [`e16_redis_killed_in_the_middle_of_a_thousand_calls`] |
/// | memory is short, `maxmemory-policy allkeys-…` | any record, also of a call that runs | a body runs twice at once | [`a_server_that_evicts_any_key_forgets_what_runs`] |
/// | memory is short, `maxmemory-policy volatile-…` | outcomes, before their time to live | a duplicate runs the body again | [`a_server_that_evicts_forgets_outcomes`] |
/// | memory is short, `maxmemory-policy noeviction` | nothing | calls fail with [`StoreErrorKind::Full`] | [`a_server_without_memory_is_full_and_writes_nothing`] |
/// | the disk is full, `appendfsync everysec` | nothing unless the server is then killed | calls fail with [`StoreErrorKind::Full`] | [`redis_on_a_full_disk`] |
/// | the disk is full, `appendfsync always` | nothing: the server ends itself | calls fail with [`StoreErrorKind::Unavailable`] | [`redis_that_synchronises_always_on_a_full_disk`] |
/// | an orderly failover (`CLUSTER FAILOVER`) | nothing | | [`f32_an_orderly_failover_and_its_return_lose_nothing`] |
/// | slots move to another node | nothing | calls may take as long as the [`answer_timeout`](RedisBuilder::answer_timeout), and may then fail with [`StoreErrorKind::Unavailable`] | [`slots_that_migrate_lose_nothing`] |
/// | the clock of the server is set back, or that of the replica that takes over | nothing | leases and fencing tokens go by it | [`a_server_whose_clock_is_set_back_forgets_nothing_and_lets_leases_last`] |
///
/// [`f32_a_primary_that_is_killed_takes_along_what_its_replica_had_not_received`]: https://github.com/idempotent-rs/idempotent-runtime/blob/main/tests/it/tests/it/servers/redis/moves.rs
/// [`a_server_that_is_killed_forgets_what_no_snapshot_holds`]: https://github.com/idempotent-rs/idempotent-runtime/blob/main/tests/it/tests/it/servers/redis/durability.rs
/// [`a_server_that_keeps_no_file_forgets_everything_at_a_restart`]: https://github.com/idempotent-rs/idempotent-runtime/blob/main/tests/it/tests/it/servers/redis/durability.rs
/// [`a_server_that_synchronises_every_second_forgets_the_last_one`]: https://github.com/idempotent-rs/idempotent-runtime/blob/main/tests/it/tests/it/servers/redis/worlds.rs
/// [`e16_redis_killed_in_the_middle_of_a_thousand_calls`]: https://github.com/idempotent-rs/idempotent-runtime/blob/main/tests/it/tests/it/servers/restarts.rs
/// [`a_server_that_evicts_any_key_forgets_what_runs`]: https://github.com/idempotent-rs/idempotent-runtime/blob/main/tests/it/tests/it/servers/redis/durability.rs
/// [`a_server_that_evicts_forgets_outcomes`]: https://github.com/idempotent-rs/idempotent-runtime/blob/main/tests/it/tests/it/servers/redis/durability.rs
/// [`a_server_without_memory_is_full_and_writes_nothing`]: https://github.com/idempotent-rs/idempotent-runtime/blob/main/tests/it/tests/it/servers/redis/faults.rs
/// [`redis_on_a_full_disk`]: https://github.com/idempotent-rs/idempotent-runtime/blob/main/tests/it/tests/it/servers/limits.rs
/// [`redis_that_synchronises_always_on_a_full_disk`]: https://github.com/idempotent-rs/idempotent-runtime/blob/main/tests/it/tests/it/servers/limits.rs
/// [`f32_an_orderly_failover_and_its_return_lose_nothing`]: https://github.com/idempotent-rs/idempotent-runtime/blob/main/tests/it/tests/it/servers/redis/moves.rs
/// [`slots_that_migrate_lose_nothing`]: https://github.com/idempotent-rs/idempotent-runtime/blob/main/tests/it/tests/it/servers/redis/moves.rs
/// [`a_server_whose_clock_is_set_back_forgets_nothing_and_lets_leases_last`]: https://github.com/idempotent-rs/idempotent-runtime/blob/main/tests/it/tests/it/servers/redis/worlds.rs
///
/// In lease mode a body may run again anyway, and deduplicates downstream by a child key. A call
/// that must not run twice (`on_crash = uncertain`, `reconcile`), and a step that must not be
/// forgotten (`undo`), is refused without
/// [`accept_at_most_once_until_failover`](RedisBuilder::accept_at_most_once_until_failover).
///
/// # Encryption
///
/// With one of the `tls-` features, the URL switches it on, for heartbeats and notifications too:
/// `rediss://db.example`. The server is always verified. For your own authority, pass a client of
/// `redis::Client::build_with_tls` to [`client`](RedisBuilder::client); or, with
/// `tls-rustls-ring-native-roots`, name its file in the variable `SSL_CERT_FILE`. An untrusted
/// certificate is [`StoreErrorKind::Configuration`]. If only one side encrypts, no answer comes:
/// [`StoreErrorKind::Unavailable`]. If a program has both rustls cryptographies and no default, a
/// store that connects by itself installs its feature's; install one before your own client.
///
/// A cluster does it too if all of its URLs say `rediss://`. Each node is verified by the name it
/// announces, and one whose certificate has only another is [`StoreErrorKind::Unavailable`]. If
/// certificates have no addresses, set `cluster-announce-hostname`, and
/// `cluster-preferred-endpoint-type hostname`. For your own authority prefer the variable. A client
/// of `ClusterClientBuilder::certs` works in `cluster_client`, but nothing listens, and an
/// untrusted certificate is only [`StoreErrorKind::Unavailable`].
///
/// # What stands there
///
/// `HGETALL idempotent:<id in hexadecimal digits>` shows a record: a hash, so people can read it
/// and a write touches only what changes. `state` is 1 running, 2 done, 3 released, 4 uncertain, 5
/// parked, 6 undoing; moments are microseconds since 1970; `outcome` is what the codec wrote. A
/// running record takes about 0.6 KB, a finished one with a short outcome about 1.9 KB.
///
/// Each [step](crate::guide::steps) of a body is a field `step:<hash of its name>`. Its bytes are
/// packed, and show the literal part of the name. The field `steps` marks a record that has some.
///
/// # What it costs operators
///
/// Keys have no order, and no index covers all slots: [`scan`](Store::scan) and
/// [`purge`](Store::purge) look at all keys of the database on every primary, 500 a command; keep
/// it off hot data. Each batch of a purge goes on where the one before was full; the last looks at
/// all. A daily purge will do: it deletes the rare records abandoned in a run and not called again.
///
/// The user needs `+@read +@write +@scripting +@connection +@pubsub +time +info`, the keys
/// `~idempotent:*` and the channel `&idempotent:moved`; in a cluster, `+cluster|slots` as well.
///
/// # Examples
///
/// ```no_run
/// # use idempotent_runtime::{Idempotency, store::RedisStore};
/// # async fn set_up() -> Result<(), Box<dyn std::error::Error>> {
/// let store = RedisStore::connect("redis://localhost").await?;
/// Idempotency::new(store).install()?;
/// # Ok(())
/// # }
/// ```
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
    /// The place where the last purge found enough: the next one goes on there.
    purged_to: Mutex<Option<Place>>,
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

impl Inner {
    fn purged_to(&self) -> MutexGuard<'_, Option<Place>> {
        let place = self.purged_to.lock();
        place.unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RedisStore {
    /// Without the places, which know the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("prefix", &self.inner.prefix)
            .field("link", &self.inner.link)
            .field("at_most_once", &self.inner.at_most_once)
            .finish_non_exhaustive()
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
            && let Some(snapshot) = inner.again(id, &known, DOING).await?
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
        let mut left = limit as usize;
        if left == 0 {
            return Ok(0);
        }
        let last = self.inner.purged_to().take();
        let mut walk = Walk::from(&self.inner, last, DOING).await?;
        while let Some(ids) = walk.step().await? {
            let mut ids = ids.into_iter().peekable();
            while left > 0 && ids.peek().is_some() {
                let some = ids.by_ref().take(left.min(walk::AT_ONCE));
                let forget = |inner: Arc<Inner>, id| async move {
                    let is_gone = inner.forget(&id, keep, DOING).await?;
                    Ok(is_gone.then_some(id))
                };
                let gone = walk::each(&self.inner, some, forget).await?;
                for id in gone.iter().flatten() {
                    left -= 1;
                    self.inner.waiters.wake(id);
                }
            }
            if left == 0 {
                *self.inner.purged_to() = walk.place();
                break;
            }
        }
        Ok(u64::from(limit) - left as u64)
    }

    async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        const DOING: &str = "listing records";
        let limit = limit as usize;
        let mut lowest = BTreeSet::new();
        let mut walk = Walk::over(&self.inner, DOING).await?;
        while let Some(ids) = walk.step().await? {
            lowest.extend(
                ids.into_iter()
                    .filter(|id| after.is_none_or(|after| *id > after)),
            );
            while lowest.len() > limit {
                lowest.pop_last();
            }
        }
        let mut listed = Vec::with_capacity(lowest.len());
        let mut lowest = lowest.into_iter().peekable();
        while lowest.peek().is_some() {
            let some = lowest.by_ref().take(walk::AT_ONCE);
            let look = |inner: Arc<Inner>, id| async move { inner.listed(id, DOING).await };
            listed.extend(
                walk::each(&self.inner, some, look)
                    .await?
                    .into_iter()
                    .flatten(),
            );
        }
        listed.sort_unstable_by_key(|(id, _)| *id);
        Ok(listed)
    }

    fn accepts(&self, on_crash: OnCrash) -> Result<(), StoreError> {
        if on_crash == OnCrash::Rerun || self.inner.at_most_once {
            return Ok(());
        }
        let error = StoreError::new(StoreErrorKind::Configuration, "accepting a crash policy");
        Err(error.with_source(Forgetful))
    }

    /// A connection of its own, on the thread that beats: blocked user code stalls the other.
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
                purged_to: Mutex::default(),
                at_most_once: inner.at_most_once,
            }),
        })))
    }

    fn keeps_steps(&self) -> bool {
        true
    }

    async fn load_steps(
        &self,
        call: &RecordId,
        names: &StepNames,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        self.inner.load_steps(call, names).await
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
