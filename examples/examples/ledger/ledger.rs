//! The ledger: a process that books transfers, and may be killed at any moment.

use std::{
    collections::VecDeque,
    io::{Write as _, stdout},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    Error, Idempotency, idempotent, store::SqliteStore, transaction::transaction,
};
use serde::{Deserialize, Serialize};
use sqlx::{
    SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};

use super::{Failure, Transfer};

#[derive(Debug, thiserror::Error)]
enum PostError {
    #[error(transparent)]
    Idempotency(#[from] Error),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Books a transfer as a part of a transaction: its record commits with these rows.
#[idempotent(name = "ledger.post", key = transfer.id, tx = tx, on_error = release, skip(ran))]
async fn post(
    tx: &mut SqliteConnection,
    transfer: &Transfer,
    ran: &AtomicBool,
) -> Result<(), PostError> {
    ran.store(true, Ordering::SeqCst);
    book(tx, transfer).await
}

async fn book(tx: &mut SqliteConnection, transfer: &Transfer) -> Result<(), PostError> {
    let Transfer {
        id,
        from,
        to,
        cents,
    } = *transfer;
    for (account, cents) in [(from, -cents), (to, cents)] {
        let entry = sqlx::query("INSERT INTO entries VALUES (?, ?, ?)");
        entry
            .bind(id)
            .bind(account)
            .bind(cents)
            .execute(&mut *tx)
            .await?;
        let balance = sqlx::query("UPDATE accounts SET cents = cents + ? WHERE id = ?");
        balance.bind(cents).bind(account).execute(&mut *tx).await?;
        // Half of a transfer is written, and the process may be killed here.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

/// Posts in a transaction of its own; whether the body ran.
async fn handle(
    pool: &SqlitePool,
    transfer: &Transfer,
    protected: bool,
) -> Result<bool, PostError> {
    let ran = AtomicBool::new(!protected);
    transaction(pool, async |tx| match protected {
        true => post(tx, transfer, &ran).await,
        false => book(tx, transfer).await,
    })
    .await?;
    Ok(ran.into_inner())
}

/// The name of this process on its command line.
pub(super) const ROLE: &str = "--ledger";

/// The transfers that this process is to book, by the number of their delivery.
#[derive(Serialize, Deserialize)]
pub(super) struct Work {
    pub(super) file: PathBuf,
    pub(super) protected: bool,
    pub(super) deliveries: VecDeque<(usize, Transfer)>,
}

/// Opens the file of the ledger.
pub(super) async fn open(file: &Path) -> Result<SqlitePool, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_secs(30));
    SqlitePoolOptions::new().connect_with(options).await
}

/// Books all of them in eight tasks. It says `begin` and the number before each one, and `applied`
/// or `replayed` after it.
#[tokio::main]
pub(super) async fn run(work: Work) -> Result<(), Failure> {
    let pool = open(&work.file).await?;
    Idempotency::new(SqliteStore::open(&work.file).await?).install()?;
    let deliveries = Arc::new(Mutex::new(work.deliveries));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (pool, deliveries) = (pool.clone(), Arc::clone(&deliveries));
        tasks.spawn(async move {
            let next = || {
                let mut deliveries = deliveries.lock().unwrap_or_else(PoisonError::into_inner);
                deliveries.pop_front()
            };
            while let Some((number, transfer)) = next() {
                say("begin", number)?;
                let ran = handle(&pool, &transfer, work.protected).await?;
                say(if ran { "applied" } else { "replayed" }, number)?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

fn say(word: &str, number: usize) -> Result<(), Failure> {
    let mut output = stdout().lock();
    writeln!(output, "{word} {number}")?;
    Ok(output.flush()?)
}
