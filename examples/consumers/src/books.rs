//! The invoices, in an SQLite file.

use std::{path::Path, time::Duration};

use idempotent_runtime::ErrorVerdict;
use serde::{Deserialize, Serialize};
use sqlx::{
    SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};

use crate::orders::Order;

/// Nothing here refuses a second invoice of one order.
const TABLES: &str = "
    CREATE TABLE invoices (number INTEGER NOT NULL, cents INTEGER NOT NULL);
    CREATE TABLE mishaps (number INTEGER PRIMARY KEY)";

pub(crate) async fn open(file: &Path) -> Result<SqlitePool, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_secs(30));
    SqlitePoolOptions::new().connect_with(options).await
}

pub(crate) async fn create(file: &Path) -> Result<SqlitePool, sqlx::Error> {
    let pool = open(file).await?;
    sqlx::raw_sql(TABLES).execute(&pool).await?;
    Ok(pool)
}

/// An order that is free stays so: its error is recorded. An error of the database passes.
#[derive(Debug, Serialize, Deserialize, ErrorVerdict, thiserror::Error)]
pub(crate) enum InvoiceError {
    #[verdict(replay)]
    #[error("there is nothing to pay")]
    Free,
    #[serde(skip)]
    #[verdict(release)]
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// The effect of an order.
pub(crate) async fn invoice(tx: &mut SqliteConnection, order: &Order) -> Result<(), InvoiceError> {
    if order.cents == 0 {
        return Err(InvoiceError::Free);
    }
    let invoice = sqlx::query("INSERT INTO invoices VALUES (?, ?)");
    invoice
        .bind(order.number)
        .bind(order.cents)
        .execute(tx)
        .await?;
    Ok(())
}

/// Whether the mishap of this order is still to come. It comes once.
pub(crate) async fn is_first_mishap(pool: &SqlitePool, number: u32) -> Result<bool, sqlx::Error> {
    let mishap = sqlx::query("INSERT INTO mishaps VALUES (?) ON CONFLICT DO NOTHING");
    Ok(mishap.bind(number).execute(pool).await?.rows_affected() == 1)
}

/// The number of each invoice and its cents.
pub(crate) async fn invoices(pool: &SqlitePool) -> Result<Vec<(u32, i64)>, sqlx::Error> {
    let invoices = sqlx::query_as("SELECT number, cents FROM invoices ORDER BY number");
    invoices.fetch_all(pool).await
}
