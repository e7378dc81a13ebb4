//! What a new user meets in the first hour. A test bears the number of what it shows.

use std::{collections::HashSet, time::Duration};

use idempotent_runtime::{
    Error, ErrorVerdict, Idempotency, MemoryStore, NotSettled, OnCrash, Store, StoreError,
    StoreErrorKind, idempotent,
    identity::RecordId,
    store::{MySqlStore, PostgresStore, RedisStore, SqliteStore},
};
use serde::{Deserialize, Serialize, Serializer, de::DeserializeOwned};
use sqlx::{Connection as _, Executor as _, sqlite::SqlitePoolOptions};

use crate::{
    answers::is_not_replayable,
    harness::{Said, World, not_settled, said_during},
    servers::{prefix, url},
};

on_every_store![
    first_hour_02_each_variant_has_its_verdict,
    first_hour_02_a_call_that_got_no_answer_inside_another_charges_once,
    first_hour_02_an_err_that_cannot_be_encoded_says_what_to_write,
    first_hour_04_an_old_name_that_was_never_derived_is_told,
    first_hour_09_a_value_that_comes_back_as_another_is_not_replayable,
    first_hour_10_what_the_function_cannot_read_is_not_settled,
    first_hour_10_a_record_is_settled_by_its_id,
    first_hour_10_a_value_that_would_be_another_is_not_settled,
];

#[derive(Debug, PartialEq, Serialize, Deserialize, ErrorVerdict, thiserror::Error)]
enum PayError {
    #[verdict(replay)]
    #[error("the card was declined")]
    Declined,
    #[verdict(release)]
    #[serde(skip)]
    #[error("the database failed")]
    Database(#[from] NotStorable),
    #[verdict(uncertain)]
    #[error("the gateway did not answer")]
    NoAnswer,
    #[verdict(replay)]
    #[error(transparent)]
    Idempotency(#[from] Error),
}

/// As `sqlx::Error`, it has no serde.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("pool timed out")]
struct NotStorable;

#[idempotent(name = "first_hour.pay", key = order, on_error = ErrorVerdict::verdict, skip(world))]
async fn pay(world: &World, order: &'static str) -> Result<u64, PayError> {
    world.happened(order);
    match order {
        "declined" => Err(PayError::Declined),
        "no answer" => Err(PayError::NoAnswer),
        _ => Err(NotStorable)?,
    }
}

async fn first_hour_02_each_variant_has_its_verdict(world: World) {
    let owner = world.owner().await;
    let twice = async |order| {
        let first = owner.enter(pay(&world, order)).await;
        (
            first,
            owner.enter(pay(&world, order)).await,
            world.runs(order),
        )
    };
    let declined = || Err(PayError::Declined);
    assert_eq!(twice("declined").await, (declined(), declined(), 1));
    let failed = || Err(PayError::Database(NotStorable));
    assert_eq!(twice("database").await, (failed(), failed(), 2));
    let (first, again, runs) = twice("no answer").await;
    assert_eq!((first, runs), (Err(PayError::NoAnswer), 1));
    let is_uncertain = matches!(again, Err(PayError::Idempotency(Error::Uncertain { .. })));
    assert!(is_uncertain, "{again:?}");
}

#[idempotent(name = "first_hour.receipt", key = order, on_crash = uncertain)]
async fn receipt(order: u64) -> Result<u64, Error> {
    Err(Error::InvalidPolicy("it got no answer"))
}

#[idempotent(
    name = "first_hour.charge",
    key = order,
    on_crash = uncertain,
    on_error = ErrorVerdict::verdict,
    skip(world)
)]
async fn charge(world: &World, order: u64) -> Result<u64, PayError> {
    world.happened("charged");
    Ok(receipt(order).await?)
}

/// The verdict of the README's listings.
async fn first_hour_02_a_call_that_got_no_answer_inside_another_charges_once(world: World) {
    let owner = world.owner().await;
    assert!(owner.enter(charge(&world, 1)).await.is_err());
    let again = owner.enter(charge(&world, 1)).await;
    let is_uncertain = matches!(again, Err(PayError::Idempotency(Error::Uncertain { .. })));
    assert!(is_uncertain, "{again:?}");
    assert_eq!(world.runs("charged"), 1);
}

/// An error that serde knows, and cannot encode.
#[derive(Debug, Deserialize)]
enum PlainError {
    Idempotency(Error),
    Unencodable,
}

impl Serialize for PlainError {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("the secret of the error"))
    }
}

impl From<Error> for PlainError {
    fn from(error: Error) -> Self {
        Self::Idempotency(error)
    }
}

#[idempotent(name = "first_hour.plain", key = order)]
async fn plain(order: u64) -> Result<u64, PlainError> {
    Err(PlainError::Unencodable)
}

async fn first_hour_02_an_err_that_cannot_be_encoded_says_what_to_write(world: World) {
    let owner = world.owner().await;
    let (answer, said) = said_during(owner.enter(plain(1))).await;
    assert!(matches!(answer, Err(PlainError::Unencodable)), "{answer:?}");
    for part in [
        "WARN",
        "first_hour.plain",
        "the `Err` cannot be encoded",
        "`on_error = ErrorVerdict::verdict`",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    assert!(!said.contains("secret"), "{said}");
    let again = owner.enter(plain(1)).await;
    let is_told = matches!(
        again,
        Err(PlainError::Idempotency(Error::NotReplayable { .. }))
    );
    assert!(is_told, "{again:?}");
}

#[idempotent(name = "first_hour.renamed", key = order, also_accept = "my-package::my-crate::pay")]
async fn renamed(order: u64) -> Result<u64, Error> {
    Ok(order)
}

#[idempotent(name = "first_hour.renamed_well", key = order, also_accept = "my-package::my_crate::pay")]
async fn renamed_well(order: u64) -> Result<u64, Error> {
    Ok(order)
}

async fn first_hour_04_an_old_name_that_was_never_derived_is_told(world: World) {
    let owner = world.owner().await;
    let calls = async { [renamed(1).await, renamed(1).await, renamed_well(1).await] };
    let (answers, said) = said_during(owner.enter(calls)).await;
    assert_eq!(answers, [Ok(1), Ok(1), Ok(1)]);
    assert_eq!(
        said.matches("`also_accept` finds no record").count(),
        1,
        "{said}"
    );
    assert!(
        said.contains("my-package::my_crate::module::function"),
        "{said}"
    );
}

/// Calls an operation of its own twice on a handle that was made by one line.
async fn is_replayed(idem: Result<Idempotency, Error>) {
    let idem = idem.expect("the server is there");
    let key = prefix();
    let call = |value| {
        let call = idem.call("first_hour.opened").key(&key);
        call.run(move |_| async move { Ok::<u64, Error>(value) })
    };
    assert_eq!((call(1).await, call(2).await), (Ok(1), Ok(1)));
}

#[tokio::test]
async fn first_hour_05_a_clone_of_the_memory_store_is_the_same_store() {
    let store = MemoryStore::new();
    let call = |store: &MemoryStore, value| {
        let idem = Idempotency::new(store.clone());
        async move {
            let call = idem.call("first_hour.cloned").key("k");
            call.run(move |_| async move { Ok::<u64, Error>(value) })
                .await
        }
    };
    assert_eq!(
        (call(&store, 1).await, call(&store, 2).await),
        (Ok(1), Ok(1))
    );
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn first_hour_05_each_server_by_one_line() {
    let own = prefix();
    let postgres = url("IDEMPOTENT_TEST_POSTGRES_URL");
    let mut connection = sqlx::PgConnection::connect(&postgres)
        .await
        .expect("a server");
    let schema = sqlx::AssertSqlSafe(format!("CREATE SCHEMA {own}"));
    connection
        .execute(sqlx::raw_sql(schema))
        .await
        .expect("a schema");
    let postgres = format!("{postgres}?options=-csearch_path%3D{own}");
    is_replayed(Idempotency::postgres(&postgres).await).await;

    let mariadb = url("IDEMPOTENT_TEST_MARIADB_URL");
    let mut connection = sqlx::MySqlConnection::connect(&mariadb)
        .await
        .expect("a server");
    let database = sqlx::AssertSqlSafe(format!("CREATE DATABASE {own}"));
    connection
        .execute(sqlx::raw_sql(database))
        .await
        .expect("a database");
    let (server, _) = mariadb.rsplit_once('/').expect("a URL");
    is_replayed(Idempotency::mysql(&format!("{server}/{own}")).await).await;

    is_replayed(Idempotency::redis(&url("IDEMPOTENT_TEST_REDIS_URL")).await).await;
}

#[tokio::test]
async fn first_hour_06_a_path_that_reads_as_a_url_is_one_or_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("records.db");
    for (place, file) in [
        ("sqlite::memory:".to_owned(), None),
        (format!("sqlite:{}", path.display()), Some(&path)),
    ] {
        let before = std::fs::read_dir(".").expect("a folder").count();
        is_replayed(Idempotency::sqlite(&place).await).await;
        assert_eq!(
            std::fs::read_dir(".").expect("a folder").count(),
            before,
            "{place}"
        );
        assert!(file.is_none_or(|file| file.exists()), "{place}");
    }
    for url in [
        "postgres://u:secret@host/db",
        "file:///tmp/x.db",
        "file:x.db?mode=memory",
        "http://x",
    ] {
        let refused = SqliteStore::open(url).await.expect_err("it is no file");
        assert_eq!(refused.kind(), StoreErrorKind::Configuration, "{url}");
        assert!(
            !format!("{refused}{refused:?}").contains("secret"),
            "{refused:?}"
        );
    }
    let odd = folder.path().join("http://x.db");
    std::fs::create_dir(folder.path().join("http:")).expect("a folder");
    assert!(
        SqliteStore::open(&odd).await.is_ok(),
        "a whole path is no URL"
    );
}

#[tokio::test]
async fn first_hour_06_an_error_of_opening_names_the_place_and_no_password() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing/records.db");
    let file = Idempotency::sqlite(&missing).await.expect_err("no folder");
    assert!(
        file.to_string().contains(&missing.display().to_string()),
        "{file}"
    );
    for typo in ["sqlite://u:secret@h/x.db", "nowhere/postgres:u:secret@h/db"] {
        let file = Idempotency::sqlite(typo).await.expect_err("no folder");
        assert!(!file.to_string().contains("secret"), "{file}");
    }
    let is_unsaid = |error: Option<StoreError>| {
        let error = Error::from(error.expect("nobody listens there"));
        let said = format!("{error} {error:?}");
        assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
        assert!(error.to_string().contains("the store"), "{error}");
        assert!(!said.contains("secret"), "{said}");
    };
    let soon = Duration::from_secs(1);
    let postgres = PostgresStore::builder().connect_timeout(soon);
    is_unsaid(
        postgres
            .connect("postgres://u:secret@127.0.0.1:1/db")
            .await
            .err(),
    );
    let mysql = MySqlStore::builder().connect_timeout(soon);
    is_unsaid(mysql.connect("mysql://u:secret@127.0.0.1:1/db").await.err());
    let redis = RedisStore::builder().connect_timeout(soon);
    is_unsaid(redis.connect("redis://u:secret@127.0.0.1:1/0").await.err());
}

#[tokio::test]
async fn first_hour_07_a_caller_that_holds_the_last_connection_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = format!(
        "sqlite:{}?mode=rwc",
        folder.path().join("records.db").display()
    );
    let pool = SqlitePoolOptions::new().max_connections(1);
    let pool = pool
        .acquire_timeout(Duration::from_secs(3))
        .connect(&place)
        .await;
    let pool = pool.expect("a file");
    let store = SqliteStore::new(pool.clone());
    store.migrate().await.expect("its tables are made");
    let held = pool.acquire().await.expect("it is the only one");
    // The store waits in a task of its own, on this thread.
    let said = Said::default();
    let writer = said.clone();
    let lines = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone());
    let listening = tracing::subscriber::set_default(lines.finish());
    let answer = store.load(&RecordId::from_bytes([7; 32])).await;
    drop((listening, held));
    let said = said.text();
    assert_eq!(
        answer.err().map(|error| error.kind()),
        Some(StoreErrorKind::Unavailable)
    );
    assert_eq!(said.matches("WARN").count(), 1, "{said}");
    for part in [
        "pool has no free connection",
        "max_connections=1",
        "one connection more",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}

#[idempotent(name = "first_hour.once", key = order, on_crash = uncertain)]
async fn once(order: u64) -> Result<u64, Error> {
    Ok(order)
}

/// A store that may forget, as Redis does.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn first_hour_08_redis_refuses_at_most_once_before_a_call_is_made() {
    let url = url("IDEMPOTENT_TEST_REDIS_URL");
    let store = || async { RedisStore::connect(&url).await.expect("a server") };
    let is_refused = |refused: Option<Error>| {
        let is_said = |error: &StoreError| error.kind() == StoreErrorKind::Configuration;
        assert!(
            matches!(&refused, Some(Error::Store(error)) if is_said(error)),
            "{refused:?}"
        );
    };
    let builder = Idempotency::builder(store().await).on_crash(OnCrash::Uncertain);
    is_refused(builder.build().err());

    let (tested, redis) = (Idempotency::memory(), Idempotency::new(store().await));
    assert_eq!(tested.enter(once(1)).await, Ok(1));
    is_refused(redis.check_operations(&tested.operations()).err());
    assert_eq!(tested.check_operations(&tested.operations()), Ok(()));
    is_refused(redis.enter(once(1)).await.err());
    assert!(redis.operations().is_empty(), "nothing is protected by it");
}

async fn first_hour_09_a_value_that_comes_back_as_another_is_not_replayable(world: World) {
    async fn twice<T>(world: &World, key: &str, value: T) -> (Result<T, Error>, Result<T, Error>)
    where
        T: Clone + Serialize + DeserializeOwned + Send,
    {
        let owner = world.owner().await;
        let call = || {
            let value = value.clone();
            owner
                .call("charge")
                .key(key)
                .run(move |_| async move { Ok::<_, Error>(value) })
        };
        (call().await, call().await)
    }
    macro_rules! not_replayable {
        ($key:literal, $value:expr) => {
            let (first, again) = twice(&world, $key, $value).await;
            assert_eq!(first, Ok($value), $key);
            assert!(is_not_replayable(&again), "{}: {again:?}", $key);
        };
    }
    not_replayable!("some unit", Some(()));
    not_replayable!("some none", Some(None::<u8>));
    not_replayable!("inside", vec![(1, Some(Some(3))), (2, Some(None))]);
    let (first, again) = twice(&world, "nan", Some(f64::NAN)).await;
    assert!(first.is_ok_and(|value| value.is_some_and(f64::is_nan)));
    assert!(is_not_replayable(&again), "{again:?}");

    let set: HashSet<u32> = (0..100).collect();
    assert_eq!(
        twice(&world, "set", set.clone()).await,
        (Ok(set.clone()), Ok(set))
    );
    let none = None::<Option<u8>>;
    assert_eq!(twice(&world, "none", none).await, (Ok(none), Ok(none)));
}

#[idempotent(name = "first_hour.doubtful", key = order, on_error = uncertain)]
async fn doubtful(order: u64) -> Result<u64, Error> {
    Err(Error::InvalidPolicy("the gateway did not answer"))
}

async fn first_hour_10_what_the_function_cannot_read_is_not_settled(world: World) {
    let owner = world.owner().await;
    assert!(owner.enter(doubtful(1)).await.is_err());
    let settle = || {
        let settle = owner.idem.settle("first_hour.doubtful", None::<&str>, &1);
        settle.expect("a key")
    };

    let value = settle().with_value(&"receipt").await;
    assert_eq!(not_settled(value), Some(NotSettled::Unreadable));
    let error = settle().with_error(&"it did not happen").await;
    assert_eq!(not_settled(error), Some(NotSettled::Unreadable));
    assert!(matches!(
        owner.enter(doubtful(1)).await,
        Err(Error::Uncertain { .. })
    ));

    assert!(settle().with_value(&7_u64).await.is_ok());
    assert_eq!(owner.enter(doubtful(1)).await, Ok(7));
}

#[idempotent(name = "first_hour.measured", key = order, on_error = uncertain)]
async fn measured(order: u64) -> Result<Option<f64>, Error> {
    Err(Error::InvalidPolicy("the gauge did not answer"))
}

async fn first_hour_10_a_value_that_would_be_another_is_not_settled(world: World) {
    let owner = world.owner().await;
    assert!(owner.enter(measured(1)).await.is_err());
    let settle = || {
        owner
            .idem
            .settle("first_hour.measured", None::<&str>, &1)
            .expect("a key")
    };
    let lost = settle().with_value(&Some(f64::NAN)).await;
    assert_eq!(not_settled(lost), Some(NotSettled::Unreadable));
    let other = settle().with_value(&()).await;
    assert_eq!(not_settled(other), Some(NotSettled::Unreadable));
    assert!(settle().with_value(&Some(0.5)).await.is_ok());
    assert_eq!(owner.enter(measured(1)).await, Ok(Some(0.5)));
}

async fn first_hour_10_a_record_is_settled_by_its_id(world: World) {
    let owner = world.owner().await;
    assert!(owner.enter(doubtful(2)).await.is_err());
    let refused = owner.enter(doubtful(2)).await;
    let Err(Error::Uncertain { id, .. }) = &refused else {
        panic!("{refused:?}");
    };
    let said = refused.as_ref().expect_err("it is uncertain").to_string();
    let written = said.rsplit(' ').next().expect("its last word");
    assert_eq!(written.parse(), Ok(*id));
    assert_eq!(world.records().await[0].0, *id);

    let settle = owner.idem.settle_id(*id).await.expect("it stands");
    assert!(settle.with_value(&9_u64).await.is_ok());
    assert_eq!(owner.enter(doubtful(2)).await, Ok(9));
    let other = owner.idem.settle_id(RecordId::from_bytes([7; 32])).await;
    assert_eq!(not_settled(other.map(drop)), Some(NotSettled::UnknownKey));
}
