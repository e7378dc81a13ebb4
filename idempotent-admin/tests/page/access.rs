//! Nobody sees anything without a right, and a browser keeps nothing.

use http::{Request, StatusCode};
use idempotent_admin::Page;
use idempotent_runtime::Idempotency;

use crate::shop::{app, ask, by_header, charged, get};

#[tokio::test]
async fn a_person_whom_nobody_knows_sees_no_page() {
    let idem = Idempotency::memory();
    let id = charged(&idem, "order-1").await.to_hex();
    let page = app(&idem);
    let paths = ["/ops", "/ops/overview", "/ops/records"].map(str::to_owned);
    let record = format!("/ops/records/{id}");
    for path in paths.iter().chain([&record]) {
        let refused = ask(&page, Request::get(path)).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path}");
        refused.lacks("order-1");
        refused.lacks("payments");
    }
}

#[tokio::test]
async fn nothing_is_changed_by_a_request() {
    let page = app(&Idempotency::memory());
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let request = Request::builder().method(method).uri("/ops/records");
        let refused = ask(&page, request.header("x-user", "anna")).await;
        assert_eq!(refused.status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
    }
}

#[tokio::test]
async fn every_answer_keeps_the_browser_from_anything_else() {
    let page = app(&Idempotency::memory());
    let paths = [
        "/ops/overview",
        "/ops/records",
        "/ops/records?state=nonsense",
        "/ops/records/7",
        "/ops/style.css",
        "/ops/script.js",
    ];
    for path in paths {
        let answer = get(&page, path).await;
        let header = |name: &str| answer.headers[name].to_str().expect("text").to_owned();
        let policy = header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; style-src 'self'"),
            "{path}: {policy}"
        );
        assert!(
            policy.ends_with("frame-ancestors 'none'"),
            "{path}: {policy}"
        );
        assert_eq!(header("cache-control"), "no-store", "{path}");
        assert_eq!(header("referrer-policy"), "no-referrer", "{path}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        answer.lacks("style=\"");
        answer.lacks("onclick");
    }
    let refused = ask(&page, Request::get("/ops/overview")).await;
    assert_eq!(refused.headers["cache-control"], "no-store");
}

#[tokio::test]
async fn the_first_page_is_found_below_any_prefix() {
    let idem = Idempotency::memory();
    let alone = Page::new(idem.clone(), by_header).router();
    let nested = app(&idem);
    for (page, path, expected) in [
        (&alone, "/", "./overview"),
        (&nested, "/ops", "./ops/overview"),
    ] {
        let moved = get(page, path).await;
        assert_eq!(moved.status, StatusCode::TEMPORARY_REDIRECT, "{path}");
        assert_eq!(moved.headers["location"], expected, "{path}");
    }
}

#[tokio::test]
async fn a_person_without_a_name_is_nobody() {
    let page = app(&Idempotency::memory());
    let long = "a".repeat(257);
    for name in ["", " ", "\t", long.as_str()] {
        let request = Request::get("/ops/overview").header("x-user", name);
        let refused = ask(&page, request).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{name:?}");
    }
    let request = Request::get("/ops/overview").header("x-user", " anna ");
    ask(&page, request)
        .await
        .has("<p class=\"person\">anna</p>");
}

#[tokio::test]
async fn a_path_that_is_no_page_is_asked_for_and_has_the_headers() {
    let idem = Idempotency::memory();
    let below = axum::Router::new().nest("/{tenant}/ops", app(&idem));
    for (page, path) in [
        (app(&idem), "/ops/nothing"),
        (app(&idem), "/ops/records/"),
        (below, "/shop/ops/ops/records/a/b/c"),
    ] {
        let none = get(&page, path).await;
        assert_eq!(none.status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(none.headers["cache-control"], "no-store", "{path}");
        let refused = ask(&page, Request::get(path)).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path}");
    }
}

#[tokio::test]
async fn the_first_page_leads_to_no_other_site() {
    let page = Page::new(Idempotency::memory(), by_header).router();
    let page = axum::Router::new().nest("/{tenant}", page);
    for path in ["/http:evil.example", "/javascript:alert(1)"] {
        let moved = get(&page, path).await;
        let location = moved.headers["location"].to_str().expect("text");
        assert!(location.starts_with("./"), "{location}");
    }
}
