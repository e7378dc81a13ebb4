//! A trail is made beside calls, again and again, and finds the records that are older.

use std::{path::PathBuf, process::Command};

use expect_test::expect_file;
use idempotent_audit::AuditError;
use idempotent_runtime::Error;
use sqlx::{MySql, MySqlPool, PgPool, Postgres, Sqlite, SqlitePool};

use crate::harness::{Place, Shop, url};

on_every_database![
    a_trail_is_made_once_however_often_that_is_asked_for,
    older_records_get_an_entry_each,
    a_change_of_an_older_record_before_its_turn_is_no_divergence,
    without_the_store_there_is_nothing_to_audit,
    an_outbox_that_comes_later_is_audited_by_the_next_migration,
    a_trail_is_made_beside_an_open_transaction_under_traffic,
];

async fn pay<DB: Place>(shop: &Shop<DB>, key: &str) {
    let call = shop.idem.call("payments.charge").key(key);
    call.run(async |_| Ok::<_, Error>(7_u64))
        .await
        .expect("a call");
}

async fn a_trail_is_made_once_however_often_that_is_asked_for<DB: Place>(shop: Shop<DB>) {
    let (one, other) = (shop.audit(), shop.audit());
    let (one, other) = tokio::join!(one.migrate(), other.migrate());
    assert_eq!((one, other), (Ok(()), Ok(())));
    pay(&shop, "k").await;
    shop.audit().migrate().await.expect("it stands");
    assert_eq!(shop.entries().await.len(), 2);
    shop.audit().connect().await.expect("it stands");
}

async fn older_records_get_an_entry_each<DB: Place>(shop: Shop<DB>) {
    for key in 0..5 {
        pay(&shop, &key.to_string()).await;
    }
    let shop = shop.audited().await;
    let found = ("found", None, Some(2));
    shop.expect("record", &[found; 5]).await;
    shop.audit().migrate().await.expect("it stands");
    shop.expect("record", &[found; 5]).await;
}

/// The triggers are there, and the entries of older rows are not yet.
async fn a_change_of_an_older_record_before_its_turn_is_no_divergence<DB: Place>(shop: Shop<DB>) {
    for key in ["deleted", "changed"] {
        pay(&shop, key).await;
    }
    let shop = shop.audited().await;
    shop.done_by_hand("UPDATE {p}audit_schema SET found = 0; DELETE FROM {p}audit")
        .await;
    let deleted = shop.idem.settle("payments.charge", None::<&str>, "deleted");
    let deleted = DB::bytes(deleted.expect("a key").id().as_bytes());
    shop.done_by_hand(&format!("DELETE FROM {{p}}records WHERE id = {deleted}"))
        .await;
    shop.done_by_hand("UPDATE {p}records SET state = 3").await;
    shop.audit().migrate().await.expect("it goes on");
    let audit = shop.audit().connect().await.expect("it stands");
    while audit.seal().await.expect("it seals") > 0 {}
    let report = audit.verify().run().await.expect("it can be read");
    assert_eq!(report.divergence, None, "{report:?}");
}

async fn without_the_store_there_is_nothing_to_audit<DB: Place>(shop: Shop<DB>) {
    let elsewhere = shop.audit().table_prefix("nowhere_");
    let refused = elsewhere.migrate().await;
    assert!(
        matches!(refused, Err(AuditError::NoRecords { .. })),
        "{refused:?}"
    );
    let refused = shop.audit().connect().await.map(drop);
    assert!(
        matches!(refused, Err(AuditError::Broken { .. })),
        "{refused:?}"
    );
}

async fn an_outbox_that_comes_later_is_audited_by_the_next_migration<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    shop.outbox().await;
    let refused = shop.audit().connect().await.map(drop);
    assert!(
        matches!(refused, Err(AuditError::Broken { .. })),
        "{refused:?}"
    );
    shop.audit().migrate().await.expect("it goes on");
    shop.audit().connect().await.expect("it stands");
}

/// A released trigger changes only with a version of its own: stores have it.
#[tokio::test]
async fn the_scripts_stay_as_they_are() {
    let postgres = PgPool::connect_lazy("postgres://nowhere").expect("a pool");
    let mysql = MySqlPool::connect_lazy("mysql://nowhere").expect("a pool");
    let sqlite = SqlitePool::connect_lazy("sqlite:nowhere").expect("a pool");
    let script = |audit: idempotent_audit::AuditBuilder| audit.ddl().expect("a prefix");
    expect_file!["golden/postgres.sql"].assert_eq(&script(Postgres::audit(postgres)));
    expect_file!["golden/mysql.sql"].assert_eq(&script(MySql::audit(mysql)));
    expect_file!["golden/sqlite.sql"].assert_eq(&script(Sqlite::audit(sqlite)));
}

/// The path of a program that comes with a server.
pub(crate) fn program(name: &str) -> PathBuf {
    let folders = url("IDEMPOTENT_TEST_PROGRAMS");
    let mut programs = folders
        .split(':')
        .map(|folder| PathBuf::from(folder).join(name));
    programs.find(|program| program.exists()).expect(name)
}

/// Runs a script by the client of a server.
pub(crate) fn run_by(client: &str, arguments: &[&str], script: &str) {
    let mut run = Command::new(program(client));
    let run = run.args(arguments).stdin(std::process::Stdio::piped());
    let run = run.stdout(std::process::Stdio::null());
    let mut running = run.spawn().expect("it starts");
    let mut input = running.stdin.take().expect("an input");
    std::io::Write::write_all(&mut input, script.as_bytes()).expect("it reads");
    drop(input);
    assert!(running.wait().expect("it ends").success());
}

/// The arguments by which the programs of MariaDB reach the server; the last one is the database.
pub(crate) fn arguments_of_mariadb() -> [String; 4] {
    let server = url("IDEMPOTENT_TEST_MARIADB_URL");
    let server = server.trim_start_matches("mysql://idempotent@127.0.0.1:");
    let (port, database) = server.split_once('/').expect("an address");
    let port = format!("--port={port}");
    ["--host=127.0.0.1", &port, "--user=idempotent", database].map(str::to_owned)
}

/// A transaction that keeps a table in use delays it, and calls go on.
async fn a_trail_is_made_beside_an_open_transaction_under_traffic<DB: Place>(shop: Shop<DB>) {
    pay(&shop, "there").await;
    let mut open = shop.pool.begin().await.expect("a transaction");
    let hold = match DB::NAME {
        "PostgreSQL" => "LOCK TABLE {p}records IN ROW EXCLUSIVE MODE",
        "SQLite" => "UPDATE {p}records SET holder = 'somebody'",
        _ => "SELECT count(*) FROM {p}records",
    };
    let hold = hold.replace("{p}", &shop.prefix);
    DB::query(&mut open, hold, "holding")
        .await
        .expect("it is held");
    let audit = shop.audit();
    let (made, ()) = tokio::join!(audit.migrate(), async {
        let until = tokio::time::Instant::now() + std::time::Duration::from_secs(3);
        let mut key = 0;
        let older = "DELETE FROM {p}records WHERE attempt = 1";
        while tokio::time::Instant::now() < until {
            if DB::IS_SQLITE {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            } else {
                pay(&shop, &key.to_string()).await;
            }
            key += 1;
        }
        open.rollback().await.expect("it ends");
        let _it_may_be_busy = shop.by_hand(older).await;
    });
    assert_eq!(made, Ok(()));
    let audit = shop.audit().connect().await.expect("it stands");
    while audit.seal().await.expect("it seals") > 0 {}
    let report = audit.verify().run().await.expect("it can be read");
    assert_eq!(report.divergence, None, "{report:?}");
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn postgres_a_script_makes_the_same_trail() {
    let shop = Shop::<Postgres>::new().await;
    let script = shop.audit().ddl().expect("a prefix");
    let server = url("IDEMPOTENT_TEST_POSTGRES_URL");
    run_by(
        "psql",
        &[&server, "--quiet", "--set=ON_ERROR_STOP=1"],
        &script,
    );
    shop.audit().connect().await.expect("it stands");
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn mariadb_a_script_makes_the_same_trail() {
    let shop = Shop::<MySql>::new().await;
    let script = shop.audit().ddl().expect("a prefix");
    run_by(
        "mariadb",
        &arguments_of_mariadb().each_ref().map(String::as_str),
        &script,
    );
    shop.audit().connect().await.expect("it stands");
}

#[tokio::test]
async fn sqlite_a_script_makes_the_same_trail() {
    let shop = Shop::<Sqlite>::new().await;
    let script = shop.audit().ddl().expect("a prefix");
    shop.done_by_hand(&script).await;
    shop.audit().connect().await.expect("it stands");
}
