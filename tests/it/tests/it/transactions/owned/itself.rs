//! Bodies that wait for a lock of their own transaction: on SQLite, where it has the whole file.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use idempotent_runtime::{Error, Idempotency, store::SqliteStore, transaction::transaction};
use sqlx::{
    SqlitePool,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};

#[derive(Debug, thiserror::Error)]
enum LedgerError {
    #[error(transparent)]
    Idempotency(#[from] Error),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// A pool that gives up soon.
async fn pool(folder: &tempfile::TempDir) -> (SqliteStore, SqlitePool) {
    let path = folder.path().join("shop.db");
    let store = SqliteStore::open(&path).await.expect("the file opens");
    let options = SqliteConnectOptions::new().filename(&path);
    let options = options.busy_timeout(Duration::from_millis(50));
    let pool = SqlitePoolOptions::new().connect_with(options).await;
    let pool = pool.expect("the file opens");
    let created = sqlx::query("CREATE TABLE orders (item BIGINT NOT NULL)");
    created.execute(&pool).await.expect("a table");
    (store, pool)
}

#[tokio::test]
async fn mend_25_a_body_that_uses_the_pool_in_place_of_tx_is_told_so_at_its_first_try() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, pool) = pool(&folder).await;
    let idem = Idempotency::new(store);
    let runs = AtomicU32::new(0);
    let body = async || {
        runs.fetch_add(1, Ordering::SeqCst);
        let insert = sqlx::query("INSERT INTO orders VALUES (7)");
        insert.execute(&pool).await?;
        Ok::<_, LedgerError>(())
    };
    let call = idem.call("orders.place").key("k").release_errors();
    let placed = call.transact(&pool, async |_| body().await).await;
    let around = transaction(&pool, async |_| body().await).await;

    for (answer, name) in [(placed, "transact"), (around, "transaction")] {
        let Err(LedgerError::Idempotency(Error::InvalidPolicy(why))) = answer else {
            panic!("{name}: {answer:?}")
        };
        assert!(why.contains("none on the pool"), "{why}");
    }
    assert_eq!(runs.into_inner(), 2, "each body ran once");
    let call = idem.call("orders.place").key("k").release_errors();
    let again = call.transact(&pool, async |tx| {
        let insert = sqlx::query("INSERT INTO orders VALUES (7)");
        Ok::<_, LedgerError>(insert.execute(tx).await?.rows_affected())
    });
    assert_eq!(again.await.ok(), Some(1), "the key is free");
}
