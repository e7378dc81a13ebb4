use expect_test::expect_file;
use sqlx::PgPool;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn golden_an_outbox_of_postgres_sends_the_same_bytes() {
    let url = std::env::var("IDEMPOTENT_TEST_POSTGRES_URL");
    let url = url.expect("`cargo xtask test` says where Postgres is");
    let pool = PgPool::connect(&url).await.expect("the server answers");
    super::sends_the_same_bytes(pool, true, expect_file!["postgres.sql"]).await;
}
