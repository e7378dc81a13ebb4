//! Primaries that change and slots that move in the middle of traffic.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use idempotent_runtime::{Error, Idempotency, OnCrash};

use super::members::Cluster;
use crate::{
    harness::in_time,
    servers::{
        spare::Ending,
        traffic::{Progress, Traffic},
    },
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn f32_an_orderly_failover_and_its_return_lose_nothing() {
    let cluster = in_time(Cluster::start()).await;
    let store = cluster.store().await;
    let (first, replica) = (&cluster.primaries[0], &cluster.replica);
    let traffic = Traffic::around(store, OnCrash::Uncertain, async |mut progress: Progress| {
        for (next, answered) in [(replica, 500), (first, 700)] {
            next.takes_over().await;
            progress.answered(answered).await;
            // The other one follows before it is asked to lead again.
            next.says("INFO replication", "state=online").await;
        }
    });
    let traffic = in_time(traffic).await;
    traffic.assert_kept(cluster.store().await).await;
}

/// All that the replica had not received is gone, also if it was acknowledged. A body that must not
/// run twice is exposed to this alone. The rest stays, and every call is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn f32_a_primary_that_is_killed_takes_along_what_its_replica_had_not_received() {
    const CALLS: u32 = 60;
    let mut cluster = in_time(Cluster::start()).await;
    let idem = Idempotency::new(cluster.store().await);
    let runs = AtomicU32::new(0);
    let charge = async |name: &str, key: u32| loop {
        let call = idem.call(name).key(&key).on_crash(OnCrash::Uncertain);
        let answer = call.run(|_| async { Ok(runs.fetch_add(1, Ordering::SeqCst)) });
        match answer.await {
            Ok::<u32, Error>(_) => break,
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    for key in 0..CALLS {
        charge("received", key).await;
    }
    let (first, replica) = (&cluster.primaries[0], &cluster.replica);
    let received = first.keys().await.len();
    while replica.keys().await.len() < received {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    first.tell("ACL SETUSER default -sync -psync").await;
    first.tell("CLIENT KILL TYPE replica").await;
    for key in 0..CALLS {
        charge("unknown", key).await;
    }
    let lost = first.keys().await.len() - received;
    assert!(received > 0 && lost > 0, "{received} {lost}");
    cluster.primaries[0].server.end(Ending::Killed).await;
    in_time(replica.says("INFO replication", "role:master")).await;

    assert_eq!(replica.keys().await.len(), received);
    for (name, lost) in [("received", 0), ("unknown", lost)] {
        runs.store(0, Ordering::SeqCst);
        for key in 0..CALLS {
            in_time(charge(name, key)).await;
        }
        assert_eq!(runs.load(Ordering::SeqCst) as usize, lost, "{name}");
    }
}

/// Existing records are asked for where they were or where they went. New ones are made where they
/// will be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn slots_that_migrate_lose_nothing() {
    const AT_ONCE: usize = 300;
    let cluster = in_time(Cluster::start()).await;
    let (from, to) = (&cluster.primaries[0], &cluster.primaries[1]);
    let slots: Vec<u16> = cluster.slots(0).collect();
    let traffic = Traffic::around(cluster.store().await, OnCrash::Uncertain, async |_| {
        for slots in slots.chunks(AT_ONCE) {
            to.sets(slots, &["IMPORTING", &from.id]).await;
            from.sets(slots, &["MIGRATING", &to.id]).await;
            from.gives(slots, to).await;
            for node in &cluster.primaries {
                node.sets(slots, &["NODE", &to.id]).await;
            }
        }
    });
    let traffic = in_time(traffic).await;
    let refusals: String = from.ask("INFO errorstats").await;
    assert!(refusals.contains("errorstat_ASK:"), "{refusals}");
    assert!(from.keys().await.is_empty(), "everything moved");
    traffic.assert_kept(cluster.store().await).await;
}
