use std::time::Duration;

use expect_test::expect_file;
use sqlx::{
    SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn golden_an_outbox_of_sqlite_sends_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("outbox.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_secs(30));
    let pool = SqlitePool::connect_with(options).await.expect("a file");
    super::sends_the_same_bytes(pool, false, expect_file!["sqlite.sql"]).await;
}
