//! The store that heartbeats are given by a server: its writes over a version go together.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use idempotent_runtime::{
    identity::RecordId,
    record::{Draft, Moment, Version},
    store::{Snapshot, Store, Swap},
    testing::conformance::StoreUnderTest,
};

use tokio::task::JoinSet;

use super::{Server, on_every_server};
use crate::harness::{applied, claim, completion, heartbeat};

on_every_server![mend_16_each_of_many_writes_has_its_own_answer];

/// The same server, whose clients are those for heartbeats.
pub(crate) struct ForHeartbeats<S>(pub(crate) S);

#[async_trait]
impl<S: StoreUnderTest> StoreUnderTest for ForHeartbeats<S> {
    async fn store(&self) -> Arc<dyn Store> {
        let store = self.0.store().await;
        let own = store.for_heartbeats().await;
        own.expect("the server answers").unwrap_or(store)
    }

    async fn advance(&self, by: Duration) {
        self.0.advance(by).await;
    }
}

/// The record that stands before a write over `seen`, if one does.
struct Before {
    id: RecordId,
    draft: Draft,
    seen: Version,
}

async fn before(store: &dyn Store, number: u8) -> Before {
    let (id, draft) = (RecordId::from_bytes([number; 32]), claim());
    let seen = match number % 4 {
        // Nothing stands there.
        3 => Version::random(),
        kind => {
            let begun = applied(store, &id, None, &draft).await;
            match kind {
                1 => applied(store, &id, Some(begun.version), &heartbeat(&draft)).await,
                2 => {
                    let done = completion(&draft, b"value".to_vec());
                    applied(store, &id, Some(begun.version), &done).await
                }
                _ => begun,
            };
            begun.version
        }
    };
    Before { id, draft, seen }
}

/// Asserts that a write was answered as its record stood, and that it stands if it was applied.
async fn assert_answer(store: &dyn Store, before: &Before, next: &Draft, swap: Swap) {
    let number = before.id.as_bytes()[0];
    let stands = store.load(&before.id).await.expect("the server answers");
    match (number % 4, swap, stands.record) {
        (0, Swap::Applied(stamp), Some(stands)) => {
            assert_eq!(stamp.version, next.version);
            assert_eq!(stands.version, next.version);
            assert_eq!(
                (stamp.token, stamp.lease_end, stamp.expires),
                (stands.token, stands.lease_end, stands.expires)
            );
        }
        (
            1 | 2,
            Swap::Refused(Snapshot {
                record: Some(shown),
                ..
            }),
            Some(stands),
        ) => {
            assert_eq!(shown, stands);
            assert_ne!(stands.version, next.version);
        }
        (3, Swap::Refused(Snapshot { record: None, .. }), None) => {}
        (_, swap, stands) => panic!("record {number}: {swap:?}, and there stands {stands:?}"),
    }
}

async fn mend_16_each_of_many_writes_has_its_own_answer<S: Server>(server: S) {
    let store = server.store().await;
    let own = ForHeartbeats(server).store().await;
    let mut writing = Vec::new();
    for number in 0..80 {
        let before = before(&*store, number).await;
        let next = match number % 3 {
            0 => completion(&before.draft, b"own".to_vec()),
            _ => heartbeat(&before.draft),
        };
        writing.push((before, next));
    }
    let mut running = Vec::new();
    for (before, next) in writing {
        let own = Arc::clone(&own);
        running.push(tokio::spawn(async move {
            let swap = own.swap(&before.id, Some(before.seen), &next).await;
            (before, next, swap.expect("the server answers"))
        }));
    }
    for written in running {
        let (before, next, swap) = written.await.expect("no panic");
        assert_answer(&*store, &before, &next, swap).await;
    }
}

/// Asserts that heartbeats do not wait for that of a record which somebody has locked, and that
/// this one is written after `unlock`. `lock` is done with the id.
pub(crate) async fn heartbeats_pass_a_locked_record<L>(
    store: &dyn Store,
    lock: impl AsyncFnOnce(&RecordId) -> L,
    unlock: impl AsyncFnOnce(&mut L),
) {
    const RECORDS: u8 = 20;
    /// Shorter than a server waits for a lock, and longer than a busy machine takes for a batch.
    const LEASE: Duration = Duration::from_secs(15);
    let locked = RecordId::from_bytes([7; 32]);
    let mut beats = Vec::new();
    for number in 0..RECORDS {
        let (id, draft) = (RecordId::from_bytes([number; 32]), claim());
        applied(store, &id, None, &draft).await;
        let next = Draft {
            lease: Moment::In(LEASE),
            ..heartbeat(&draft)
        };
        beats.push((id, draft.version, next));
    }
    let own = store.for_heartbeats().await.expect("the server answers");
    let own = own.expect("connections of their own");
    let mut holder = lock(&locked).await;
    let mut running = JoinSet::new();
    for (id, seen, next) in beats {
        let own = Arc::clone(&own);
        running.spawn(async move { (id, own.swap(&id, Some(seen), &next).await) });
    }
    for _ in 1..RECORDS {
        let (id, swap) = running
            .join_next()
            .await
            .expect("a task")
            .expect("no panic");
        assert!(matches!(swap, Ok(Swap::Applied(_))), "{swap:?}");
        assert_ne!(id, locked);
    }
    unlock(&mut holder).await;
    let (id, swap) = running
        .join_next()
        .await
        .expect("a task")
        .expect("no panic");
    assert!(matches!(swap, Ok(Swap::Applied(_))), "{swap:?}");
    assert_eq!(id, locked);
}

/// Asserts that each of many heartbeats is written, and only that of the record which `refuse`
/// makes the server refuse fails.
pub(crate) async fn one_refused_record_fails_alone(
    store: &dyn Store,
    refuse: impl AsyncFnOnce(&RecordId),
) {
    const RECORDS: u8 = 50;
    let refused = RecordId::from_bytes([7; 32]);
    let mut beats = Vec::new();
    for number in 0..RECORDS {
        let (id, draft) = (RecordId::from_bytes([number; 32]), claim());
        applied(store, &id, None, &draft).await;
        beats.push((id, draft.version, heartbeat(&draft)));
    }
    refuse(&refused).await;
    let own = store.for_heartbeats().await.expect("the server answers");
    let own = own.expect("connections of their own");
    let mut running = JoinSet::new();
    for (id, seen, next) in beats {
        let own = Arc::clone(&own);
        running.spawn(async move { (id, own.swap(&id, Some(seen), &next).await) });
    }
    for (id, swap) in running.join_all().await {
        let is_applied = matches!(swap, Ok(Swap::Applied(_)));
        assert_eq!(is_applied, id != refused, "{swap:?}");
    }
}

mod mend_16_on_postgres {
    use crate::servers::{Postgres, together::ForHeartbeats};
    idempotent_runtime::conformance_tests!(
        ForHeartbeats(Postgres::new().await),
        #[ignore = "needs a server: cargo xtask test"]
    );
}

mod mend_16_behind_a_proxy {
    use crate::servers::{Postgres, together::ForHeartbeats};
    idempotent_runtime::conformance_tests!(
        ForHeartbeats(Postgres::behind_proxy().await),
        #[ignore = "needs a server: cargo xtask test"]
    );
}

mod mend_16_on_mariadb {
    use crate::servers::{MariaDb, together::ForHeartbeats};
    idempotent_runtime::conformance_tests!(
        ForHeartbeats(MariaDb::new().await),
        #[ignore = "needs a server: cargo xtask test"]
    );
}

mod mend_16_on_mariadb_or_mysql {
    use crate::servers::{MariaDb, together::ForHeartbeats};
    idempotent_runtime::conformance_tests!(
        ForHeartbeats(MariaDb::or_mysql().await),
        #[ignore = "needs a server: cargo xtask test"]
    );
}
