//! A server of one test's own, and what a test asks of it past the library.

use std::sync::atomic::{AtomicU32, Ordering};

use idempotent_runtime::{
    Error, Idempotency, OnCrash,
    store::{RedisStore, StoreError, StoreErrorKind, redis::RedisBuilder},
};
use redis::{FromRedisValue, RedisResult, aio::MultiplexedConnection};

use super::past_the_library;
use crate::servers::spare::{Ending, Product, Spare};

/// Ends with the test.
pub(super) struct Private {
    server: Spare,
    side: MultiplexedConnection,
}

impl Private {
    /// As durable as it can be.
    pub(super) async fn new() -> Self {
        Self::over(Spare::new(Product::Redis).await).await
    }

    pub(super) async fn with(settings: &[&str]) -> Self {
        Self::over(Spare::with(Product::Redis, settings).await).await
    }

    /// Shown another world: see [`Spare::deceived`].
    #[cfg(unix)]
    pub(super) async fn deceived(
        settings: &[&str],
        source: &str,
        environment: &[(&'static str, &str)],
    ) -> Self {
        let server = Spare::deceived(Product::Redis, settings, source, environment);
        Self::over(server.await).await
    }

    async fn over(server: Spare) -> Self {
        let side = side(&server).await;
        Self { server, side }
    }

    /// Ends it, and starts it again over the same files.
    pub(super) async fn restart(&mut self, ending: Ending) {
        self.server.end(ending).await;
        self.server.start().await;
        self.side = side(&self.server).await;
    }

    /// The server itself.
    #[cfg(unix)]
    pub(super) fn spare(&mut self) -> &mut Spare {
        &mut self.server
    }

    pub(super) fn url(&self) -> String {
        self.server.url()
    }

    pub(super) fn builder(&self) -> RedisBuilder {
        RedisStore::builder()
    }

    pub(super) async fn store(&self) -> RedisStore {
        let made = self.builder().connect(&self.url()).await;
        made.expect("the server answers")
    }

    /// A client over which calls may run at most once, if the server is fit for that.
    pub(super) async fn strict(&self) -> Result<RedisStore, StoreError> {
        let builder = self.builder().accept_at_most_once_until_failover();
        builder.connect(&self.url()).await
    }

    /// Asks past the library.
    pub(super) async fn ask<T: FromRedisValue>(&self, words: &str) -> T {
        let answer = self.try_ask(words).await;
        answer.expect("the server does as it is asked")
    }

    pub(super) async fn try_ask<T: FromRedisValue>(&self, words: &str) -> RedisResult<T> {
        let mut words = words.split(' ');
        let mut command = redis::cmd(words.next().unwrap_or_default());
        command.arg(words.collect::<Vec<_>>());
        command.query_async(&mut self.side.clone()).await
    }

    pub(super) async fn tell(&self, words: &str) {
        self.ask::<redis::Value>(words).await;
    }

    /// The only record's key.
    pub(super) async fn key(&self) -> String {
        let mut keys: Vec<String> = self.ask("KEYS idempotent:*").await;
        keys.retain(|key| !key.contains("attention@"));
        assert_eq!(keys.len(), 1, "one record: {keys:?}");
        keys[0].clone()
    }

    /// How often this command ran since the statistics began, also inside scripts.
    pub(super) async fn ran(&self, command: &str) -> u64 {
        let said: String = self.ask("INFO commandstats").await;
        let line = said
            .lines()
            .find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
        line.and_then(|line| line.split(',').next()?.parse().ok())
            .unwrap_or(0)
    }
}

async fn side(server: &Spare) -> MultiplexedConnection {
    past_the_library(&server.url()).await
}

/// Calls, and counts the runs of the body.
pub(super) async fn charge(
    idem: &Idempotency,
    on_crash: OnCrash,
    runs: &AtomicU32,
) -> Result<u32, Error> {
    idem.call("charge")
        .key("k")
        .on_crash(on_crash)
        .run(|_| async { Ok(runs.fetch_add(1, Ordering::SeqCst) + 1) })
        .await
}

/// The kind of the failure, if it was one of the store.
pub(super) fn kind<T>(answer: Result<T, StoreError>) -> Option<StoreErrorKind> {
    answer.err().map(|error| error.kind())
}
