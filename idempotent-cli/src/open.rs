//! Opens the store that a URL names, and makes nothing in it.

use idempotent_runtime::{
    Idempotency, StoreError,
    store::{MySqlStore, PostgresStore, RedisStore, SqliteStore},
};
use sqlx::{
    MySqlPool, PgPool, SqlitePool,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};

use crate::failure::Failure;

/// A store that is open.
pub(crate) struct Opened {
    pub(crate) idem: Idempotency,
    pub(crate) place: Place,
    pub(crate) prefix: Option<String>,
}

/// The store itself, and what reaches it. URLs may hold a password.
pub(crate) enum Place {
    Sqlite(SqliteStore, SqlitePool),
    Postgres(PostgresStore, PgPool),
    MySql(MySqlStore, MySqlPool),
    /// The URLs of its nodes.
    Redis(Vec<String>),
    /// The program has opened it.
    Given,
}

/// A command is one task. The second connection is for a look beside a transaction.
const CONNECTIONS: u32 = 2;

impl Opened {
    pub(crate) fn given(idem: Idempotency) -> Self {
        Self {
            idem,
            place: Place::Given,
            prefix: None,
        }
    }

    /// Opens the store at this URL. A SQLite file that is missing is made only if `may_create`.
    pub(crate) async fn at(
        url: &str,
        prefix: Option<&str>,
        may_create: bool,
    ) -> Result<Self, Failure> {
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        let place = match scheme.to_ascii_lowercase().as_str() {
            "postgres" | "postgresql" => postgres(url, prefix)?,
            "mysql" | "mariadb" => mysql(url, prefix)?,
            "redis" | "rediss" | "redis+unix" | "unix" | "redis+cluster" | "rediss+cluster" => {
                return redis(url, prefix).await;
            }
            "" | "sqlite" => sqlite(url, prefix, may_create)?,
            _ if is_path(url) => sqlite(url, prefix, may_create)?,
            scheme => {
                return Err(Failure::Usage(format!(
                    "no store has URLs that begin with `{scheme}:`: say `sqlite:`, `postgres://`, \
                     `mysql://`, `redis://` or `redis+cluster://`"
                )));
            }
        };
        let idem = match &place {
            Place::Sqlite(store, _) => Idempotency::new(store.clone()),
            Place::Postgres(store, _) => Idempotency::new(store.clone()),
            Place::MySql(store, _) => Idempotency::new(store.clone()),
            Place::Redis(_) | Place::Given => unreachable!("they were opened above"),
        };
        Ok(Self {
            idem,
            place,
            prefix: prefix.map(str::to_owned),
        })
    }
}

impl Opened {
    /// Fails if this build cannot use the tables, such as those of a newer release.
    pub(crate) async fn check_schema(&self) -> Result<(), StoreError> {
        match &self.place {
            Place::Sqlite(store, _) => store.check_schema().await,
            Place::Postgres(store, _) => store.check_schema().await,
            Place::MySql(store, _) => store.check_schema().await,
            Place::Redis(_) | Place::Given => Ok(()),
        }
    }
}

/// Whether it is the path of a file, and no URL, such as `C:\payments.db`.
fn is_path(url: &str) -> bool {
    !url.contains("://") && std::path::Path::new(url).exists()
}

fn usage(error: &sqlx::Error) -> Failure {
    Failure::Usage(format!("the URL of the store cannot be used: {error}"))
}

fn postgres(url: &str, prefix: Option<&str>) -> Result<Place, Failure> {
    let options: PgConnectOptions = url.parse().map_err(|error| usage(&error))?;
    let options = options.application_name("idempotent");
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS);
    let pool = pool.connect_lazy_with(options);
    let mut store = PostgresStore::builder();
    if let Some(prefix) = prefix {
        store = store.table_prefix(prefix);
    }
    Ok(Place::Postgres(store.pool(pool.clone())?, pool))
}

fn mysql(url: &str, prefix: Option<&str>) -> Result<Place, Failure> {
    let options: MySqlConnectOptions = url.parse().map_err(|error| usage(&error))?;
    let pool = MySqlPoolOptions::new().max_connections(CONNECTIONS);
    let pool = pool.connect_lazy_with(options);
    let mut store = MySqlStore::builder();
    if let Some(prefix) = prefix {
        store = store.table_prefix(prefix);
    }
    Ok(Place::MySql(store.pool(pool.clone())?, pool))
}

fn sqlite(url: &str, prefix: Option<&str>, may_create: bool) -> Result<Place, Failure> {
    let options = match url.strip_prefix("sqlite:") {
        Some(_) => url.parse().map_err(|error| usage(&error))?,
        None => SqliteConnectOptions::new().filename(url),
    };
    let file = options.get_filename();
    let exists = file.exists();
    if !may_create && !exists {
        let file = file.display();
        return Err(Failure::NotFound(format!("there is no file {file}")));
    }
    // A table of records is not made by a mistyped path.
    let options = options.create_if_missing(may_create);
    let options = match may_create && !exists {
        true => options.journal_mode(SqliteJournalMode::Wal),
        false => options,
    };
    let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS);
    let pool = pool.connect_lazy_with(options);
    let mut store = SqliteStore::builder();
    if let Some(prefix) = prefix {
        store = store.table_prefix(prefix);
    }
    Ok(Place::Sqlite(store.pool(pool.clone())?, pool))
}

async fn redis(url: &str, prefix: Option<&str>) -> Result<Opened, Failure> {
    let mut store = RedisStore::builder();
    if let Some(prefix) = prefix {
        store = store.key_prefix(prefix);
    }
    let (store, nodes) = match nodes(url) {
        Some(nodes) => (store.connect_cluster(&nodes).await?, nodes),
        None => (store.connect(url).await?, vec![url.to_owned()]),
    };
    Ok(Opened {
        idem: Idempotency::new(store),
        place: Place::Redis(nodes),
        prefix: prefix.map(str::to_owned),
    })
}

/// The URLs of the nodes that the URL of a cluster names, all with the same user.
fn nodes(url: &str) -> Option<Vec<String>> {
    let (scheme, rest) = url.split_once("+cluster://")?;
    let (user, hosts) = match rest.rsplit_once('@') {
        Some((user, hosts)) => (format!("{user}@"), hosts),
        None => (String::new(), rest),
    };
    let hosts = hosts.trim_end_matches('/').split(',');
    Some(
        hosts
            .map(|host| format!("{scheme}://{user}{host}"))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::nodes;

    #[test]
    fn the_url_of_a_cluster_names_its_nodes() {
        let urls = nodes("rediss+cluster://app:word@a:1,b:2/").expect("a cluster");
        assert_eq!(urls, ["rediss://app:word@a:1", "rediss://app:word@b:2"]);
        assert_eq!(nodes("redis://a:1"), None);
    }
}
