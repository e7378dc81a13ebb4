//! A cluster of one test's own, whose nodes may be killed and told what to do.

use std::{net::TcpListener, ops::Range, sync::Arc, time::Duration};

use idempotent_runtime::store::{RedisStore, Store};
use redis::{FromRedisValue, RedisResult, aio::MultiplexedConnection};
use tokio::time::timeout;

use super::past_the_library;
use crate::servers::spare::{Product, Spare};

const SLOTS: u16 = 16_384;

/// Enough of them to agree that one is gone.
const PRIMARIES: u16 = 3;

/// A node, and a connection past the library.
pub(super) struct Node {
    pub(super) server: Spare,
    port: u16,
    bus: u16,
    pub(super) id: String,
    side: MultiplexedConnection,
}

/// Less than a test has, so that an event that does not happen is named.
const LIMIT: Duration = Duration::from_secs(30);

/// Three primaries, of which the first has a replica.
pub(super) struct Cluster {
    pub(super) primaries: Vec<Node>,
    pub(super) replica: Node,
}

impl Node {
    async fn start() -> Self {
        let (port, bus) = (free(), free());
        let ports = [port.to_string(), bus.to_string()];
        let settings = [
            ["--port", &ports[0], "--cluster-port", &ports[1]],
            ["--bind", "127.0.0.1", "--cluster-enabled", "yes"],
            ["--cluster-node-timeout", "1000", "--appendonly", "yes"],
            ["--appendfsync", "always", "--repl-diskless-sync-delay", "0"],
            // A primary without slots stays one.
            ["--cluster-allow-replica-migration", "no", "--save", ""],
        ];
        let server = Spare::with(Product::Redis, &settings.concat()).await;
        // On Valkey, each slot that is set waits for the replica, and a pipeline sets hundreds.
        let side = past_the_library(&server.url()).await;
        let mut node = Self {
            server,
            port,
            bus,
            id: String::new(),
            side,
        };
        node.id = node.ask("CLUSTER MYID").await;
        node
    }

    async fn try_ask<T: FromRedisValue>(&self, words: &str) -> RedisResult<T> {
        let mut words = words.split(' ');
        let mut command = redis::cmd(words.next().unwrap_or_default());
        command.arg(words.collect::<Vec<_>>());
        command.query_async(&mut self.side.clone()).await
    }

    pub(super) async fn ask<T: FromRedisValue>(&self, words: &str) -> T {
        let answer = self.try_ask(words).await;
        answer.unwrap_or_else(|error| panic!("{words}: {error}"))
    }

    pub(super) async fn tell(&self, words: &str) {
        self.ask::<redis::Value>(words).await;
    }

    /// Resolves when the node's answer has these words.
    pub(super) async fn says(&self, question: &str, words: &str) {
        let mut said = String::new();
        let asked = async {
            loop {
                said = self.ask(question).await;
                if said.contains(words) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let asked = timeout(LIMIT, asked).await;
        assert!(asked.is_ok(), "{question}: no {words} in\n{said}");
    }

    /// Becomes the primary, in agreement with the one that it follows. Redis gives up if that takes
    /// it too long.
    pub(super) async fn takes_over(&self) {
        loop {
            self.tell("CLUSTER FAILOVER").await;
            let leads = self.says("INFO replication", "role:master");
            if timeout(Duration::from_secs(2), leads).await.is_ok() {
                break;
            }
        }
    }

    /// Tells the node where these slots are, or are about to be.
    pub(super) async fn sets(&self, slots: &[u16], state: &[&str]) {
        let mut all = redis::pipe();
        for slot in slots {
            all.cmd("CLUSTER")
                .arg("SETSLOT")
                .arg(slot)
                .arg(state)
                .ignore();
        }
        let set = all.query_async::<()>(&mut self.side.clone()).await;
        assert!(set.is_ok(), "{state:?}: {set:?}");
    }

    /// Moves the records in these slots, one by one.
    pub(super) async fn gives(&self, slots: &[u16], to: &Node) {
        let mut all = redis::pipe();
        for slot in slots {
            all.cmd("CLUSTER").arg("GETKEYSINSLOT").arg(slot).arg(100);
        }
        let mut side = self.side.clone();
        let keys = all.query_async::<Vec<Vec<String>>>(&mut side).await;
        for key in keys.expect("the keys in each").concat() {
            let Node { port, .. } = to;
            self.tell(&format!("MIGRATE 127.0.0.1 {port} {key} 0 5000"))
                .await;
        }
    }

    pub(super) async fn keys(&self) -> Vec<String> {
        self.ask("KEYS idempotent:*").await
    }
}

impl Cluster {
    pub(super) async fn start() -> Self {
        let mut primaries = Vec::new();
        for _ in 0..PRIMARIES {
            primaries.push(Node::start().await);
        }
        let cluster = Self {
            primaries,
            replica: Node::start().await,
        };
        let first = &cluster.primaries[0];
        for (node, number) in cluster.primaries.iter().zip(0..) {
            let Range { start, end } = cluster.slots(number);
            node.tell(&format!("CLUSTER ADDSLOTSRANGE {start} {}", end - 1))
                .await;
        }
        while !cluster.has_met().await {
            // A node that hears nothing for a second, as on a busy machine, is forgotten again.
            for Node { port, bus, .. } in cluster.nodes().skip(1) {
                first
                    .tell(&format!("CLUSTER MEET 127.0.0.1 {port} {bus}"))
                    .await;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        for node in cluster.nodes() {
            node.says("CLUSTER INFO", "cluster_state:ok").await;
        }
        cluster
            .replica
            .tell(&format!("CLUSTER REPLICATE {}", first.id))
            .await;
        first.says("INFO replication", "state=online").await;
        cluster
    }

    /// Whether every node knows every other one by its own name.
    async fn has_met(&self) -> bool {
        for node in self.nodes() {
            let known: String = node.ask("CLUSTER NODES").await;
            if !self.nodes().all(|other| known.contains(&other.id)) {
                return false;
            }
        }
        true
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.primaries.iter().chain([&self.replica])
    }

    /// The slots that a primary begins with.
    pub(super) fn slots(&self, number: u16) -> Range<u16> {
        let each = SLOTS / PRIMARIES;
        let end = if number == PRIMARIES - 1 {
            SLOTS
        } else {
            (number + 1) * each
        };
        number * each..end
    }

    pub(super) async fn store(&self) -> Arc<dyn Store> {
        let urls = self
            .nodes()
            .map(|node| format!("redis://127.0.0.1:{}", node.port));
        // The driver may keep all callers waiting for as long as this when it is sent from node to
        // node.
        let builder = RedisStore::builder().answer_timeout(Duration::from_secs(2));
        let builder = builder.accept_at_most_once_until_failover();
        let connected = builder.connect_cluster(urls).await;
        Arc::new(connected.expect("the cluster answers"))
    }
}

/// A port outside the range from which the system gives out free ones.
fn free() -> u16 {
    loop {
        let port = rand::random_range(20_000..30_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
