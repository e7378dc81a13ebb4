//! Every page follows its own policy, has no barrier, and fits its window.

use browser::{Browser, Post, Records, Site, in_doubt, nobody, page_of, scenario, trip, uncertain};
use idempotent_admin::{CallChart, Page};
use idempotent_runtime::{Error, Idempotency, StoreErrorKind, identity::RecordId};

/// A call that is done.
async fn done(idem: &Idempotency, key: &str) -> RecordId {
    let call = idem.call("payments.charge").key(key);
    let charged = call.run(async |_| Ok::<_, Error>(7)).await;
    charged.expect("it is charged");
    let records = idem.records().operation("payments.charge").key(key);
    records.page(1).await.expect("a page").rows[0].id
}

async fn are_sound(browser: &Browser, site: &Site, paths: &[(String, &str)]) {
    for (path, title) in paths {
        browser.visit(&site.at(path)).await;
        browser.has_title(title).await;
        browser.is_sound(path).await;
    }
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn the_overview_and_the_lists_are_sound() {
    let chart = CallChart::default();
    let records = Records::new(|builder| builder.observer(chart.clone()));
    let folder = tempfile::tempdir().expect("a folder");
    let post = Post::create(&folder.path().join("post.db")).await;
    post.park("orders.placed", "order-1", "no such exchange")
        .await;
    post.park("orders.paid", "order-2", "too large").await;
    post.set_aside("order-2").await;
    for key in ["a", "b"] {
        done(&records.idem, key).await;
    }
    uncertain(&records.idem, "payments.charge", "order-1").await;
    records.parked("reports.make", "2026-12").await;
    records.parked_number("ledger.apply", "eur").await;
    let page = page_of("anna", &records.idem).chart(&chart);
    let site = Site::pages([("/ops", page.outbox(&post.outbox))]).await;
    let paths = [
        ("/ops/overview", "Overview"),
        ("/ops/records", "Records"),
        ("/ops/records?state=attention", "Records"),
        ("/ops/records?key=none", "Records"),
        ("/ops/records?older_than=soon", "Records"),
        ("/ops/outbox", "Outbox"),
    ];
    let paths = paths.map(|(path, title)| (path.to_owned(), title));
    scenario(async |browser| are_sound(browser, &site, &paths).await).await;
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn a_record_of_each_kind_is_sound() {
    let records = Records::default();
    let idem = &records.idem;
    let room = async || Ok("room 7".to_owned());
    trip(idem, "trips.book", "trip-1", room)
        .await
        .expect("it is booked");
    let undoing = in_doubt(idem, "trips.book", "trip-2").await;
    let settle = idem.settle_id(undoing).await.expect("a record");
    let undo = settle.by("anna").because("sold out").undo(&"sold out");
    undo.await.expect("it is to be undone");
    let ids = [
        done(idem, "order-1").await,
        uncertain(idem, "payments.charge", "order-2").await,
        in_doubt(idem, "trips.book", "trip-3").await,
        undoing,
        records.parked("reports.make", "2026-12").await,
        records.parked_number("ledger.apply", "eur").await,
    ];
    let site = Site::pages([("/ops", page_of("anna", idem))]).await;
    let paths = ids.map(|id| (format!("/ops/records/{}", id.to_hex()), "Record"));
    scenario(async |browser| are_sound(browser, &site, &paths).await).await;
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn the_form_of_each_act_is_sound() {
    let records = Records::default();
    let idem = &records.idem;
    let site = Site::pages([("/ops", page_of("anna", idem))]).await;
    let charge = done(idem, "order-1").await.to_hex();
    let silent = uncertain(idem, "payments.charge", "order-2").await.to_hex();
    let doubt = in_doubt(idem, "trips.book", "trip-3").await.to_hex();
    let parked = records.parked("reports.make", "2026-12").await.to_hex();
    let stream = records.parked_number("ledger.apply", "eur").await.to_hex();
    let acts = [
        (&charge, "invalidate", "Invalidate"),
        (&silent, "settle", "Settle"),
        (&silent, "undo", "Undo"),
        (&parked, "resume", "Resume"),
        (&stream, "number", "Settle the number"),
    ];
    let paths = acts.map(|(id, act, title)| (format!("/ops/records/{id}/{act}"), title));
    scenario(async |browser| {
        are_sound(browser, &site, &paths).await;
        browser
            .visit(&site.at(&format!("/ops/records/{doubt}")))
            .await;
        browser.follow_to("/step?step=", "Settle a step").await;
        browser.is_sound("the form of a step").await;
        browser
            .visit(&site.at(&format!("/ops/records/{silent}/settle")))
            .await;
        browser.choose("value").await;
        browser.fill("value", "no JSON").await;
        browser.fill("reason", "r").await;
        browser.send("the value is no JSON").await;
        browser.is_sound("the form with an error").await;
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn a_page_that_refuses_or_fails_is_sound() {
    let records = Records::default();
    let id = uncertain(&records.idem, "payments.charge", "order-1")
        .await
        .to_hex();
    let strange = Page::new(records.idem.clone(), nobody);
    let pages = [
        ("/ops", page_of("anna", &records.idem)),
        ("/closed", strange),
    ];
    let site = Site::pages(pages).await;
    let reader = format!("/ops/records/{id}/nonsense");
    scenario(async |browser| {
        let paths = [
            ("/closed/overview".to_owned(), "Not allowed"),
            (format!("/ops/records/{}", "7".repeat(64)), "No such record"),
            (reader, "No such record"),
            ("/ops/outbox".to_owned(), "No such page"),
            ("/ops/approvals".to_owned(), "Proposals"),
        ];
        are_sound(browser, &site, &paths).await;
        records.faulty.outage(StoreErrorKind::Unavailable);
        let away = "The store is away";
        let paths = [
            ("/ops/overview".to_owned(), "Overview"),
            ("/ops/records".to_owned(), away),
            (format!("/ops/records/{id}"), away),
            (format!("/ops/records/{id}/settle"), away),
        ];
        are_sound(browser, &site, &paths).await;
    })
    .await;
}
