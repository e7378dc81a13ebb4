//! User code that blocks its runtime keeps its lease nonetheless.

use std::sync::mpsc;

use idempotent_runtime::{
    Idempotency, InFlight, MemoryStore,
    store::{SqliteStore, Store},
};
use tokio::task::yield_now;

use super::*;
use crate::harness::runtime_here;

/// Blocks its runtime, which has one thread, for more than three leases, while other calls are in
/// the middle of theirs.
fn blocks_for_three_leases(store: Arc<dyn Store>, duplicates: Arc<dyn Store>) {
    const LEASE: Duration = Duration::from_millis(300);
    let (begun, has_begun) = mpsc::channel();
    let (go, go_on) = mpsc::channel();
    let blocked = std::thread::spawn(move || {
        on_one_thread(async {
            let built = Idempotency::builder(store).lease(LEASE).build();
            let idem = built.expect("the set-up is sound");
            for number in 0..8 {
                let other = idem.call("other").key(&number);
                tokio::spawn(other.run(|_| async {
                    yield_now().await;
                    Ok::<_, Error>(())
                }));
            }
            idem.call("charge")
                .key("k")
                .run(|_| async {
                    begun.send(()).expect("the test waits");
                    go_on.recv().expect("the test goes on");
                    Ok::<_, Error>("blocked".to_owned())
                })
                .await
        })
    });
    // Until the first call stands, a duplicate would be the first.
    has_begun.recv().expect("the body begins");

    // Were the lease lost at any moment, the duplicate would take over.
    let duplicate = on_one_thread(async {
        Idempotency::new(duplicates)
            .call("charge")
            .key("k")
            .in_flight(InFlight::Wait(LEASE * 3))
            .run(|_| async { Ok::<_, Error>("taken over".to_owned()) })
            .await
    });
    go.send(()).expect("the body waits");

    assert!(is_in_progress(&duplicate), "{duplicate:?}");
    let answer = blocked.join().expect("no panic");
    assert_eq!(answer, Ok("blocked".to_owned()));
}

fn on_one_thread<F: Future>(future: F) -> F::Output {
    runtime_here().block_on(future)
}

#[test]
fn blocking_user_code_does_not_lose_the_lease_on_memory() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    blocks_for_three_leases(Arc::clone(&store), store);
}

#[test]
fn blocking_user_code_does_not_lose_the_lease_on_sqlite() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("idempotency.db");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let open = || -> Arc<dyn Store> {
        let opened = runtime.block_on(SqliteStore::open(&path));
        Arc::new(opened.expect("the file opens"))
    };
    blocks_for_three_leases(open(), open());
}
