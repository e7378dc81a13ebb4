//! A store that does not answer keeps no page waiting, and no browser keeps another one from it.

use std::time::Duration;

use http::StatusCode;
use idempotent_runtime::{
    Idempotency, MemoryStore,
    testing::{Fault, FaultyStore, Gate, On, StoreOperation},
};

use crate::shop::{app, get, uncertain};

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_gives_a_page() {
    let store = FaultyStore::new(MemoryStore::new());
    let idem = Idempotency::new(store.clone());
    let id = uncertain(&idem, "mails.send", "k").await.to_hex();
    let page = app(&idem);
    let gate = Gate::new();
    for operation in [StoreOperation::Load, StoreOperation::Scan] {
        store.fault(operation, On::Every, Fault::Delay(gate.clone()));
    }
    for path in ["/ops/records".to_owned(), format!("/ops/records/{id}")] {
        let began = tokio::time::Instant::now();
        let away = get(&page, &path).await;
        assert!(began.elapsed() < Duration::from_secs(6), "{path}");
        assert_eq!(away.status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
        away.has("for longer than 5 seconds");
    }
    let overview = get(&page, "/ops/overview").await;
    assert_eq!(overview.status, StatusCode::OK);
    overview.has("The store did not answer");
}

/// The store takes four seconds, and each browser waits for three.
#[tokio::test(start_paused = true)]
async fn browsers_that_leave_keep_nobody_from_the_overview() {
    let store = FaultyStore::new(MemoryStore::new());
    let idem = Idempotency::new(store.clone());
    uncertain(&idem, "mails.send", "k").await;
    let (page, gate) = (app(&idem), Gate::new());
    let before = store.calls(StoreOperation::Scan);
    store.fault(StoreOperation::Scan, On::Every, Fault::Delay(gate.clone()));
    let patience = Duration::from_secs(3);
    let first = tokio::time::timeout(patience, get(&page, "/ops/overview")).await;
    assert!(first.is_err(), "it leaves");
    let opens = async {
        gate.arrived(1).await;
        gate.open();
    };
    let (next, ()) = tokio::join!(get(&page, "/ops/overview"), opens);
    next.has("mails.send");
    let reads = store.calls(StoreOperation::Scan) - before;
    assert_eq!(reads, 1, "it is read once");
}
