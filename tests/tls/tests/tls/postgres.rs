//! Postgres, whose `pg_hba.conf` has `hostssl` lines only.

use idempotent_runtime::store::PostgresStore;
use sqlx::{PgPool, postgres::PgListener};

use super::{
    CONNECT_TIMEOUT, in_time, is_refused, prefix, runs_nothing, variable, with_options, works,
};

const URL: &str = "IDEMPOTENT_TEST_POSTGRES_TLS_URL";
const PLAIN_URL: &str = "IDEMPOTENT_TEST_POSTGRES_URL";

/// The connections of an application.
const ENCRYPTED: &str = "SELECT count(*) FILTER (WHERE ssl), count(*) FILTER (WHERE NOT ssl),
    count(*) FILTER (WHERE ssl AND query LIKE 'LISTEN %')
    FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = $1";

/// Checks what the server sees while one process runs a call and beats, and another waits and
/// listens.
async fn encrypts_all(holder: PostgresStore, waiter: PostgresStore, prefix: &str) {
    let mut told = PgListener::connect(&variable(URL))
        .await
        .expect("a listener");
    told.listen(&format!("{prefix}moved"))
        .await
        .expect("it listens");

    let sees = async || {
        // The store's own word that it listens.
        let hello = told.recv().await.expect("the server tells");
        assert_eq!(hello.payload(), "hello");
        let seen: (i64, i64, i64) = sqlx::query_as(ENCRYPTED)
            .bind(prefix)
            .fetch_one(&mut told)
            .await
            .expect("the server says");
        let (encrypted, plain, listening) = seen;
        assert_eq!((plain, listening), (0, 1), "{seen:?}");
        assert!(
            encrypted >= 5,
            "two that call, one that beats, two of who listens: {seen:?}"
        );
    };
    works(holder, waiter, sees).await;
}

/// The server names the connections that are made so.
fn named(prefix: &str) -> String {
    format!("{}&application_name={prefix}", variable(URL))
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn every_connection_of_a_url_is_encrypted() {
    let prefix = prefix();
    let url = named(&prefix);
    let open = async || {
        let builder = PostgresStore::builder().table_prefix(&prefix);
        builder.connect(&url).await.expect("the server answers")
    };
    encrypts_all(open().await, open().await, &prefix).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn every_connection_beside_a_pool_is_encrypted() {
    let prefix = prefix();
    let pool = PgPool::connect_lazy(&named(&prefix)).expect("a URL");
    let beside = || {
        let builder = PostgresStore::builder().table_prefix(&prefix);
        builder.pool(pool.clone()).expect("the options can be used")
    };
    let holder = beside();
    holder.migrate().await.expect("the server answers");
    encrypts_all(holder, beside(), &prefix).await;
}

/// Neither the tables are made nor a body runs.
async fn refused(url: &str, reason: &str) {
    let options = url.parse().expect("a URL");
    let builder = PostgresStore::builder().connect_timeout(CONNECT_TIMEOUT);
    let store = builder.options(options).expect("the options can be used");
    is_refused(in_time(store.migrate()).await, reason);
    runs_nothing(store).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn what_is_not_encrypted_or_not_trusted_is_refused() {
    for (server, options, reason) in [
        (URL, "sslmode=verify-full", "certificate"),
        (URL, "sslmode=disable", "no encryption"),
        (PLAIN_URL, "sslmode=require", "does not support TLS"),
    ] {
        refused(&with_options(&variable(server), options), reason).await;
    }
}
