//! Names and searches that are meant to do harm, and a store that is away.

use http::StatusCode;
use idempotent_runtime::{Idempotency, StoreErrorKind, testing::FaultyStore};

use crate::shop::{app, get, uncertain};

const HOSTILE: &str = "\"><script>alert(1)</script>&lt;'\u{202e}\0";

#[tokio::test]
async fn all_that_comes_from_a_store_or_a_search_is_escaped() {
    let idem = Idempotency::memory();
    let id = uncertain(&idem, HOSTILE, HOSTILE).await;
    let page = app(&idem);
    let overview = get(&page, "/ops/overview").await;
    let list = overview.link("alert");
    for path in [
        "/ops/overview".to_owned(),
        format!("/ops/{list}"),
        format!("/ops/records/{}", id.to_hex()),
        "/ops/records?operation=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E".to_owned(),
        "/ops/records?after=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E".to_owned(),
        "/ops/records?state=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E".to_owned(),
    ] {
        let shown = get(&page, &path).await;
        shown.lacks("<script>alert");
    }
    get(&page, &format!("/ops/{list}")).await.has(&id.to_hex());
}

#[tokio::test]
async fn a_search_that_makes_no_sense_is_told() {
    let page = app(&Idempotency::memory());
    for search in [
        "state=nonsense",
        "after=x",
        "older_than=soon",
        "older_than=-1",
    ] {
        let told = get(&page, &format!("/ops/records?{search}")).await;
        assert_eq!(told.status, StatusCode::BAD_REQUEST, "{search}");
        told.has("This search cannot be made");
    }
    let unknown = get(&page, "/ops/records?color=red&state=done").await;
    assert_eq!(unknown.status, StatusCode::OK, "a field that nobody knows");
    let twice = get(&page, "/ops/records?state=done&state=parked").await;
    assert_ne!(twice.status, StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test]
async fn a_store_that_is_away_is_told() {
    let store = FaultyStore::new(idempotent_runtime::MemoryStore::new());
    let idem = Idempotency::new(store.clone());
    let id = uncertain(&idem, "payments.charge", "k").await.to_hex();
    store.outage(StoreErrorKind::Unavailable);
    let page = app(&idem);
    let overview = get(&page, "/ops/overview").await;
    assert_eq!(overview.status, StatusCode::OK);
    overview.has("does not answer");
    for path in ["/ops/records".to_owned(), format!("/ops/records/{id}")] {
        let away = get(&page, &path).await;
        assert_eq!(away.status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
        away.has("The store did not answer");
    }
}
