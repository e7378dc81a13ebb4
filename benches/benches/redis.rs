//! The cost of a call on Redis, beside commands written by hand: `SET` with `NX`, `GET` and `PX`
//! that claims and a `SET` with `XX` that records for a first call, a `GET` for a replay. All tasks
//! share one connection, as they do with ours.
//!
//! `IDEMPOTENT_TEST_REDIS_URL` says where the server is; `cargo xtask servers` starts one.

use benches::calls::{self, ByHand, Leased, Receipt};
use idempotent_runtime::{Idempotency, store::RedisStore};
use redis::{Client, Script, aio::MultiplexedConnection};

const DAY: u64 = 24 * 60 * 60 * 1_000;
const LEASE: u64 = 30 * 1_000;

#[derive(Clone)]
struct Shared(MultiplexedConnection);

impl ByHand for Shared {
    async fn first(&self, _: usize, order: u64) {
        let (mut connection, key) = (self.0.clone(), key(order));
        let mut claim = redis::cmd("SET");
        claim.arg(&key).arg(calls::arguments(order));
        let claim = claim.arg("NX").arg("GET").arg("PX").arg(DAY);
        let stands: Option<Vec<u8>> = claim.query_async(&mut connection).await.expect("a claim");
        assert_eq!(stands, None);
        let mut record = redis::cmd("SET");
        record.arg(&key).arg(Receipt::of(order).to_json());
        let record = record.arg("XX").arg("PX").arg(DAY);
        let recorded: Option<String> = record
            .query_async(&mut connection)
            .await
            .expect("an outcome");
        assert!(recorded.is_some());
    }

    async fn replay(&self, _: usize, order: u64) {
        let mut connection = self.0.clone();
        let mut look = redis::cmd("GET");
        let stands: Vec<u8> = look
            .arg(key(order))
            .query_async(&mut connection)
            .await
            .expect("a value");
        assert_eq!(Receipt::from_json(&stands).id, order);
    }
}

impl Leased for Shared {
    async fn first_leased(&self, _: usize, order: u64) {
        let (mut connection, key) = (self.0.clone(), key(order));
        let claimed = format!("a process:{}", calls::arguments(order));
        let mut claim = redis::cmd("SET");
        let claim = claim.arg(&key).arg(&claimed).arg("NX").arg("GET");
        let claim = claim.arg("PX").arg(LEASE);
        let stands: Option<Vec<u8>> = claim.query_async(&mut connection).await.expect("a claim");
        assert_eq!(stands, None);
        // Only the holder of the claim may record. A script does that, because no single command
        // compares.
        let record = Script::new(
            "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])",
        );
        let mut record = record.key(&key);
        let record = record.arg(&claimed).arg(Receipt::of(order).to_json());
        let recorded: Option<String> = record
            .arg(DAY)
            .invoke_async(&mut connection)
            .await
            .expect("an outcome");
        assert!(recorded.is_some());
    }
}

fn key(order: u64) -> String {
    format!("bench:calls:{order}")
}

async fn set_up(url: &str) -> ([Idempotency; 2], Shared) {
    let client = Client::open(url).expect("a URL");
    let mut connection = client
        .get_multiplexed_async_connection()
        .await
        .expect("the server answers");
    let flushed: redis::RedisResult<()> = redis::cmd("FLUSHDB").query_async(&mut connection).await;
    flushed.expect("the server forgets");
    let processes = calls::two_processes(async || RedisStore::connect(url).await).await;
    (processes, Shared(connection))
}

fn main() {
    calls::compare_on_server("Redis", "IDEMPOTENT_TEST_REDIS_URL", set_up, (1_920, 960));
}
