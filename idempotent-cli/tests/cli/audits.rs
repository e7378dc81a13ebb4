//! `audit`: a trail is sealed, verified, exported, held and pruned, and people approve.

use std::fs;

use idempotent_audit::{Audit, AuditBuilder};
use sqlx::{MySqlPool, PgPool, SqlitePool};
use tempfile::TempDir;

use crate::shop::Shop;

/// Makes a test of each function for every store that can have a trail.
macro_rules! on_every_trail {
    ($($test:ident)*) => {
        $(
            mod $test {
                #[tokio::test]
                async fn sqlite() {
                    super::$test(crate::shop::Shop::sqlite().await).await;
                }

                #[tokio::test]
                #[ignore = "needs servers: cargo xtask test"]
                async fn postgres() {
                    super::$test(crate::shop::Shop::postgres().await).await;
                }

                #[tokio::test]
                #[ignore = "needs servers: cargo xtask test"]
                async fn mariadb() {
                    super::$test(crate::shop::Shop::mariadb().await).await;
                }
            }
        )*
    };
}

on_every_trail! {
    a_trail_is_sealed_and_verified
    a_change_of_the_trail_is_found
    an_export_is_a_new_file_and_a_manifest
    what_is_held_is_not_pruned
    a_second_person_approves
}

/// The audit of a shop, as its program has it.
async fn builder(shop: &Shop) -> AuditBuilder {
    let url = shop.url();
    let audit = match url.split(':').next() {
        Some("sqlite") => Audit::sqlite(SqlitePool::connect(url).await.expect("a file")),
        Some("postgres") => Audit::postgres(PgPool::connect(url).await.expect("a server")),
        _ => Audit::mysql(MySqlPool::connect(url).await.expect("a server")),
    };
    match shop.prefix() {
        Some(prefix) => audit.table_prefix(prefix),
        None => audit,
    }
}

async fn by_hand(shop: &Shop, text: &str) {
    let text = text.replace("{p}", shop.prefix().unwrap_or("idempotent_"));
    let (url, text) = (shop.url(), sqlx::AssertSqlSafe(text));
    match url.split(':').next() {
        Some("sqlite") => {
            let pool = SqlitePool::connect(url).await.expect("a file");
            sqlx::raw_sql(text).execute(&pool).await.map(drop)
        }
        Some("postgres") => {
            let pool = PgPool::connect(url).await.expect("a server");
            sqlx::raw_sql(text).execute(&pool).await.map(drop)
        }
        _ => {
            let pool = MySqlPool::connect(url).await.expect("a server");
            sqlx::raw_sql(text).execute(&pool).await.map(drop)
        }
    }
    .expect("it is done");
}

async fn audited(shop: &Shop) {
    builder(shop)
        .await
        .migrate()
        .await
        .expect("the trail is made");
    shop.charged("order-1").await;
}

async fn a_trail_is_sealed_and_verified(shop: Shop) {
    let none = shop.run(&["audit", "verify"]);
    assert_eq!(none.code, 1, "{}", none.all());
    assert!(none.err.contains("is missing"), "{}", none.all());
    let doctor = shop.run(&["doctor"]);
    assert!(!doctor.out.contains("audit"), "{}", doctor.all());

    audited(&shop).await;
    assert_eq!(shop.run(&["audit", "anchor"]).code, 3);
    let sealed = shop.run(&["audit", "seal"]);
    assert_eq!(
        (sealed.code, sealed.out.trim()),
        (0, "2 entries were sealed.")
    );
    let verified = shop.run(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{}", verified.all());
    assert_eq!(verified.out.trim(), "2 entries in 1 batches hold.");
    let told = "The application can change this trail";
    assert!(verified.err.contains(told), "{}", verified.all());
    let doctor = shop.run(&["doctor"]);
    let told = "the application can change this trail";
    assert!(doctor.out.contains(told), "{}", doctor.all());

    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("anchors");
    fs::write(&file, &shop.raw(&["audit", "anchor"]).0).expect("it is written");
    let file = file.to_str().expect("a path");
    let verified = shop.run(&["audit", "verify", "--anchors", file]);
    assert!(verified.out.contains("up to 1."), "{}", verified.all());
    let json = shop.run(&[
        "audit",
        "verify",
        "--json",
        "--from",
        "1",
        "--sealed-from",
        "2026-01-01",
    ]);
    assert!(json.out.contains(r#""divergence":null"#), "{}", json.all());
    let bad = shop.run(&["audit", "verify", "--sealed-from", "soon"]);
    assert_eq!(bad.code, 2, "{}", bad.all());
    fs::write(file, "no anchor").expect("it is written");
    assert_eq!(shop.run(&["audit", "verify", "--anchors", file]).code, 2);
}

async fn a_change_of_the_trail_is_found(shop: Shop) {
    audited(&shop).await;
    assert_eq!(shop.run(&["audit", "seal"]).code, 0);
    by_hand(&shop, "UPDATE {p}audit SET holder = 'other'").await;
    let found = shop.run(&["audit", "verify"]);
    assert_eq!(found.code, 1, "{}", found.all());
    assert!(
        found
            .err
            .contains("a field of a sealed entry changed: batch 1, entry"),
        "{}",
        found.all()
    );
    let json = shop.run(&["audit", "verify", "--json"]);
    assert_eq!(json.code, 1, "{}", json.all());
    assert!(
        json.out.contains(r#""divergence":"a field"#),
        "{}",
        json.all()
    );
}

async fn an_export_is_a_new_file_and_a_manifest(shop: Shop) {
    audited(&shop).await;
    assert_eq!(shop.run(&["audit", "seal"]).code, 0);
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("trail.jsonl");
    let path = file.to_str().expect("a path");
    let exported = shop.run(&["audit", "export", path]);
    assert_eq!(exported.code, 0, "{}", exported.all());
    let lines = fs::read_to_string(&file).expect("it is written");
    assert_eq!(lines.lines().count(), 3, "{lines}");
    let manifest = fs::read_to_string(folder.path().join("trail.jsonl.manifest"));
    assert!(manifest.expect("it is written").contains(r#""entries":2"#));
    let again = shop.run(&["audit", "export", path]);
    assert_eq!(again.code, 1, "{}", again.all());
    assert_eq!(fs::read_to_string(&file).expect("it stands"), lines);
}

async fn what_is_held_is_not_pruned(shop: Shop) {
    audited(&shop).await;
    shop.charged("order-2").await;
    assert_eq!(shop.run(&["audit", "seal"]).code, 0);
    let id = shop.id("payments.charge", "order-1").await.to_hex();
    let sign = ["--reason", "case 17", "--yes"];
    let with = |arguments: &[&str]| shop.run(&[&["audit"], arguments, &sign].concat());
    assert_eq!(shop.run(&["audit", "holds"]).code, 3);
    let held = with(&["hold", "--record", &id]);
    assert_eq!(held.code, 0, "{}", held.all());
    let holds = shop.run(&["audit", "holds"]);
    assert!(
        holds.out.contains(&id) && holds.out.contains("anna@HOST"),
        "{}",
        holds.all()
    );
    let pruned = shop.run(&["audit", "prune", "--keep", "0s", "--yes"]);
    assert_eq!(pruned.code, 0, "{}", pruned.all());
    assert!(
        pruned.out.contains("1 entries lost their fields"),
        "{}",
        pruned.all()
    );
    assert_eq!(shop.run(&["audit", "verify"]).code, 0);
    let (list, _) = shop.raw(&["audit", "holds", "--json"]);
    let number = list.split(r#""number":"#).nth(1).expect("a number");
    let number: String = number.chars().take_while(char::is_ascii_digit).collect();
    let other = with(&["release", "7777"]);
    assert_eq!(other.code, 3, "{}", other.all());
    let day = [
        "hold",
        "--written-from",
        "2026-01-01",
        "--written-to",
        "2026-01-02",
    ];
    assert_eq!(with(&day).code, 0);
    assert_eq!(with(&["release", &number]).code, 0);
    let pruned = shop.run(&["audit", "prune", "--keep", "0s", "--yes"]);
    assert!(
        pruned.out.contains("entries lost their fields"),
        "{}",
        pruned.all()
    );
    let verified = shop.run(&["audit", "verify"]);
    assert!(
        verified.code == 0 && verified.out.contains("pruned"),
        "{}",
        verified.all()
    );
    let unasked = shop.run(&["audit", "prune"]);
    assert_eq!(unasked.code, 2, "{}", unasked.all());
    let bad = shop.run(&["audit", "prune", "--keep", "soon", "--yes"]);
    assert_eq!(bad.code, 4, "{}", bad.all());
}

async fn a_second_person_approves(shop: Shop) {
    let guarded = builder(&shop).await.four_eyes(&["idempotent"]);
    guarded.migrate().await.expect("the trail is made");
    let id = shop.uncertain("order-1").await.to_hex();
    let settle = || {
        shop.raw(&[
            "settle",
            &id,
            "--value",
            "7",
            "--version",
            "0",
            "--reason",
            "row 7",
            "--yes",
        ])
    };
    let (_, refused) = settle();
    let proposal = refused.split('\'').nth(1).expect("a proposal").to_owned();
    let sign = ["--reason", "row 7", "--yes"];
    let with = |arguments: &[&str]| shop.run(&[&["audit"], arguments, &sign].concat());
    let proposed = with(&["propose", &id, "--proposal", &proposal]);
    assert_eq!(proposed.code, 0, "{}", proposed.all());
    let (list, _) = shop.raw(&["audit", "proposals", "--json"]);
    let number = list.split(r#""number":"#).nth(1).expect("a number");
    let number: String = number.chars().take_while(char::is_ascii_digit).collect();
    let own = with(&["approve", &number]);
    assert_eq!(own.code, 4, "{}", own.all());
    assert!(settle().1.contains("a second person"), "nobody approved it");
    let approved = with(&["approve", &number, "--by", "ben"]);
    if shop.prefix().is_none() {
        assert_eq!(approved.code, 0, "{}", approved.all());
    } else {
        // On a server she is one user, whatever name she says. The application knows whom it
        // serves.
        assert_eq!(approved.code, 4, "{}", approved.all());
        let audit = builder(&shop).await.four_eyes(&["idempotent"]);
        let audit = audit.connect().await.expect("it stands");
        let number = number.parse().expect("a number");
        let approve = audit.approve(number, "ben").await.expect("another person");
        approve.because("I saw it").await.expect("it is approved");
    }
    let (settled, failed) = settle();
    assert!(settled.contains("Done"), "{settled}{failed}");
    let moved = with(&["propose", &id, "--proposal", &proposal]);
    assert_eq!(moved.code, 4, "{}", moved.all());
    let moved = with(&["approve", &number, "--by", "carl"]);
    assert_eq!(moved.code, 4, "{}", moved.all());
    assert_eq!(with(&["propose", &id, "--proposal", "x"]).code, 2);
    assert_eq!(with(&["approve", "7777"]).code, 3);
}

#[tokio::test]
#[ignore = "needs servers: cargo xtask test"]
async fn redis_has_no_audit() {
    let none = Shop::redis().await.run(&["audit", "verify"]);
    assert_eq!(none.code, 2, "{}", none.all());
}
