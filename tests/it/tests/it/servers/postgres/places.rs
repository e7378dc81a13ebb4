//! Servers that cannot be used, and rights that are missing: a typed error each, in time, and no
//! body runs.

mod proxies;

use std::time::{Duration, Instant};

use idempotent_runtime::{
    Error, Idempotency, Status,
    identity::RecordId,
    store::{
        JoinedConnection, PostgresStore, Store, StoreError, StoreErrorKind, Swap, TransactionStore,
    },
    testing::Proxy,
};
use sqlx::{Connection, PgConnection};
use tokio::net::TcpListener;

use super::{Postgres, URL, run, side};
use crate::{
    answers::failed_as,
    harness::{applied, claim, completion, in_time},
    servers::{address, prefix, url, url_at},
};

fn builder() -> idempotent_runtime::store::postgres::PostgresBuilder {
    PostgresStore::builder()
        .table_prefix(&prefix())
        .connect_timeout(Duration::from_secs(2))
        .answer_timeout(Duration::from_secs(2))
}

fn kind<T>(answer: Result<T, StoreError>) -> Option<StoreErrorKind> {
    answer.err().map(|error| error.kind())
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn f25_a_server_that_cannot_be_used_is_said_in_time() {
    use StoreErrorKind::{Configuration, Unavailable};

    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let silent = silent.local_addr().expect("an address");
    let here = address(&url(URL));
    let cases = [
        ("not a url".to_owned(), Configuration),
        (
            format!("mysql://idempotent@{here}/idempotent"),
            Configuration,
        ),
        (
            format!("postgres://idempotent@{here}/nowhere"),
            Configuration,
        ),
        (
            format!("postgres://nobody@{here}/idempotent"),
            Configuration,
        ),
        (
            "postgres://idempotent@127.0.0.1:1/idempotent".to_owned(),
            Unavailable,
        ),
        (
            format!("postgres://idempotent@{silent}/idempotent"),
            Unavailable,
        ),
    ];
    for (url, expected) in cases {
        let began = Instant::now();
        assert_eq!(kind(builder().connect(&url).await), Some(expected), "{url}");
        assert!(began.elapsed() < Duration::from_secs(20), "{url}");
    }
    let answer = builder().table_prefix("a; DROP").connect(&url(URL)).await;
    assert_eq!(kind(answer), Some(Configuration));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn f25_a_server_of_another_kind_is_refused() {
    // It answers in a protocol of its own.
    let other = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = other.local_addr().expect("an address");
    tokio::spawn(async move {
        use tokio::io::AsyncWriteExt;
        while let Ok((mut client, _)) = other.accept().await {
            let _ = client.write_all(b"-ERR unknown command\r\n").await;
        }
    });
    let url = format!("postgres://idempotent@{address}/idempotent?sslmode=disable");
    let answer = kind(builder().connect(&url).await);
    assert!(
        matches!(
            answer,
            Some(StoreErrorKind::Unavailable | StoreErrorKind::Configuration)
        ),
        "{answer:?}"
    );
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn f25_a_server_that_hangs_keeps_no_start_waiting() {
    let proxy = Proxy::to(address(&url(URL))).await.expect("a proxy");
    let there = url_at(&url(URL), proxy.address());
    let store = builder().connect(&there).await;
    let store = store.expect("the server answers");

    proxy.slow_down(Some(Duration::from_secs(600)));

    let started = in_time(store.migrate()).await;
    assert_eq!(kind(started), Some(StoreErrorKind::Unavailable));
}

/// A database of its own, for which the proxy keeps connections of their own.
async fn database(side: &mut PgConnection) -> String {
    let name = prefix();
    run(side, format!("CREATE DATABASE {name}")).await;
    name
}

/// The URL of that database, made from the tests' own.
fn there(url: &str, database: &str) -> String {
    let (server, _) = url.rsplit_once('/').expect("a database");
    format!("{server}/{database}")
}

async fn gone(side: &mut PgConnection, database: String) {
    run(side, format!("DROP DATABASE {database} WITH (FORCE)")).await;
}

/// The server gives up by itself. Else it would wait on, in a connection that the store has left.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_locked_record_is_replayed_at_once_and_a_write_of_it_is_busy() {
    const ID: RecordId = RecordId::from_bytes([1; 32]);
    let prefix = prefix();
    let store = builder().table_prefix(&prefix).connect(&url(URL)).await;
    let store = store.expect("the server answers");
    let draft = claim();
    applied(&store, &ID, None, &draft).await;
    let mut side = side(&url(URL)).await;
    let statement = format!("BEGIN; SELECT FROM {prefix}records FOR UPDATE");
    run(&mut side, statement).await;

    let duplicate = store.swap(&ID, None, &claim()).await;
    assert!(matches!(duplicate, Ok(Swap::Refused(_))), "{duplicate:?}");
    let ending = completion(&draft, Vec::new());
    let ended = store.swap(&ID, Some(draft.version), &ending).await;
    assert_eq!(kind(ended), Some(StoreErrorKind::Busy));

    run(&mut side, "COMMIT".to_owned()).await;
    applied(&store, &ID, Some(draft.version), &ending).await;
}

/// A user with some rights, and the URL by which it connects.
pub(super) async fn user(side: &mut PgConnection, rights: &str) -> String {
    let (server, name) = (url(URL), prefix());
    let rights = rights.replace("USER", &name);
    run(side, format!("CREATE ROLE {name} LOGIN; {rights}")).await;
    server.replacen("idempotent@", &format!("{name}@"), 1)
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn f26_a_user_without_rights_runs_no_body() {
    let mut side = side(&url(URL)).await;
    let prefix = prefix();
    let store = async |url: String| {
        let builder = PostgresStore::builder().table_prefix(&prefix);
        builder.connect(&url).await
    };
    let is_denied = async |url: String| {
        let idem = Idempotency::new(store(url).await.expect("the tables are there"));
        let call = idem.call("charge").key("k");
        let call = call.run(|_| async { panic!("the body runs") as Result<u32, Error> });
        let refused = call.await;
        assert!(failed_as(&refused, StoreErrorKind::Denied), "{refused:?}");
    };

    let nothing = user(&mut side, "REVOKE CREATE ON SCHEMA public FROM PUBLIC").await;
    assert_eq!(kind(store(nothing).await), Some(StoreErrorKind::Denied));

    store(url(URL)).await.expect("the tables are made");
    let rights = format!("GRANT SELECT ON {prefix}records, {prefix}schema TO USER");
    is_denied(user(&mut side, &rights).await).await;

    let rights = format!(
        "GRANT SELECT ON {prefix}records, {prefix}schema TO USER;
         ALTER ROLE USER SET default_transaction_read_only = on"
    );
    is_denied(user(&mut side, &rights).await).await;
}

/// A claim needs fewer rights than a completion. Without the rest the body would run, and its
/// outcome would never be known.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn f26_a_user_who_could_not_record_an_outcome_replays_and_runs_no_body() {
    let mut side = side(&url(URL)).await;
    let database = database(&mut side).await;
    let its = there(&url(URL), &database);
    let charge = async |idem: &Idempotency, key: &str| {
        let call = idem.call("charge").key(key);
        call.run(|_| async { Ok::<_, Error>(7) }).await
    };
    let all = Idempotency::new(PostgresStore::connect(&its).await.expect("the tables"));
    assert_eq!(charge(&all, "recorded").await, Ok(7));
    let mut inside = PgConnection::connect(&its).await.expect("a connection");
    let statement = "REVOKE EXECUTE ON FUNCTION pg_notify(text, text) FROM PUBLIC".to_owned();
    run(&mut inside, statement).await;

    let mut refused = Vec::new();
    for rights in [
        "GRANT SELECT, INSERT ON idempotent_records TO USER; GRANT EXECUTE ON FUNCTION pg_notify(text, text) TO USER",
        "GRANT SELECT, INSERT, UPDATE ON idempotent_records TO USER",
    ] {
        let rights = format!("{rights}; GRANT SELECT ON idempotent_schema TO USER");
        let url = there(&user(&mut inside, &rights).await, &database);
        let builder = PostgresStore::builder;
        for builder in [builder(), builder().transaction_pooling()] {
            let store = builder.connect(&url).await.expect("the tables are there");
            let idem = Idempotency::new(store);
            assert_eq!(charge(&idem, "recorded").await, Ok(7), "{rights}");
            refused.push(charge(&idem, "new").await);
        }
    }
    let stands = all.lookup("charge", None::<&str>, "new").await;

    drop(inside);
    gone(&mut side, database).await;
    for refused in refused {
        assert!(failed_as(&refused, StoreErrorKind::Denied), "{refused:?}");
    }
    assert!(matches!(stands, Ok(Status::Unknown)), "{stands:?}");
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn an_encoding_that_lacks_the_letters_of_a_name_is_a_matter_of_configuration() {
    let mut side = side(&url(URL)).await;
    let database = prefix();
    let latin = "ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0";
    run(&mut side, format!("CREATE DATABASE {database} {latin}")).await;
    let store = builder().connect(&there(&url(URL), &database)).await;
    let idem = Idempotency::new(store.expect("the tables are made"));

    let mut answers = Vec::new();
    for name in ["écrire", "支払い"] {
        let call = idem.call(name).key("支払い");
        answers.push(call.run(async |_| Ok::<_, Error>(7)).await);
    }

    drop(idem);
    gone(&mut side, database).await;
    let refused = answers.pop().expect("two answers");
    assert!(
        failed_as(&refused, StoreErrorKind::Configuration),
        "{refused:?}"
    );
    assert_eq!(answers, [Ok(7)]);
}

/// The server says why, and then the connection is gone. A new connection may go on.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_connection_that_the_server_ended_for_its_age_may_be_tried_again() {
    let mut side = side(&url(URL)).await;
    let store = builder().connect(&url(URL)).await.expect("the tables");
    let mut own = super::side(&url(URL)).await;
    let statement = "SET idle_in_transaction_session_timeout = 1".to_owned();
    run(&mut own, statement).await;
    let process = sqlx::query_scalar("SELECT pg_backend_pid()");
    let process: i32 = process.fetch_one(&mut own).await.expect("an answer");
    let mut transaction = own.begin().await.expect("a transaction");
    let mut stands = true;
    while stands {
        let looking = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)";
        let looking = sqlx::query_scalar(looking).bind(process);
        stands = looking.fetch_one(&mut side).await.expect("an answer");
    }

    let connection: &mut PgConnection = &mut transaction;
    let id = RecordId::from_bytes([1; 32]);
    let mut joined = JoinedConnection::new(connection);
    let swap = store.swap_in(&mut joined, &id, None, &claim()).await;

    assert_eq!(kind(swap), Some(StoreErrorKind::Unavailable));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn f24_keys_that_differ_only_by_case_accent_blank_or_normalisation_are_different() {
    let idem = Idempotency::new(Postgres::open_at(&prefix()).await);
    let keys = [
        "key",
        "Key",
        "kéy",
        "ke\u{301}y",
        "key ",
        " key",
        "KEY",
        "ｋey",
    ];
    for (number, key) in keys.iter().enumerate() {
        let run = idem.call("charge").key(*key);
        let answer: Result<usize, Error> = run.run(|_| async move { Ok(number) }).await;
        assert_eq!(answer.ok(), Some(number), "{key:?}");
    }
}
