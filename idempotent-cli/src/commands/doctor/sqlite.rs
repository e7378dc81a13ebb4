//! A SQLite file.

use sqlx::SqlitePool;

use super::{Findings, Grade, sql};

pub(super) async fn examine(pool: &SqlitePool, prefix: &str, findings: &mut Findings) {
    sql::examine_tables!(pool, prefix, findings, i64);
    match sqlx::query_scalar("PRAGMA journal_mode")
        .fetch_one(pool)
        .await
    {
        Ok(mode) => {
            let mode: String = mode;
            findings.check(
                mode == "wal",
                ("journal mode", mode.clone()),
                (
                    Grade::Hint,
                    "readers and the writer wait for each other: set `journal_mode = WAL`",
                ),
            );
        }
        Err(error) => findings.unseen("journal mode", &error),
    }
    let size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
    match sqlx::query_scalar(size).fetch_one(pool).await {
        Ok(bytes) => sql::tell_size(bytes, findings),
        Err(error) => findings.unseen("size", &error),
    }
    match sqlx::query_scalar("PRAGMA quick_check(1)")
        .fetch_one(pool)
        .await
    {
        Ok(said) => {
            let said: String = said;
            findings.check(
                said == "ok",
                ("file", said.clone()),
                (
                    Grade::Serious,
                    "the file is damaged: restore it from a backup",
                ),
            );
        }
        Err(error) => findings.unseen("file", &error),
    }
}
