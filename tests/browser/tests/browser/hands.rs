//! By the keyboard alone, and in the zone of the reader.

use browser::{Browser, Records, Site, page_of, scenario, uncertain};
use idempotent_runtime::{Error, operate::State};
use serde_json::Value;
use thirtyfour::Key;

/// The element with the focus, by its text or its name, and whether one sees the focus.
const FOCUS: &str = "
    const it = document.activeElement;
    const style = getComputedStyle(it);
    const seen = it.matches(':focus-visible') && style.outlineStyle !== 'none'
        && parseFloat(style.outlineWidth) >= 2;
    const box = it.getBoundingClientRect();
    const inside = box.right > 0 && box.bottom > 0 && box.left < innerWidth && box.top < innerHeight;
    return [it.name || it.textContent.trim(), seen && inside, it.closest('main') !== null]";

/// The name of the element with the focus, and whether it lies in the content.
async fn focus(browser: &Browser) -> (String, bool) {
    let focus = browser.script(FOCUS).await;
    let name = focus[0].as_str().expect("a name").to_owned();
    assert_eq!(
        focus[1],
        Value::Bool(true),
        "nobody sees the focus on {name}"
    );
    (name, focus[2] == Value::Bool(true))
}

/// Presses the tabulator until an element of the content with this name has the focus.
async fn tab_to(browser: &Browser, wanted: &str) {
    let mut met = Vec::new();
    for _ in 0..40 {
        browser.press(Key::Tab).await;
        let (name, in_content) = focus(browser).await;
        if in_content && name.starts_with(wanted) {
            return;
        }
        met.push(name);
    }
    panic!("{wanted} is not among {met:?}");
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn a_record_is_settled_by_the_keyboard_alone() {
    let records = Records::default();
    let idem = &records.idem;
    let id = uncertain(idem, "payments.charge", "order-1").await;
    let site = Site::pages([("/ops", page_of("anna", idem))]).await;
    scenario(async |browser| {
        browser.visit(&site.at("/ops/overview")).await;
        browser.press(Key::Tab).await;
        assert_eq!(focus(browser).await.0, "Skip to the content");
        browser.press(Key::Enter).await;
        browser.until("return location.hash === '#content'").await;
        browser.press(Key::Tab).await;
        assert!(focus(browser).await.1, "it skips the navigation");
        tab_to(browser, "payments.charge").await;
        browser.press(Key::Enter).await;
        browser.has_title("Records").await;
        tab_to(browser, &id.to_hex()[..12]).await;
        browser.press(Key::Enter).await;
        browser.has_title("Record ").await;
        tab_to(browser, "Settle").await;
        browser.press(Key::Enter).await;
        browser.has_title("Settle").await;
        tab_to(browser, "how").await;
        browser.press(Key::Space).await;
        tab_to(browser, "value").await;
        browser.types("\"receipt-99\"").await;
        tab_to(browser, "reason").await;
        browser.types("dashboard, row 7").await;
        tab_to(browser, "Settle").await;
        browser.press(Key::Enter).await;
        browser.has("Done.").await;
    })
    .await;
    let row = idem.explain(id).await.expect("a story").row;
    assert_eq!(row.state, State::Done);
    let call = idem.call("payments.charge").key("order-1");
    let replayed = call.run(async |_| Ok::<_, Error>(String::new())).await;
    assert_eq!(replayed.expect("a replay"), "receipt-99");
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn each_time_has_the_one_of_the_reader_beside_it() {
    let records = Records::default();
    let id = uncertain(&records.idem, "payments.charge", "order-1").await;
    let site = Site::pages([("/ops", page_of("anna", &records.idem))]).await;
    let titles = "return [...document.querySelectorAll('time')].map((it) => it.title)";
    scenario(async |browser| {
        for path in [
            "/ops/records".to_owned(),
            format!("/ops/records/{}", id.to_hex()),
        ] {
            let mut seen = Vec::new();
            for zone in ["Asia/Kathmandu", "America/New_York"] {
                browser.zone(zone).await;
                browser.visit(&site.at(&path)).await;
                let all = browser.script(titles).await;
                let all = all.as_array().expect("a list").clone();
                assert!(!all.is_empty(), "{path}: it has a time");
                assert!(all.iter().all(|it| it != ""), "{path}: {all:?}");
                seen.push(all);
            }
            assert_ne!(seen[0], seen[1], "{path}: each zone has its own");
        }
    })
    .await;
}
