//! Opens the store that a URL names, and makes nothing in it.

use std::time::Duration;

use idempotent_runtime::{
    Builder, Idempotency, IntoDuration, StoreError,
    store::{MySqlStore, PostgresStore, RedisStore, SqliteStore},
};
use sqlx::{
    MySqlPool, PgPool, SqlitePool,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};

use crate::{args::StoreArgs, failure::Failure};

/// A store that is open.
pub(crate) struct Opened {
    pub(crate) idem: Idempotency,
    pub(crate) place: Place,
    pub(crate) prefix: Option<String>,
    pub(crate) audit_retention: Option<Duration>,
}

/// The settings that the application has, too.
#[derive(Debug)]
pub(crate) struct Settings {
    prefix: Option<String>,
    audit_retention: Option<Duration>,
}

impl Settings {
    pub(crate) fn read(args: &StoreArgs) -> Result<Self, Failure> {
        let retention = args.audit_retention.as_deref();
        let retention = retention.map(IntoDuration::into_duration).transpose()?;
        Ok(Self {
            prefix: args.prefix.clone(),
            audit_retention: retention,
        })
    }
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
            audit_retention: None,
        }
    }

    /// Opens the store at this URL. A SQLite file that is missing is made only if `may_create`.
    pub(crate) async fn at(
        url: &str,
        settings: Settings,
        may_create: bool,
    ) -> Result<Self, Failure> {
        let Settings {
            prefix,
            audit_retention,
        } = settings;
        let named = prefix.as_deref();
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        let (place, builder) = match scheme.to_ascii_lowercase().as_str() {
            "postgres" | "postgresql" => postgres(url, named)?,
            "mysql" | "mariadb" => mysql(url, named)?,
            "redis" | "rediss" | "redis+unix" | "unix" | "redis+cluster" | "rediss+cluster" => {
                redis(url, named).await?
            }
            "" | "sqlite" => sqlite(url, named, may_create)?,
            _ if is_path(url) => sqlite(url, named, may_create)?,
            scheme => {
                return Err(Failure::Usage(format!(
                    "no store has URLs that begin with `{scheme}:`: say `sqlite:`, `postgres://`, \
                     `mysql://`, `redis://` or `redis+cluster://`"
                )));
            }
        };
        let builder = builder.audit_retention(audit_retention.unwrap_or_default());
        Ok(Self {
            idem: builder.build()?,
            place,
            prefix,
            audit_retention,
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

fn postgres(url: &str, prefix: Option<&str>) -> Result<(Place, Builder), Failure> {
    let options: PgConnectOptions = url.parse().map_err(|error| usage(&error))?;
    let options = options.application_name("idempotent");
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS);
    let pool = pool.connect_lazy_with(options);
    let mut store = PostgresStore::builder();
    if let Some(prefix) = prefix {
        store = store.table_prefix(prefix);
    }
    let store = store.pool(pool.clone())?;
    let builder = Idempotency::builder(store.clone());
    Ok((Place::Postgres(store, pool), builder))
}

fn mysql(url: &str, prefix: Option<&str>) -> Result<(Place, Builder), Failure> {
    let options: MySqlConnectOptions = url.parse().map_err(|error| usage(&error))?;
    let pool = MySqlPoolOptions::new().max_connections(CONNECTIONS);
    let pool = pool.connect_lazy_with(options);
    let mut store = MySqlStore::builder();
    if let Some(prefix) = prefix {
        store = store.table_prefix(prefix);
    }
    let store = store.pool(pool.clone())?;
    let builder = Idempotency::builder(store.clone());
    Ok((Place::MySql(store, pool), builder))
}

fn sqlite(url: &str, prefix: Option<&str>, may_create: bool) -> Result<(Place, Builder), Failure> {
    let options = match url.strip_prefix("sqlite:") {
        Some(_) => url.parse().map_err(|error| usage(&error))?,
        None => SqliteConnectOptions::new().filename(url),
    };
    let file = options.get_filename();
    let is_nowhere = file.as_os_str().is_empty() || url.contains("mode=memory");
    if is_nowhere || file.as_os_str() == ":memory:" || url.ends_with(":memory:") {
        return Err(Failure::Usage(
            "the URL names no file: a database in memory ends with this command".to_owned(),
        ));
    }
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
    let store = store.pool(pool.clone())?;
    let builder = Idempotency::builder(store.clone());
    Ok((Place::Sqlite(store, pool), builder))
}

async fn redis(url: &str, prefix: Option<&str>) -> Result<(Place, Builder), Failure> {
    let mut store = RedisStore::builder();
    if let Some(prefix) = prefix {
        store = store.key_prefix(prefix);
    }
    let (store, nodes) = match nodes(url) {
        Some(nodes) => (store.connect_cluster(&nodes).await?, nodes),
        None => (store.connect(url).await?, vec![url.to_owned()]),
    };
    Ok((Place::Redis(nodes), Idempotency::builder(store)))
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
