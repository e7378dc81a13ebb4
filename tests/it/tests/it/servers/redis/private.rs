//! A server of one test's own, which may be set up badly, stopped and starved.

use std::{
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use idempotent_runtime::{
    Error, Idempotency, OnCrash,
    store::{RedisStore, StoreError, StoreErrorKind, redis::RedisBuilder},
};
use redis::{FromRedisValue, aio::MultiplexedConnection};
use tempfile::TempDir;

const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// Listens on a socket in a folder of its own, and ends with the test.
pub(super) struct Private {
    server: Child,
    folder: TempDir,
    side: MultiplexedConnection,
}

impl Private {
    /// As durable as it can be.
    pub(super) async fn new() -> Self {
        Self::with(&DURABLE).await
    }

    pub(super) async fn with(settings: &[&str]) -> Self {
        // Where the other servers are missing, this test is not wanted either.
        super::super::url(super::URL);
        let folder = tempfile::tempdir().expect("a folder");
        let (server, side) = start(&folder, settings).await;
        Self {
            server,
            folder,
            side,
        }
    }

    /// Kills it, and starts it again over the same files.
    pub(super) async fn restart(&mut self) {
        self.server.kill().expect("it runs");
        self.server.wait().expect("it ends");
        (self.server, self.side) = start(&self.folder, &DURABLE).await;
    }

    pub(super) fn url(&self) -> String {
        url(&self.folder)
    }

    pub(super) fn builder(&self) -> RedisBuilder {
        RedisStore::builder()
    }

    pub(super) async fn store(&self) -> RedisStore {
        let made = self.builder().connect(&self.url()).await;
        made.expect("the server answers")
    }

    /// Asks past the library.
    pub(super) async fn ask<T: FromRedisValue>(&self, words: &str) -> T {
        let mut words = words.split(' ');
        let mut command = redis::cmd(words.next().unwrap_or_default());
        command.arg(words.collect::<Vec<_>>());
        let answer = command.query_async(&mut self.side.clone()).await;
        answer.expect("the server does as it is asked")
    }

    pub(super) async fn tell(&self, words: &str) {
        self.ask::<redis::Value>(words).await;
    }

    /// The only record's key.
    pub(super) async fn key(&self) -> String {
        let keys: Vec<String> = self.ask("KEYS idempotent:*").await;
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

impl Drop for Private {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

async fn start(folder: &TempDir, settings: &[&str]) -> (Child, MultiplexedConnection) {
    let server = Command::new("redis-server")
        .args(["--port", "0", "--unixsocket", "socket", "--save", ""])
        .args(settings)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server is installed");
    let client = redis::Client::open(url(folder)).expect("a URL");
    let answers = async {
        loop {
            if let Ok(mut side) = client.get_multiplexed_async_connection().await
                && redis::cmd("DBSIZE").exec_async(&mut side).await.is_ok()
            {
                break side;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    (server, crate::harness::in_time(answers).await)
}

fn url(folder: &TempDir) -> String {
    format!("redis+unix://{}", folder.path().join("socket").display())
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

/// What kind of failure it was, if it was one of the store.
pub(super) fn kind<T>(answer: Result<T, StoreError>) -> Option<StoreErrorKind> {
    answer.err().map(|error| error.kind())
}
