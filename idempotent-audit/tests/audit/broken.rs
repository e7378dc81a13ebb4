//! A trail that was disabled, dropped or replaced does not stand.

use idempotent_audit::AuditError;
use idempotent_runtime::Error;
use sqlx::{MySql, Postgres, Sqlite};

use crate::harness::{Place, Shop};

on_every_database![
    each_trigger_that_is_missing_is_missed,
    an_entry_that_cannot_be_written_fails_the_call
];

async fn each_trigger_that_is_missing_is_missed<DB: Place>(shop: Shop<DB>) {
    shop.outbox().await;
    let shop = shop.audited().await;
    let triggers = match DB::NAME {
        "PostgreSQL" => {
            "SELECT tgname::text, tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal AND tgname LIKE '{p}audit%'"
        }
        "SQLite" => {
            "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger' AND name LIKE '{p}audit%'"
        }
        _ => {
            "SELECT trigger_name, event_object_table FROM information_schema.triggers WHERE trigger_name LIKE '{p}audit%'"
        }
    };
    let triggers = shop.by_hand(triggers).await.expect("triggers");
    assert!(triggers.len() >= 13, "{}", triggers.len());
    // MariaDB takes its time to make one.
    let each = if DB::NAME == "MySQL" { 5 } else { 1 };
    for trigger in triggers.iter().step_by(each) {
        let text = |place| {
            idempotent_runtime::__audit::Row::text(trigger, place)
                .ok()
                .flatten()
        };
        let (name, table) = (text(0).expect("a name"), text(1).expect("a table"));
        let drop = match DB::NAME {
            "PostgreSQL" => format!("DROP TRIGGER {name} ON {table}"),
            _ => format!("DROP TRIGGER {name}"),
        };
        shop.done_by_hand(&drop).await;
        assert_broken(&shop, "is missing").await;
        shop.audit().migrate().await.expect("it is made again");
        let entries = shop.entries().await;
        let last = entries.last().expect("an entry");
        let told = (last.label.as_deref(), last.note.as_deref());
        assert_eq!(told.0, Some("migrate"));
        assert!(
            told.1.is_some_and(|it| it.contains(&name.to_lowercase())),
            "{told:?}"
        );
    }
    shop.audit().connect().await.expect("it stands");
}

async fn assert_broken<DB: Place>(shop: &Shop<DB>, expected: &str) {
    match shop.audit().connect().await {
        Err(AuditError::Broken { flaw, .. }) => assert_eq!(flaw, expected),
        other => panic!("{other:?}"),
    }
}

async fn an_entry_that_cannot_be_written_fails_the_call<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    shop.done_by_hand("DROP TABLE {p}audit").await;
    let call = shop.idem.call("payments.charge").key("k");
    let refused = call.run(async |_| Ok::<_, Error>(7_u64)).await;
    let error = refused.expect_err("no entry, no call");
    assert!(
        error.to_string().contains("writing the entry of the audit"),
        "{error}"
    );
    let count = shop
        .by_hand("SELECT count(*) FROM {p}records")
        .await
        .expect("a table");
    assert_eq!(
        idempotent_runtime::__audit::Row::number(&count[0], 0).ok(),
        Some(Some(0))
    );
}

const OTHER: &str = "is disabled or has another text";

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn postgres_a_disabled_or_replaced_trigger_does_not_stand() {
    let shop = Shop::<Postgres>::new().await.audited().await;
    for change in [
        "ALTER TABLE {p}records DISABLE TRIGGER ALL",
        "ALTER TABLE {p}records DISABLE TRIGGER {p}audit_record_writes",
        "ALTER TABLE {p}records ENABLE TRIGGER {p}audit_record_writes",
        "CREATE OR REPLACE FUNCTION {p}audit_record_writes() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "ALTER FUNCTION {p}audit_record_writes() SECURITY INVOKER",
        "ALTER FUNCTION {p}audit_record_writes() RESET ALL",
        "DROP TRIGGER {p}audit_record_writes ON {p}records; CREATE TRIGGER {p}audit_record_writes AFTER INSERT ON {p}records FOR EACH ROW EXECUTE FUNCTION {p}audit_record_writes(); ALTER TABLE {p}records ENABLE ALWAYS TRIGGER {p}audit_record_writes",
        "DROP TRIGGER {p}audit_record_writes ON {p}records; CREATE TRIGGER {p}audit_record_writes AFTER INSERT OR UPDATE OR DELETE ON {p}records FOR EACH ROW WHEN (false) EXECUTE FUNCTION {p}audit_record_writes(); ALTER TABLE {p}records ENABLE ALWAYS TRIGGER {p}audit_record_writes",
    ] {
        let change = change.replace("WHEN (false)", "WHEN (pg_trigger_depth() > 5)");
        shop.done_by_hand(&change).await;
        assert_broken(&shop, OTHER).await;
        shop.audit().migrate().await.expect("it is made again");
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn postgres_refuses_to_truncate_and_to_change_events() {
    let shop = Shop::<Postgres>::new().await.audited().await;
    for change in [
        "TRUNCATE {p}records",
        "TRUNCATE {p}steps, {p}records",
        "TRUNCATE {p}audit_events",
        "UPDATE {p}audit_events SET event = 'other'",
        "DELETE FROM {p}audit_events",
    ] {
        shop.done_by_hand("INSERT INTO {p}audit_events (event) VALUES ('tried')")
            .await;
        let refused = shop.by_hand(change).await.map(drop).expect_err(change);
        assert!(
            refused.to_string().contains("the audit refuses"),
            "{refused}"
        );
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn mariadb_a_replaced_trigger_does_not_stand() {
    let shop = Shop::<MySql>::new().await.audited().await;
    let change = "DROP TRIGGER {p}audit_record_update; CREATE TRIGGER {p}audit_record_update AFTER UPDATE ON {p}records FOR EACH ROW BEGIN END";
    shop.done_by_hand(change).await;
    assert_broken(&shop, OTHER).await;
    shop.audit().migrate().await.expect("it is made again");
    shop.audit().connect().await.expect("it stands");
}

#[tokio::test]
async fn sqlite_a_replaced_trigger_does_not_stand() {
    let shop = Shop::<Sqlite>::new().await.audited().await;
    let change = "DROP TRIGGER {p}audit_record_update; CREATE TRIGGER {p}audit_record_update AFTER UPDATE ON {p}records WHEN 0 BEGIN SELECT 1; END";
    shop.done_by_hand(change).await;
    assert_broken(&shop, OTHER).await;
    shop.audit().migrate().await.expect("it is made again");
    shop.audit().connect().await.expect("it stands");
}
