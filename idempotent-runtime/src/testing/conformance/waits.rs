//! Waiting for a record to change.

use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};

use tokio::{
    task::{JoinHandle, yield_now},
    time::timeout,
};

use super::{
    StoreUnderTest,
    sample::{PATIENCE, TTL, applied, claim, claimed, completion, heartbeat, id, look, replaced},
};
use crate::{record::Version, store::Store};

const LONG: Duration = Duration::from_secs(600);

/// C13: a wait ends soon after another client has changed the record.
pub(super) async fn a_wait_ends_when_the_record_changes(subject: &dyn StoreUnderTest) {
    let (store, other) = (subject.store().await, subject.store().await);
    let (draft, held) = claimed(&*store, id(1)).await;
    let here = waiting(&store, held.version).await;
    let there = waiting(&other, held.version).await;
    replaced(&*store, id(1), &held, &completion(&draft, "v")).await;
    ends(here).await;
    ends(there).await;
}

/// A wait ends when the record is gone.
pub(super) async fn a_wait_ends_when_the_record_is_deleted(subject: &dyn StoreUnderTest) {
    let (store, other) = (subject.store().await, subject.store().await);
    let (draft, held) = claimed(&*store, id(1)).await;
    let done = replaced(&*store, id(1), &held, &completion(&draft, "v")).await;
    let here = waiting(&store, done.version).await;
    let there = waiting(&other, done.version).await;
    subject.advance(TTL * 2).await;
    // A call that waits may only just be noting that: a purge passes over a record that another
    // call writes.
    let gone = async {
        while look(&*store, id(1)).await.record.is_some() {
            let purged = store.purge(10, Duration::ZERO).await;
            purged.expect("a purge is answered");
            yield_now().await;
        }
    };
    timeout(PATIENCE, gone)
        .await
        .expect("a purge deletes what is expired");
    ends(here).await;
    ends(there).await;
}

/// C14: a wait for a version that no longer stands, or never stood, ends at once.
pub(super) async fn a_wait_for_a_version_that_is_gone_ends_at_once(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    ends(waiting(&store, Version::random()).await).await;
    let (draft, held) = claimed(&*store, id(1)).await;
    replaced(&*store, id(1), &held, &heartbeat(&draft)).await;
    ends(waiting(&store, held.version).await).await;
}

/// A wait ends at its deadline when nothing happens.
pub(super) async fn a_wait_ends_at_its_deadline(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let held = applied(&*store, id(1), None, &claim()).await;
    for at_most in [Duration::ZERO, Duration::from_millis(30)] {
        let wait = timeout(PATIENCE, store.wait(&id(1), held.version, at_most)).await;
        wait.expect("the wait ends").expect("the wait is answered");
    }
}

/// Two hundred waits leave the store free to look and to write, and all end.
pub(super) async fn waiting_holds_nothing(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let (draft, held) = claimed(&*store, id(1)).await;
    let mut waits = Vec::new();
    for _ in 0..200 {
        waits.push(waiting(&store, held.version).await);
    }
    let work = async {
        applied(&*store, id(2), None, &claim()).await;
        replaced(&*store, id(1), &held, &completion(&draft, "v")).await;
    };
    timeout(PATIENCE, work)
        .await
        .expect("the store answers while others wait");
    for wait in waits {
        ends(wait).await;
    }
}

/// V9: a call that stops waiting changes nothing, and leaves no other call asleep.
pub(super) async fn a_dropped_wait_changes_nothing(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let (draft, held) = claimed(&*store, id(1)).await;
    let stays = waiting(&store, held.version).await;
    for _ in 0..20 {
        let leaves = waiting(&store, held.version).await;
        leaves.abort();
        assert!(leaves.await.is_err_and(|error| error.is_cancelled()));
    }
    assert_eq!(look(&*store, id(1)).await.record, Some(Arc::clone(&held)));
    replaced(&*store, id(1), &held, &completion(&draft, "v")).await;
    ends(stays).await;
}

/// Begins to wait until this version no longer stands, and goes on in a task of its own. The first
/// step is done here, so that no change that follows comes before it.
async fn waiting(store: &Arc<dyn Store>, seen: Version) -> JoinHandle<()> {
    let store = Arc::clone(store);
    let mut moved = Box::pin(async move {
        loop {
            store
                .wait(&id(1), seen, LONG)
                .await
                .expect("a wait is answered");
            // A wait may end early: a call that waits looks again.
            if look(&*store, id(1))
                .await
                .record
                .is_none_or(|record| record.version != seen)
            {
                return;
            }
        }
    });
    let begun = poll_fn(|context| Poll::Ready(moved.as_mut().poll(context))).await;
    tokio::spawn(async move {
        if begun.is_pending() {
            moved.await;
        }
    })
}

async fn ends(wait: JoinHandle<()>) {
    timeout(PATIENCE, wait)
        .await
        .expect("the wait ends")
        .expect("the wait is answered");
}
