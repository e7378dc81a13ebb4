//! Stores whose records are audited: a trail changes no answer.
//!
//! With `IDEMPOTENT_TEST_AUDITED=1` every store of a server is audited, whatever the test.

use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use idempotent_audit::Audit;
use idempotent_runtime::{store::Store, testing::conformance::StoreUnderTest};
use sqlx::{MySqlPool, PgPool, SqlitePool};

use crate::conformance::File;

pub(crate) fn is_everything() -> bool {
    std::env::var("IDEMPOTENT_TEST_AUDITED").is_ok_and(|value| value == "1")
}

pub(crate) async fn in_postgres(url: &str, prefix: &str) {
    let pool = PgPool::connect(url).await.expect("the server answers");
    let audit = Audit::postgres(pool.clone()).table_prefix(prefix);
    audit.migrate().await.expect("a trail");
    pool.close().await;
}

pub(crate) async fn in_mysql(url: &str, prefix: &str) {
    let pool = MySqlPool::connect(url).await.expect("the server answers");
    let audit = Audit::mysql(pool.clone()).table_prefix(prefix);
    audit.migrate().await.expect("a trail");
    pool.close().await;
}

async fn in_sqlite(path: &Path) {
    let url = format!("sqlite:{}", path.display());
    let pool = SqlitePool::connect(&url).await.expect("the file opens");
    Audit::sqlite(pool.clone())
        .migrate()
        .await
        .expect("a trail");
    pool.close().await;
}

/// A file with a trail.
struct AuditedFile(File);

impl AuditedFile {
    async fn new() -> Self {
        let file = File::new();
        drop(file.store().await);
        in_sqlite(&file.path()).await;
        Self(file)
    }
}

#[async_trait]
impl StoreUnderTest for AuditedFile {
    async fn store(&self) -> Arc<dyn Store> {
        self.0.store().await
    }
    async fn advance(&self, by: Duration) {
        self.0.advance(by).await;
    }
}

mod sqlite {
    idempotent_runtime::conformance_tests!(super::AuditedFile::new().await);
}

mod postgres {
    idempotent_runtime::conformance_tests!(
        crate::servers::Postgres::audited().await,
        #[ignore = "needs a server: cargo xtask test"]
    );
}

mod mariadb {
    idempotent_runtime::conformance_tests!(
        crate::servers::MariaDb::audited().await,
        #[ignore = "needs a server: cargo xtask test"]
    );
}

mod mariadb_or_mysql {
    idempotent_runtime::conformance_tests!(
        crate::servers::MariaDb::or_mysql_audited().await,
        #[ignore = "needs a server: cargo xtask test"]
    );
}
