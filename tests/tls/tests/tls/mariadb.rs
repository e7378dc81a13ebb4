//! MariaDB that says `require_secure_transport`.

use idempotent_runtime::store::MySqlStore;
use sqlx::MySqlPool;

use super::{
    CONNECT_TIMEOUT, in_time, is_refused, prefix, runs_nothing, variable, with_options, works,
};

const URL: &str = "IDEMPOTENT_TEST_MARIADB_TLS_URL";
const PLAIN_URL: &str = "IDEMPOTENT_TEST_MARIADB_URL";

/// The server counts the connections that encrypt, and knows how one of the application's does.
async fn encrypts_all(open: impl AsyncFn() -> MySqlStore) {
    let pool = MySqlPool::connect(&variable(URL))
        .await
        .expect("the server answers");
    let status = async |scope: &str, name: &str| {
        let status = format!(
            "SELECT VARIABLE_VALUE FROM information_schema.{scope}_STATUS WHERE VARIABLE_NAME = '{name}'"
        );
        let said: String = sqlx::query_scalar(sqlx::AssertSqlSafe(status))
            .fetch_one(&pool)
            .await
            .expect("the server says");
        said
    };
    assert!(status("SESSION", "SSL_CIPHER").await.starts_with("TLS_"));
    let encrypted = async || {
        let count = status("GLOBAL", "SSL_FINISHED_ACCEPTS").await;
        count.parse::<u64>().expect("a number")
    };
    let before = encrypted().await;

    let sees = async || {
        let more = encrypted().await - before;
        assert!(more >= 3, "two that call and one that beats, not {more}");
    };
    works(open().await, open().await, sees).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn every_connection_of_a_url_is_encrypted() {
    let prefix = prefix();
    encrypts_all(async || {
        let builder = MySqlStore::builder().table_prefix(&prefix);
        let opened = builder.connect(&variable(URL)).await;
        opened.expect("the server answers")
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn every_connection_beside_a_pool_is_encrypted() {
    let prefix = prefix();
    let pool = MySqlPool::connect_lazy(&variable(URL)).expect("a URL");
    encrypts_all(async || {
        let builder = MySqlStore::builder().table_prefix(&prefix);
        let store = builder.pool(pool.clone()).expect("the options can be used");
        store.migrate().await.expect("the server answers");
        store
    })
    .await;
}

/// Neither the tables are made nor a body runs.
async fn refused(url: &str, reason: &str) {
    let options = url.parse().expect("a URL");
    let builder = MySqlStore::builder().connect_timeout(CONNECT_TIMEOUT);
    let store = builder.options(options).expect("the options can be used");
    is_refused(in_time(store.migrate()).await, reason);
    runs_nothing(store).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn what_is_not_encrypted_or_not_trusted_is_refused() {
    for (server, options, reason) in [
        (URL, "ssl-mode=VERIFY_IDENTITY", "certificate"),
        (URL, "ssl-mode=DISABLED", "1045"),
        (PLAIN_URL, "ssl-mode=REQUIRED", "does not support TLS"),
    ] {
        refused(&with_options(&variable(server), options), reason).await;
    }
}
