//! Equal and different values: keys, texts and time.

use std::collections::BTreeSet;

use idempotent_runtime::{Error, Idempotency, identity::RecordId};

use super::{
    Arc, Duration, MariaDb, MySqlStore, Store, StoreUnderTest, options, run, side, text, url,
};
use crate::servers::prefix;

/// Pairs that some collation of MySQL holds to be equal.
const ALIKE: [&str; 12] = [
    "order",
    "Order",
    "ORDER",
    "order ",
    "order\t",
    "café",
    "cafe",
    "cafe\u{301}",
    "ß",
    "ss",
    "order\0",
    "\u{1f600}",
];

/// The names of the operations that have a record.
async fn names(store: &dyn Store) -> BTreeSet<String> {
    let records = store.scan(None, 100).await;
    let records = records.expect("the store lists its records").into_iter();
    records
        .map(|(_, record)| record.subject.operation.to_string())
        .collect()
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn keys_and_names_that_look_alike_are_different() {
    let database = MariaDb::new().await;
    let idem = Idempotency::new(database.open().await);
    for answer in [1, 2] {
        for (number, key) in ALIKE.iter().enumerate() {
            let run = |_| async move { Ok::<_, Error>((answer, number)) };
            let by_key = idem.call("charge").key(*key).run(run).await;
            assert_eq!(by_key, Ok((1, number)), "{key:?}");
            let by_name = idem.call(key).key("k").run(run).await;
            assert_eq!(by_name, Ok((1, number)), "{key:?}");
        }
    }
    let mut names = names(&*database.store().await).await;
    names.retain(|name| name != "charge");
    assert_eq!(names, BTreeSet::from(ALIKE.map(str::to_owned)));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_database_and_a_pool_of_another_character_set_change_nothing() {
    let name = format!("idempotent_{}", prefix());
    let mut side = side(&url()).await;
    let statement =
        format!("CREATE DATABASE {name} CHARACTER SET latin1 COLLATE latin1_swedish_ci");
    run(&mut side, statement).await;
    let latin = options().database(&name).charset("latin1");
    let store = MySqlStore::new(sqlx::MySqlPool::connect_lazy_with(latin));
    store.migrate().await.expect("the tables are made");
    let idem = Idempotency::new(store.clone());
    for name in ALIKE {
        let answer = idem
            .call(name)
            .key(name)
            .run(|_| async move { Ok::<_, Error>(name.to_owned()) })
            .await;
        assert_eq!(answer, Ok(name.to_owned()));
    }

    let names = names(&store).await;
    run(&mut side, format!("DROP DATABASE {name}")).await;
    assert_eq!(names, BTreeSet::from(ALIKE.map(str::to_owned)));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn d19_time_is_the_servers_whatever_the_time_zone_of_a_session() {
    const ID: RecordId = RecordId::from_bytes([1; 32]);
    let database = MariaDb::new().await;
    let mut last = 0;
    for zone in ["-11:00", "+00:00", "+13:00"] {
        let store = database
            .builder()
            .options(options().timezone(Some(zone.to_owned())))
            .expect("the options can be used");
        let snapshot = store.load(&ID).await.expect("a look is answered");
        let now = snapshot.now.as_micros();
        let query = "SELECT CAST(CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED) AS CHAR)";
        let after = text(&mut side(&url()).await, query.to_owned(), 0).await;
        let after = after.parse().expect("microseconds");
        assert!(
            (last..=after).contains(&now),
            "{zone}: {last} {now} {after}"
        );
        last = now;
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_pool_that_is_taken_or_closed_does_not_keep_the_store_waiting() {
    let database = MariaDb::new().await;
    let pool = sqlx::mysql::MySqlPoolOptions::new()
        .max_connections(1)
        .connect_with(options())
        .await
        .expect("the server answers");
    let taken = pool.acquire().await.expect("a connection");
    let store: Arc<dyn Store> = Arc::new(
        database
            .builder()
            .pool(pool.clone())
            .expect("the options can be used"),
    );
    let own = store.for_heartbeats().await.expect("a second store");
    for store in [store, own.expect("connections of its own")] {
        let id = RecordId::from_bytes([1; 32]);
        let load = tokio::time::timeout(Duration::from_secs(10), store.load(&id));
        load.await
            .expect("it does not wait for the pool")
            .expect("a look is answered");
    }
    drop(taken);
    pool.close().await;
}
