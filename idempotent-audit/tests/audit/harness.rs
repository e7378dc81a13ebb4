//! A store and its trail, in a database that other tests may use, too.

use std::{fmt::Debug, future::Future};

use idempotent_audit::{Audit, AuditBuilder};
use idempotent_runtime::{
    __audit::{Dialect, Row},
    Idempotency, Store, StoreError,
    outbox::{Outbox, OutboxDatabase},
    store::{MySqlStore, PostgresStore, SqliteStore},
};
use sqlx::{
    MySql, Pool, Postgres, Sqlite,
    mysql::MySqlPoolOptions,
    postgres::PgPoolOptions,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};
use tempfile::TempDir;

/// Makes a test of each of these on each database.
macro_rules! on_every_database {
    ($($test:ident),* $(,)?) => {
        on_every_database! { @on sqlite Sqlite [] [$($test)*] }
        on_every_database! { @on postgres Postgres [#[ignore = "needs a server: cargo xtask test"]] [$($test)*] }
        on_every_database! { @on mariadb MySql [#[ignore = "needs a server: cargo xtask test"]] [$($test)*] }
    };
    (@on $name:ident $database:ident $attributes:tt [$($test:ident)*]) => {
        mod $name {
            on_every_database! { @each $database [$([$test $attributes])*] }
        }
    };
    (@each $database:ident [$([$test:ident [$($attribute:tt)*]])*]) => {
        $(
            $($attribute)*
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let shop = crate::harness::Shop::<sqlx::$database>::new().await;
                let test = super::$test(shop);
                let ended = tokio::time::timeout(std::time::Duration::from_secs(60), test).await;
                ended.expect("it ends");
            }
        )*
    };
}

/// A database that a shop can stand in.
pub(crate) trait Place: Dialect + OutboxDatabase {
    type Store: Store + Clone;

    const IS_SQLITE: bool = false;

    fn pool(folder: &TempDir) -> impl Future<Output = Pool<Self>> + Send;
    fn store(
        pool: &Pool<Self>,
        prefix: &str,
    ) -> impl Future<Output = Result<Self::Store, StoreError>> + Send;
    fn audit(pool: Pool<Self>) -> AuditBuilder;
}

/// The address of a server, which `cargo xtask test` starts.
pub(crate) fn url(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} names no server"))
}

impl Place for Postgres {
    type Store = PostgresStore;

    async fn pool(_: &TempDir) -> Pool<Self> {
        let pool = PgPoolOptions::new().max_connections(5);
        let pool = pool.connect(&url("IDEMPOTENT_TEST_POSTGRES_URL")).await;
        pool.expect("the server runs")
    }

    async fn store(pool: &Pool<Self>, prefix: &str) -> Result<PostgresStore, StoreError> {
        let store = PostgresStore::builder().table_prefix(prefix);
        let store = store.pool(pool.clone())?;
        store.migrate().await?;
        Ok(store)
    }

    fn audit(pool: Pool<Self>) -> AuditBuilder {
        Audit::postgres(pool)
    }
}

impl Place for MySql {
    type Store = MySqlStore;

    async fn pool(_: &TempDir) -> Pool<Self> {
        let pool = MySqlPoolOptions::new().max_connections(5);
        let pool = pool.connect(&url("IDEMPOTENT_TEST_MARIADB_URL")).await;
        pool.expect("the server runs")
    }

    async fn store(pool: &Pool<Self>, prefix: &str) -> Result<MySqlStore, StoreError> {
        let store = MySqlStore::builder().table_prefix(prefix);
        let store = store.pool(pool.clone())?;
        store.migrate().await?;
        Ok(store)
    }

    fn audit(pool: Pool<Self>) -> AuditBuilder {
        Audit::mysql(pool)
    }
}

impl Place for Sqlite {
    type Store = SqliteStore;

    const IS_SQLITE: bool = true;

    async fn pool(folder: &TempDir) -> Pool<Self> {
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("shop.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal);
        let pool = SqlitePoolOptions::new().max_connections(5);
        pool.connect_with(options).await.expect("a file")
    }

    async fn store(pool: &Pool<Self>, prefix: &str) -> Result<SqliteStore, StoreError> {
        let store = SqliteStore::builder().table_prefix(prefix);
        let store = store.pool(pool.clone())?;
        store.migrate().await?;
        Ok(store)
    }

    fn audit(pool: Pool<Self>) -> AuditBuilder {
        Audit::sqlite(pool)
    }
}

/// A store under a prefix of its own.
pub(crate) struct Shop<DB: Place> {
    pub(crate) pool: Pool<DB>,
    pub(crate) idem: Idempotency,
    pub(crate) prefix: String,
    _folder: TempDir,
}

/// An entry, as a person reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) number: i64,
    pub(crate) written: i64,
    pub(crate) source: String,
    pub(crate) kind: String,
    pub(crate) record: Option<Vec<u8>>,
    pub(crate) operation: Option<String>,
    pub(crate) step: Option<Vec<u8>>,
    pub(crate) label: Option<String>,
    /// The number of a stream.
    pub(crate) stream: Option<u64>,
    /// The states before and after.
    pub(crate) states: (Option<i64>, Option<i64>),
    pub(crate) attempt: Option<i64>,
    pub(crate) token: Option<i64>,
    pub(crate) holder: Option<String>,
    pub(crate) db_user: Option<String>,
    pub(crate) note: Option<String>,
    pub(crate) note_by: Option<String>,
    pub(crate) forgettable: Option<i64>,
    pub(crate) outcome_kind: Option<i64>,
    pub(crate) outcome_hash: Option<Vec<u8>>,
    pub(crate) hash_before: Option<Vec<u8>>,
}

const COLUMNS: &str = "number, written, source, kind, record, operation, step, label, stream, state_before, state_after, attempt, token, holder, db_user, note, note_by, forgettable, outcome_kind, outcome_hash, hash_before";

fn entry(row: &impl Row) -> Entry {
    let place = |column: &str| {
        let place = COLUMNS.split(", ").position(|it| it == column);
        place.expect("a column")
    };
    let number = |column| row.number(place(column)).expect("a number");
    let text = |column| row.text(place(column)).expect("a text");
    let bytes = |column| row.bytes(place(column)).expect("bytes");
    let stream = |it: Vec<u8>| u64::from_be_bytes(it.try_into().expect("eight bytes"));
    Entry {
        number: number("number").expect("one"),
        written: number("written").expect("one"),
        source: text("source").expect("one"),
        kind: text("kind").expect("one"),
        record: bytes("record"),
        operation: text("operation"),
        step: bytes("step"),
        label: text("label"),
        stream: bytes("stream").map(stream),
        states: (number("state_before"), number("state_after")),
        attempt: number("attempt"),
        token: number("token"),
        holder: text("holder"),
        db_user: text("db_user"),
        note: text("note"),
        note_by: text("note_by"),
        forgettable: number("forgettable"),
        outcome_kind: number("outcome_kind"),
        outcome_hash: bytes("outcome_hash"),
        hash_before: bytes("hash_before"),
    }
}

impl<DB: Place> Shop<DB> {
    pub(crate) async fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let pool = DB::pool(&folder).await;
        let prefix = format!("a{:016x}_", rand::random::<u64>());
        let store = DB::store(&pool, &prefix).await.expect("tables");
        let idem = Idempotency::builder(store).holder_name("till-3");
        Self {
            idem: idem.build().expect("a handle"),
            pool,
            prefix,
            _folder: folder,
        }
    }

    /// One whose trail stands.
    pub(crate) async fn audited(self) -> Self {
        self.audit().migrate().await.expect("the trail is made");
        self
    }

    pub(crate) fn audit(&self) -> AuditBuilder {
        DB::audit(self.pool.clone()).table_prefix(&self.prefix)
    }

    pub(crate) async fn outbox(&self) -> Outbox<DB> {
        let outbox = Outbox::new(&self.pool)
            .prefix(&self.prefix)
            .expect("a prefix");
        outbox.migrate().await.expect("tables");
        outbox
    }

    /// Runs statements of a person's, in which `{p}` is the prefix.
    pub(crate) async fn by_hand(&self, text: &str) -> Result<Vec<DB::Row>, StoreError> {
        let mut connection = self.pool.acquire().await.expect("a connection");
        let text = text.replace("{p}", &self.prefix);
        DB::query(&mut connection, text, "acting by hand").await
    }

    pub(crate) async fn done_by_hand(&self, text: &str) {
        self.by_hand(text).await.expect(text);
    }

    /// The entries, in the order of their numbers.
    pub(crate) async fn entries(&self) -> Vec<Entry> {
        let look = format!("SELECT {COLUMNS} FROM {{p}}audit ORDER BY number");
        let rows = self.by_hand(&look).await.expect("entries");
        rows.iter().map(entry).collect()
    }

    /// The entries of one table: kind, and states before and after.
    pub(crate) async fn told(&self, source: &str) -> Vec<(String, Option<i64>, Option<i64>)> {
        let entries = self.entries().await.into_iter();
        let entries = entries.filter(|entry| entry.source == source);
        entries
            .map(|entry| (entry.kind, entry.states.0, entry.states.1))
            .collect()
    }

    /// Fails if these are not the entries of this table.
    pub(crate) async fn expect(&self, source: &str, expected: &[(&str, Option<i64>, Option<i64>)]) {
        let told = self.told(source).await;
        let told: Vec<_> = told.iter().map(|it| (it.0.as_str(), it.1, it.2)).collect();
        assert_eq!(told, expected);
    }
}

/// The hash of an outcome in an entry: SQLite has the bytes until the entry is sealed.
pub(crate) fn hash<DB: Place>(bytes: &[u8]) -> Option<Vec<u8>> {
    use sha2::Digest as _;
    Some(match DB::IS_SQLITE {
        true => bytes.to_vec(),
        false => sha2::Sha256::digest(bytes).to_vec(),
    })
}

pub(crate) fn shows<T: Debug>(it: &T) -> String {
    format!("{it:?}")
}
