//! An outcome is shown to a person with the right, by an act of its own.

use std::sync::{Arc, Mutex};

use axum::Router;
use http::{Request, StatusCode, request::Parts};
use idempotent_admin::{Act, Page, Person};
use idempotent_runtime::{Idempotency, MemoryStore, Observer, RawEnding, RawOutcome, RevealEvent};

use crate::{
    forms::Form,
    shop::{ask, audited, charged, get, uncertain},
};

/// Anna and carl may read outcomes; ben may do everything else.
fn access(request: &Parts) -> Option<Person> {
    let name = request.headers.get("x-user")?.to_str().ok()?;
    let acts = Act::ALL.into_iter();
    let reveals = name != "ben" && !request.headers.contains_key("x-taken");
    let acts = acts.filter(|act| (*act == Act::Reveal) == reveals);
    Some(Person::reader(name).with(acts))
}

fn app(idem: &Idempotency) -> Router {
    Page::new(idem.clone(), access).secret(&[7; 32]).router()
}

/// Keeps who read what.
#[derive(Clone, Default)]
struct Readers(Arc<Mutex<Vec<String>>>);

impl Readers {
    fn all(&self) -> Vec<String> {
        self.0.lock().expect("a list").clone()
    }
}

impl Observer for Readers {
    fn revealed(&self, event: &RevealEvent<'_>) {
        let read = format!("{} {} {}", event.by, event.operation, event.id.to_hex());
        self.0.lock().expect("a list").push(read);
    }
}

#[tokio::test]
async fn an_outcome_is_revealed_to_a_person_and_observers_are_told() {
    let readers = Readers::default();
    let idem = Idempotency::builder(MemoryStore::new()).observer(readers.clone());
    let idem = idem.build().expect("a handle");
    let id = charged(&idem, "order-1").await;
    let (app, hex) = (app(&idem), id.to_hex());
    let path = format!("/records/{hex}/reveal");
    let record = get(&app, &format!("/records/{hex}")).await;
    record.has("Reveal the outcome");
    record.lacks("secret");
    let form = Form::shown("anna", &record, &path);
    for (form, why) in [
        (form.clone().header("x-user", Some("ben")), "no right"),
        (
            form.clone().header("x-taken", Some("1")),
            "her right was taken",
        ),
        (form.clone().header("x-user", Some("carl")), "anna's form"),
        (
            form.clone().header("sec-fetch-site", Some("same-site")),
            "a sister",
        ),
        (form.clone().header("sec-fetch-site", None), "no header"),
        (form.clone().with("token", ""), "no token"),
        (
            form.clone().at(&path.replace(&hex, &"7".repeat(64))),
            "another record",
        ),
    ] {
        let refused = form.send(&app).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{why}");
        refused.lacks("secret");
    }
    let got = get(&app, &path).await;
    assert_eq!(got.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(readers.all(), Vec::<String>::new());

    let revealed = form.send(&app).await;
    assert_eq!(revealed.status, StatusCode::OK, "{}", revealed.text);
    revealed.has("very secret outcome");
    assert_eq!(readers.all(), [format!("anna payments.charge {hex}")]);
    let as_ben = Request::get(format!("/records/{hex}")).header("x-user", "ben");
    ask(&app, as_ben).await.lacks("Reveal the outcome");
}

#[tokio::test]
async fn an_outcome_that_came_later_is_not_revealed_by_an_old_form() {
    let idem = Idempotency::memory();
    let id = charged(&idem, "order-1").await;
    let (app, path) = (app(&idem), format!("/records/{}", id.to_hex()));
    let form = Form::shown("anna", &get(&app, &path).await, &format!("{path}/reveal"));
    let given_up = idem.invalidate(id, "wrong").by("carl").await;
    given_up.expect("it is given up");
    charged(&idem, "order-1").await;
    let moved = form.send(&app).await;
    assert_eq!(moved.status, StatusCode::CONFLICT, "{}", moved.text);
    moved.has("The record has moved");
    moved.lacks("secret");
}

#[tokio::test]
async fn any_bytes_are_shown_and_none_is_markup() {
    let idem = Idempotency::memory();
    let app = app(&idem);
    for (key, bytes, shown) in [
        (
            "markup",
            &b"<script>alert(1)</script>"[..],
            "&lt;script&gt;alert(1)",
        ),
        (
            "number",
            b"123456789012345678901234567890",
            "123456789012345678901234567890",
        ),
        ("bytes", b"\xff\x00\x01", "ff0001"),
        ("moves", "a\u{202e}b".as_bytes(), "a\\u{202e}b"),
    ] {
        let outcome = RawOutcome::value(bytes.to_vec());
        let call = idem.call("files.convert").key(key);
        let ended = call.run_raw(|_| async { RawEnding::Record(outcome) }).await;
        ended.expect("it is kept");
        let page = idem.records().key(key).page(1).await.expect("a page");
        let path = format!("/records/{}", page.rows[0].id.to_hex());
        let record = get(&app, &path).await;
        let form = Form::shown("anna", &record, &format!("{path}/reveal"));
        form.send(&app).await.has(shown);
    }
    let id = uncertain(&idem, "payments.charge", "order-1").await;
    let record = get(&app, &format!("/records/{}", id.to_hex())).await;
    record.lacks("Reveal the outcome");
}

#[tokio::test]
async fn with_an_audit_a_revealing_is_an_event_first() {
    let shop = audited().await;
    let pool = &shop.pool;
    let handle = || {
        let idem = Idempotency::builder(shop.store.clone()).audit(shop.audit.clone());
        idem.build().expect("a handle")
    };
    let idem = handle();
    let id = charged(&idem, "order-1").await;
    let (app, path) = (app(&idem), format!("/records/{}", id.to_hex()));
    let record = get(&app, &path).await;
    let form = Form::shown("anna", &record, &format!("{path}/reveal"));
    form.send(&app).await.has("very secret outcome");
    let event = "SELECT detail FROM idempotent_audit_events WHERE event = 'reveal'";
    let detail: String = sqlx::query_scalar(event)
        .fetch_one(pool)
        .await
        .expect("an event");
    assert_eq!(detail, format!("record {}, to anna", id.to_hex()));

    // A trigger is gone: a handle that has not looked before finds that out.
    let fresh = self::app(&handle());
    let gone = "DROP TRIGGER idempotent_audit_record_insert";
    sqlx::query(gone).execute(pool).await.expect("it is gone");
    let refused = form.send(&fresh).await;
    assert_eq!(
        refused.status,
        StatusCode::SERVICE_UNAVAILABLE,
        "{}",
        refused.text
    );
    refused.lacks("secret");

    let gone = "DROP TABLE idempotent_audit_events";
    sqlx::query(gone).execute(pool).await.expect("it is gone");
    let refused = form.send(&app).await;
    assert_eq!(
        refused.status,
        StatusCode::SERVICE_UNAVAILABLE,
        "{}",
        refused.text
    );
    refused.lacks("secret");
}
