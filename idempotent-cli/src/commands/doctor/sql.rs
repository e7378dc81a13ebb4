//! Looks that all SQL stores share: rights, versions of the schema, steps without a record.

use super::{Findings, Grade};

/// A statement that changes nothing, and for which a right is needed all the same.
pub(super) fn needs_rights(prefix: &str) -> [(&'static str, String); 3] {
    let records = format!("{prefix}records");
    [
        (
            "the right to insert",
            format!("INSERT INTO {records} SELECT * FROM {records} WHERE 1 = 0"),
        ),
        (
            "the right to update",
            format!("UPDATE {records} SET attempt = attempt WHERE 1 = 0"),
        ),
        (
            "the right to delete",
            format!("DELETE FROM {records} WHERE 1 = 0"),
        ),
    ]
}

/// The steps whose record is gone, of the first thousand of them.
pub(super) fn orphans(prefix: &str) -> String {
    format!(
        "SELECT count(*) FROM (SELECT step.record FROM {prefix}steps AS step \
         LEFT JOIN {prefix}records AS call_of_it ON call_of_it.id = step.record \
         WHERE call_of_it.id IS NULL LIMIT 1000) AS orphans"
    )
}

/// The versions of the schema, and the oldest build that can use it.
pub(super) fn versions(prefix: &str) -> String {
    format!("SELECT max(version), max(usable_from) FROM {prefix}schema")
}

pub(super) fn tell_orphans(orphans: i64, findings: &mut Findings) {
    let more = if orphans >= 1_000 { ", or more" } else { "" };
    findings.check(
        orphans == 0,
        (
            "orphaned steps",
            format!("{orphans} steps have no record{more}"),
        ),
        (
            Grade::Hint,
            "records were deleted by hand: delete the steps, too, once you know why",
        ),
    );
}

pub(super) fn tell_versions(version: i64, usable_from: i64, findings: &mut Findings) {
    findings.fine(
        "schema version",
        format!("{version}, for builds that know version {usable_from} or a later one"),
    );
}

pub(super) fn tell_size(bytes: i64, findings: &mut Findings) {
    findings.fine("size", format!("{} MiB", bytes.max(0) >> 20));
}

/// Does the looks that are alike with a pool of this database.
macro_rules! examine_tables {
    ($pool:ident, $prefix:ident, $findings:ident, $number:ty) => {
        for (subject, statement) in sql::needs_rights($prefix) {
            match sqlx::query(sqlx::AssertSqlSafe(statement))
                .execute($pool)
                .await
            {
                Ok(_) => $findings.fine(subject, "it is there"),
                Err(error) => $findings.add(
                    $crate::commands::doctor::Grade::Serious,
                    subject,
                    error.to_string(),
                    "calls need it: grant it to the application's user, if this is that user",
                ),
            }
        }
        let versions = sqlx::query_as(sqlx::AssertSqlSafe(sql::versions($prefix)));
        match versions.fetch_one($pool).await {
            Ok((version, usable_from)) => {
                let (version, usable_from): ($number, $number) = (version, usable_from);
                sql::tell_versions(version.into(), usable_from.into(), $findings);
            }
            Err(error) => $findings.unseen("schema version", &error),
        }
        let orphans = sqlx::query_scalar(sqlx::AssertSqlSafe(sql::orphans($prefix)));
        match orphans.fetch_one($pool).await {
            Ok(orphans) => sql::tell_orphans(orphans, $findings),
            Err(error) => $findings.unseen("orphaned steps", &error),
        }
    };
}
pub(super) use examine_tables;
