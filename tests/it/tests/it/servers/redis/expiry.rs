//! When Redis forgets by itself.

use std::{future::pending, time::Duration};

use idempotent_runtime::{
    Error, Idempotency, OnCrash,
    identity::RecordId,
    record::{Draft, Holder, Moment, State},
    store::Store,
};

use super::private::Private;
use crate::harness::{abandoned, applied, claim, completion, heartbeat, only};

/// The time to live in milliseconds; -1 if there is none.
async fn time_to_live(server: &Private) -> i64 {
    let key = server.key().await;
    server.ask(&format!("PTTL {key}")).await
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn only_what_is_done_or_released_expires_by_itself() {
    const HOUR: Duration = Duration::from_secs(3600);
    let server = Private::new().await;
    let store = server.strict().await.expect("the server answers");
    let idem = Idempotency::new(store.clone());
    let call = idem.call("charge").key("k").ttl(HOUR).lease("1m");
    let call = call.on_crash(OnCrash::Rerun);
    let running = tokio::spawn(call.run(|_| pending::<Result<(), Error>>()));
    while store.scan(None, 1).await.expect("a list").is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(time_to_live(&server).await, -1, "running");
    let (id, record) = only(&store).await;

    let mut seen = record.version;
    for (state, kept) in [
        (State::Uncertain, HOUR),
        (State::Released, HOUR),
        (State::Running, HOUR),
        (State::Parked, HOUR),
        (State::Done, HOUR),
        (State::Running, HOUR),
        (State::Done, Duration::MAX),
    ] {
        let next = Draft {
            state,
            attempt_id: record.attempt_id,
            holder: record.holder.clone(),
            lease: Moment::Keep,
            expires: Moment::In(kept),
            ..heartbeat(&claim())
        };
        applied(&store, &id, Some(seen), &next).await;
        seen = next.version;
        let left = time_to_live(&server).await;
        if kept == HOUR && matches!(state, State::Done | State::Released) {
            assert!((3_590_000..=3_600_001).contains(&left), "{state:?}: {left}");
        } else {
            assert_eq!(left, -1, "{state:?}");
        }
    }
    running.abort();
}

/// Redis counts in milliseconds, and records count in microseconds.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn nothing_is_forgotten_before_it_expires() {
    const ID: RecordId = RecordId::from_bytes([1; 32]);
    let server = Private::new().await;
    let store = server.store().await;
    let first = claim();
    applied(&store, &ID, None, &first).await;
    let mut seen = first.version;
    for microseconds in (0..1_000).step_by(37) {
        let done = Draft {
            expires: Moment::In(Duration::from_secs(3600) + Duration::from_micros(microseconds)),
            ..completion(&first, Vec::new())
        };

        let stamp = applied(&store, &ID, Some(seen), &done).await;

        seen = stamp.version;
        let key = server.key().await;
        let forgotten: i64 = server.ask(&format!("PEXPIRETIME {key}")).await;
        let early = stamp.expires.as_micros() - forgotten * 1_000;
        assert!((-1_000..=0).contains(&early), "{early} microseconds early");
    }
}

/// Without its version it is no record, and its remains have no part in the next one.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_claim_over_what_is_left_of_a_record_does_not_expire_with_it() {
    const ID: RecordId = RecordId::from_bytes([1; 32]);
    let server = Private::new().await;
    let store = server.store().await;
    let traced = Draft {
        holder: Holder {
            label: "host:1".into(),
            trace_parent: Some("00-1-1-01".into()),
        },
        ..claim()
    };
    for (seen, draft) in [
        (None, &traced),
        (Some(traced.version), &completion(&traced, Vec::new())),
    ] {
        applied(&store, &ID, seen, draft).await;
    }
    let key = server.key().await;
    let gone: i64 = server.ask(&format!("HDEL {key} version")).await;
    assert_eq!(gone, 1);

    let next = claim();
    let other = server.store().await;
    let stamp = applied(&other, &ID, None, &next).await;

    assert_eq!(time_to_live(&server).await, -1);
    let stands = store.load(&ID).await.expect("a look is answered").record;
    let expected = next.apply(None, stamp.now);
    assert_eq!(stands.map(|record| (*record).clone()), Some(expected));
}

/// It cannot be known whether it is over, so it stays, and keeps nothing else from being deleted.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_purge_passes_by_what_is_left_of_a_record() {
    let server = Private::new().await;
    let store = server.store().await;
    let abandoned = abandoned();
    let mut torn = String::new();
    for number in 1..=4 {
        let id = RecordId::from_bytes([number; 32]);
        applied(&store, &id, None, &abandoned).await;
        torn = format!("idempotent:{}", id.to_hex());
    }
    server.tell(&format!("HSET {torn} state 2")).await;
    let gone: i64 = server.ask(&format!("HDEL {torn} expires")).await;
    assert_eq!(gone, 1);

    assert_eq!(store.purge(10, Duration::ZERO).await, Ok(3));

    assert_eq!(server.key().await, torn);
}

/// A key that another program left under such a name is no record.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn keys_of_another_program_keep_no_purge_and_no_listing_from_going_on() {
    let server = Private::new().await;
    let store = server.store().await;
    let key = |number| {
        let id = RecordId::from_bytes([number; 32]);
        (id, format!("idempotent:{}", id.to_hex()))
    };
    server.tell(&format!("SET {} cached", key(1).1)).await;
    let abandoned = abandoned();
    for number in 2..=4 {
        applied(&store, &key(number).0, None, &abandoned).await;
    }
    applied(&store, &key(5).0, None, &claim()).await;

    let listed = store.scan(None, 10).await;
    assert_eq!(listed.map(|listed| listed.len()), Ok(4));

    server
        .tell(&format!("HSET {} expires soon", key(2).1))
        .await;
    assert_eq!(store.purge(10, Duration::ZERO).await, Ok(2));
}
