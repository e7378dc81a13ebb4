//! The cost of `transact` beside the same transaction without us: two accounts change, and a line
//! is written, over the same kind of pool. `IDEMPOTENT_TEST_POSTGRES_URL` and
//! `IDEMPOTENT_TEST_MARIADB_URL` say where the servers are; SQLite needs none.

use std::time::Duration;

use benches::{
    Ratios,
    calls::{fresh, spread},
};
use idempotent_runtime::{
    Error, Idempotency,
    store::{MySqlStore, PostgresStore, SqliteStore},
    transaction::SqlDatabase,
};
use sqlx::{
    AssertSqlSafe, Database, Executor, MySql, Pool, Postgres, Sqlite,
    mysql::MySqlPoolOptions,
    postgres::PgPoolOptions,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::runtime::Runtime;

const AT_ONCE: [usize; 2] = [1, 16];

#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize)]
enum TransferError {
    #[error(transparent)]
    Idempotency(#[from] Error),
    #[error("{0}")]
    Database(String),
}

impl From<sqlx::Error> for TransferError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.to_string())
    }
}

/// A bank, and its store.
struct Bank<DB: Database> {
    pool: Pool<DB>,
    idem: Idempotency,
}

impl<DB: Database> Clone for Bank<DB> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            idem: self.idem.clone(),
        }
    }
}

/// A database in which money is moved.
trait Moves: SqlDatabase {
    const BEGIN: &'static str;

    /// Moves a cent between the two accounts of a task.
    fn transfer(
        tx: &mut Self::Connection,
        task: usize,
        id: u64,
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;
}

macro_rules! moves {
    ($database:ident, $begin:literal, $change:literal, $line:literal) => {
        impl Moves for $database {
            const BEGIN: &'static str = $begin;

            async fn transfer(
                tx: &mut Self::Connection,
                task: usize,
                id: u64,
            ) -> Result<u64, sqlx::Error> {
                let first = i64::try_from(2 * task).unwrap_or(0);
                for (account, cents) in [(first, -1_i64), (first + 1, 1)] {
                    let change = sqlx::query($change).bind(cents).bind(account);
                    change.execute(&mut *tx).await?;
                }
                let line = sqlx::query($line).bind(id.cast_signed()).bind(first);
                line.execute(tx).await?;
                Ok(id)
            }
        }
    };
}
moves!(
    Postgres,
    "BEGIN",
    "UPDATE bench_accounts SET cents = cents + $1 WHERE id = $2",
    "INSERT INTO bench_lines (id, account) VALUES ($1, $2)"
);
moves!(
    MySql,
    "START TRANSACTION",
    "UPDATE bench_accounts SET cents = cents + ? WHERE id = ?",
    "INSERT INTO bench_lines (id, account) VALUES (?, ?)"
);
moves!(
    Sqlite,
    "BEGIN IMMEDIATE",
    "UPDATE bench_accounts SET cents = cents + ? WHERE id = ?",
    "INSERT INTO bench_lines (id, account) VALUES (?, ?)"
);

async fn bare<DB: Moves>(bank: Bank<DB>, task: usize) {
    let mut tx = bank.pool.begin_with(DB::BEGIN).await.expect("it begins");
    let moved = DB::transfer(&mut tx, task, fresh()).await;
    moved.expect("money is moved");
    tx.commit().await.expect("it commits");
}

async fn released<DB: Moves>(bank: Bank<DB>, task: usize) {
    let id = fresh();
    let call = bank.idem.call("bank.transfer").key(&id).arguments(&id);
    let moved = call.release_errors().transact(&bank.pool, async |tx| {
        Ok::<_, TransferError>(DB::transfer(tx, task, id).await?)
    });
    moved.await.expect("money is moved");
}

async fn replayed<DB: Moves>(bank: Bank<DB>, task: usize) {
    let id = fresh();
    let call = bank.idem.call("bank.transfer").key(&id).arguments(&id);
    let moved = call.transact(&bank.pool, async |tx| {
        Ok::<_, TransferError>(DB::transfer(tx, task, id).await?)
    });
    moved.await.expect("money is moved");
}

/// Makes the tables, with two accounts a task.
async fn tables<DB: Database>(pool: &Pool<DB>)
where
    for<'c> &'c Pool<DB>: Executor<'c, Database = DB>,
{
    let accounts: Vec<_> = (0..32).map(|id| format!("({id}, 0)")).collect();
    for statement in [
        "DROP TABLE IF EXISTS bench_accounts".to_owned(),
        "DROP TABLE IF EXISTS bench_lines".to_owned(),
        "CREATE TABLE bench_accounts (id BIGINT PRIMARY KEY, cents BIGINT NOT NULL)".to_owned(),
        "CREATE TABLE bench_lines (id BIGINT PRIMARY KEY, account BIGINT NOT NULL)".to_owned(),
        format!("INSERT INTO bench_accounts VALUES {}", accounts.join(", ")),
    ] {
        let made = sqlx::raw_sql(AssertSqlSafe(statement)).execute(pool).await;
        made.expect("a table");
    }
}

fn compare<DB: Moves>(runtime: &Runtime, product: &'static str, bank: &Bank<DB>, times: u32) {
    let mut ratios = Ratios::new(product, "without us");
    for tasks in AT_ONCE {
        ratios.time(
            format!("errors released, {tasks} at once"),
            times,
            spread(runtime, tasks, bank, released::<DB>),
            spread(runtime, tasks, bank, bare::<DB>),
        );
        ratios.time(
            format!("errors recorded, {tasks} at once"),
            times,
            spread(runtime, tasks, bank, replayed::<DB>),
            spread(runtime, tasks, bank, bare::<DB>),
        );
    }
    ratios.print();
}

fn main() {
    if !benches::is_measuring() {
        return;
    }
    let runtime = Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let bank = runtime.block_on(async {
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("bank.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(30));
        let pool = SqlitePoolOptions::new().max_connections(16);
        let pool = pool.connect_with(options).await.expect("a file");
        tables(&pool).await;
        let store = SqliteStore::new(pool.clone());
        store.migrate().await.expect("tables");
        let idem = Idempotency::new(store);
        Bank { pool, idem }
    });
    compare(&runtime, "transactions on SQLite", &bank, 100);
    if let Some(url) = benches::server("IDEMPOTENT_TEST_POSTGRES_URL") {
        let bank = runtime.block_on(async {
            let pool = PgPoolOptions::new().max_connections(16).connect(&url).await;
            let pool = pool.expect("the server answers");
            tables(&pool).await;
            let store = PostgresStore::new(pool.clone());
            store.migrate().await.expect("tables");
            let idem = Idempotency::new(store);
            Bank { pool, idem }
        });
        compare(&runtime, "transactions on Postgres", &bank, 320);
    }
    if let Some(url) = benches::server("IDEMPOTENT_TEST_MARIADB_URL") {
        let bank = runtime.block_on(async {
            let pool = MySqlPoolOptions::new().max_connections(16).connect(&url);
            let pool = pool.await.expect("the server answers");
            tables(&pool).await;
            let store = MySqlStore::new(pool.clone());
            store.migrate().await.expect("tables");
            let idem = Idempotency::new(store);
            Bank { pool, idem }
        });
        compare(&runtime, "transactions on MariaDB", &bank, 320);
    }
}
