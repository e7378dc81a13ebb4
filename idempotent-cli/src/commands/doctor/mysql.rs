//! A MariaDB or MySQL server.

use sqlx::MySqlPool;

use super::{Findings, Grade, sql};

/// The longest outcome, in bytes, with what stands around it in a statement.
const LONGEST: i64 = 16 << 20;

pub(super) async fn examine(pool: &MySqlPool, prefix: &str, findings: &mut Findings) {
    sql::examine_tables!(pool, prefix, findings, i32);
    isolation(pool, findings).await;
    number(
        pool,
        findings,
        "sql_safe_updates",
        |it| it == 0,
        (
            Grade::Hint,
            "the store switches it off for its own connections, and a pool of yours does not",
        ),
    )
    .await;
    number(
        pool,
        findings,
        "max_allowed_packet",
        |it| it >= LONGEST,
        (
            Grade::Hint,
            "a long outcome or message is refused: 16 MiB are usual",
        ),
    )
    .await;
    number(
        pool,
        findings,
        "innodb_flush_log_at_trx_commit",
        |it| it == 1,
        (
            Grade::Serious,
            "an outcome that was answered may be lost by a crash: set it to 1",
        ),
    )
    .await;
    size(pool, prefix, findings).await;
}

async fn isolation(pool: &MySqlPool, findings: &mut Findings) {
    // Newer servers of one kind have the one name, those of the other kind the other.
    let look = "SELECT variable_value FROM information_schema.global_variables \
                WHERE variable_name = 'TX_ISOLATION'";
    let other = "SELECT @@global.transaction_isolation";
    let first = sqlx::query_scalar(look).fetch_one(pool).await;
    let said = match first {
        Ok(said) => Ok(said),
        Err(_) => sqlx::query_scalar(other).fetch_one(pool).await,
    };
    match said {
        Ok(said) => {
            let said: String = said;
            findings.check(
                said != "SERIALIZABLE" && said != "READ-UNCOMMITTED",
                ("isolation", said.clone()),
                (
                    Grade::Hint,
                    "the store sets its own, and a transaction of yours does not",
                ),
            );
        }
        Err(error) => findings.unseen("isolation", &error),
    }
}

async fn number(
    pool: &MySqlPool,
    findings: &mut Findings,
    name: &'static str,
    is_fine: impl Fn(i64) -> bool,
    otherwise: (Grade, &str),
) {
    let look = format!("SELECT CAST(@@global.{name} AS SIGNED)");
    match sqlx::query_scalar(sqlx::AssertSqlSafe(look))
        .fetch_one(pool)
        .await
    {
        Ok(value) => {
            let value: i64 = value;
            findings.check(is_fine(value), (name, value.to_string()), otherwise);
        }
        Err(error) => findings.unseen(name, &error),
    }
}

async fn size(pool: &MySqlPool, prefix: &str, findings: &mut Findings) {
    let look = "SELECT CAST(coalesce(sum(data_length + index_length), 0) AS SIGNED) \
                FROM information_schema.tables WHERE table_schema = database() AND table_name IN (?, ?)";
    let looked = sqlx::query_scalar(look)
        .bind(format!("{prefix}records"))
        .bind(format!("{prefix}steps"));
    match looked.fetch_one(pool).await {
        Ok(bytes) => sql::tell_size(bytes, findings),
        Err(error) => findings.unseen("size", &error),
    }
}
