//! Four eyes: an act becomes a proposal, and another person approves it.

use axum::Router;
use http::{StatusCode, request::Parts};
use idempotent_admin::{Act, Page, Person};
use idempotent_audit::Audit;
use idempotent_runtime::{Error, Idempotency, operate::State, store::SqliteStore};
use sqlx::SqlitePool;
use tempfile::TempDir;

use crate::{
    forms::Form,
    shop::{get, uncertain},
};

/// All may do everything. A person whose rights were taken may not approve any more.
fn access(request: &Parts) -> Option<Person> {
    let name = request.headers.get("x-user")?.to_str().ok()?;
    let may_approve = !request.headers.contains_key("x-taken");
    let acts = Act::ALL.into_iter();
    let acts = acts.filter(|act| may_approve || *act != Act::Approve);
    Some(Person::reader(name).with(acts))
}

async fn guarded(folder: &TempDir) -> (Idempotency, Router) {
    let file = folder.path().join("shop.db");
    let store = SqliteStore::open(&file).await.expect("a file");
    let idem = Idempotency::new(store);
    let pool = SqlitePool::connect(&format!("sqlite:{}", file.display())).await;
    let pool = pool.expect("a file");
    let audit = || Audit::sqlite(pool.clone()).four_eyes(&["app"]);
    audit().migrate().await.expect("a trail");
    let audit = audit().connect().await.expect("it stands");
    let app = Page::new(idem.clone(), access).audit(&audit).router();
    (idem, app)
}

#[tokio::test]
async fn a_second_person_approves_what_the_first_one_wants() {
    let folder = tempfile::tempdir().expect("a folder");
    let (idem, app) = guarded(&folder).await;
    let id = uncertain(&idem, "payments.charge", "order-1").await;
    get(&app, "/approvals").await.has("No proposal stands.");
    let settle = Form::of(&app, id, "settle").await.with("how", "value");
    let settle = settle.with("value", "7").with("reason", "dashboard, row 7");
    let proposed = settle.send(&app).await;
    assert_eq!(proposed.status, StatusCode::ACCEPTED, "{}", proposed.text);
    assert_eq!(
        idem.explain(id).await.expect("a story").row.state,
        State::Uncertain
    );

    assert_eq!(get(&app, "/overview").await.link("Proposals"), "approvals");
    let own = get(&app, "/approvals").await;
    own.has("dashboard, row 7");
    let reads = http::Request::get("/approvals").header("x-user", "dave");
    let reads = crate::shop::ask(&app, reads.header("x-taken", "1")).await;
    reads.has("dashboard, row 7");
    reads.lacks(" -</code>");
    own.has(" -</code>");
    own.lacks("<button type=\"submit\">Approve");
    let as_carl = || Form::opened_by("carl", &app, "/approvals");
    let approve = as_carl().await;
    let number = get(&app, "/approvals").await;
    let number = number.text.split("Proposal ").nth(1).expect("a number");
    let number: String = number.chars().take_while(char::is_ascii_digit).collect();
    let approve = approve.at(&format!("/approvals/{number}"));
    for (form, status) in [
        (approve.clone(), StatusCode::BAD_REQUEST),
        (
            approve.clone().with("reason", "r").with("proposal", "x"),
            StatusCode::FORBIDDEN,
        ),
        (
            approve.clone().with("reason", "r").at("/approvals/77"),
            StatusCode::FORBIDDEN,
        ),
        (
            approve
                .clone()
                .with("reason", "r")
                .header("x-taken", Some("1")),
            StatusCode::FORBIDDEN,
        ),
        (
            approve
                .clone()
                .with("reason", "r")
                .header("x-user", Some("anna")),
            StatusCode::FORBIDDEN,
        ),
        (
            approve
                .clone()
                .with("reason", "r")
                .header("sec-fetch-site", Some("cross-site")),
            StatusCode::FORBIDDEN,
        ),
    ] {
        assert_eq!(form.send(&app).await.status, status, "{form:?}");
    }
    let again = settle.send(&app).await;
    assert_eq!(again.status, StatusCode::ACCEPTED, "nobody approved it");
    let list = get(&app, "/approvals").await;
    assert_eq!(
        list.text.matches("<h2>Proposal").count(),
        1,
        "it is proposed once"
    );

    let approved = approve.with("reason", "I saw it, too").send(&app).await;
    assert_eq!(approved.status, StatusCode::OK, "{}", approved.text);
    get(&app, "/approvals").await.has("carl");
    let twice = Form::opened_by("carl", &app, "/approvals").await;
    let twice = twice
        .at(&format!("/approvals/{number}"))
        .with("reason", "r");
    let twice = twice.send(&app).await;
    assert_eq!(twice.status, StatusCode::CONFLICT, "{}", twice.text);
    let late = Form::opened_by("dave", &app, "/approvals").await;
    let late = late.at(&format!("/approvals/{number}")).with("reason", "r");
    let done = settle.send(&app).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    let call = idem.call("payments.charge").key("order-1");
    assert_eq!(
        call.run(async |_| Ok::<_, Error>(8))
            .await
            .expect("a replay"),
        7
    );
    let late = late.send(&app).await;
    assert_eq!(late.status, StatusCode::CONFLICT, "{}", late.text);
    late.has("The record has moved since this was proposed.");
}

#[tokio::test]
async fn without_an_audit_there_is_nothing_to_approve() {
    let page = Page::new(Idempotency::memory(), access).router();
    assert_eq!(get(&page, "/approvals").await.status, StatusCode::NOT_FOUND);
}
