//! Cuts pieces out of the scripts of Redis.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use redis::Script;

use super::{Inner, RedisStore, link::Node, scripts::Scripts, shared::SharedLooks};
use crate::{
    record::micros,
    store::{
        Store,
        cutter::{Bench, Cut, each_is_noticed, lua},
    },
    testing::conformance::StoreUnderTest,
};

/// The part of every script.
const COMMON: &str = include_str!("scripts/common.lua");

/// The cuts that need not be noticed, and why.
const UNNOTICED: &str = "
    common | sum < 2 ^ 53 -> false | the other way is slower and exact, too
    swap | if cell then | no case leaves a half of a record
    swap | redis.call('DEL', KEYS[1]) | no case leaves a half of a record
    swap | token or '0' -> token | a record begins with a token
    swap | lease ~= '' -> true | the server takes no empty duration
    swap | first > 9 -> true | the server takes no deletion of no field
    swap | seen ~= '' -> true | where nothing stood nothing is deleted
    swap | if (state ~= RUNNING or lease == '0') and redis.call('HDEL', KEYS[1], 'waited') == 1 then | a wait looks, too
    swap | if (state == DONE or state == RELEASED) and #gone <= 16 then -/> true / #gone <= 16 | no case sees what Redis forgets one day
    swap | redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', math.ceil(tonumber(gone) / 1000))) | no case sees what Redis forgets one day
    swap | elseif seen ~= '' then | no case sees what Redis forgets one day
    swap | redis.call('PERSIST', KEYS[1]) | no case sees what Redis forgets one day
    purge | if not (state and on_crash and lease_end and expires) then -/> true | no case leaves a half of a record
    purge | if not (lease_end:find('^%d+$') and expires:find('^%d+$')) then -/> true | no case writes a time that is none
    swap | begins ~= '' and seen ~= '' and -> begins ~= '' | where nothing stood nothing is deleted
    swap | begins ~= '' and seen ~= '' and redis.call('HDEL', KEYS[1], 'steps') == 1 -> begins ~= '' and seen ~= '' | it only saves a look
    load_steps | first ~= last -> true | it only saves a look
    write_step | other and string.sub(other, 1, 16) ~= seen -> string.sub(other, 1, 16) ~= seen | no text is not taken apart
    write_step | note ~= '' -> true | an empty note is none
    write_step | redis.call('HDEL', KEYS[1], note_field(field)) | a note counts beside its version alone
    purge | if waited then | a wait looks, too
    purge | if needs_attention(state) then | the cases of a set that lags are of one server and of a cluster
    purge | if not SET then | a cluster alone has no set beside its records
    purge | return redis.pcall('ZADD', set_key(), '0', id()) == 1 and 2 or 0 | the same
    purge | state == RUNNING and on_crash == RERUN -> on_crash == RERUN | no case has a state of a later build
    swap | if needs_attention(state) then -/> false | a list leaves out what needs nobody
    swap | if needs_attention(before) then -/> true | the same
    swap | if SET and moves > 0 then -/> false | the same
    swap | elseif SET and moves < 0 then | the same
    swap | moves = moves - 1 | the same
";

/// Takes so much off every moment of a record, and off its expiry.
const AGEING: &str = "
    for _, field in ipairs({ 'lease_end', 'created', 'finished', 'expires' }) do
        local moment = redis.call('HGET', key, field)
        if moment then
            redis.call('HSET', key, field, string.format('%.0f', moment - ARGV[2]))
        end
    end
    local expiry = redis.call('PEXPIRETIME', key)
    if expiry > 0 then
        redis.call('PEXPIREAT', key, string.format('%.0f', expiry - math.floor(ARGV[2] / 1000)))
    end";

/// Clients of the keys of one prefix, whose scripts are these.
struct Mutant {
    sound: RedisStore,
    scripts: Arc<Scripts>,
}

impl Mutant {
    /// Does this with the key of every record.
    async fn change(&self, change: &str, by: i64) {
        let mut command = redis::cmd("EVAL");
        let each = format!(
            "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
            if redis.call('TYPE', key).ok == 'hash' then {change} end
        end"
        );
        let pattern = self.sound.inner.prefix.pattern();
        command.arg(each).arg(0).arg(pattern).arg(by);
        let changing = self.sound.inner.link.send(&command, &Node::Only, "testing");
        changing.await.expect("the records change");
    }
}

#[async_trait]
impl Bench for Mutant {
    async fn new(cut: &Cut) -> Self {
        let url = std::env::var("IDEMPOTENT_TEST_REDIS_URL");
        let url = url.expect("`cargo xtask test` says where Redis is");
        let prefix = format!("t{:016x}:", rand::random::<u64>());
        let builder = RedisStore::builder()
            .key_prefix(&prefix)
            .accept_at_most_once_until_failover();
        let sound = builder.connect(&url).await.expect("the server answers");
        let mut scripts = Scripts::new(false);
        let common = cut.of("common", COMMON, &[]);
        // Only a call that waits marks, copies are put and forgotten beside the store, and only the
        // cases of a list read one.
        for (name, script) in [
            ("load", &mut scripts.load),
            ("swap", &mut scripts.swap),
            ("purge", &mut scripts.purge),
            ("load_steps", &mut scripts.load_steps),
            ("write_step", &mut scripts.write_step),
        ] {
            let (words, body) = script
                .code
                .split_once(COMMON)
                .expect("it is in every script");
            script.code = [words, &common, &cut.of(name, body, &[])].concat();
            script.digest = Script::new(&script.code).get_hash().to_owned();
        }
        Self {
            sound,
            scripts: Arc::new(scripts),
        }
    }

    async fn empty(&self) {
        self.change("redis.call('DEL', key)", 0).await;
        let mut command = redis::cmd("DEL");
        command.arg(self.sound.inner.prefix.set_keys(false));
        let deleting = self.sound.inner.link.send(&command, &Node::Only, "testing");
        deleting.await.expect("the set is empty");
    }
}

#[async_trait]
impl StoreUnderTest for Mutant {
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
                listener: Arc::default(),
                versions: Arc::default(),
                looks: SharedLooks::new(),
                purged_to: Mutex::default(),
                at_most_once: true,
            }),
        })
    }

    async fn advance(&self, by: Duration) {
        self.change(AGEING, micros(by)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn l07_no_condition_of_a_script_goes_missing_unnoticed() {
    each_is_noticed::<Mutant>(lua::pieces, UNNOTICED).await;
}
