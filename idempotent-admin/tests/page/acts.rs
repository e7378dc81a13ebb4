//! Acts: each is done to the version that was seen, by a form of this page, with a reason.

use crate::{
    forms::Form,
    shop::{charged, get, uncertain},
};
use axum::Router;
use http::{Request, StatusCode, request::Parts};
use idempotent_admin::{Act, Page, Person};
use idempotent_runtime::{
    Error, Idempotency,
    identity::RecordId,
    operate::State,
    testing::{Fault, FaultyStore, On, StoreOperation},
};

/// Anna may do everything, and ben may only resume.
fn access(request: &Parts) -> Option<Person> {
    let name = request.headers.get("x-user")?.to_str().ok()?;
    let acts: &[Act] = match name {
        "anna" | "carl" => &Act::ALL,
        _ => &[Act::Resume],
    };
    Some(Person::reader(name).with(acts.iter().copied()))
}

pub(crate) fn app(idem: &Idempotency) -> Router {
    let page = Page::new(idem.clone(), access).secret(&[7; 32]);
    page.origin("https://ops.example.com").router()
}

pub(crate) async fn state(idem: &Idempotency, id: RecordId) -> State {
    idem.explain(id).await.expect("a story").row.state
}

#[tokio::test]
async fn a_call_is_settled_with_a_value_a_reason_and_a_name() {
    let idem = Idempotency::memory();
    let id = uncertain(&idem, "payments.charge", "order-1").await;
    let app = app(&idem);
    let record = get(&app, &format!("/records/{}", id.to_hex())).await;
    assert!(record.link("Settle").ends_with("/settle"));
    record.lacks("/resume\"");
    record.lacks("/invalidate\"");
    let form = Form::of(&app, id, "settle").await.with("how", "value");
    let done = form
        .with("value", "\"receipt-99\"")
        .with("reason", "dashboard, row 7")
        .send(&app)
        .await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    let call = idem.call("payments.charge").key("order-1");
    let replayed = call.run(async |_| Ok::<_, Error>(String::new())).await;
    assert_eq!(replayed.expect("a replay"), "receipt-99");
    let note = idem
        .explain(id)
        .await
        .expect("a story")
        .row
        .note
        .expect("a note");
    assert_eq!(
        (note.by.as_deref(), &*note.text),
        (Some("anna"), "dashboard, row 7")
    );
}

#[tokio::test]
async fn each_act_is_done() {
    let idem = Idempotency::memory();
    let app = app(&idem);
    for (how, expected) in [("done", State::Done), ("error", State::Done)] {
        let id = uncertain(&idem, "payments.charge", how).await;
        let form = Form::of(&app, id, "settle")
            .await
            .with("how", how)
            .with("value", "7");
        let done = form.with("reason", "r").send(&app).await;
        assert_eq!(done.status, StatusCode::OK, "{how}: {}", done.text);
        assert_eq!(state(&idem, id).await, expected, "{how}");
    }
    let id = charged(&idem, "finished").await;
    let form = Form::of(&app, id, "invalidate").await.with("reason", "r");
    assert_eq!(form.send(&app).await.status, StatusCode::OK);
    assert_eq!(state(&idem, id).await, State::Released);

    let id = uncertain(&idem, "trips.book", "trip").await;
    let form = Form::of(&app, id, "undo")
        .await
        .with("value", "\"sold out\"");
    let undone = form.with("reason", "r").send(&app).await;
    assert_eq!(undone.status, StatusCode::OK, "{}", undone.text);
    assert_ne!(state(&idem, id).await, State::Uncertain);

    let id = uncertain(&idem, "payments.charge", "not parked").await;
    let form = Form::of(&app, id, "resume").await.with("reason", "r");
    let refused = form.send(&app).await;
    assert_eq!(
        refused.status,
        StatusCode::CONFLICT,
        "only a parked one is resumed"
    );
    refused.has("Nothing was changed");
    assert_eq!(state(&idem, id).await, State::Uncertain);
}

#[tokio::test]
async fn a_record_that_has_moved_is_told_with_the_person() {
    let idem = Idempotency::memory();
    let id = uncertain(&idem, "payments.charge", "order-1").await;
    let app = app(&idem);
    let form = Form::of(&app, id, "settle")
        .await
        .with("how", "done")
        .with("reason", "r");
    let settle = idem.settle_id(id).await.expect("a record");
    settle
        .by("zoe")
        .because("quicker")
        .with_value(&7)
        .await
        .expect("it is settled");
    let moved = form.send(&app).await;
    assert_eq!(moved.status, StatusCode::CONFLICT);
    moved.has("written by zoe, at ");
    let again = idem
        .call("payments.charge")
        .key("order-1")
        .run(async |_| Ok::<_, Error>(8));
    assert_eq!(again.await.expect("a replay"), 7, "hers stands");
}

#[tokio::test]
async fn a_form_that_makes_no_sense_changes_nothing() {
    let idem = Idempotency::memory();
    let id = uncertain(&idem, "payments.charge", "order-1").await;
    let app = app(&idem);
    for (fields, told) in [
        (
            vec![("how", "done"), ("reason", " ")],
            "the reason is empty",
        ),
        (
            vec![("how", "value"), ("value", "receipt"), ("reason", "r")],
            "no JSON",
        ),
        (vec![("how", "both"), ("reason", "r")], "say how it ended"),
        (
            vec![("how", "done"), ("reason", "r"), ("schema", "x")],
            "a schema version is a number",
        ),
    ] {
        let form = Form::of(&app, id, "settle").await;
        let form = fields
            .iter()
            .fold(form, |form, (name, value)| form.with(name, value));
        let answer = form.send(&app).await;
        assert_eq!(
            answer.status,
            StatusCode::BAD_REQUEST,
            "{told}: {}",
            answer.text
        );
        answer.has(told);
        answer.has("name=\"reason\"");
        assert_eq!(state(&idem, id).await, State::Uncertain, "{told}");
    }
    let long = Form::of(&app, id, "settle")
        .await
        .with("how", "done")
        .with("reason", &"r".repeat(4_097));
    assert_eq!(long.send(&app).await.status, StatusCode::BAD_REQUEST);
    let large = Form::of(&app, id, "settle")
        .await
        .with("reason", &"r".repeat(70_000));
    assert_eq!(large.send(&app).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    let form = Form::of(&app, id, "settle").await;
    let no_form = form
        .send_as(&app, "application/json", "{}".to_owned())
        .await;
    assert_eq!(no_form.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(state(&idem, id).await, State::Uncertain);
}

#[tokio::test]
async fn only_a_form_of_this_page_changes_anything() {
    let idem = Idempotency::memory();
    let id = uncertain(&idem, "payments.charge", "order-1").await;
    let other = uncertain(&idem, "payments.charge", "order-2").await;
    let app = app(&idem);
    let form = async || {
        Form::of(&app, id, "settle")
            .await
            .with("how", "done")
            .with("reason", "r")
    };
    let of_another_record = Form::of(&app, other, "settle")
        .await
        .field("token")
        .to_owned();
    let of_another_act = Form::of(&app, id, "undo").await.field("token").to_owned();
    for (form, why) in [
        (
            form().await.header("sec-fetch-site", Some("cross-site")),
            "another site",
        ),
        (
            form().await.header("sec-fetch-site", Some("same-site")),
            "a sister domain",
        ),
        (form().await.header("sec-fetch-site", None), "no header"),
        (
            form()
                .await
                .header("sec-fetch-site", None)
                .header("origin", Some("https://evil.example.com")),
            "another origin",
        ),
        (
            form().await.header("x-user", Some("carl")),
            "the token of another person",
        ),
        (form().await.header("x-user", Some("ben")), "no right"),
        (form().await.header("x-user", None), "nobody"),
        (
            form().await.with("token", &"0".repeat(64)),
            "a made up token",
        ),
        (form().await.with("token", ""), "no token"),
        (
            form().await.with("token", &of_another_record),
            "a token of another record",
        ),
        (
            form().await.with("token", &of_another_act),
            "a token of another act",
        ),
        (
            form().await.with("version", &"0".repeat(32)),
            "another version",
        ),
        (form().await.with("version", "x"), "no version"),
    ] {
        let refused = form.send(&app).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{why}");
        assert_eq!(state(&idem, id).await, State::Uncertain, "{why}");
    }
    let guessed = crate::shop::ask(
        &app,
        Request::get(format!("/records/{}/settle", id.to_hex())).header("x-user", "ben"),
    )
    .await;
    assert_eq!(
        guessed.status,
        StatusCode::FORBIDDEN,
        "a person who guesses the address"
    );
    let old = form().await.header("sec-fetch-site", None);
    let old = old.header("origin", Some("https://ops.example.com"));
    assert_eq!(
        old.send(&app).await.status,
        StatusCode::OK,
        "an older browser"
    );
    let replayed = old.send(&app).await;
    assert_eq!(
        replayed.status,
        StatusCode::CONFLICT,
        "the same form once more"
    );
}

#[tokio::test]
async fn a_form_that_is_shown_again_is_for_the_version_that_was_seen() {
    let idem = Idempotency::memory();
    let id = charged(&idem, "order-1").await;
    let app = app(&idem);
    let form = Form::of(&app, id, "invalidate").await;
    let again = form.clone().with("reason", " ").send(&app).await;
    assert_eq!(again.status, StatusCode::BAD_REQUEST);
    let again = Form::shown(
        "anna",
        &again,
        &format!("/records/{}/invalidate", id.to_hex()),
    );
    assert_eq!(again.field("version"), form.field("version"));

    let given_up = idem.invalidate(id, "wrong").by("carl").await;
    given_up.expect("it is given up");
    charged(&idem, "order-1").await;
    let moved = form.with("reason", " ").send(&app).await;
    assert_eq!(moved.status, StatusCode::CONFLICT, "{}", moved.text);
    moved.has("The record has moved since you saw it");
    moved.lacks("<form");
}

#[tokio::test]
async fn an_act_without_an_answer_of_the_store_says_so() {
    let store = FaultyStore::new(idempotent_runtime::MemoryStore::new());
    let idem = Idempotency::new(store.clone());
    let id = uncertain(&idem, "payments.charge", "order-1").await;
    let app = app(&idem);
    let form = Form::of(&app, id, "settle")
        .await
        .with("how", "done")
        .with("reason", "r");
    store.fault(StoreOperation::Swap, On::Every, Fault::LoseAnswer);
    let unknown = form.send(&app).await;
    assert_eq!(unknown.status, StatusCode::SERVICE_UNAVAILABLE);
    unknown.has("It is not known whether it was done.");
}
