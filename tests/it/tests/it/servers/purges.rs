//! Purging what many calls left behind, while others are made.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    Error, Idempotency, Store,
    identity::RecordId,
    record::{Draft, FencingToken, Moment, State, TokenRule, Version},
};
use tokio::task::JoinSet;

use super::{Server, on_every_server};
use crate::harness::{applied, claim, completion, heartbeat};

on_every_server![purgers_beside_calls_delete_what_is_expired_and_lose_nothing];

const EXPIRED: u32 = 2_500;
const CALLERS: u64 = 8;
const CALLS: u64 = 25;

async fn purgers_beside_calls_delete_what_is_expired_and_lose_nothing<S: Server>(server: S) {
    abandon(&server.at(server.address(), 8).await).await;
    server.advance(Duration::from_secs(2 * 3600)).await;
    let handles = [
        Idempotency::new(server.at(server.address(), 5).await),
        Idempotency::new(server.at(server.address(), 5).await),
    ];
    let deleted = Arc::new(AtomicU64::new(0));
    let mut purging = JoinSet::new();
    for idem in handles.clone() {
        let deleted = Arc::clone(&deleted);
        // A purge that finds everything in the hands of the other one comes back.
        purging.spawn(async move {
            while deleted.load(Ordering::SeqCst) < u64::from(EXPIRED) {
                let some = idem.purge().await.expect("a purge is answered");
                deleted.fetch_add(some, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
        });
    }
    let runs = Arc::new(AtomicU64::new(0));
    let mut calling = JoinSet::new();
    for caller in 0..CALLERS {
        let (handles, runs) = (handles.clone(), Arc::clone(&runs));
        calling.spawn(async move {
            for call in 0..CALLS {
                let key = caller / 2 * CALLS + call;
                let idem = &handles[usize::try_from(caller % 2).expect("few")];
                assert_eq!(charge(idem, key, &runs).await, Ok(key));
            }
        });
    }

    calling.join_all().await;
    purging.join_all().await;

    assert_eq!(deleted.load(Ordering::SeqCst), u64::from(EXPIRED));
    let keys = CALLERS / 2 * CALLS;
    assert_eq!(runs.load(Ordering::SeqCst), keys);
    let store = server.at(server.address(), 1).await;
    let left = store.scan(None, 10_000).await.expect("a list");
    assert_eq!(left.len() as u64, keys, "only what was finished stands");
    for key in 0..keys {
        assert_eq!(charge(&handles[1], key, &runs).await, Ok(key));
    }
    assert_eq!(runs.load(Ordering::SeqCst), keys, "nothing ran again");
}

async fn charge(idem: &Idempotency, key: u64, runs: &AtomicU64) -> Result<u64, Error> {
    let call = idem.call("purges.charge").key(&key);
    call.run(|_| async move {
        runs.fetch_add(1, Ordering::SeqCst);
        Ok(key)
    })
    .await
}

/// The one indexed moment of a record in SQL: the earliest at which it can expire. A claim writes
/// it. A call that goes on and ends in time leaves it alone, so that no other write touches an
/// index.
pub(super) async fn what_a_purge_goes_by_stays(
    server: &impl Server,
    purge_from: impl AsyncFn() -> i64,
) {
    const LEASE: Duration = Duration::from_secs(30);
    const TTL: Duration = Duration::from_secs(3600);
    let id = RecordId::from_bytes([5; 32]);
    let one_connection = async || server.at(server.address(), 1).await;
    let holder = one_connection().await;
    let begun = Draft {
        lease: Moment::In(LEASE),
        expires: Moment::In(LEASE + TTL),
        ..claim()
    };
    let beat = heartbeat(&begun);
    let takeover = Draft {
        token: TokenRule::Above(FencingToken::from_u64(1)),
        ..heartbeat(&beat)
    };
    let done = Draft {
        expires: Moment::In(TTL),
        ..completion(&takeover, b"v".to_vec())
    };
    let released = Draft {
        version: Version::random(),
        state: State::Released,
        outcome: None,
        ..done.clone()
    };
    let ended = Draft {
        expires: Moment::In(TTL),
        ..completion(&done, b"w".to_vec())
    };
    applied(&holder, &id, None, &begun).await;
    let said = purge_from().await;

    // The last one is written by a client that knows nothing of the record.
    let stranger = one_connection().await;
    for (store, seen, next) in [
        (&holder, begun.version, &beat),
        (&holder, beat.version, &takeover),
        (&holder, takeover.version, &done),
        (&holder, done.version, &released),
        (&stranger, released.version, &ended),
    ] {
        applied(store, &id, Some(seen), next).await;
        assert_eq!(purge_from().await, said, "{:?}", next.state);
    }

    let again = Draft {
        version: Version::random(),
        ..begun.clone()
    };
    applied(&holder, &id, Some(ended.version), &again).await;
    assert!(purge_from().await > said, "it begins anew");
}

/// Leaves records that no store forgets by itself: those of calls whose holders vanished.
async fn abandon(store: &Arc<dyn Store>) {
    let mut claiming = JoinSet::new();
    for tenth in 0..10 {
        let store = Arc::clone(store);
        claiming.spawn(async move {
            for number in (0..EXPIRED).filter(|number| number % 10 == tenth) {
                let mut id = [0xc3; 32];
                id[28..].copy_from_slice(&number.to_be_bytes());
                applied(&store, &RecordId::from_bytes(id), None, &claim()).await;
            }
        });
    }
    claiming.join_all().await;
}
