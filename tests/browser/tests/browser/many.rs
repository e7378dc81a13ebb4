//! One act on many records, and the outcome of one.

use browser::{Records, Site, page_of, scenario, uncertain};
use idempotent_runtime::{Error, operate::State};

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn many_are_settled_and_one_that_has_moved_is_left() {
    let records = Records::default();
    let idem = &records.idem;
    let mut ids = Vec::new();
    for key in ["a", "b", "c"] {
        ids.push(uncertain(idem, "payments.charge", key).await);
    }
    let other = uncertain(idem, "mails.send", "a").await;
    let site = Site::pages([("/ops", page_of("anna", idem))]).await;
    let chosen = "return document.querySelectorAll('input[name=record]:checked').length";
    scenario(async |browser| {
        browser.visit(&site.at("/ops/records")).await;
        browser.has_title("Records").await;
        browser.push("Choose all").await;
        assert_eq!(browser.script(chosen).await, 4);
        browser.is_sound("a list with a choice").await;
        browser.fill("operation", "payments.charge").await;
        browser.push("Search").await;
        browser.has("3 records.").await;
        assert_eq!(browser.script(chosen).await, 0, "another filter, no choice");
        browser.push("Settle as done").await;
        browser.has("No record was chosen.").await;
        browser.is_sound("a choice of none").await;

        browser.follow("Back to the list", "Records").await;
        browser.fill("operation", "payments.charge").await;
        browser.push("Search").await;
        browser.has("3 records.").await;
        browser.push("Choose all").await;
        browser.push("Settle as done").await;
        browser.has("3 records, each only at the version").await;
        browser.is_sound("the form of many").await;
        let settle = idem.settle_id(ids[1]).await.expect("a record").by("carl");
        let settled = settle.because("the ledger").with_value(&7).await;
        settled.expect("it is settled");
        browser.fill("reason", "dashboard").await;
        browser.send("2 of 3 records done.").await;
        browser.has("it was written by carl").await;
        browser.is_sound("how it ended for many").await;
    })
    .await;
    for id in ids {
        let row = idem.explain(id).await.expect("a story").row;
        assert_eq!(row.state, State::Done);
    }
    let row = idem.explain(other).await.expect("a story").row;
    assert_eq!(row.state, State::Uncertain, "it was not chosen");
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn an_outcome_is_revealed_by_a_button() {
    let records = Records::default();
    let call = records.idem.call("payments.charge").key("order-1");
    let value = "</pre><script>window.ran = true</script> receipt-99".to_owned();
    let charged = call.run(async |_| Ok::<_, Error>(value)).await;
    charged.expect("it is charged");
    let site = Site::pages([("/ops", page_of("anna", &records.idem))]).await;
    scenario(async |browser| {
        browser.visit(&site.at("/ops/records")).await;
        browser.follow_to("records/", "Record").await;
        browser.is_sound("a record with a hidden outcome").await;
        browser.push("Reveal the outcome").await;
        browser.has_title("Outcome").await;
        browser.has("receipt-99").await;
        let ran = browser.script("return window.ran ?? null").await;
        assert!(ran.is_null(), "an outcome is text");
        browser.is_sound("a revealed outcome").await;
        browser.follow("Back to the record", "Record").await;
    })
    .await;
}
