//! Copies of finished records in Redis, in front of another store.

use std::{sync::Arc, time::Duration};

use idempotent_runtime::{
    Error, Idempotency, StoreErrorKind,
    identity::RecordId,
    record::{Draft, RawOutcome, Record},
    store::{MemoryStore, OutcomeTier, RedisOutcomes, RedisStore, Store, TieredStore},
    testing::{FaultyStore, conformance::StoreUnderTest},
};

use super::{super::Postgres, Redis, RedisCluster, private::Private};
use crate::{
    answers::is_reused,
    conformance::Memory,
    harness::{applied, claim, completion, only},
};

/// Longer than any busy machine takes to answer. A copy that is expected is not left alone for
/// being slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// The copies that processes share, at keys of their own.
async fn outcomes() -> RedisOutcomes {
    let prefix = super::super::prefix();
    copies(&Redis::open_at(&prefix).await)
}

/// The copies of a primary store that has no namesake there.
fn copies(store: &RedisStore) -> RedisOutcomes {
    RedisOutcomes::new(store, "ledger").expect("a usable name")
}

mod alone {
    use super::{Memory, outcomes};
    idempotent_runtime::conformance_tests!(
        {
            let outcomes = outcomes().await;
            Memory::behind(|_| outcomes)
        },
        #[ignore = "needs a server: cargo xtask test"]
    );
}

async fn charge(idem: &Idempotency, key: &str, cents: u32) -> Result<u32, Error> {
    let call = idem.call("outcomes.charge").key(key).arguments(&cents);
    call.run(|_| async move { Ok(cents) }).await
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn processes_share_the_copies() {
    let (postgres, outcomes) = (Postgres::new().await, outcomes().await);
    let mut processes = Vec::new();
    for _ in 0..2 {
        let primary = FaultyStore::new(postgres.store().await);
        let store = TieredStore::builder(primary.clone(), outcomes.clone()).patience(PATIENCE);
        processes.push((Idempotency::new(store.build()), primary));
    }
    let [(a, primary_of_a), (b, primary_of_b)] = &processes[..] else {
        panic!("two");
    };
    assert_eq!(charge(a, "k", 1).await, Ok(1));
    assert_eq!(primary_of_a.round_trips(), 2);
    assert_eq!(charge(a, "k", 1).await, Ok(1));
    assert_eq!(primary_of_a.round_trips(), 3, "the copy was put");

    assert_eq!(charge(b, "other", 1).await, Ok(1), "it knows the time now");
    let before = primary_of_b.round_trips();
    assert_eq!(charge(b, "k", 1).await, Ok(1));
    let refused = charge(b, "k", 2).await;

    assert!(is_reused(&refused), "{refused:?}");
    assert_eq!(primary_of_b.round_trips(), before, "from the other's copy");
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn two_primary_stores_over_one_server_never_see_each_other_s_copies() {
    let redis = Redis::open_at(&super::super::prefix()).await;
    let mut services = Vec::new();
    for (name, cents) in [("ledger", 1), ("ledger-2", 2)] {
        let outcomes = RedisOutcomes::new(&redis, name).expect("a usable name");
        let primary = FaultyStore::new(MemoryStore::new());
        let store = TieredStore::builder(primary.clone(), outcomes).patience(PATIENCE);
        let store = store.build();
        services.push((Idempotency::new(store), primary, cents));
    }
    // The operation, scope and key are the same: both have a record of one id, and each comes to
    // have a copy.
    let ask = async |idem: &Idempotency, cents: u32| {
        let call = idem.call("outcomes.charge").key("k");
        call.run(|_| async move { Ok::<_, Error>(cents) }).await
    };
    for _ in 0..3 {
        for (idem, _, cents) in &services {
            assert_eq!(ask(idem, *cents).await, Ok(*cents));
        }
    }
    for (idem, primary, cents) in &services {
        let before = primary.round_trips();
        assert_eq!(ask(idem, *cents).await, Ok(*cents));
        assert_eq!(primary.round_trips(), before, "from the copy");
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_primary_store_without_a_usable_name_is_refused() {
    let redis = Redis::open_at(&super::super::prefix()).await;
    for name in ["", "a:b", "a@b"] {
        let refused = RedisOutcomes::new(&redis, name).map(drop);
        let kind = refused.map_err(|error| error.kind());
        assert_eq!(kind, Err(StoreErrorKind::Configuration), "{name}");
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_copy_is_the_record_for_as_long_as_it_may_be_given() {
    const PLACE: RecordId = RecordId::from_bytes([9; 32]);
    let cluster = copies(&RedisCluster::new().open().await);
    let outcomes: [Box<dyn OutcomeTier>; 2] = [Box::new(outcomes().await), Box::new(cluster)];
    for (number, outcome) in [
        Some(RawOutcome::value("v").with_schema(7)),
        Some(RawOutcome::value("")),
        Some(RawOutcome::error(vec![0, 255])),
        Some(RawOutcome::not_replayable()),
        None,
    ]
    .into_iter()
    .enumerate()
    {
        let id = RecordId::from_bytes([u8::try_from(number).expect("few"); 32]);
        let mut begun = claim();
        begun.holder.trace_parent = (number == 0).then(|| "00-ab-cd-01".into());
        let mut done = completion(&begun, Vec::new());
        done.outcome = outcome;
        let record = ended(id, &begun, &done).await;
        // All copies are in one place: nothing of the copy before is left.
        for outcomes in &outcomes {
            let put = outcomes.put(&PLACE, &record, HOUR).await;
            put.expect("it is put");
            let found = outcomes.find(&PLACE).await;
            assert_eq!(found, Ok(Some(Arc::clone(&record))));
        }
    }
    for outcomes in &outcomes {
        let record = outcomes.find(&PLACE).await.expect("a look");
        let record = record.expect("a copy");
        let long = outcomes.put(&PLACE, &record, Duration::MAX);
        long.await.expect("as long as Redis can");
        outcomes.forget(&PLACE).await.expect("it is forgotten");
        assert_eq!(outcomes.find(&PLACE).await, Ok(None));
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_copy_has_an_expiry_and_is_no_record() {
    let server = Private::new().await;
    let store = RedisStore::connect(&server.url()).await.expect("a server");
    let primary = MemoryStore::new();
    let tiered = TieredStore::builder(primary, copies(&store))
        .age(Duration::from_secs(30))
        .patience(PATIENCE)
        .build();
    let idem = Idempotency::new(tiered);
    for _ in 0..2 {
        assert_eq!(charge(&idem, "k", 1).await, Ok(1));
    }
    let key = server.key().await;
    assert!(key.starts_with("idempotent:outcome@ledger:"), "{key}");
    let left = server.ask(&format!("PTTL {key}")).await;
    assert!((1..=30_000).contains(&left), "{left}");
    assert_eq!(store.scan(None, 10).await, Ok(Vec::new()));
}

/// A record that was begun and finished so.
async fn ended(id: RecordId, begun: &Draft, done: &Draft) -> Arc<Record> {
    let primary = MemoryStore::new();
    applied(&primary, &id, None, begun).await;
    applied(&primary, &id, Some(begun.version), done).await;
    only(&primary).await.1
}

/// A finished record with an outcome of so many bytes.
async fn finished(id: RecordId, bytes: usize) -> Arc<Record> {
    let begun = claim();
    ended(id, &begun, &completion(&begun, vec![7; bytes])).await
}

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_copy_that_cannot_be_read_is_as_good_as_none() {
    let server = Private::new().await;
    let outcomes = copies(&server.store().await);
    let id = RecordId::from_bytes([1; 32]);
    let record = finished(id, 1).await;
    for damage in [
        &["HSET {} state 99"][..],
        &["HSET {} version short"],
        &["HDEL {} expires"],
        &["DEL {}", "SET {} something"],
    ] {
        outcomes.put(&id, &record, HOUR).await.expect("it is put");
        let key = server.key().await;
        for words in damage {
            server.tell(&words.replace("{}", &key)).await;
        }
        assert_eq!(outcomes.find(&id).await, Ok(None), "{damage:?}");
    }
    outcomes.put(&id, &record, HOUR).await.expect("it is put");
    assert_eq!(outcomes.find(&id).await, Ok(Some(record)));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn an_outcome_that_is_too_large_is_not_copied() {
    let redis = Redis::open_at(&super::super::prefix()).await;
    let id = RecordId::from_bytes([1; 32]);
    let (small, large) = (
        finished(id, 1 << 16).await,
        finished(id, (1 << 16) + 1).await,
    );
    let by_default = copies(&redis);
    for (record, found) in [(&small, Some(&small)), (&large, None)] {
        by_default.put(&id, record, HOUR).await.expect("an answer");
        let copy = by_default.find(&id).await.expect("a look");
        assert_eq!(copy.as_ref(), found, "none of what was there before");
    }
    let larger = copies(&redis).largest(1 << 17);
    larger.put(&id, &large, HOUR).await.expect("it is put");
    assert_eq!(larger.find(&id).await, Ok(Some(large)));
}

/// Otherwise another program that keeps something there would be the one that is refused.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn copies_take_no_memory_that_a_server_has_not() {
    let server = Private::with(&["--maxmemory-policy", "noeviction"]).await;
    let outcomes = copies(&server.store().await);
    let [id, new] = [[1; 32], [2; 32]].map(RecordId::from_bytes);
    let record = finished(id, 1).await;
    outcomes.put(&id, &record, HOUR).await.expect("it is put");

    server.tell("CONFIG SET maxmemory 1").await;
    assert_eq!(outcomes.find(&id).await, Ok(Some(Arc::clone(&record))));
    for id in [id, new] {
        let put = outcomes.put(&id, &record, HOUR).await;
        put.expect("that is no failure of the tier");
        assert_eq!(outcomes.find(&id).await, Ok(None));
    }

    server.tell("CONFIG SET maxmemory 0").await;
    outcomes.put(&new, &record, HOUR).await.expect("it is put");
    assert_eq!(outcomes.find(&new).await, Ok(Some(record)));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn losing_the_server_loses_nothing() {
    let server = Private::new().await;
    let store = RedisStore::connect(&server.url()).await.expect("a server");
    let primary = FaultyStore::new(MemoryStore::new());
    let tiered = TieredStore::builder(primary.clone(), copies(&store));
    let tiered = tiered.pause(Duration::ZERO).patience(PATIENCE).build();
    let idem = Idempotency::new(tiered);
    for _ in 0..2 {
        assert_eq!(charge(&idem, "k", 1).await, Ok(1));
    }
    let before = primary.round_trips();
    assert_eq!(charge(&idem, "k", 1).await, Ok(1));
    assert_eq!(primary.round_trips(), before);

    drop(server);

    assert_eq!(charge(&idem, "k", 1).await, Ok(1));
    assert_eq!(primary.round_trips(), before + 1);
    assert_eq!(charge(&idem, "new", 1).await, Ok(1));
}
