//! When Redis forgets by itself.

use std::{future::pending, time::Duration};

use idempotent_runtime::{
    Error, Idempotency, OnCrash,
    record::{Draft, Moment, State, TokenRule, Version},
    store::{Store, Swap},
};

use super::private::Private;

/// The time to live in milliseconds; -1 where there is none.
async fn time_to_live(server: &Private) -> i64 {
    let key = server.key().await;
    server.ask(&format!("PTTL {key}")).await
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn only_what_is_done_or_released_expires_by_itself() {
    const HOUR: Duration = Duration::from_secs(3600);
    let server = Private::new().await;
    let store = server
        .builder()
        .accept_at_most_once_until_failover()
        .connect(&server.url())
        .await
        .expect("the server answers");
    let idem = Idempotency::new(store.clone());
    let call = idem.call("charge").key("k").ttl(HOUR).lease("1m");
    let call = call.on_crash(OnCrash::Rerun);
    let running = tokio::spawn(call.run(|_| pending::<Result<(), Error>>()));
    let claimed = async {
        while store.scan(None, 1).await.expect("a list").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    claimed.await;
    assert_eq!(time_to_live(&server).await, -1, "running");
    let (id, record) = store.scan(None, 1).await.expect("a list").remove(0);

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
            version: Version::random(),
            subject: None,
            state,
            token: TokenRule::Keep,
            attempt: 1,
            attempt_id: record.attempt_id,
            holder: record.holder.clone(),
            on_crash: OnCrash::Rerun,
            lease: Moment::Keep,
            expires: Moment::In(kept),
            keep: Duration::ZERO,
            outcome: None,
        };
        let swap = store.swap(&id, Some(seen), &next).await;
        assert!(matches!(swap, Ok(Swap::Applied(_))), "{swap:?}");
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
