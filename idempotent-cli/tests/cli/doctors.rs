//! `doctor`.

use crate::shop::{Shop, on_every_store};

on_every_store! {
    a_healthy_store_has_no_serious_finding
    what_needs_somebody_is_a_hint
}

async fn a_healthy_store_has_no_serious_finding(shop: Shop) {
    shop.charged("order-1").await;
    let looked = shop.run(&["doctor", "--json"]);
    // The servers of the tests keep nothing on the disk, for speed.
    let serious: Vec<_> = looked
        .out
        .lines()
        .filter(|it| it.contains(r#""grade":"serious""#))
        .filter(|it| !it.contains("may be lost by a crash"))
        .collect();
    assert!(serious.is_empty(), "{}", looked.all());
    for subject in ["store", "clock", "uncertain", "size"] {
        let named = format!(r#""subject":"{subject}""#);
        assert!(looked.out.contains(&named), "{subject}: {}", looked.all());
    }
}

async fn what_needs_somebody_is_a_hint(shop: Shop) {
    shop.uncertain("order-1").await;
    let looked = shop.run(&["doctor"]);
    let line = looked.out.lines().find(|it| it.contains("uncertain"));
    let line = line.expect("it is there");
    assert!(
        line.starts_with("hint") && line.contains("1 records"),
        "{line}"
    );
}

#[tokio::test]
async fn tables_that_are_missing_or_newer_are_serious() {
    let shop = Shop::sqlite().await;
    let missing = shop.run(&["doctor", "--prefix", "nope_"]);
    assert_eq!(missing.code, 1, "{}", missing.all());
    assert!(
        missing.out.contains("idempotent migrate"),
        "{}",
        missing.all()
    );
    assert_eq!(missing.out.lines().count(), 2, "{}", missing.all());

    let pool = sqlx::SqlitePool::connect(shop.url()).await.expect("a file");
    let newer = "INSERT INTO idempotent_schema (version, applied, usable_from) VALUES (99, 0, 99)";
    sqlx::query(newer)
        .execute(&pool)
        .await
        .expect("it is written");
    for command in ["doctor", "list", "purge", "migrate"] {
        let newer = shop.run(&[command]);
        assert_eq!(newer.code, 1, "{command}: {}", newer.all());
    }
}

#[tokio::test]
async fn a_user_who_may_only_read_reads_and_is_told() {
    let shop = Shop::sqlite().await;
    let id = shop.uncertain("order-1").await.to_hex();
    let url = format!("{}?mode=ro", shop.url());
    let run = |arguments: &[&str]| {
        let mut program = crate::shop::program();
        let output = program
            .env("IDEMPOTENT_STORE", &url)
            .args(arguments)
            .output();
        crate::shop::Ran::of(output.expect("it runs"))
    };
    assert_eq!(run(&["list", "--attention"]).code, 0);
    assert_eq!(run(&["show", &id]).code, 0);
    let settle = run(&["settle", &id, "--done", "--reason", "r", "--yes"]);
    assert_eq!(settle.code, 1, "{}", settle.all());
    let doctor = run(&["doctor"]);
    assert_eq!(doctor.code, 1, "{}", doctor.all());
    assert!(
        doctor.out.contains("the right to update"),
        "{}",
        doctor.all()
    );
}
