//! Bad input: keys, arguments, outcomes and rows that should never be sent. Each gets a typed
//! error, and nothing runs twice.

use std::time::Duration;

use idempotent_runtime::{
    CallReport, Error, Idempotency, RawEnding, RawOutcome, Store, StoreErrorKind, Stored,
    store::SqliteStore,
};
use serde::{Deserialize, Serialize, Serializer, ser};
use sqlx::{Connection, SqliteConnection};

use crate::{
    answers::{failed_as, is_not_replayable, is_unreadable},
    charge::Charge,
    harness::World,
};

on_every_store![
    keys_of_every_kind,
    an_operation_without_a_name_is_refused,
    arguments_that_cannot_be_fingerprinted,
    e07_unserialisable_result,
    e09_schema_evolution,
    f15_size_cap,
    f28_ttl_validation,
    f29_prune_does_not_need_app,
    an_outcome_of_another_type_is_unreadable,
];

async fn keys_of_every_kind(world: World) {
    let owner = world.owner().await;
    let mut keys = vec![
        "\0".to_owned(),
        "a\0b".into(),
        " ".into(),
        "k".repeat(64 * 1024),
    ];
    keys.extend((0..=16).map(|plane| {
        let first = char::from_u32(plane * 0x1_0000 + 0x41).expect("no surrogate");
        let last = char::from_u32(plane * 0x1_0000 + 0xFFFD).expect("no surrogate");
        format!("{first}{last}")
    }));
    for key in &keys {
        for _duplicate in 0..2 {
            Charge::of(&world, &owner).key(key.as_str()).charges().await;
        }
        assert_eq!(world.runs(key), 1);
    }
    assert_eq!(world.records().await.len(), keys.len());
    let before = owner.store.round_trips();
    for key in [
        String::new(),
        "k".repeat(64 * 1024 + 1),
        "k".repeat(1 << 20),
    ] {
        let answer = Charge::of(&world, &owner).key(key.as_str()).call().await;
        assert!(
            matches!(answer, Err(Error::InvalidKey { .. })),
            "{answer:?}"
        );
    }
    assert_eq!(owner.store.round_trips(), before);
}

async fn an_operation_without_a_name_is_refused(world: World) {
    let owner = world.owner().await;
    for name in ["", " "] {
        let call = owner.call(name).key("k");
        let answer = call.run(|_| async { Ok::<_, Error>(()) }).await;
        assert!(matches!(answer, Err(Error::InvalidPolicy(_))), "{answer:?}");
    }
    assert_eq!(owner.store.round_trips(), 0);
    let long = "n".repeat(100_000);
    let call = || {
        owner
            .call(&long)
            .key("k")
            .run(|_| async { Ok::<_, Error>(1) })
    };
    assert_eq!((call().await, call().await), (Ok(1), Ok(1)));
}

/// Something that cannot be serialised.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Stubborn;

impl Serialize for Stubborn {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(ser::Error::custom("no"))
    }
}

async fn arguments_that_cannot_be_fingerprinted(world: World) {
    let owner = world.owner().await;
    let call = owner.call("charge").key("k");
    let call = call.argument("request", &(1, Stubborn));
    let answer = call.run(|_| async { Ok::<_, Error>(()) }).await;
    assert!(
        matches!(answer, Err(Error::InvalidArguments { .. })),
        "{answer:?}"
    );
    assert_eq!(owner.store.round_trips(), 0);
}

async fn e07_unserialisable_result(world: World) {
    let owner = world.owner().await;
    let call = || {
        let world = world.clone();
        owner.call("charge").key("k").run(move |_| async move {
            world.happened("k");
            Ok::<_, Error>(Stubborn)
        })
    };
    assert_eq!(call().await, Ok(Stubborn));
    let answer = call().await;
    assert!(is_not_replayable(&answer), "{answer:?}");
    assert_eq!(world.runs("k"), 1);
}

async fn e09_schema_evolution(world: World) {
    let owner = world.owner().await;
    let call = |version| owner.call("charge").key("k").version(version);
    let first = call(1).run(|_| async { Ok::<_, Error>(7_u32) }).await;
    assert_eq!(first, Ok(7));

    let upgraded = call(2).upgrade(|stored: Stored| {
        assert_eq!(stored.version(), 1);
        Ok(format!("upgraded from {}", stored.decode::<u32>()?))
    });
    let upgraded = upgraded
        .run(|_| async { Ok::<_, Error>(String::new()) })
        .await;
    assert_eq!(upgraded, Ok("upgraded from 7".into()));
    for version in [0, 2] {
        let answer = call(version).run(|_| async { Ok::<_, Error>(0_u32) }).await;
        assert!(
            matches!(answer, Err(Error::Unreadable { schema: 1, .. })),
            "as version {version}: {answer:?}"
        );
    }
    let older = call(0).upgrade(|stored: Stored| stored.decode::<u32>());
    let answer = older.run(|_| async { Ok::<_, Error>(0) }).await;
    assert!(
        matches!(answer, Err(Error::Unreadable { schema: 1, .. })),
        "nothing upgrades what a newer build has stored: {answer:?}"
    );
    let failing = call(2).upgrade(|_: Stored| Err::<u32, _>("no such column".into()));
    let answer = failing.run(|_| async { Ok::<_, Error>(0_u32) }).await;
    assert!(is_unreadable(&answer), "{answer:?}");
}

async fn an_outcome_of_another_type_is_unreadable(world: World) {
    let owner = world.owner().await;
    Charge::of(&world, &owner).charges().await;
    let call = owner.call("charge").key("k").arguments(&1);
    let answer = call.run(|_| async { Ok::<_, Error>(0_u32) }).await;
    assert!(is_unreadable(&answer), "{answer:?}");
    Charge::of(&world, &owner).charges().await;
    assert_eq!(world.runs("k"), 1);
}

async fn f15_size_cap(world: World) {
    const LIMIT: usize = 16 * 1024 * 1024;
    let owner = world.owner().await;
    for (key, bytes) in [("empty", 0), ("full", LIMIT)] {
        let raw = || {
            let call = owner.call("raw").key(key);
            call.run_raw(
                move |_| async move { RawEnding::Record(RawOutcome::value(vec![0x5a; bytes])) },
            )
        };
        let (first, _) = raw().await.expect("it is recorded");
        let (replayed, how) = raw().await.expect("it is replayed");
        assert!(matches!(how, CallReport::Replayed { .. }), "{how:?}");
        assert!(first == replayed && first.bytes.len() == bytes);
    }
    let too_long = || {
        let world = world.clone();
        owner.call("typed").key("k").run(move |_| async move {
            world.happened("too long");
            Ok::<_, Error>("x".repeat(LIMIT))
        })
    };
    let first = too_long().await.map(|value| value.len());
    assert_eq!(first, Ok(LIMIT), "the caller loses nothing");
    let answer = too_long().await;
    assert!(matches!(answer, Err(Error::NotReplayable { .. })));
    assert_eq!(world.runs("too long"), 1);
    let raw = owner.call("raw").key("too long");
    let raw = raw.run_raw(|_| async { RawEnding::Record(RawOutcome::value(vec![0; LIMIT + 1])) });
    let first = raw.await.map(|(outcome, _)| outcome.bytes.len());
    assert_eq!(first, Ok(LIMIT + 1));
}

async fn f28_ttl_validation(world: World) {
    let owner = world.owner().await;
    let longest = Duration::MAX;
    let calls = [
        owner.call("f").key("k").ttl("0ms"),
        owner.call("f").key("k").ttl(Duration::from_micros(999)),
        owner.call("f").key("k").ttl(longest),
        owner.call("f").key("k").ttl("-1s"),
        owner.call("f").key("k").ttl("99999999999999999999w"),
        owner.call("f").key("k").lease(Duration::ZERO),
        owner.call("f").key("k").lease(longest),
        owner.call("f").key("k").ttl("10s").lease("10s"),
        owner.call("f").key("k").lease("48h"),
    ];
    for call in calls {
        let answer = call.run(|_| async { Ok::<_, Error>(()) }).await;
        assert!(matches!(answer, Err(Error::InvalidPolicy(_))), "{answer:?}");
    }
    assert_eq!(owner.store.round_trips(), 0);
}

async fn f29_prune_does_not_need_app(world: World) {
    let owner = world.owner().await;
    assert!(Charge::of(&world, &owner).call().await.is_ok());
    world.advance(Duration::from_secs(24 * 60 * 60)).await;
    let expired = world.to_purge(1);
    for purged in [expired, 0] {
        let store = world.store().await;
        assert_eq!(store.purge(10, Duration::ZERO).await, Ok(purged));
    }
    assert!(world.records().await.is_empty());
}

/// Makes one finished record in a SQLite file, damages its row, and gives the answer to a
/// duplicate.
async fn damaged(damage: &'static str) -> Result<u32, Error> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("idempotency.db");
    let store = SqliteStore::open(&path).await.expect("the file opens");
    let idem = Idempotency::new(store);
    let call = || {
        idem.call("charge")
            .key("k")
            .run(|_| async { Ok::<_, Error>(7_u32) })
    };
    assert_eq!(call().await, Ok(7));
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
    let connection = SqliteConnection::connect_with(&options).await;
    let mut connection = connection.expect("it opens again");
    sqlx::query(damage)
        .execute(&mut connection)
        .await
        .expect("the row is damaged");
    let replayed = idem.call("charge").key("k");
    let answer = replayed
        .run(|_| async { panic!("the body ran again") })
        .await;
    let listed = idem.store().scan(None, 10).await;
    assert!(listed.is_ok() || listed.is_err_and(|error| error.kind() == StoreErrorKind::Corrupt));
    answer
}

async fn is_corrupt(damage: &'static str) {
    let answer = damaged(damage).await;
    let is_corrupt = failed_as(&answer, StoreErrorKind::Corrupt);
    assert!(is_corrupt, "{damage}: {answer:?}");
}

#[tokio::test]
async fn f20_corrupt_record() {
    for damage in [
        "UPDATE idempotent_records SET fingerprint = x'00'",
        "UPDATE idempotent_records SET version = x''",
        "UPDATE idempotent_records SET version = zeroblob(17)",
        "UPDATE idempotent_records SET digests = x'ffffff'",
        "UPDATE idempotent_records SET attempt = -1",
        "UPDATE idempotent_records SET attempt_id = x'0011'",
        "UPDATE idempotent_records SET token = -1",
        "UPDATE idempotent_records SET operation = CAST(x'ff' AS TEXT)",
        "UPDATE idempotent_records SET outcome_schema = -1",
    ] {
        is_corrupt(damage).await;
    }
}

#[tokio::test]
async fn f20_truncated_outcome() {
    for damage in [
        "UPDATE idempotent_records SET outcome = x''",
        "UPDATE idempotent_records SET outcome = x'7b22'",
    ] {
        let answer = damaged(damage).await;
        assert!(is_unreadable(&answer), "{damage}: {answer:?}");
    }
    let answer = damaged("UPDATE idempotent_records SET outcome_kind = NULL, outcome = NULL").await;
    assert!(is_not_replayable(&answer), "{answer:?}");
}

#[tokio::test]
async fn f21_invalid_state_value() {
    for damage in [
        "UPDATE idempotent_records SET state = 0",
        "UPDATE idempotent_records SET state = 7",
        "UPDATE idempotent_records SET state = 258",
        "UPDATE idempotent_records SET on_crash = 9",
        "UPDATE idempotent_records SET outcome_kind = 9",
    ] {
        is_corrupt(damage).await;
    }
}
