//! The sets of ids that need somebody: they lag behind where another build wrote, a purge repairs
//! them, and a set that is none stops no call.

use std::{collections::BTreeSet, time::Duration};

use idempotent_runtime::{
    Error, Idempotency,
    operate::{RecordCursor, State},
    store::RedisStore,
};
use redis::aio::ConnectionLike;

use super::{Redis, RedisCluster, private::Private};
use crate::servers::prefix as fresh_prefix;

/// How many sets a cluster has.
const SETS: u8 = 16;

async fn leave_uncertain(idem: &Idempotency, key: &str) {
    let call = idem.call("charge").key(key).uncertain_errors();
    let left = call.run(async |_| Err::<u64, _>(Error::InvalidPolicy("no answer")));
    assert!(left.await.is_err());
}

async fn charge(idem: &Idempotency, key: &str) {
    let call = idem.call("charge").key(key);
    let charged = call.run(async |_| Ok::<_, Error>(7_u64)).await;
    assert_eq!(charged, Ok(7));
}

/// The keys of what needs somebody, in order.
async fn listed(idem: &Idempotency) -> Vec<String> {
    let page = idem.records().attention().page(100).await;
    let rows = page.expect("the store answers").rows;
    let mut keys: Vec<_> = rows.into_iter().filter_map(|row| row.key).collect();
    keys.sort();
    keys
}

async fn ask<T: redis::FromRedisValue>(
    side: &mut impl ConnectionLike,
    command: &str,
    arguments: &[&str],
) -> T {
    let mut command = redis::cmd(command);
    command.arg(arguments);
    command.query_async(side).await.expect("the server answers")
}

async fn a_purge_repairs_what_lags(
    store: RedisStore,
    side: &mut impl ConnectionLike,
    sets: &[String],
) {
    let idem = Idempotency::new(store);
    for key in ["1", "2", "3"] {
        leave_uncertain(&idem, key).await;
    }
    charge(&idem, "4").await;
    assert_eq!(listed(&idem).await, [r#""1""#, r#""2""#, r#""3""#]);
    let done = idem.records().state(State::Done).page(1).await;
    let done = done.expect("the store answers").rows[0].id.to_hex();

    // As a build that knows no set leaves them.
    for set in sets {
        ask::<()>(side, "DEL", &[set]).await;
    }
    ask::<()>(side, "ZADD", &[&sets[0], "0", &done]).await;
    assert_eq!(listed(&idem).await, [""; 0]);

    let purged = idem.store().purge(100, Duration::ZERO).await;
    assert_eq!(purged, Ok(0), "nothing has expired");
    assert_eq!(listed(&idem).await, [r#""1""#, r#""2""#, r#""3""#]);
    let mut names: Vec<String> = Vec::new();
    for set in sets {
        names.extend(ask::<Vec<String>>(side, "ZRANGE", &[set, "0", "-1"]).await);
    }
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(!names.contains(&done));
    let counted = idem.records().attention().count().await;
    assert_eq!(counted.expect("the store answers").records, 3);
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_purge_repairs_the_set() {
    let redis = Redis::new().await;
    let (store, mut side) = (redis.open(&redis.url).await, redis.side().await);
    let sets = [format!("{}attention@", redis.prefix)];
    a_purge_repairs_what_lags(store, &mut side, &sets).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_purge_repairs_the_sets_of_a_cluster() {
    let cluster = RedisCluster::new();
    let (store, mut side) = (cluster.open().await, cluster.side().await);
    let set = |part: u8| format!("{}attention@{part}", cluster.prefix);
    // A stale name stands in the set of its record: the first one is that of these records.
    let mut sets: Vec<_> = (0..SETS).map(set).collect();
    let idem = Idempotency::new(store.clone());
    charge(&idem, "4").await;
    let done = idem
        .records()
        .page(1)
        .await
        .expect("the store answers")
        .rows[0]
        .id;
    sets.swap(0, usize::from(done.as_bytes()[0] % SETS));
    a_purge_repairs_what_lags(store, &mut side, &sets).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_key_that_is_no_set_stops_no_call_and_no_purge() {
    let redis = Redis::new().await;
    let (store, mut side) = (redis.open(&redis.url).await, redis.side().await);
    let set = format!("{}attention@", redis.prefix);
    ask::<()>(&mut side, "SET", &[&set, "not ours"]).await;
    let idem = Idempotency::new(store);
    leave_uncertain(&idem, "1").await;
    let page = idem.records().attention().page(1).await;
    assert!(matches!(page, Err(Error::Store(_))), "{page:?}");
    assert_eq!(idem.store().purge(100, Duration::ZERO).await, Ok(0));

    ask::<()>(&mut side, "DEL", &[&set]).await;
    assert_eq!(idem.store().purge(100, Duration::ZERO).await, Ok(0));
    assert_eq!(listed(&idem).await, [r#""1""#]);
}

/// The server counts the commands: one for each page, whatever stands beside what needs somebody.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_page_is_one_command() {
    let server = Private::new().await;
    let store = RedisStore::builder().key_prefix(&fresh_prefix());
    let store = store
        .connect(&server.url())
        .await
        .expect("the server answers");
    let idem = Idempotency::new(store);
    for key in 0..30 {
        charge(&idem, &format!("done-{key}")).await;
        leave_uncertain(&idem, &key.to_string()).await;
    }
    let first = idem
        .records()
        .attention()
        .page(10)
        .await
        .expect("the store answers");
    server.tell("CONFIG RESETSTAT").await;
    let mut next = first.next;
    let mut pages = 0;
    while let Some(cursor) = next {
        let page = idem.records().attention().after(cursor).page(10).await;
        next = page.expect("the store answers").next;
        pages += 1;
    }
    let said: String = server.ask("INFO commandstats").await;
    let calls = |name: &str| {
        let line = said
            .lines()
            .find(|line| line.starts_with(&format!("cmdstat_{name}:")));
        line.map(|line| line.split(['=', ',']).nth(1).unwrap_or_default().to_owned())
    };
    assert_eq!(pages, 2);
    assert_eq!(calls("evalsha"), Some(pages.to_string()));
    assert_eq!((calls("scan"), calls("eval")), (None, None));
}

/// Records that come meanwhile make the server move the others about.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_walk_by_handfuls_meets_every_record() {
    let server = Private::new().await;
    let idem = Idempotency::new(server.store().await);
    for key in 0..500 {
        charge(&idem, &key.to_string()).await;
    }
    server.tell("HSET idempotent:not-a-record a b").await;
    for operation in [None, Some("charge")] {
        let (mut met, mut looked) = (BTreeSet::new(), 0);
        let (mut next, mut pages) = (None::<RecordCursor>, 0);
        loop {
            let mut list = idem.records();
            if let Some(name) = operation {
                list = list.operation(name);
            }
            if let Some(next) = next {
                list = list.after(next.to_string().parse().expect("a cursor"));
            }
            let page = list.page(20).await.expect("the server answers");
            looked += page.looked;
            met.extend(page.rows.into_iter().filter_map(|row| row.key));
            pages += 1;
            for late in 0..20 {
                charge(&idem, &format!("late {late} of {pages} {operation:?}")).await;
            }
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        let early = (0..500).filter(|key| met.contains(&format!("\"{key}\"")));
        assert_eq!(early.count(), 500, "{operation:?}");
        assert!(looked >= 500, "{looked}");
        assert!(pages > 1, "one page has not all of them");
    }
    let counted = idem.records().operation("charge").count().await;
    let counted = counted.expect("the server answers");
    let stands: u64 = server.ask("DBSIZE").await;
    // One key is no record.
    assert_eq!((counted.records, counted.is_capped), (stands - 1, false));
    assert!(stands > 512, "the server's table has grown: {stands}");
    let none = idem.records().operation("another").page(20).await;
    let none = none.expect("the server answers");
    assert_eq!((none.rows.len(), none.next), (0, None));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_cursor_of_another_store_is_refused() {
    let server = Private::new().await;
    let redis = Idempotency::new(server.store().await);
    let memory = Idempotency::memory();
    for key in 0..300 {
        charge(&redis, &key.to_string()).await;
    }
    let page = redis.records().page(20).await.expect("the server answers");
    let next = page.next.expect("there are more");
    let refused = memory.records().after(next).page(20).await;
    assert!(matches!(refused, Err(Error::Store(_))), "{refused:?}");
}
