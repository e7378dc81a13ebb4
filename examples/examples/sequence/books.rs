//! The books: the tables of the account, and plain SQL on them.

use std::{path::Path, time::Duration};

use sqlx::{
    SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};

use super::plan::{Event, Figures};

#[derive(Debug, thiserror::Error)]
pub(super) enum ApplyError {
    #[error(transparent)]
    Idempotency(#[from] idempotent_runtime::Error),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Opens the file of the account.
pub(super) async fn open(file: &Path) -> Result<SqlitePool, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_secs(30));
    SqlitePoolOptions::new().connect_with(options).await
}

#[tokio::main(flavor = "current_thread")]
pub(super) async fn create(file: &Path) -> Result<(), sqlx::Error> {
    let pool = open(file).await?;
    let tables = "CREATE TABLE account (balance INTEGER NOT NULL, checksum INTEGER NOT NULL);
         CREATE TABLE events_applied (number INTEGER NOT NULL);
         INSERT INTO account VALUES (0, 0)";
    sqlx::raw_sql(tables).execute(&pool).await?;
    pool.close().await;
    Ok(())
}

/// Writes the rows of an event. The checksum depends on the order of the events.
pub(super) async fn book(tx: &mut SqliteConnection, event: &Event) -> Result<(), ApplyError> {
    let applied = sqlx::query("INSERT INTO events_applied VALUES (?)");
    applied
        .bind(event.number.cast_signed())
        .execute(&mut *tx)
        .await?;
    // Half of an event is written, and the process may be killed here.
    tokio::time::sleep(Duration::from_millis(1)).await;
    let account =
        "UPDATE account SET balance = balance + ?1, checksum = (checksum * 31 + ?1) % 1000003";
    sqlx::query(account).bind(event.cents).execute(tx).await?;
    Ok(())
}

/// Writes the rows of an event in a plain transaction, without a record of its number.
pub(super) async fn book_unprotected(pool: &SqlitePool, event: &Event) -> Result<(), ApplyError> {
    let mut tx = pool.begin().await?;
    book(&mut tx, event).await?;
    Ok(tx.commit().await?)
}

/// Reads the figures that the rows give.
pub(super) async fn read(pool: &SqlitePool) -> Result<Figures, sqlx::Error> {
    let figures = "SELECT (SELECT count(*) FROM events_applied), balance, checksum FROM account";
    let (events, balance, checksum) = sqlx::query_as(figures).fetch_one(pool).await?;
    Ok(Figures {
        events,
        balance,
        checksum,
    })
}
