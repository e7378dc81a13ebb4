//! The golden files of SQLite.

use expect_test::expect_file;
use sqlx::{AssertSqlSafe, Executor, Row, Sqlite};

use super::super::{
    SqliteStore,
    connections::{HARMLESS, JOURNAL_MODE, LOCKING_MODE},
    group_commit::ROLLBACK,
    migrate,
    statements::{Statements, Together},
};
use crate::store::{
    TransactionStore,
    sql::{
        migrate::Schema as _,
        tests::golden::{Golden, here_is, id, of_schema, prefix},
    },
};

/// Each statement.
fn each(of: &Statements) -> Golden {
    let mut golden = Golden::default();
    let Statements {
        load,
        create,
        replace,
        finish,
        purge,
        scan,
        load_steps,
        list_steps,
        write_step,
        looks,
        creates,
        finishes,
        here,
    } = of;
    for (name, text) in [
        ("load", load),
        ("create", create),
        ("replace", replace),
        ("finish", finish),
        ("purge", purge),
        ("scan", scan),
        ("load_steps", load_steps),
        ("list_steps", list_steps),
        ("write_step", write_step),
    ] {
        golden.add(name, text);
    }
    golden.add("here", here.as_deref().unwrap_or("none"));
    let together: [(&str, &Together); 3] = [
        ("looks", looks),
        ("creates", creates),
        ("finishes", finishes),
    ];
    for (name, together) in together {
        let places = together.places();
        for records in [1, 2, 8] {
            let name = format!("{name}, {records} records, {places:?}");
            golden.add(&name, &together.of(records));
        }
    }
    golden
}

#[test]
fn golden_statements_outside_and_inside_a_transaction_are_the_same_bytes() {
    let of = Statements::new(&prefix());
    each(&of).is(expect_file!["golden/statements.sql"]);
    each(&of.inside(&here_is())).is(expect_file!["golden/statements_inside.sql"]);
}

#[test]
fn golden_migrations_are_the_same_bytes() {
    let mut golden = Golden::default();
    golden.add("lock", migrate::LOCK);
    golden.add("the look for the library", &migrate::library());
    golden.add(
        "the look for the table of the records",
        &Sqlite::stands("golden_records"),
    );
    of_schema::<Sqlite>(&mut golden, "");
    golden.is(expect_file!["golden/migrations.sql"]);
}

#[tokio::test]
async fn golden_sessions_are_set_up_by_the_same_bytes() {
    let mut golden = Golden::default();
    golden.add("the look for a log", JOURNAL_MODE);
    golden.add("the look for a lock", LOCKING_MODE);
    golden.add("the look for a transaction", HARMLESS);
    golden.add("what undoes several writes", ROLLBACK);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = SqliteStore::builder().table_prefix("golden_");
    let file = file.open(folder.path().join("records.db")).await;
    let memory = SqliteStore::builder().table_prefix("golden_").in_memory();
    let stores = [("a file", file), ("memory", memory.await)];
    for (name, store) in stores {
        let store = store.expect("it opens");
        for name_of in PRAGMAS {
            let value = pragma(&store, name_of).await;
            golden.add(&format!("{name_of} of {name}"), &value);
        }
        let query = store.version_query(&id(1)).expect("it has one");
        golden.add(&format!("the look for a version in {name}"), &query);
    }
    golden.is(expect_file!["golden/sessions.sql"]);
}

async fn pragma(store: &SqliteStore, name: &str) -> String {
    let connection = store.inner.connections.acquire("testing").await;
    let mut connection = connection.expect("a connection");
    let query = AssertSqlSafe(format!("PRAGMA {name}"));
    let row = connection.fetch_one(query).await.expect("it is read");
    row.get_unchecked(0)
}

/// The settings of a session, as they arrive.
const PRAGMAS: [&str; 5] = [
    "journal_mode",
    "synchronous",
    "busy_timeout",
    "locking_mode",
    "foreign_keys",
];
