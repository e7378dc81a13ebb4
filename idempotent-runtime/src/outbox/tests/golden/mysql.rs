use expect_test::expect_file;
use sqlx::MySqlPool;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn golden_an_outbox_of_mariadb_sends_the_same_bytes() {
    let url = std::env::var("IDEMPOTENT_TEST_MARIADB_URL");
    let url = url.expect("`cargo xtask test` says where MariaDB is");
    let pool = MySqlPool::connect(&url).await.expect("the server answers");
    super::sends_the_same_bytes(pool, false, expect_file!["mysql.sql"]).await;
}
