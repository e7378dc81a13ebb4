//! An audit: the entries of a record, and the last verification.

use http::StatusCode;
use idempotent_admin::Page;
use idempotent_audit::VerifyTask;

use crate::shop::{audited, by_header, charged, get, uncertain};

#[tokio::test]
async fn a_record_has_its_entries_with_the_person_and_the_batch() {
    let shop = audited().await;
    let id = uncertain(&shop.idem, "payments.charge", "order-1").await;
    charged(&shop.idem, "another").await;
    shop.audit.seal().await.expect("they are sealed");
    let settle = shop.idem.settle_id(id).await.expect("a record");
    let settle = settle.by("anna").because("<b>dashboard</b>");
    settle.as_done().await.expect("it is settled");
    let page = Page::new(shop.idem.clone(), by_header)
        .audit(&shop.audit)
        .router();
    let path = format!("/records/{}", id.to_hex());
    let record = get(&page, &path).await;
    let (_, entries) = record.text.split_once("<h2>Audit</h2>").expect("a section");
    let rows: Vec<&str> = entries.split("<tr><td><time").skip(1).collect();
    assert_eq!(rows.len(), 3, "{entries}");
    for text in [
        "operator",
        "uncertain to done",
        "anna",
        "&lt;b&gt;dashboard",
        "not yet",
    ] {
        assert!(rows[0].contains(text), "{text}: {}", rows[0]);
    }
    for text in ["running to uncertain", "<td>1</td>"] {
        assert!(rows[1].contains(text), "{text}: {}", rows[1]);
    }
    record.lacks("<b>");

    let gone = "DROP TABLE idempotent_audit";
    sqlx::query(gone)
        .execute(&shop.pool)
        .await
        .expect("it is gone");
    let without = get(&page, &path).await;
    assert_eq!(without.status, StatusCode::OK, "the record is shown");
    without.has("The audit did not answer");
    let unaudited = Page::new(shop.idem, by_header).router();
    get(&unaudited, &path).await.lacks("<h2>Audit</h2>");
}

/// Waits until a verification has ended, which is like this.
async fn until(verifying: &VerifyTask, holds: bool) {
    while verifying.last().is_none_or(|last| last.holds() != holds) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn every_page_has_the_last_verification_on_top() {
    let shop = audited().await;
    let id = charged(&shop.idem, "order-1").await;
    shop.audit.seal().await.expect("it is sealed");
    let verifying = shop.audit.verify_every("1s").expect("it begins");
    let page = Page::new(shop.idem, by_header).verified(&verifying);
    let page = page.router();
    let paths = ["/overview", "/records", "/records?state=x", "/approvals"];
    let record = format!("/records/{}", id.to_hex());
    get(&page, "/overview").await.has("for the first time");
    until(&verifying, true).await;
    for path in paths.iter().chain([&record.as_str()]) {
        let shown = get(&page, path).await;
        shown.has("<p>The audit trail holds: ");
        shown.has(" Verified: ");
    }
    sqlx::query("DROP TRIGGER IF EXISTS idempotent_audit_update")
        .execute(&shop.pool)
        .await
        .expect("it is gone");
    let change = "UPDATE idempotent_audit SET attempt = 77";
    sqlx::query(change)
        .execute(&shop.pool)
        .await
        .expect("it is changed");
    until(&verifying, false).await;
    for path in paths.iter().chain([&record.as_str()]) {
        let shown = get(&page, path).await;
        shown.has("<p role=\"alert\">The audit trail is not what it was");
    }
    drop(verifying);
    get(&page, "/overview")
        .await
        .has("<p role=\"alert\">The audit trail is not verified any more");
}
