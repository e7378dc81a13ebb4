//! The differences from server to server.

use std::sync::Arc;

use idempotent_runtime::store::{MySqlStore, PostgresStore, RedisStore, Store, StoreError};
use sqlx::{Connection, MySqlConnection, PgConnection};

/// A kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    Postgres,
    MariaDb,
    Redis,
}

impl Product {
    /// Makes the data, before the server runs; `{}` is the folder.
    pub(super) fn prepare(self) -> &'static [&'static str] {
        match self {
            Self::Postgres => &[
                "initdb",
                "--username=idempotent",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
                // The promise of durability begins when the server runs.
                "--no-sync",
                "--wal-segsize=1",
                "--pgdata={}/data",
            ],
            Self::MariaDb => &[
                "mariadb-install-db",
                "--no-defaults",
                "--datadir={}/data",
                "--auth-root-authentication-method=normal",
                "--innodb-log-file-size=4M",
            ],
            Self::Redis => &["true"],
        }
    }

    /// Runs the server, as durable as in production.
    pub(super) fn serve(self) -> &'static [&'static str] {
        match self {
            Self::Postgres => &[
                "postgres",
                "-D{}/data",
                "-clisten_addresses=",
                "-cunix_socket_directories={}",
                "-cmin_wal_size=2MB",
                "-cmax_wal_size=8MB",
            ],
            Self::MariaDb => &[
                "mariadbd",
                "--no-defaults",
                "--datadir={}/data",
                "--skip-networking",
                "--socket={}/socket",
                "--pid-file={}/pid",
                "--innodb-log-file-size=4M",
                "--innodb-flush-log-at-trx-commit=1",
            ],
            Self::Redis => &[
                "sh",
                "-c",
                r#"exec "$(command -v redis-server || command -v valkey-server)" "$@""#,
                "redis",
                "--port",
                "0",
                "--unixsocket",
                "{}/socket",
                "--dir",
                "{}",
                "--save",
                "",
            ],
        }
    }

    pub(super) fn url(self) -> &'static str {
        match self {
            Self::Postgres => "postgres://idempotent@localhost/postgres?host={}",
            Self::MariaDb => "mysql://root@localhost/test?socket={}/socket",
            Self::Redis => "redis+unix://{}/socket",
        }
    }

    /// The signal by which an operator ends it: it takes no more clients, and does not wait for
    /// those that are there.
    pub(super) fn orderly(self) -> &'static str {
        match self {
            Self::Postgres => "INT",
            Self::MariaDb | Self::Redis => "TERM",
        }
    }

    /// The signal that ends it at once, with its children and its shared memory.
    pub(super) fn at_once(self) -> &'static str {
        match self {
            Self::Postgres => "QUIT",
            Self::MariaDb | Self::Redis => "KILL",
        }
    }

    pub(super) async fn answers(self, url: &str) -> bool {
        match self {
            Self::Postgres => match PgConnection::connect(url).await {
                Ok(side) => side.close().await.is_ok(),
                Err(_) => false,
            },
            Self::MariaDb => match MySqlConnection::connect(url).await {
                Ok(side) => side.close().await.is_ok(),
                Err(_) => false,
            },
            Self::Redis => {
                let client = redis::Client::open(url).expect("a URL");
                match client.get_multiplexed_async_connection().await {
                    // Redis refuses this while it reads its file.
                    Ok(mut side) => redis::cmd("DBSIZE").exec_async(&mut side).await.is_ok(),
                    Err(_) => false,
                }
            }
        }
    }

    /// A client of the library.
    pub(in crate::servers) async fn connect(self, url: &str) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self {
            Self::Postgres => Arc::new(PostgresStore::connect(url).await?),
            Self::MariaDb => Arc::new(MySqlStore::connect(url).await?),
            Self::Redis => {
                let builder = RedisStore::builder().accept_at_most_once_until_failover();
                Arc::new(builder.connect(url).await?)
            }
        })
    }
}
