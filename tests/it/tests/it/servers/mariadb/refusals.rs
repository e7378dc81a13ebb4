//! Servers that cannot be reached, users without rights, and outcomes that are too large.

use std::time::Instant;

use idempotent_runtime::{Error, Idempotency, OnOutage, identity::RecordId, testing::Proxy};
use sqlx::mysql::MySqlConnectOptions;
use tokio::net::TcpListener;

use super::{
    Duration, MariaDb, MySqlStore, Store, StoreErrorKind, StoreUnderTest, kind, lazy, options, run,
    side, text, url,
};
use crate::{
    answers::failed_as,
    harness::{applied, claim, completion, in_time},
    servers::{address, prefix, url_at},
};

const ID: RecordId = RecordId::from_bytes([7; 32]);

fn store(options: MySqlConnectOptions) -> MySqlStore {
    let builder = MySqlStore::builder().connect_timeout(Duration::from_millis(500));
    builder.options(options).expect("the options can be used")
}

/// A call on a store that cannot be used. It says so in time, and the body does not run.
async fn refused(store: MySqlStore, expected: StoreErrorKind) {
    let began = Instant::now();
    assert_eq!(kind(store.migrate().await), expected);
    let answer = Idempotency::new(store)
        .call("charge")
        .key("k")
        .run(|_| async { panic!("the body runs") as Result<(), Error> })
        .await;
    let Err(Error::Store(error)) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(error.kind(), expected);
    assert!(std::error::Error::source(&error).is_some());
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn e17_a_server_that_does_not_let_us_in_is_a_matter_of_configuration() {
    let configuration = StoreErrorKind::Configuration;
    refused(store(options().password("wrong")), configuration).await;
    refused(store(options().username("nobody")), configuration).await;
    refused(store(options().database("no_such_database")), configuration).await;
    let whole = url();
    let (_, database) = whole.rsplit_once('/').expect("a database");
    let other = whole.replacen("mysql://", "postgres://", 1);
    let told = MySqlStore::connect(&other).await;
    assert_eq!(kind(told), configuration);
    let without = whole.trim_end_matches(database).parse();
    refused(store(without.expect("a URL")), configuration).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn e13_a_server_that_nobody_reaches_is_unavailable_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = silent.local_addr().expect("its address").port();
    let there = options().host("127.0.0.1").port(port);
    refused(store(there.clone()), StoreErrorKind::Unavailable).await;
    drop(silent);
    refused(store(there), StoreErrorKind::Unavailable).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn f25_a_server_that_hangs_keeps_no_start_waiting() {
    let proxy = Proxy::to(address(&url())).await.expect("a proxy");
    let builder = MySqlStore::builder().table_prefix(&prefix());
    let builder = builder.answer_timeout(Duration::from_secs(1));
    let store = builder.connect(&url_at(&url(), proxy.address())).await;
    let store = store.expect("the server answers");

    proxy.slow_down(Some(Duration::from_secs(600)));

    let started = in_time(store.migrate()).await;
    assert_eq!(kind(started), StoreErrorKind::Unavailable);
}

/// A user who may do only this in the database of the tests.
async fn user(rights: &str) -> (String, MySqlConnectOptions) {
    let name = format!("u{:08x}", rand::random::<u32>());
    let mut side = side(&url()).await;
    let database = text(&mut side, "SELECT DATABASE()".to_owned(), 0).await;
    let create = format!(
        "CREATE USER {name}@'%' IDENTIFIED BY 'secret';
         GRANT {rights} ON {database}.* TO {name}@'%'"
    );
    run(&mut side, create).await;
    let options = options().username(&name).password("secret");
    (name, options)
}

async fn forget(name: String) {
    run(&mut side(&url()).await, format!("DROP USER {name}@'%'")).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn e17_a_user_who_may_create_nothing_is_denied_until_the_tables_are_there() {
    let database = MariaDb::new().await;
    let (name, options) = user("SELECT, INSERT, UPDATE, DELETE").await;
    let denied = lazy(&prefix(), options.clone()).migrate().await;
    let there = lazy(&database.prefix, options);
    let migrated = there.migrate().await;
    let call = Idempotency::new(there).call("charge").key("k");
    let answer = call.run(|_| async { Ok::<_, Error>(1) }).await;

    forget(name).await;
    assert_eq!(kind(denied), StoreErrorKind::Denied);
    migrated.expect("there is nothing to do");
    assert_eq!(answer, Ok(1));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn e17_a_user_who_may_only_look_replays_and_runs_nothing() {
    let database = MariaDb::new().await;
    let writer = Idempotency::new(database.open().await);
    let charge = async |idem: &Idempotency, key: &str, runs: u32| {
        let call = idem.call("charge").key(key);
        call.run(|_| async move { Ok::<_, Error>(runs) }).await
    };
    assert_eq!(charge(&writer, "old", 1).await, Ok(1));
    let (name, options) = user("SELECT").await;
    let store = lazy(&database.prefix, options);
    let reader = Idempotency::new(store.clone());

    let replay = charge(&reader, "old", 2).await;
    let new = charge(&reader, "new", 2).await;
    let ending = store.swap(&ID, None, &claim()).await;

    forget(name).await;
    assert_eq!(replay, Ok(1), "a replay is a look");
    assert!(failed_as(&new, StoreErrorKind::Denied), "{new:?}");
    assert_eq!(kind(ending), StoreErrorKind::Denied);
    assert_eq!(charge(&writer, "new", 3).await, Ok(3));
}

/// A view does this, which is how tenants are kept apart here: an insert meets the record, and no
/// look shows it.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_record_that_a_view_does_not_show_is_denied_at_once_and_runs_no_body() {
    let (database, tenant) = (MariaDb::new().await, prefix());
    let charge = async |store: MySqlStore| {
        let idem = Idempotency::new(store);
        let call = idem.call("charge").key("k").on_outage(OnOutage::Open);
        call.run(|_| async { Ok::<_, Error>(7) }).await
    };
    assert_eq!(charge(database.open().await).await, Ok(7));
    let all = &database.prefix;
    let views = format!(
        "CREATE VIEW {tenant}schema AS SELECT * FROM {all}schema;
         CREATE VIEW {tenant}records AS SELECT * FROM {all}records WHERE finished IS NULL"
    );
    run(&mut side(&url()).await, views).await;

    let refused = in_time(charge(lazy(&tenant, options()))).await;

    assert!(failed_as(&refused, StoreErrorKind::Denied), "{refused:?}");
    let gone = format!("DROP VIEW {tenant}schema, {tenant}records");
    run(&mut side(&url()).await, gone).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn f15_an_outcome_that_no_packet_takes_is_refused_before_it_is_sent() {
    let database = MariaDb::new().await;
    let store = database.store().await;
    let most = "SELECT CAST(@@max_allowed_packet AS CHAR)".to_owned();
    let most = text(&mut side(&url()).await, most, 0).await;
    let draft = claim();
    applied(&store, &ID, None, &draft).await;

    let large = completion(&draft, vec![0; most.parse().expect("a number")]);
    let refused = store.swap(&ID, Some(draft.version), &large).await;
    assert_eq!(kind(refused), StoreErrorKind::Full);

    let small = completion(&draft, vec![0]);
    applied(&store, &ID, Some(draft.version), &small).await;
}

/// It is then unknown what a statement did. A proxy gives its clients the number by which it was
/// told itself that a server has gone, or one of its own.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_server_that_a_proxy_lost_and_one_that_prepares_no_more_may_be_tried_again() {
    let database = MariaDb::new().await;
    let (store, prefix) = (database.open().await, &database.prefix);
    for (state, number) in [
        ("HY000", 2006),
        ("HY000", 2013),
        ("HY000", 9001),
        ("42000", 1461),
        ("08S01", 1105),
    ] {
        database
            .run(format!(
                "CREATE OR REPLACE TRIGGER {prefix}says BEFORE INSERT ON {prefix}records
                 FOR EACH ROW SIGNAL SQLSTATE '{state}' SET MYSQL_ERRNO = {number}"
            ))
            .await;
        let swap = store.swap(&ID, None, &claim()).await;
        assert_eq!(kind(swap), StoreErrorKind::Unavailable, "{state} {number}");
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_27_an_error_of_the_store_says_its_cause_and_no_password() {
    let elsewhere = store(options().database("no_such_shop"));
    let refused = elsewhere.load(&ID).await;
    let said = Error::from(refused.expect_err("no database")).to_string();
    assert!(said.contains("Unknown database 'no_such_shop'"), "{said}");

    let stranger = store(options().username("nobody").password("hush-hush"));
    let refused = stranger.load(&ID).await;
    let said = refused.expect_err("no such user").to_string();
    assert!(
        said.contains("Access denied") && !said.contains("hush"),
        "{said}"
    );

    let database = MariaDb::new().await;
    let (store, prefix) = (database.open().await, &database.prefix);
    let trigger = format!(
        "CREATE TRIGGER {prefix}closes BEFORE INSERT ON {prefix}records
         FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'closed for the night'"
    );
    database.run(trigger).await;
    let refused = store.swap(&ID, None, &claim()).await;
    let said = refused.expect_err("the trigger refuses").to_string();
    assert!(said.ends_with("closed for the night"), "{said}");
    assert!(!said.contains("migrate"), "{said}");
}
