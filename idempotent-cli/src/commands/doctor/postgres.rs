//! A Postgres server.

use sqlx::PgPool;

use super::{Findings, Grade, sql};

pub(super) async fn examine(pool: &PgPool, prefix: &str, findings: &mut Findings) {
    sql::examine_tables!(pool, prefix, findings, i64);
    rows(pool, prefix, findings).await;
    setting(
        pool,
        findings,
        "autovacuum",
        |it| it == "on",
        (
            Grade::Serious,
            "dead rows are never given back: set `autovacuum = on`",
        ),
    )
    .await;
    setting(pool, findings, "default_transaction_isolation", |it| it == "read committed", (
        Grade::Hint,
        "statements of the store may fail for a conflict, and are tried again: READ COMMITTED is enough",
    ))
    .await;
    setting(
        pool,
        findings,
        "synchronous_commit",
        |it| it != "off",
        (
            Grade::Serious,
            "an outcome that was answered may be lost by a crash: set `synchronous_commit = on`",
        ),
    )
    .await;
    oldest_transaction(pool, findings).await;
}

async fn setting(
    pool: &PgPool,
    findings: &mut Findings,
    name: &'static str,
    is_fine: impl Fn(&str) -> bool,
    otherwise: (Grade, &str),
) {
    let value = sqlx::query_scalar("SELECT current_setting($1)").bind(name);
    match value.fetch_one(pool).await {
        Ok(value) => {
            let value: String = value;
            findings.check(is_fine(&value), (name, value.clone()), otherwise);
        }
        Err(error) => findings.unseen(name, &error),
    }
}

async fn rows(pool: &PgPool, prefix: &str, findings: &mut Findings) {
    let look = "SELECT n_live_tup, n_dead_tup, pg_total_relation_size(relid) \
                FROM pg_stat_user_tables WHERE relid = to_regclass($1)";
    let looked = sqlx::query_as(look).bind(format!("{prefix}records"));
    match looked.fetch_optional(pool).await {
        Ok(Some((live, dead, bytes))) => {
            let (live, dead, bytes): (i64, i64, i64) = (live, dead, bytes);
            sql::tell_size(bytes, findings);
            findings.check(
                dead <= live.max(10_000),
                ("dead rows", format!("{dead}, beside about {live} that live")),
                (
                    Grade::Hint,
                    "autovacuum does not keep up: look for old transactions, and let it run more often for this table",
                ),
            );
        }
        Ok(None) => findings.unseen("dead rows", &"the server has no numbers of the table yet"),
        Err(error) => findings.unseen("dead rows", &error),
    }
}

/// So many seconds a transaction may be open.
const LONG: i64 = 600;

async fn oldest_transaction(pool: &PgPool, findings: &mut Findings) {
    let look = "SELECT coalesce(extract(epoch FROM max(now() - xact_start)), 0)::bigint \
                FROM pg_stat_activity WHERE pid <> pg_backend_pid()";
    match sqlx::query_scalar(look).fetch_one(pool).await {
        Ok(seconds) => {
            let seconds: i64 = seconds;
            findings.check(
                seconds < LONG,
                ("oldest transaction", format!("{seconds} s")),
                (
                    Grade::Hint,
                    "it keeps dead rows of all tables: end it, or set `idle_in_transaction_session_timeout`",
                ),
            );
        }
        Err(error) => findings.unseen("oldest transaction", &error),
    }
}
