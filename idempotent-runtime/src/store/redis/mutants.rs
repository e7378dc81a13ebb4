//! Takes the conditions and the fields out of the scripts, one at a time: a case of the suite for stores must tell.
//!
//! Left out is what the tests of notifications, of expiry and of copies tell: a wait ends without being told, too, and no case
//! can see what Redis will forget one day.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use redis::{AsyncCommands, AsyncConnectionConfig, Client, Script};

use super::{Inner, RedisStore, scripts::Scripts};
use crate::{
    record::micros,
    store::{
        Store,
        mutants::{Mutation, each_is_noticed},
    },
    testing::conformance::Subject,
};

/// Which script it is taken out of.
#[derive(Clone, Copy, Debug)]
enum Of {
    Load,
    Swap,
    Purge,
}

use Of::{Load, Purge, Swap};

const MUTATIONS: &[Mutation<Of>] = &[
    Mutation(
        Load,
        "{ 0, clock(),",
        "{ 0, '1',",
        "a_claim_stands_as_written",
    ),
    Mutation(
        Swap,
        "#a < #b or (#a == #b and a < b)",
        "a < b",
        "what_a_draft_keeps_stays",
    ),
    Mutation(
        Swap,
        "if sum < 2 ^ 53 then",
        "if true then",
        "a_moment_far_away_is_exact",
    ),
    Mutation(
        Swap,
        "low, high = low - 1e9, high + 1",
        "low = low - 1e9",
        "a_moment_far_away_is_exact",
    ),
    Mutation(
        Swap,
        "is_less(LAST, sum) and LAST or sum",
        "sum",
        "a_moment_beyond_all_time_is_the_last_one",
    ),
    Mutation(
        Swap,
        "if stands[VERSION] then",
        "if false then",
        "a_second_claim_is_refused_and_shown_what_stands",
    ),
    Mutation(
        Swap,
        "if version ~= seen then",
        "if false then",
        "a_stale_owner_cannot_prolong",
    ),
    Mutation(
        Swap,
        "lease_end or now",
        "lease_end or '0'",
        "where_nothing_stood_nothing_is_kept",
    ),
    Mutation(
        Swap,
        "expires or now",
        "expires or '0'",
        "where_nothing_stood_nothing_is_kept",
    ),
    Mutation(
        Swap,
        "is_less(least_token, now) and now or least_token",
        "now",
        "a_token_follows_a_floor_above_the_clock",
    ),
    Mutation(
        Swap,
        "is_less(least_token, now) and now or least_token",
        "least_token",
        "tokens_grow_over_purge_and_a_new_beginning",
    ),
    Mutation(
        Swap,
        "if least_token ~= '' then",
        "if true then",
        "what_a_draft_keeps_stays",
    ),
    Mutation(
        Swap,
        "lease_end = after(now, lease)",
        "lease_end = after(lease_end, lease)",
        "a_lease_ends_by_the_clock_of_the_store",
    ),
    Mutation(
        Swap,
        "if lease ~= '' then",
        "if lease ~= '' and seen == '' then",
        "a_lease_ends_by_the_clock_of_the_store",
    ),
    Mutation(
        Swap,
        "expires = after(now, retention)",
        "expires = after(expires, retention)",
        "a_completion_keeps_the_subject",
    ),
    Mutation(
        Swap,
        "if retention ~= '' then",
        "if retention ~= '' and state ~= RUNNING then",
        "a_claim_stands_as_written",
    ),
    Mutation(
        Swap,
        "if begins ~= '' then",
        "if true then",
        "a_completion_keeps_the_subject",
    ),
    Mutation(
        Swap,
        "if begins ~= '' then",
        "if seen == '' then",
        "a_claim_over_a_record_replaces_its_subject",
    ),
    Mutation(
        Swap,
        "if state ~= RUNNING then",
        "if true then",
        "a_claim_stands_as_written",
    ),
    Mutation(
        Swap,
        "redis.call('HDEL', KEYS[1], 'finished')",
        "",
        "a_claim_over_a_record_replaces_its_subject",
    ),
    Mutation(
        Swap,
        "redis.call('HDEL', KEYS[1], unpack(ARGV, 9, first - 1))",
        "",
        "a_sequence_is_that_of_the_model",
    ),
    Mutation(
        Swap,
        "after(expires, keep)",
        "expires",
        "what_is_kept_stays_until_then",
    ),
    Mutation(
        Swap,
        "math.ceil(tonumber(gone) / 1000)",
        "math.ceil(tonumber(lease_end) / 1000)",
        "what_is_kept_stays_until_then",
    ),
    Mutation(
        Purge,
        "state == DONE or state == RELEASED",
        "state == DONE",
        "a_purge_says_how_long_is_kept",
    ),
    Mutation(
        Purge,
        "state == DONE or state == RELEASED",
        "state == RELEASED",
        "a_purge_says_how_long_is_kept",
    ),
    Mutation(
        Purge,
        "state == DONE or state == RELEASED",
        "state ~= RUNNING",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Purge,
        "and on_crash == RERUN",
        "",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Purge,
        "and not is_less(now, lease_end)",
        "",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Purge,
        "not over or",
        "",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Purge,
        "not over or is_less(now, after(expires, ARGV[1]))",
        "not over",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Purge,
        "after(expires, ARGV[1])",
        "expires",
        "purge_spares_what_is_kept",
    ),
    Mutation(
        Purge,
        "redis.call('DEL', KEYS[1])",
        "",
        "purge_goes_in_bounded_batches",
    ),
];

/// How long a connection past the library waits; the driver's own patience is too short for a machine with much to do.
const PATIENCE: Duration = Duration::from_secs(20);

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

/// Clients of the keys of one prefix, whose scripts are these.
struct Mutant {
    sound: RedisStore,
    scripts: Arc<Scripts>,
    client: Client,
}

impl Mutant {
    async fn new(mutation: Option<Mutation<Of>>) -> Self {
        let url = std::env::var("IDEMPOTENT_TEST_REDIS_URL");
        let url = url.expect("`cargo xtask test` says where Redis is");
        let prefix = format!("t{:016x}:", rand::random::<u64>());
        let builder = RedisStore::builder()
            .key_prefix(&prefix)
            .accept_at_most_once_until_failover();
        let sound = builder.connect(&url).await.expect("the server answers");
        let mut scripts = Scripts::new();
        if let Some(mutation) = mutation {
            let script = match mutation.0 {
                Load => &mut scripts.load,
                Swap => &mut scripts.swap,
                Purge => &mut scripts.purge,
            };
            script.code = mutation.mutated(&script.code, &[]);
            script.digest = Script::new(&script.code).get_hash().to_owned();
        }
        Self {
            sound,
            scripts: Arc::new(scripts),
            client: Client::open(url).expect("a URL"),
        }
    }
}

#[async_trait]
impl Subject for Mutant {
    async fn store(&self) -> Arc<dyn Store> {
        let sound = &self.sound.inner;
        let link = sound.link.another().expect("connections are ours to make");
        Arc::new(RedisStore {
            inner: Arc::new(Inner {
                link: Arc::new(link),
                places: Arc::clone(&sound.places),
                scripts: Arc::clone(&self.scripts),
                prefix: sound.prefix.clone(),
                waiters: Arc::default(),
                listening: Arc::default(),
                recent: Arc::default(),
                purged_to: Mutex::default(),
                at_most_once: true,
            }),
        })
    }

    async fn advance(&self, by: Duration) {
        let patient = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let connecting = self
            .client
            .get_multiplexed_async_connection_with_config(&patient);
        let mut side = connecting.await.expect("the server answers");
        let keys: Vec<String> = side
            .keys(self.sound.inner.prefix.pattern())
            .await
            .expect("the keys");
        for key in keys {
            let ageing = Script::new(AGEING);
            let aged = ageing
                .key(key)
                .arg(micros(by))
                .invoke_async(&mut side)
                .await;
            let () = aged.expect("the records age");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn l07_no_condition_of_a_script_goes_missing_unnoticed() {
    each_is_noticed(MUTATIONS, Mutant::new).await;
}
