//! Bodies that wait for a lock of their own transaction: on SQLite, where it has the whole file.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    Error, Idempotency, StepContext, step_in, store::SqliteStore, transaction::transaction,
};
use sqlx::{
    ConnectOptions, Connection, SqlitePool,
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
    let call = || idem.call("orders.place").key("k").release_errors();
    let placed = call().transact(&pool, async |_| body().await).await;
    let around = transaction(&pool, async |_| body().await).await;
    let step = async || step_in("post", &pool, async |_, _: StepContext| body().await).await;
    let stepped = call().run(async |_| step().await).await;
    let unprotected = call().unprotected().run(async |_| step().await).await;

    for (answer, name) in [
        (placed, "transact"),
        (around, "transaction"),
        (stepped, "step_in"),
        (unprotected, "step_in without a record"),
    ] {
        let Err(LedgerError::Idempotency(Error::InvalidPolicy(why))) = answer else {
            panic!("{name}: {answer:?}")
        };
        assert!(why.contains("none on the pool"), "{why}");
    }
    assert_eq!(runs.into_inner(), 4, "each body ran once");
    let call = idem.call("orders.place").key("k").release_errors();
    let again = call.transact(&pool, async |tx| {
        let insert = sqlx::query("INSERT INTO orders VALUES (7)");
        Ok::<_, LedgerError>(insert.execute(tx).await?.rows_affected())
    });
    assert_eq!(again.await.ok(), Some(1), "the key is free");
}

#[tokio::test]
async fn mend_25_a_lock_of_another_file_is_not_taken_for_its_own() {
    let (folder, other) = (tempfile::tempdir(), tempfile::tempdir());
    let (folder, other) = (folder.expect("a folder"), other.expect("a folder"));
    let (store, pool) = pool(&folder).await;
    let path = other.path().join("other.db");
    let locked = SqliteStore::builder().busy_timeout(Duration::from_millis(20));
    let locked = locked.open(&path).await.expect("the file opens");
    let options = SqliteConnectOptions::new().filename(&path);
    let mut holder = options.connect().await.expect("the file opens");
    sqlx::query("BEGIN IMMEDIATE")
        .execute(&mut holder)
        .await
        .expect("a lock");
    let (idem, beside) = (Idempotency::new(store), Idempotency::new(locked));
    let holder = Mutex::new(Some(holder));
    let call = idem.call("orders.place").key("k").release_errors();
    let placed = call.transact(&pool, async |_| {
        let inner = beside.call("stock.reserve").key("k").release_errors();
        let reserved = inner.run(async |_| Ok::<_, LedgerError>(7)).await;
        let holder = holder.lock().expect("no panic").take();
        if let Some(holder) = holder {
            holder.close().await?;
        }
        reserved
    });
    assert_eq!(
        placed.await.map_err(|error| format!("{error:?}")),
        Ok(7),
        "it ran again"
    );
}
