//! A body that may not run twice is not begun on a server that may forget its run. The tests also
//! show what such a server forgets.

use std::sync::atomic::{AtomicU32, Ordering};

use idempotent_runtime::{
    Error, Idempotency, OnCrash, Reconciled,
    identity::RecordId,
    record::Draft,
    store::{Store, StoreErrorKind},
};

use super::private::{Private, charge, kind};
use crate::{
    harness::{applied, claim, heartbeat},
    servers::spare::Ending,
};

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn at_most_once_is_refused_without_the_word() {
    let server = Private::new().await;
    let idem = Idempotency::new(server.store().await);
    let runs = AtomicU32::new(0);
    let uncertain = charge(&idem, OnCrash::Uncertain, &runs).await;
    let reconciled = idem
        .call("charge")
        .key("k")
        .reconcile(
            |_| async { Reconciled::Unknown },
            |_| async { Ok::<_, Error>(runs.fetch_add(1, Ordering::SeqCst)) },
        )
        .await;
    for answer in [uncertain, reconciled] {
        let Err(Error::Store(error)) = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(error.kind(), StoreErrorKind::Configuration);
        let why = std::error::Error::source(&error).map(ToString::to_string);
        let names = |why: &String| why.contains("accept_at_most_once_until_failover");
        assert!(why.as_ref().is_some_and(names), "{why:?}");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    let records: u64 = server.ask("DBSIZE").await;
    assert_eq!(records, 0, "nothing was written");
    assert_eq!(charge(&idem, OnCrash::Rerun, &runs).await, Ok(1));
}

/// A call whose response is streamed does this: it is not to run again if this process dies
/// meanwhile.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_holder_says_without_the_word_that_nobody_is_to_run_it_again() {
    let server = Private::new().await;
    let (store, id) = (server.store().await, RecordId::from_bytes([1; 32]));
    let claim = claim();
    applied(&store, &id, None, &claim).await;
    let answered = Draft {
        on_crash: OnCrash::Uncertain,
        ..heartbeat(&claim)
    };

    applied(&store, &id, Some(claim.version), &answered).await;

    let stands = store.load(&id).await.map(|snapshot| snapshot.record);
    let stands = stands.expect("an answer").expect("a record");
    assert_eq!(stands.on_crash, OnCrash::Uncertain);
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn at_most_once_runs_with_the_word_on_a_server_that_keeps_what_it_is_given() {
    let server = Private::new().await;
    let idem = Idempotency::new(server.strict().await.expect("the server is fit"));
    let runs = AtomicU32::new(0);
    for _ in 0..2 {
        assert_eq!(charge(&idem, OnCrash::Uncertain, &runs).await, Ok(1));
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn the_word_is_refused_where_the_server_forgets_by_itself() {
    for settings in [
        ["--appendonly", "no", "--maxmemory-policy", "noeviction"],
        ["--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"],
        ["--appendonly", "yes", "--maxmemory-policy", "volatile-ttl"],
    ] {
        let server = Private::with(&settings).await;
        let refused = kind(server.strict().await);
        let configuration = Some(StoreErrorKind::Configuration);
        assert_eq!(refused, configuration, "{settings:?}");
        let idem = Idempotency::new(server.store().await);
        let answer = charge(&idem, OnCrash::Rerun, &AtomicU32::new(0)).await;
        assert_eq!(answer, Ok(1), "by lease: {settings:?}");
    }
}

/// How often the body has run once the server has come through `loss`.
async fn runs_after(server: &mut Private, loss: impl AsyncFnOnce(&mut Private)) -> u32 {
    let idem = Idempotency::new(server.store().await);
    let runs = AtomicU32::new(0);
    assert_eq!(charge(&idem, OnCrash::Rerun, &runs).await, Ok(1));
    loss(server).await;
    let again = charge(&idem, OnCrash::Rerun, &runs).await;
    assert_eq!(again, Ok(runs.load(Ordering::SeqCst)));
    runs.load(Ordering::SeqCst)
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_server_that_is_killed_forgets_what_no_snapshot_holds() {
    let mut server = Private::with(&["--appendonly", "no"]).await;
    let killed = async |server: &mut Private| server.restart(Ending::Killed).await;
    assert_eq!(runs_after(&mut server, killed).await, 2);
}

/// This holds also if the server has time to write before it ends.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_server_that_keeps_no_file_forgets_everything_at_a_restart() {
    for (appends, runs) in [("yes", 1), ("no", 2)] {
        let mut server = Private::with(&["--save", "", "--appendonly", appends]).await;
        let restarted = async |server: &mut Private| server.restart(Ending::Orderly).await;
        assert_eq!(runs_after(&mut server, restarted).await, runs, "{appends}");
    }
}

/// Leaves the server no memory to spare for a while.
async fn starves(server: &mut Private) {
    server.tell("CONFIG SET maxmemory 1").await;
    // A write is refused after everything that may be evicted was evicted.
    let written = server.try_ask::<redis::Value>("SET other 1").await;
    assert!(written.is_err(), "{written:?}");
    server.tell("CONFIG SET maxmemory 0").await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_server_that_evicts_forgets_outcomes() {
    for (policy, runs) in [("noeviction", 1), ("volatile-lru", 2), ("allkeys-lru", 2)] {
        let mut server = Private::with(&["--maxmemory-policy", policy]).await;
        assert_eq!(runs_after(&mut server, starves).await, runs, "{policy}");
    }
}

/// Two bodies then live at once.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_server_that_evicts_any_key_forgets_what_runs() {
    for (policy, running) in [("noeviction", 1), ("volatile-lru", 1), ("allkeys-lru", 0)] {
        let mut server = Private::with(&["--maxmemory-policy", policy]).await;
        let idem = Idempotency::new(server.store().await);
        let mut records = None;
        let call = idem.call("charge").key("k").run(async |_| {
            starves(&mut server).await;
            records = Some(server.ask::<u64>("DBSIZE").await);
            Ok(1)
        });
        let answer = call.await;
        assert_eq!(records, Some(running), "{policy}");
        let is_recorded = answer == Ok::<u32, Error>(1);
        assert_eq!(is_recorded, running == 1, "{policy}: {answer:?}");
    }
}
