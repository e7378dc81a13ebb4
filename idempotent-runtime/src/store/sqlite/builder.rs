//! How a SQLite store is set up.

use std::{path::Path, str::FromStr, time::Duration};

use sqlx::{
    ConnectOptions, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

use super::{
    SqliteStore,
    connections::{Connections, Held},
    failure,
    group_commit::Queue,
};
use crate::{
    store::{
        StoreError, StoreErrorKind,
        sql::{self, TablePrefix},
    },
    value::setters,
};

const DOING: &str = "opening the store";

/// The longest wait that SQLite can be told: it counts milliseconds in 32 bits.
const LONGEST_BUSY_TIMEOUT: Duration = Duration::from_millis(i32::MAX as u64);

/// Sets up a [`SqliteStore`].
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # use idempotent_runtime::store::SqliteStore;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("payments.db");
/// let store = SqliteStore::builder()
///     .table_prefix("billing_")
///     .busy_timeout(Duration::from_secs(2))
///     .open(path)
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct SqliteBuilder {
    prefix: Result<TablePrefix, StoreError>,
    busy_timeout: Duration,
}

impl SqliteBuilder {
    pub(super) fn new() -> Self {
        Self {
            prefix: Ok(TablePrefix::default()),
            busy_timeout: Duration::from_secs(5),
        }
    }

    setters! {
        /// Sets how the names of the store's tables begin: `idempotent_` unless set. One to 40
        /// ASCII letters, digits and underscores, not beginning with a digit, `sqlite_` or `pg_`;
        /// anything else is refused when the store is opened. Prefixes that differ only by upper
        /// and lower case name the same tables.
        table_prefix(it, prefix: &str) { it.prefix = sql::chosen(prefix, DOING) }

        /// Sets how long a statement waits for a lock that another connection holds: five seconds
        /// unless set, at most 24 days. Then the error is of the kind [`StoreErrorKind::Busy`]. A
        /// pool of the application keeps its own. In a file that the store opened, a call waits up
        /// to 30 seconds for the callers in line before it, whatever this says.
        busy_timeout(it, busy_timeout: Duration) { it.busy_timeout = busy_timeout }
    }

    /// Opens the file at `path`, or makes it, and brings its tables up to date. `":memory:"` names
    /// no file, but a database in memory: [`in_memory`](Self::in_memory) says so. A path that
    /// begins with `sqlite:` is the URL that it looks like. A path that begins with `file:`, or
    /// holds `://`, is refused. If a file is really called so, write `./` before it.
    ///
    /// # Errors
    ///
    /// As [`SqliteStore::open`], and [`StoreErrorKind::Configuration`] for an option that cannot be
    /// used.
    pub async fn open(self, path: impl AsRef<Path>) -> Result<SqliteStore, StoreError> {
        let path = path.as_ref();
        if path.as_os_str().is_empty() {
            return Err(misuse("the path of the database is empty"));
        }
        match path.to_str() {
            Some(url) if url.starts_with("sqlite:") => {
                return Box::pin(self.connect_url(url)).await;
            }
            Some(url) if is_url_of_another_kind(url) => {
                return Err(misuse(
                    "the path is the URL of something else: write the path of a file, or a URL that begins with `sqlite:`",
                ));
            }
            _ => {}
        }
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true);
        self.connect(durable(options)).await
    }

    /// Opens the database that a `sqlite:` URL names, such as `sqlite:payments.db` or
    /// `sqlite:payments.db?mode=rw`; it is made if it is missing, unless the URL says `mode=rw` or
    /// `mode=ro`.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and [`StoreErrorKind::Configuration`] for anything except a
    /// `sqlite:` URL.
    pub async fn connect_url(self, url: &str) -> Result<SqliteStore, StoreError> {
        let Some(place) = url.strip_prefix("sqlite:") else {
            return Err(misuse("the URL does not begin with `sqlite:`"));
        };
        let place = place.strip_prefix("//").unwrap_or(place);
        let (file, parameters) = place.split_once('?').unwrap_or((place, ""));
        if file.is_empty() {
            return Err(misuse("the URL names no database"));
        }
        if file == ":memory:" {
            return self.in_memory().await;
        }
        let options =
            SqliteConnectOptions::from_str(url).map_err(|error| failure::of(error, DOING))?;
        let create = !parameters.contains("mode=");
        let options = match create {
            true => options.create_if_missing(true),
            false => options,
        };
        self.connect(durable(options)).await
    }

    /// Makes a database in memory, which lives as long as the store and its clones.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Configuration`] for an option that cannot be used.
    pub async fn in_memory(self) -> Result<SqliteStore, StoreError> {
        // A name of its own lets a second connection, that of the heartbeats, reach the same
        // memory.
        let name = format!("file:/idempotent-{:032x}?vfs=memdb", rand::random::<u128>());
        let options = SqliteConnectOptions::new()
            .filename(name)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Memory);
        self.connect(options).await
    }

    /// Takes connections from the application's own pool, which is never closed. Durability is what
    /// the application chose: the default of SQLite is full. [`SqliteStore::migrate`] makes the
    /// tables.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Configuration`] for an option that cannot be used.
    pub fn pool(self, pool: SqlitePool) -> Result<SqliteStore, StoreError> {
        Ok(SqliteStore::over(
            Connections::Pool(pool),
            self.prefix?,
            None,
        ))
    }

    async fn connect(self, options: SqliteConnectOptions) -> Result<SqliteStore, StoreError> {
        let prefix = self.prefix?;
        if self.busy_timeout > LONGEST_BUSY_TIMEOUT {
            return Err(misuse("a busy timeout of more than 24 days cannot be set"));
        }
        let options = options
            .busy_timeout(self.busy_timeout)
            .disable_statement_logging();
        // The text before an `@` may be the password in a URL of something else.
        let file = options.get_filename().display().to_string();
        let file = file.rsplit('@').next().unwrap_or_default().to_owned();
        let open = async {
            let connections = Connections::Held(Held::open(options, DOING).await?);
            let is_in_wal = connections.is_in_wal(DOING).await?;
            let queue = is_in_wal.then(|| Queue::new(self.busy_timeout));
            let store = SqliteStore::over(connections, prefix, queue);
            store.migrate().await?;
            Ok(store)
        };
        open.await.map_err(|error: StoreError| error.at(file))
    }
}

fn is_url_of_another_kind(path: &str) -> bool {
    let is_path = path.starts_with(['/', '.']);
    !is_path && (path.contains("://") || path.starts_with("file:"))
}

/// An outcome that was recorded survives a loss of power: a commit is on the disk before it is
/// answered.
fn durable(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
}

fn misuse(why: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Configuration, DOING).with_source(why)
}
