//! The place of the records, in a form that a process can be told.

use std::{path::Path, sync::Arc};

use idempotent_runtime::store::{SqliteStore, Store};
use serde::{Deserialize, Serialize};

use crate::servers;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Place {
    /// A SQLite file in the folder of the test.
    File,
    /// Tables of this prefix.
    Postgres(String),
    MariaDb(String),
    /// Keys of this prefix.
    Redis(String),
    RedisCluster(String),
}

impl Place {
    pub(super) fn sqlite() -> Self {
        Self::File
    }

    pub(super) fn postgres() -> Self {
        Self::Postgres(servers::prefix())
    }

    pub(super) fn mariadb() -> Self {
        Self::MariaDb(servers::prefix())
    }

    pub(super) fn redis() -> Self {
        Self::Redis(servers::prefix())
    }

    pub(super) fn redis_cluster() -> Self {
        Self::RedisCluster(servers::prefix())
    }

    /// The server, by the variable that holds its URL. Nothing if a client goes its own ways, or to
    /// no server.
    pub(super) fn server(&self) -> Option<(&'static str, String)> {
        let name = match self {
            Place::File | Place::RedisCluster(_) => return None,
            Place::Postgres(_) => "IDEMPOTENT_TEST_POSTGRES_URL",
            Place::MariaDb(_) => "IDEMPOTENT_TEST_MARIADB_URL",
            Place::Redis(_) => "IDEMPOTENT_TEST_REDIS_URL",
        };
        Some((name, servers::url(name)))
    }

    /// Opens the store with connections of its own.
    pub(super) async fn open(&self, folder: &Path) -> Arc<dyn Store> {
        match self {
            Place::File => {
                let store = SqliteStore::open(folder.join("idempotency.db")).await;
                Arc::new(store.expect("the store opens"))
            }
            Place::Postgres(prefix) => Arc::new(servers::Postgres::open_at(prefix).await),
            Place::MariaDb(prefix) => Arc::new(servers::MariaDb::open_at(prefix).await),
            Place::Redis(prefix) => Arc::new(servers::Redis::open_at(prefix).await),
            Place::RedisCluster(prefix) => Arc::new(servers::RedisCluster::open_at(prefix).await),
        }
    }
}

/// Makes a test of each of these at each place.
macro_rules! everywhere {
    ($($test:ident),* $(,)?) => {
        everywhere! { @at sqlite [] [$($test)*] }
        everywhere! { @at postgres [#[ignore = "needs a server: cargo xtask test"]] [$($test)*] }
        everywhere! { @at mariadb [#[ignore = "needs a server: cargo xtask test"]] [$($test)*] }
        everywhere! { @at redis [#[ignore = "needs a server: cargo xtask test"]] [$($test)*] }
        everywhere! { @at redis_cluster [#[ignore = "needs a server: cargo xtask test"]] [$($test)*] }
    };
    (@at $place:ident $attributes:tt [$($test:ident)*]) => {
        mod $place {
            everywhere! { @each $place [$([$test $attributes])*] }
        }
    };
    (@each $place:ident [$([$test:ident [$($attribute:tt)*]])*]) => {
        $(
            $($attribute)*
            #[tokio::test(flavor = "current_thread")]
            async fn $test() {
                super::$test($crate::processes::place::Place::$place()).await;
            }
        )*
    };
}
