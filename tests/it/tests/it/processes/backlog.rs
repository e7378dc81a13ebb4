//! How much memory a relay takes, however many messages wait for it.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::outbox::{Envelope, PublishError, Publisher};
use serde::{Deserialize, Serialize};

use super::{
    child::{Role, say},
    process::Process,
    transfers::postgres,
};
use crate::{
    outbox::{outbox, postgres::fill},
    servers,
    transactions::shop::PostgresShop,
};

/// Delivers so many messages, and says how much memory that took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Backlog {
    prefix: String,
    messages: u32,
}

#[derive(Clone, Default)]
struct Counting(Arc<AtomicU32>);

impl Publisher for Counting {
    async fn publish(&self, batch: &[Envelope]) -> Vec<Result<(), PublishError>> {
        let more = u32::try_from(batch.len()).expect("a batch is small");
        self.0.fetch_add(more, Ordering::SeqCst);
        vec![Ok(()); batch.len()]
    }
}

impl Backlog {
    pub(super) async fn deliver(&self) {
        let shop = postgres(self.prefix.clone()).await;
        let published = Counting::default();
        let relay = outbox(&shop).await.relay(published.clone()).start().await;
        while published.0.load(Ordering::SeqCst) < self.messages {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        relay.expect("it starts").stop().await;
        say(&peak());
    }

    /// The most KiB that a relay took which delivered all that.
    async fn took(self) -> u64 {
        let mut process = Process::start(&Role::Backlog(self));
        process.hear_within(Duration::from_secs(540)).await
    }
}

/// The most KiB that this process took so far.
fn peak() -> u64 {
    let status = fs::read_to_string(Path::new("/proc/self/status")).expect("Linux tells it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.expect("a line tells it").parse().expect("a number")
}

async fn filled(messages: u32, keys: u32, padding: u32) -> Backlog {
    let prefix = servers::prefix();
    let shop: PostgresShop = postgres(prefix.clone()).await;
    outbox(&shop).await;
    fill(&shop, messages, keys, padding).await;
    Backlog { prefix, messages }
}

/// The memory that messages took beyond one message, in KiB.
async fn took_more(messages: u32, keys: u32, padding: u32) -> u64 {
    let one = filled(1, 1, 0).await.took().await;
    let all = filled(messages, keys, padding).await.took().await;
    all.saturating_sub(one)
}

const MOST: u64 = 64 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_relay_takes_little_memory_however_many_messages_wait() {
    // All messages at once would take more in either form.
    let (messages, padding) = match std::env::var("IDEMPOTENT_TEST_ROUNDS").as_deref() {
        Ok("full") => (1_000_000, 200),
        _ => (20_000, 2 * 1024),
    };
    // More keys than are held at once.
    let more = took_more(messages, 1_500, padding).await;
    assert!(more <= MOST, "{messages} messages took {more} KiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_relay_takes_little_memory_however_large_the_messages_are() {
    let more = took_more(300, 150, 250 * 1024).await;
    assert!(more <= MOST, "300 messages of 250 KiB took {more} KiB");
}
