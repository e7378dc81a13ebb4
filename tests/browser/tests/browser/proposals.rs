//! Four eyes, by two persons in one browser.

use browser::{Browser, Site, page_of, scenario, uncertain};
use idempotent_audit::Audit;
use idempotent_runtime::{Error, Idempotency, operate::State, store::SqliteStore};
use sqlx::SqlitePool;
use tempfile::TempDir;

async fn settle(browser: &Browser, site: &Site, answer: &str) {
    browser.visit(&site.at("/anna/overview")).await;
    browser.follow("payments.charge", "Records").await;
    browser.follow_to("records/", "Record").await;
    browser.follow("Settle", "Settle").await;
    browser.choose("value").await;
    browser.fill("value", "7").await;
    browser.fill("reason", "dashboard, row 7").await;
    browser.send(answer).await;
}

/// A store that asks for four eyes, and the pages of two persons.
async fn guarded(folder: &TempDir) -> (Idempotency, Site) {
    let file = folder.path().join("shop.db");
    let store = SqliteStore::open(&file).await.expect("a file");
    let idem = Idempotency::new(store);
    let pool = SqlitePool::connect(&format!("sqlite:{}", file.display())).await;
    let pool = pool.expect("a file");
    let audit = || Audit::sqlite(pool.clone()).four_eyes(&["app"]);
    audit().migrate().await.expect("a trail");
    let audit = audit().connect().await.expect("it answers");
    let pages = ["/anna", "/carl"].map(|at| (at, page_of(&at[1..], &idem).audit(&audit)));
    let site = Site::pages(pages).await;
    (idem, site)
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn a_second_person_approves_what_the_first_one_proposed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (idem, site) = guarded(&folder).await;
    let id = uncertain(&idem, "payments.charge", "order-1").await;
    let state = async || idem.explain(id).await.expect("a story").row.state;
    scenario(async |browser| {
        settle(browser, &site, "It is proposed now").await;
        browser.is_sound("the proposed act").await;
        assert_eq!(state().await, State::Uncertain);
        browser.visit(&site.at("/anna/approvals")).await;
        let buttons = "return document.querySelectorAll('button').length";
        assert_eq!(
            browser.script(buttons).await,
            0,
            "nobody approves what is their own"
        );
        browser.is_sound("the own proposals").await;

        browser.visit(&site.at("/carl/overview")).await;
        let proposals = "Proposals that a second person approves";
        browser.follow(proposals, "Proposals").await;
        browser.has("dashboard, row 7").await;
        browser.is_sound("the proposals of another person").await;
        browser.fill("reason", "I saw it, too").await;
        browser.send("It is approved.").await;
        browser.is_sound("the approved proposal").await;
        assert_eq!(state().await, State::Uncertain);

        settle(browser, &site, "Done. The store has the reason.").await;
        assert_eq!(state().await, State::Done);
    })
    .await;
    let call = idem.call("payments.charge").key("order-1");
    let replayed = call.run(async |_| Ok::<_, Error>(8)).await;
    assert_eq!(replayed.expect("a replay"), 7);
}
