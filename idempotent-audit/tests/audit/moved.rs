//! A trail that is dumped and restored stands, and holds.

use std::process::Command;

use idempotent_audit::{Audit, AuditBuilder};
use idempotent_runtime::{__audit::Dialect, Error};
use sqlx::{MySql, MySqlPool, PgPool, Postgres, Sqlite, SqlitePool};

use crate::{
    harness::{Place, Shop, url},
    made::{arguments_of_mariadb, program, run_by},
};

async fn pay<DB: Place>(shop: &Shop<DB>) {
    let call = shop.idem.call("payments.charge").key("k");
    call.run(async |_| Ok::<_, Error>(7_u64))
        .await
        .expect("a call");
}

/// The restored trail stands, has each entry once, and its chain holds.
async fn assert_holds(restored: AuditBuilder) {
    let audit = restored.connect().await.expect("it stands");
    let report = audit.verify().run().await.expect("it can be read");
    assert_eq!((report.entries, report.divergence), (2, None));
}

async fn sealed<DB: Place>() -> Shop<DB> {
    let shop = Shop::<DB>::new().await.audited().await;
    pay(&shop).await;
    let audit = shop.audit().connect().await.expect("it stands");
    assert_eq!(audit.seal().await, Ok(2));
    shop
}

/// The address of another database of a server.
fn elsewhere(server: &str, database: &str) -> String {
    let (server, _) = server.rsplit_once('/').expect("a database");
    format!("{server}/{database}")
}

fn dumped(dump: &mut Command) -> String {
    let dumped = dump.output().expect("it starts");
    assert!(
        dumped.status.success(),
        "{}",
        String::from_utf8_lossy(&dumped.stderr)
    );
    String::from_utf8(dumped.stdout).expect("SQL")
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn postgres_a_restored_dump_holds() {
    let shop = sealed::<Postgres>().await;
    let server = url("IDEMPOTENT_TEST_POSTGRES_URL");
    let (tables, functions) = (format!("{}*", shop.prefix), &shop.prefix);
    let mut dump = Command::new(program("pg_dump"));
    let tables = dumped(dump.args([&server, "--no-owner", "--table", &tables]));
    let functions = "SELECT pg_get_functiondef(oid) || ';' FROM pg_proc WHERE proname LIKE '{p}%'"
        .replace("{p}", functions);
    let mut dump = Command::new(program("psql"));
    let functions = dumped(dump.args([
        &server,
        "--tuples-only",
        "--no-align",
        "--command",
        &functions,
    ]));

    let database = format!("restored_{}", shop.prefix.trim_end_matches('_'));
    shop.done_by_hand(&format!("CREATE DATABASE {database}"))
        .await;
    let restored = elsewhere(&server, &database);
    let script = format!("SET check_function_bodies = off; {functions}\n{tables}");
    run_by(
        "psql",
        &[&restored, "--quiet", "--set=ON_ERROR_STOP=1"],
        &script,
    );
    let pool = PgPool::connect(&restored)
        .await
        .expect("the server answers");
    assert_holds(Audit::postgres(pool.clone()).table_prefix(&shop.prefix)).await;
    pool.close().await;
    shop.done_by_hand(&format!("DROP DATABASE {database}"))
        .await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn mariadb_a_restored_dump_holds() {
    let shop = sealed::<MySql>().await;
    let (server, own) = (url("IDEMPOTENT_TEST_MARIADB_URL"), arguments_of_mariadb());
    let tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE '{p}%'";
    let tables = shop.by_hand(tables).await.expect("tables");
    let tables = tables.iter().map(|row| {
        idempotent_runtime::__audit::Row::text(row, 0)
            .ok()
            .flatten()
            .expect("a name")
    });
    let mut dump = Command::new(program("mariadb-dump"));
    let dump = dump
        .args(&own[..3])
        .args(["--triggers", "--hex-blob"])
        .arg(&own[3]);
    let dump = dumped(dump.args(tables));

    let database = format!("restored_{}", shop.prefix.trim_end_matches('_'));
    shop.done_by_hand(&format!("CREATE DATABASE {database}"))
        .await;
    let arguments = [&own[0], &own[1], &own[2], &database].map(String::as_str);
    run_by("mariadb", &arguments, &dump);
    let restored = elsewhere(&server, &database);
    let pool = MySqlPool::connect(&restored)
        .await
        .expect("the server answers");
    assert_holds(Audit::mysql(pool.clone()).table_prefix(&shop.prefix)).await;
    pool.close().await;
    shop.done_by_hand(&format!("DROP DATABASE {database}"))
        .await;
}

#[tokio::test]
async fn sqlite_a_copy_holds() {
    let shop = sealed::<Sqlite>().await;
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("copy.db").display().to_string();
    shop.done_by_hand(&format!("VACUUM INTO {}", Sqlite::text(&copy)))
        .await;
    let pool = SqlitePool::connect(&format!("sqlite:{copy}"))
        .await
        .expect("the file opens");
    assert_holds(Audit::sqlite(pool).table_prefix(&shop.prefix)).await;
}
