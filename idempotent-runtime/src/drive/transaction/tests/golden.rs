//! The golden files of transactions of our own: how each begins, and what it sets.

use expect_test::{ExpectFile, expect_file};

use super::super::{Isolation, database::sealed::OwnsTransactions};
use crate::store::sql::tests::golden::Golden;

fn begins_by_the_same_bytes<DB: OwnsTransactions>(file: ExpectFile) {
    let mut golden = Golden::default();
    for isolation in [
        None,
        Some(Isolation::ReadCommitted),
        Some(Isolation::RepeatableRead),
        Some(Isolation::Serializable),
    ] {
        let prepared = DB::prepare(isolation).join("\n-- message\n");
        golden.add(&format!("before {isolation:?}"), &prepared);
        golden.add(&format!("begins {isolation:?}"), &DB::begin(isolation));
    }
    golden.add("behind", DB::RESTORE.unwrap_or("none"));
    golden.is(file);
}

#[cfg(feature = "postgres")]
#[test]
fn golden_transactions_of_postgres_begin_by_the_same_bytes() {
    begins_by_the_same_bytes::<sqlx::Postgres>(expect_file!["golden/postgres.sql"]);
}

#[cfg(feature = "mysql")]
#[test]
fn golden_transactions_of_mysql_begin_by_the_same_bytes() {
    begins_by_the_same_bytes::<sqlx::MySql>(expect_file!["golden/mysql.sql"]);
}

#[cfg(feature = "sqlite")]
#[test]
fn golden_transactions_of_sqlite_begin_by_the_same_bytes() {
    begins_by_the_same_bytes::<sqlx::Sqlite>(expect_file!["golden/sqlite.sql"]);
}
