//! Each act on a record is done by hand, and the store has it.

use browser::{Browser, Records, Site, in_doubt, page_of, scenario, trip, uncertain};
use idempotent_runtime::{
    Error, Idempotency,
    identity::RecordId,
    operate::{RecordRow, State},
    record::StepState,
};

async fn row(idem: &Idempotency, id: RecordId) -> RecordRow {
    idem.explain(id).await.expect("a story").row
}

async fn has_note(idem: &Idempotency, id: RecordId, text: &str) {
    let note = row(idem, id).await.note.expect("a note");
    assert_eq!((note.by.as_deref(), &*note.text), (Some("anna"), text));
}

/// From the overview to the form of an act on the only record of an operation.
async fn to_form(browser: &Browser, site: &Site, operation: &str, act: &str) {
    browser.visit(&site.at("/ops")).await;
    browser.has_title("Overview").await;
    browser.follow(operation, "Records").await;
    browser.follow_to("records/", "Record").await;
    browser.follow(act, act).await;
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn a_call_is_settled_in_each_way() {
    let records = Records::default();
    let idem = &records.idem;
    let known = uncertain(idem, "payments.charge", "k").await;
    let failed = uncertain(idem, "payments.refund", "k").await;
    let lost = uncertain(idem, "mails.send", "k").await;
    uncertain(idem, "mails.bounce", "k").await;
    let site = Site::pages([("/ops", page_of("anna", idem))]).await;
    scenario(async |browser| {
        for (operation, how, value) in [
            ("payments.charge", "value", "\"receipt-99\""),
            ("payments.refund", "error", "\"no such charge\""),
            ("mails.send", "done", ""),
        ] {
            to_form(browser, &site, operation, "Settle").await;
            browser.choose(how).await;
            browser.fill("value", value).await;
            browser.fill("reason", "dashboard, row 7").await;
            browser.send("Done. The store has the reason.").await;
            browser.follow("Back to the record", "Record").await;
            browser.has("anna: dashboard, row 7").await;
        }
        to_form(browser, &site, "mails.bounce", "Settle").await;
        browser.choose("done").await;
        browser.fill("reason", "r").await;
        browser.send("Done.").await;
        browser.is_sound("the page after an act").await;
    })
    .await;
    for id in [known, failed, lost] {
        assert_eq!(row(idem, id).await.state, State::Done);
        has_note(idem, id, "dashboard, row 7").await;
    }
    let call = idem.call("payments.charge").key("k");
    let replayed = call.run(async |_| Ok::<_, Error>(String::new())).await;
    assert_eq!(replayed.expect("a replay"), "receipt-99");
    let call = idem.call("mails.send").key("k");
    let refused = call.run(async |_| Ok::<_, Error>(String::new())).await;
    refused.expect_err("its value is not known");
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn a_call_is_resumed_undone_or_invalidated() {
    let records = Records::default();
    let idem = &records.idem;
    let parked = records.parked("reports.make", "2026-12").await;
    let sold_out = in_doubt(idem, "trips.book", "trip-1").await;
    let room = async || Ok("room 7".to_owned());
    trip(idem, "trips.plan", "trip-2", room)
        .await
        .expect("it is booked");
    let site = Site::pages([("/ops", page_of("anna", idem))]).await;
    scenario(async |browser| {
        to_form(browser, &site, "reports.make", "Resume").await;
        browser.fill("reason", "the disk is free").await;
        browser.send("Done.").await;
        to_form(browser, &site, "trips.book", "Undo").await;
        browser.fill("value", "\"sold out\"").await;
        browser.fill("reason", "they called").await;
        browser.send("Done.").await;
        browser
            .visit(&site.at("/ops/records?operation=trips.plan"))
            .await;
        browser.follow_to("records/", "Record").await;
        browser.follow("Invalidate", "Invalidate").await;
        browser.fill("reason", "wrong dates").await;
        browser.send("Done.").await;
    })
    .await;
    assert!(!row(idem, parked).await.state.needs_attention());
    has_note(idem, parked, "the disk is free").await;
    assert_eq!(row(idem, sold_out).await.state, State::Undoing);
    has_note(idem, sold_out, "they called").await;
    let again = async || Ok("room 9".to_owned());
    let planned = trip(idem, "trips.plan", "trip-2", again).await;
    assert_eq!(planned.expect("it runs once more"), "room 9");
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn a_step_is_settled_in_each_way() {
    let records = Records::default();
    let idem = &records.idem;
    let mut ids = Vec::new();
    for key in ["trip-value", "trip-error", "trip-not_done", "trip-undone"] {
        ids.push(in_doubt(idem, "trips.book", key).await);
    }
    let settle = idem.settle_id(ids[3]).await.expect("a record");
    let undo = settle.by("zoe").because("sold out").undo(&"sold out");
    undo.await.expect("it is to be undone");
    let site = Site::pages([("/ops", page_of("anna", idem))]).await;
    scenario(async |browser| {
        for (id, how) in ids.iter().zip(["value", "error", "not_done", "undone"]) {
            let key = format!("/ops/records?key=trip-{how}");
            browser.visit(&site.at(&key)).await;
            browser.follow_to(&id.to_hex(), "Record").await;
            let step = if how == "undone" { "flight" } else { "hotel" };
            browser.follow_in(step, "Settle", "Settle a step").await;
            browser.choose(how).await;
            if ["value", "error"].contains(&how) {
                browser.fill("value", "\"room 7\"").await;
            }
            browser.fill("reason", "the hotel called").await;
            browser.send("Done.").await;
        }
    })
    .await;
    let steps = async |id: RecordId| idem.steps(id).await.expect("steps");
    let hotel = async |id: RecordId| {
        let steps = steps(id).await;
        let hotel = steps.into_iter().find(|it| &*it.label == "hotel");
        hotel.expect("the hotel")
    };
    for (id, state) in ids
        .iter()
        .zip([StepState::Done, StepState::Done, StepState::Released])
    {
        let step = hotel(*id).await;
        assert_eq!(step.state, state);
        assert_eq!(&*step.note.expect("a note").text, "the hotel called");
    }
    let noted = steps(ids[3])
        .await
        .into_iter()
        .filter(|it| it.note.is_some());
    assert_eq!(noted.count(), 1, "one step is settled");
    let room = async || Ok("room 9".to_owned());
    for (key, expected) in [("trip-value", "room 7"), ("trip-not_done", "room 9")] {
        let booked = trip(idem, "trips.book", key, room).await;
        assert_eq!(booked.expect("it goes on"), expected);
    }
}
