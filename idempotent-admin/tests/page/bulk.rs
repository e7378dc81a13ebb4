//! One act on many records, each at the version that was seen.

use axum::Router;
use http::{StatusCode, request::Parts};
use idempotent_admin::{Act, Page, Person};
use idempotent_runtime::{
    Error, Idempotency,
    identity::RecordId,
    operate::State,
    testing::{Fault, FaultyStore, On, StoreOperation},
};

use crate::{
    forms::Form,
    shop::{Answer, charged, get, uncertain},
};

/// Anna may do everything, and ben may only resume.
fn access(request: &Parts) -> Option<Person> {
    let name = request.headers.get("x-user")?.to_str().ok()?;
    let acts: &[Act] = match name {
        "ben" => &[Act::Resume],
        "reader" => &[],
        _ => &Act::ALL,
    };
    Some(Person::reader(name).with(acts.iter().copied()))
}

fn app(idem: &Idempotency) -> Router {
    Page::new(idem.clone(), access).secret(&[7; 32]).router()
}

/// The boxes of a list.
fn boxes(list: &Answer) -> Vec<String> {
    let boxes = list.text.split("name=\"record\" value=\"").skip(1);
    boxes
        .map(|it| it.split('"').next().expect("a value").to_owned())
        .collect()
}

/// The form of the chosen, as the list sends it.
fn chosen(list: &Answer, act: &str, boxes: &[String]) -> Form {
    let form = Form::shown("anna", list, "/bulk").with("act", act);
    boxes.iter().fold(form, |form, it| form.and("record", it))
}

async fn asked(app: &Router, act: &str) -> Form {
    let list = get(app, "/records?state=attention&show=500").await;
    let form = chosen(&list, act, &boxes(&list)).send(app).await;
    assert_eq!(form.status, StatusCode::OK, "{}", form.text);
    Form::shown("anna", &form, &format!("/bulk/{act}"))
}

async fn state(idem: &Idempotency, id: RecordId) -> State {
    idem.explain(id).await.expect("a story").row.state
}

#[tokio::test]
async fn the_answer_lists_what_is_done_moved_and_refused() {
    let idem = Idempotency::memory();
    let app = app(&idem);
    let first = uncertain(&idem, "payments.charge", "a").await;
    let moved = uncertain(&idem, "payments.charge", "b").await;
    let form = asked(&app, "settle").await.with("reason", "dashboard");
    let settle = idem.settle_id(moved).await.expect("a record").by("carl");
    settle
        .because("r")
        .with_value(&1)
        .await
        .expect("it is settled");
    let done = form.send(&app).await;
    done.has("1 of 2 records done.");
    done.has("<td>done</td>");
    done.has("<td>moved</td><td>it was written by carl");
    assert_eq!(state(&idem, first).await, State::Done);
    let note = idem.explain(first).await.expect("a story").row.note;
    let note = note.expect("a note");
    assert_eq!(
        (note.by.as_deref(), &*note.text),
        (Some("anna"), "dashboard")
    );
    let again = form.send(&app).await;
    again.has("0 of 2 records done.");

    let list = get(&app, "/records").await;
    let resume = chosen(&list, "resume", &boxes(&list)).send(&app).await;
    let resume = Form::shown("anna", &resume, "/bulk/resume").with("reason", "r");
    resume.send(&app).await.has("<td>refused</td>");
    let give_up = chosen(&list, "invalidate", &boxes(&list)).send(&app).await;
    let give_up = Form::shown("anna", &give_up, "/bulk/invalidate").with("reason", "r");
    give_up.send(&app).await.has("1 of 2 records done.");
}

#[tokio::test]
async fn fifty_are_done_at_once_and_the_rest_goes_on() {
    let idem = Idempotency::memory();
    let app = app(&idem);
    for key in 0..120 {
        uncertain(&idem, "payments.charge", &key.to_string()).await;
    }
    let left = async || {
        idem.records()
            .attention()
            .count()
            .await
            .expect("a count")
            .records
    };
    let mut form = asked(&app, "settle").await.with("reason", "r");
    for (done, rest) in [("50 of 50", 70), ("50 of 50", 20), ("20 of 20", 0)] {
        let answer = form.send(&app).await;
        answer.has(&format!("{done} records done."));
        assert_eq!(left().await, rest);
        form = Form::shown("anna", &answer, "/bulk/settle");
    }
    get(&app, "/records").await.has("120 records.");
}

#[tokio::test]
async fn a_form_of_many_is_for_one_person_one_act_and_these_records() {
    let idem = Idempotency::memory();
    let app = app(&idem);
    let id = uncertain(&idem, "payments.charge", "a").await;
    let other = charged(&idem, "b").await;
    let form = asked(&app, "settle").await.with("reason", "r");
    let all = get(&app, "/records").await;
    let other = boxes(&all)
        .into_iter()
        .find(|it| it.starts_with(&other.to_hex()));
    let other = other.expect("its box");
    for (form, status) in [
        (form.clone().with("reason", " "), StatusCode::BAD_REQUEST),
        (form.clone().and("record", &other), StatusCode::FORBIDDEN),
        (form.clone().with("record", &other), StatusCode::FORBIDDEN),
        (form.clone().at("/bulk/resume"), StatusCode::FORBIDDEN),
        (form.clone().at("/bulk/undo"), StatusCode::BAD_REQUEST),
        (form.clone().with("record", "x"), StatusCode::BAD_REQUEST),
        (
            form.clone().header("x-user", Some("carl")),
            StatusCode::FORBIDDEN,
        ),
        (
            form.clone().header("x-user", Some("ben")),
            StatusCode::FORBIDDEN,
        ),
        (
            form.clone().header("sec-fetch-site", Some("cross-site")),
            StatusCode::FORBIDDEN,
        ),
    ] {
        assert_eq!(form.send(&app).await.status, status, "{form:?}");
        assert_eq!(state(&idem, id).await, State::Uncertain, "{form:?}");
    }
    let none = chosen(&all, "settle", &[]).send(&app).await;
    none.has("No record was chosen.");
    let many = vec![other; 501];
    let many = chosen(&all, "settle", &many).send(&app).await;
    many.has("At most 500 records");
    let elsewhere = chosen(&all, "settle", &boxes(&all));
    let elsewhere = elsewhere.header("sec-fetch-site", Some("cross-site"));
    assert_eq!(elsewhere.send(&app).await.status, StatusCode::FORBIDDEN);
    for path in ["/bulk", "/bulk/settle"] {
        assert_eq!(get(&app, path).await.status, StatusCode::METHOD_NOT_ALLOWED);
    }
}

#[tokio::test]
async fn a_list_offers_only_acts_that_the_person_may_do() {
    let idem = Idempotency::memory();
    uncertain(&idem, "payments.charge", "a").await;
    let stream = idem.sequence("ledger.apply", "eur").first(1);
    let number = stream.number(1);
    let _decision = number
        .run(async |_| Ok::<_, Error>(1))
        .await
        .expect("it is applied");
    let app = app(&idem);
    let as_person = |name: &'static str| {
        let request = http::Request::get("/records").header("x-user", name);
        crate::shop::ask(&app, request)
    };
    let all = as_person("anna").await;
    assert_eq!(boxes(&all).len(), 1, "a stream has none");
    all.has("Settle as done");
    let resumes = as_person("ben").await;
    resumes.has("<button type=\"submit\" name=\"act\" value=\"resume\">");
    resumes.lacks("Settle as done");
    let reads = as_person("reader").await;
    reads.lacks("name=\"record\"");
    reads.lacks("<button type=\"submit\" name=\"act\"");
}

#[tokio::test]
async fn a_store_that_is_away_ends_the_act_at_the_first_record() {
    let store = FaultyStore::new(idempotent_runtime::MemoryStore::new());
    let idem = Idempotency::new(store.clone());
    for key in ["a", "b", "c"] {
        uncertain(&idem, "payments.charge", key).await;
    }
    let app = app(&idem);
    let form = asked(&app, "settle").await.with("reason", "r");
    store.fault(StoreOperation::Load, On::Every, Fault::LoseAnswer);
    let answer = form.send(&app).await;
    answer.has("0 of 1 record done.");
    answer.has("<td>not known</td>");
    answer.has("Go on with the next of 2 records");
}
