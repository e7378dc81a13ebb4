mod golden;

use super::*;

async fn pragma(store: &SqliteStore, name: &'static str) -> String {
    let mut connection = store
        .inner
        .connections
        .acquire("testing")
        .await
        .expect("a connection");
    let query = sqlx::AssertSqlSafe(format!("SELECT CAST({name} AS TEXT) FROM pragma_{name}"));
    sqlx::query_scalar(query)
        .fetch_one(&mut *connection)
        .await
        .expect("the pragma is read")
}

#[tokio::test]
async fn a_file_is_synchronised_at_every_commit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = SqliteStore::open(folder.path().join("records.db"))
        .await
        .expect("the file opens");
    assert_eq!(pragma(&store, "journal_mode").await, "wal");
    assert_eq!(pragma(&store, "synchronous").await, "2");
}
