//! The entries of a record, and the last verification on top of every page.

use browser::{Site, page_of, scenario, uncertain};
use idempotent_audit::Audit;
use idempotent_runtime::{Idempotency, store::SqliteStore};
use sqlx::SqlitePool;

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn a_record_shows_its_entries_below_the_verification() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("shop.db");
    let store = SqliteStore::open(&file).await.expect("a file");
    let idem = Idempotency::new(store);
    let pool = SqlitePool::connect(&format!("sqlite:{}", file.display())).await;
    let pool = pool.expect("a file");
    let audit = || Audit::sqlite(pool.clone());
    audit().migrate().await.expect("a trail");
    let audit = audit().connect().await.expect("it answers");
    let id = uncertain(&idem, "payments.charge", "order-1").await;
    let settle = idem.settle_id(id).await.expect("a record").by("anna");
    let settled = settle.because("dashboard, row 7").as_done().await;
    settled.expect("it is settled");
    audit.seal().await.expect("it is sealed");
    let verifying = audit.verify_every("1s").expect("it begins");
    let page = page_of("anna", &idem).audit(&audit).verified(&verifying);
    let site = Site::pages([("/ops", page)]).await;
    scenario(async |browser| {
        let record = site.at(&format!("/ops/records/{}", id.to_hex()));
        while verifying.last().is_none() {
            tokio::task::yield_now().await;
        }
        browser.visit(&record).await;
        browser.has("uncertain to done").await;
        browser.has("dashboard, row 7").await;
        browser.is_sound("a record with its entries").await;
        let shown = "return document.querySelector('aside').innerText";
        let shown = browser.script(shown).await.to_string();
        assert!(
            shown.contains("The audit trail holds: 3 entries"),
            "{shown}"
        );

        let change = "DROP TRIGGER IF EXISTS idempotent_audit_update;
                      UPDATE idempotent_audit SET attempt = 77";
        let changed = sqlx::raw_sql(change).execute(&pool).await;
        changed.expect("it is changed");
        while verifying.last().is_none_or(|last| last.holds()) {
            tokio::task::yield_now().await;
        }
        browser.visit(&site.at("/ops/overview")).await;
        browser
            .until("return document.querySelector('aside [role=alert]') !== null")
            .await;
        browser.is_sound("a trail that does not hold").await;
    })
    .await;
}
