//! Redis, alone and as a cluster.

mod attention;
mod durability;
mod expiry;
mod faults;
mod many;
mod members;
mod moves;
mod notifications;
mod outcomes;
mod private;
mod scripts;
mod shared;
mod slots;
mod walks;
#[cfg(unix)]
mod worlds;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use super::Server;
use async_trait::async_trait;
use idempotent_runtime::{
    store::{RedisStore, Store},
    testing::conformance::{StoreUnderTest, cases},
};
use redis::{
    AsyncConnectionConfig, Client, RedisResult,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster::ClusterClient,
    cluster_async::ClusterConnection,
};
use tokio::task::JoinSet;

const URL: &str = "IDEMPOTENT_TEST_REDIS_URL";

/// How long a busy machine may take for an answer: the driver gives it half a second unless told.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection of the test's own.
pub(super) async fn past_the_library(url: &str) -> MultiplexedConnection {
    let client = Client::open(url).expect("a URL");
    let patient = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE));
    let connection = client.get_multiplexed_async_connection_with_config(&patient);
    connection.await.expect("the server answers")
}

/// Takes `by` off every moment of a record, and off its expiry.
const AGEING: &str = "
    for _, field in ipairs({ 'lease_end', 'created', 'finished', 'expires' }) do
        local moment = redis.call('HGET', KEYS[1], field)
        if moment then
            redis.call('HSET', KEYS[1], field, string.format('%.0f', moment - ARGV[1]))
        end
    end
    local expiry = redis.call('PEXPIRETIME', KEYS[1])
    if expiry > 0 then
        redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', expiry - math.floor(ARGV[1] / 1000)))
    end";

/// Keys of its own on one server. Every client has connections of its own, and the clock is the
/// server's, so records age instead.
pub(crate) struct Redis {
    pub(super) url: String,
    pub(super) prefix: String,
}

impl Redis {
    #[expect(clippy::unused_async, reason = "every store is made in the same way")]
    pub(crate) async fn new() -> Self {
        Self {
            url: super::url(URL),
            prefix: super::prefix(),
        }
    }

    /// A client of the keys of this prefix.
    pub(crate) async fn open_at(prefix: &str) -> RedisStore {
        open(&super::url(URL), prefix).await
    }

    async fn open(&self, url: &str) -> RedisStore {
        open(url, &self.prefix).await
    }

    /// A client past the library.
    pub(super) async fn side(&self) -> MultiplexedConnection {
        past_the_library(&self.url).await
    }
}

#[async_trait]
impl StoreUnderTest for Redis {
    async fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.open(&self.url).await)
    }

    async fn advance(&self, by: Duration) {
        let mut side = self.side().await;
        let keys = keys(&mut side, &self.prefix).await.expect("the keys");
        age(&mut side, keys, by).await.expect("records age");
    }
}

#[async_trait]
impl Server for Redis {
    fn address(&self) -> SocketAddr {
        super::address(&self.url)
    }

    /// One connection, however many are allowed.
    async fn at(&self, address: SocketAddr, _connections: u32) -> Arc<dyn Store> {
        let url = super::url_at(&self.url, address);
        Arc::new(self.open(&url).await)
    }

    fn round_trips(&self) -> (u64, u64) {
        (2, 1)
    }
}

async fn open(url: &str, prefix: &str) -> RedisStore {
    RedisStore::builder()
        .key_prefix(prefix)
        .accept_at_most_once_until_failover()
        .connect(url)
        .await
        .expect("the server answers")
}

/// Keys of its own, spread over the nodes of a cluster.
pub(crate) struct RedisCluster {
    pub(super) urls: Vec<String>,
    pub(super) prefix: String,
}

impl RedisCluster {
    pub(crate) fn new() -> Self {
        let urls = super::url("IDEMPOTENT_TEST_REDIS_CLUSTER_URLS");
        Self {
            urls: urls.split(',').map(str::to_owned).collect(),
            prefix: super::prefix(),
        }
    }

    /// A client of the keys of this prefix.
    pub(crate) async fn open_at(prefix: &str) -> RedisStore {
        let prefix = prefix.to_owned();
        Self {
            prefix,
            ..Self::new()
        }
        .open()
        .await
    }

    pub(super) async fn open(&self) -> RedisStore {
        RedisStore::builder()
            .key_prefix(&self.prefix)
            .accept_at_most_once_until_failover()
            .connect_cluster(&self.urls)
            .await
            .expect("the cluster answers")
    }

    pub(super) async fn side(&self) -> ClusterConnection {
        let client = ClusterClient::builder(self.urls.clone()).response_timeout(PATIENCE);
        let connection = client.build().expect("URLs").get_async_connection().await;
        connection.expect("the cluster answers")
    }
}

#[async_trait]
impl StoreUnderTest for RedisCluster {
    async fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.open().await)
    }

    async fn advance(&self, by: Duration) {
        let mut found = Vec::new();
        for url in &self.urls {
            let mut node = past_the_library(url).await;
            found.extend(keys(&mut node, &self.prefix).await.expect("the keys"));
        }
        // Replicas list the keys of their primaries.
        found.sort();
        found.dedup();
        let mut side = self.side().await;
        age(&mut side, found, by).await.expect("records age");
    }
}

/// The keys that begin with `prefix`, of the one node that is asked.
async fn keys(node: &mut impl ConnectionLike, prefix: &str) -> RedisResult<Vec<String>> {
    let mut found = Vec::new();
    let mut cursor = 0_u64;
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(format!("{prefix}*"));
        scan.arg("TYPE").arg("hash");
        let some: Vec<String>;
        (cursor, some) = scan.arg("COUNT").arg(1000).query_async(node).await?;
        found.extend(some);
        if cursor == 0 {
            return Ok(found);
        }
    }
}

async fn age(
    connection: &mut impl ConnectionLike,
    keys: Vec<String>,
    by: Duration,
) -> RedisResult<()> {
    let by = u64::try_from(by.as_micros()).expect("a short time");
    for key in keys {
        let mut ageing = redis::cmd("EVAL");
        ageing.arg(AGEING).arg(1).arg(key).arg(by);
        ageing.exec_async(connection).await?;
    }
    Ok(())
}

mod alone {
    use super::Redis;
    idempotent_runtime::conformance_tests!(
        Redis::new().await,
        #[ignore = "needs a server: cargo xtask test"]
    );
}

mod cluster {
    use super::RedisCluster;
    idempotent_runtime::conformance_tests!(
        RedisCluster::new(),
        #[ignore = "needs a server: cargo xtask test"]
    );
}

/// As [`Redis`], without the setting that accepts claims at most once. They are refused, because a
/// failover forgets some.
struct Refusing(Redis);

#[async_trait]
impl StoreUnderTest for Refusing {
    async fn store(&self) -> Arc<dyn Store> {
        let builder = RedisStore::builder().key_prefix(&self.0.prefix);
        let opened = builder.connect(&self.0.url).await;
        Arc::new(opened.expect("the server answers"))
    }

    async fn advance(&self, by: Duration) {
        self.0.advance(by).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_store_that_accepts_no_claim_at_most_once_does_everything_else() {
    const AT_ONCE: usize = 8;
    let (mut running, mut refused) = (JoinSet::new(), Vec::new());
    let mut ended = |ended: Option<Result<Option<&'static str>, _>>| {
        refused.extend(ended.and_then(|ended| ended.expect("no panic here")));
    };
    for case in cases() {
        if running.len() == AT_ONCE {
            ended(running.join_next().await);
        }
        let subject = Arc::new(Refusing(Redis::new().await));
        running.spawn(async move {
            let run = tokio::spawn(async move { case.run(subject).await });
            let panic = run.await.err()?.into_panic();
            let said = panic.downcast_ref::<String>();
            let is_refusal = said.is_some_and(|said| said.contains("kind: Configuration"));
            assert!(is_refusal, "{}: {said:?}", case.name());
            Some(case.name())
        });
    }
    while let Some(last) = running.join_next().await {
        ended(Some(last));
    }
    refused.sort_unstable();
    // These write records or steps that run at most once.
    let at_most_once = [
        "a_note_of_a_step_belongs_to_one_version",
        "a_step_comes_back_whole",
        "a_step_ends_with_its_life",
        "a_takeover_goes_on_with_the_steps",
        "every_field_comes_back",
        "purge_deletes_only_what_is_expired",
        "the_first_write_of_a_step_wins",
    ];
    assert_eq!(refused, at_most_once);
}
