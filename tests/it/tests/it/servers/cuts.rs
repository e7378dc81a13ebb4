//! Connections that are cut where a client cannot tell what the server did, and connections that
//! are slow.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    Attempt, Error, Idempotency, OnCrash, RecordChange, Status,
    store::Store,
    testing::{Disconnect, Proxy},
};

use super::{Server, on_every_server};
use crate::harness::Log;

on_every_server![
    a_claim_that_is_cut_runs_the_body_once,
    a_claim_after_an_outcome_was_forgotten_that_is_cut_runs_the_body_once,
    a_completion_that_is_cut_is_recorded,
    a_replay_that_is_cut_is_answered,
    a_look_a_list_and_a_purge_that_are_cut_are_answered,
    what_lay_idle_while_the_server_was_started_anew_is_not_missed,
    a_settlement_that_is_cut_is_recognised,
    a_call_over_a_slow_line_is_answered,
    a_heartbeat_whose_connection_falls_silent_loses_no_lease,
];

const CUTS: [Disconnect; 4] = [
    Disconnect::BeforeRequest,
    Disconnect::InRequest,
    Disconnect::BeforeAnswer,
    Disconnect::InAnswer,
];

/// A call in a mode that never runs a body twice. A claim or a completion that is not recognised is
/// therefore found out.
async fn charge(
    idem: &Idempotency,
    key: &str,
    runs: &AtomicU32,
    in_body: impl FnOnce(),
) -> Result<u32, Error> {
    idem.call("charge")
        .key(key)
        .on_crash(OnCrash::Uncertain)
        .run(|_| async {
            in_body();
            Ok(runs.fetch_add(1, Ordering::SeqCst) + 1)
        })
        .await
}

async fn set_up<S: Server>(server: &S) -> (Proxy, Idempotency) {
    let (proxy, _, idem) = set_up_with_store(server).await;
    (proxy, idem)
}

async fn set_up_with_store<S: Server>(server: &S) -> (Proxy, Arc<dyn Store>, Idempotency) {
    let proxy = Proxy::to(server.address()).await.expect("a proxy");
    let store = server.at(proxy.address(), 2).await;
    let idem = Idempotency::new(Arc::clone(&store));
    let warm = charge(&idem, "warm", &AtomicU32::new(0), || ()).await;
    assert_eq!(warm.ok(), Some(1));
    (proxy, store, idem)
}

async fn a_claim_that_is_cut_runs_the_body_once<S: Server>(server: S) {
    let (proxy, idem) = set_up(&server).await;
    for cut in CUTS {
        let (key, runs) = (format!("{cut:?}"), AtomicU32::new(0));
        proxy.cut_next(cut);
        let first = charge(&idem, &key, &runs, || ()).await;
        let again = charge(&idem, &key, &runs, || ()).await;
        assert_eq!((first.ok(), again.ok()), (Some(1), Some(1)), "{cut:?}");
        assert_eq!(runs.load(Ordering::SeqCst), 1, "{cut:?}");
    }
}

/// An outcome that was seen is asked for before the claim is sent, and each of the two may be cut.
async fn a_claim_after_an_outcome_was_forgotten_that_is_cut_runs_the_body_once<S: Server>(
    server: S,
) {
    let (proxy, idem) = set_up(&server).await;
    let elsewhere = server.at(server.address(), 1).await;
    for cut in CUTS {
        for nth in 0..2 {
            let (key, runs) = (format!("{cut:?} {nth}"), AtomicU32::new(0));
            for expected in [1, 1] {
                let first = charge(&idem, &key, &runs, || ()).await;
                assert_eq!(first.ok(), Some(expected));
            }
            server.advance(Duration::from_secs(48 * 3600)).await;
            elsewhere
                .purge(100, Duration::ZERO)
                .await
                .expect("it purges");
            let left = elsewhere.scan(None, 1).await.expect("a list");
            assert_eq!(left, [], "it is gone");

            // The first answer comes byte by byte, so that the next request is not sent yet when it
            // is to be cut.
            proxy.slow_down(Some(Duration::from_micros(50)));
            let cut_at = proxy.round_trips() + nth;
            let cutting = async {
                while proxy.round_trips() < cut_at {
                    tokio::task::yield_now().await;
                }
                proxy.cut_next(cut);
                proxy.slow_down(None);
            };
            let (answer, ()) = tokio::join!(charge(&idem, &key, &runs, || ()), cutting);

            assert_eq!(answer.ok(), Some(2), "{key}");
            assert!(idem.shutdown(Duration::from_secs(20)).await, "{key}");
            let again = charge(&idem, &key, &runs, || ()).await;
            assert_eq!(again.ok(), Some(2), "{key}");
        }
    }
}

async fn a_completion_that_is_cut_is_recorded<S: Server>(server: S) {
    let (proxy, idem) = set_up(&server).await;
    for cut in CUTS {
        let (key, runs) = (format!("{cut:?}"), AtomicU32::new(0));
        let first = charge(&idem, &key, &runs, || proxy.cut_next(cut)).await;
        assert_eq!(first.ok(), Some(1), "{cut:?}");
        assert!(
            idem.shutdown(Duration::from_secs(20)).await,
            "{cut:?}: it is written"
        );
        let again = charge(&idem, &key, &runs, || ()).await;
        assert_eq!(again.ok(), Some(1), "{cut:?}");
        assert_eq!(runs.load(Ordering::SeqCst), 1, "{cut:?}");
    }
}

async fn a_replay_that_is_cut_is_answered<S: Server>(server: S) {
    let (proxy, idem) = set_up(&server).await;
    let runs = AtomicU32::new(0);
    let first = charge(&idem, "k", &runs, || ()).await;
    assert_eq!(first.ok(), Some(1));
    for cut in CUTS {
        proxy.cut_next(cut);
        let again = charge(&idem, "k", &runs, || ()).await;
        assert_eq!(again.ok(), Some(1), "{cut:?}");
    }
}

async fn looks(idem: &Idempotency, store: &dyn Store) {
    let status = idem.lookup("charge", None::<&str>, "warm").await;
    assert!(matches!(status, Ok(Status::Completed(_))), "{status:?}");
    let listed = store.scan(None, 9).await.expect("a list");
    assert_eq!(listed.len(), 1);
}

async fn a_look_a_list_and_a_purge_that_are_cut_are_answered<S: Server>(server: S) {
    let (proxy, store, idem) = set_up_with_store(&server).await;
    for cut in CUTS {
        proxy.cut_next(cut);
        let status = idem.lookup("charge", None::<&str>, "warm").await;
        assert!(
            matches!(status, Ok(Status::Completed(_))),
            "{cut:?}: {status:?}"
        );
        proxy.cut_next(cut);
        let listed = store.scan(None, 9).await.expect("a list");
        assert_eq!(listed.len(), 1, "{cut:?}");
        proxy.cut_next(cut);
        assert_eq!(idem.purge().await, Ok(0), "{cut:?}");
    }
}

/// This is as after a restart of the server, or of a part on the way to it: each connection is
/// closed, and none was in use.
async fn what_lay_idle_while_the_server_was_started_anew_is_not_missed<S: Server>(server: S) {
    let (proxy, store, idem) = set_up_with_store(&server).await;
    looks(&idem, &*store).await;
    proxy.cut_all();
    looks(&idem, &*store).await;
    proxy.cut_all();
    assert_eq!(idem.purge().await, Ok(0));
}

async fn a_settlement_that_is_cut_is_recognised<S: Server>(server: S) {
    let (proxy, idem) = set_up(&server).await;
    for cut in CUTS {
        // It looks before it writes, and each of the two may take more than one request.
        for requests in 0..4 {
            let key = format!("{cut:?} {requests}");
            let call = idem.call("charge").key(&key).on_crash(OnCrash::Uncertain);
            let unknown = async |_| Err::<u32, _>(anyhow::anyhow!("nobody knows"));
            let unknown = call.uncertain_errors().run(unknown).await;
            assert!(unknown.is_err());
            proxy.cut_after(requests, cut);
            let settle = idem.settle("charge", None::<&str>, &key);
            let settled = settle.expect("a key").with_value(&7).await;
            assert!(settled.is_ok(), "{key}");
            let replayed = charge(&idem, &key, &AtomicU32::new(0), || ()).await;
            assert_eq!(replayed.ok(), Some(7), "{key}");
        }
    }
}

async fn a_call_over_a_slow_line_is_answered<S: Server>(server: S) {
    let (proxy, idem) = set_up(&server).await;
    let runs = Arc::new(AtomicU32::new(0));
    proxy.slow_down(Some(Duration::from_micros(50)));
    for _ in 0..2 {
        let answer = charge(&idem, "k", &runs, || ()).await;
        assert_eq!(answer.ok(), Some(1));
    }
}

/// A firewall that forgets a connection says nothing. A heartbeat waits for a third of the lease at
/// most.
async fn a_heartbeat_whose_connection_falls_silent_loses_no_lease<S: Server>(server: S) {
    let (proxy, log) = (
        Proxy::to(server.address()).await.expect("a proxy"),
        Log::new(),
    );
    let store = server.at(proxy.address(), 2).await;
    let idem = Idempotency::builder(store).lease("3s");
    let idem = idem.observer(log.clone());
    let idem = idem.build().expect("the settings are sound");

    let call = idem.call("charge").key("k").run(async |attempt: Attempt| {
        log.await_step(RecordChange::Heartbeat).await;
        proxy.cut_next(Disconnect::Silence);
        log.await_step(RecordChange::HeartbeatFailed).await;
        let beats = log.count(RecordChange::Heartbeat);
        tokio::select! {
            () = log.await_steps(RecordChange::Heartbeat, beats + 1) => Ok(1),
            () = attempt.lost() => Err(Error::InvalidPolicy("the lease is lost")),
        }
    });

    assert_eq!(call.await, Ok(1));
}
