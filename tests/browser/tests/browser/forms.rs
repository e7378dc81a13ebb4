//! A form changes only what its person saw, and only from the page itself.

use axum::{Router, response::Html, routing::get};
use browser::{Browser, Records, Site, page_of, scenario, uncertain};
use idempotent_runtime::{Error, Idempotency, identity::RecordId, operate::State};

async fn state(idem: &Idempotency, id: RecordId) -> State {
    idem.explain(id).await.expect("a story").row.state
}

/// Opens the form of a settlement, and fills it in.
async fn filled_in(browser: &Browser, site: &Site, id: RecordId) {
    let form = format!("/anna/records/{}/settle", id.to_hex());
    browser.visit(&site.at(&form)).await;
    browser.choose("done").await;
    browser.fill("reason", "dashboard, row 7").await;
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn a_form_whose_record_has_moved_changes_nothing() {
    let records = Records::default();
    let idem = &records.idem;
    let id = uncertain(idem, "payments.charge", "order-1").await;
    let site = Site::pages([("/anna", page_of("anna", idem))]).await;
    scenario(async |browser| {
        filled_in(browser, &site, id).await;
        let settle = idem.settle_id(id).await.expect("a record");
        let settle = settle.by("zoe").because("quicker").with_value(&7);
        settle.await.expect("it is settled");
        let version = idem.explain(id).await.expect("a story").row.version;
        browser
            .send("Nothing was changed. The record has moved")
            .await;
        browser.has("written by zoe, at 20").await;
        browser.is_sound("the moved page").await;
        let row = idem.explain(id).await.expect("a story").row;
        assert_eq!(row.version, version, "the store is as it was");
    })
    .await;
    let call = idem.call("payments.charge").key("order-1");
    let replayed = call.run(async |_| Ok::<_, Error>(8)).await;
    assert_eq!(replayed.expect("a replay"), 7, "hers is the outcome");
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn a_form_of_another_person_is_refused() {
    let records = Records::default();
    let idem = &records.idem;
    let id = uncertain(idem, "payments.charge", "order-1").await;
    let pages = ["/anna", "/carl"].map(|at| (at, page_of(&at[1..], idem)));
    let site = Site::pages(pages).await;
    scenario(async |browser| {
        filled_in(browser, &site, id).await;
        let to_carl = "const form = document.querySelector('form.act');
            form.action = form.action.replace('/anna/', '/carl/')";
        browser.script(to_carl).await;
        browser.send("another person's").await;
        browser.has_title("Not allowed").await;
        browser.is_sound("the refused form").await;
        assert_eq!(state(idem, id).await, State::Uncertain);
        filled_in(browser, &site, id).await;
        browser.send("Done.").await;
        assert_eq!(
            state(idem, id).await,
            State::Done,
            "the same form by herself"
        );
    })
    .await;
}

/// The fields of the form that is open, in a page of another origin.
async fn copied(browser: &Browser, address: &str) -> Router {
    let fields = "return [...new FormData(document.querySelector('form.act'))]
        .map(([name, value]) => `<input type='hidden' name='${name}' value='${value}'>`).join('')";
    let fields = browser.script(fields).await;
    let fields = fields.as_str().expect("a text");
    assert!(fields.contains("name='token'") && fields.contains("name='reason'"));
    let form = format!(
        "<!DOCTYPE html><title>A page</title><main><h1>A page</h1>\
         <form method='post' action='{address}'>{fields}<button>Win</button></form></main>"
    );
    Router::new().route("/", get(async move || Html(form.clone())))
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn a_form_of_another_origin_is_refused() {
    let records = Records::default();
    let idem = &records.idem;
    let id = uncertain(idem, "payments.charge", "order-1").await;
    let site = Site::pages([("/anna", page_of("anna", idem))]).await;
    let target = site.at(&format!("/anna/records/{}/settle", id.to_hex()));
    let status = "return performance.getEntriesByType('navigation')[0].responseStatus";
    scenario(async |browser| {
        filled_in(browser, &site, id).await;
        let other = Site::serve(copied(browser, &target).await).await;
        for place in [other.at("/"), other.at_localhost("/")] {
            browser.visit(&place).await;
            browser.has_title("A page").await;
            browser.send("This request comes from another site.").await;
            assert_eq!(browser.script(status).await, 403, "{place}");
            assert_eq!(state(idem, id).await, State::Uncertain, "{place}");
        }
        filled_in(browser, &site, id).await;
        browser.send("Done.").await;
        assert_eq!(browser.script(status).await, 200);
    })
    .await;
}
