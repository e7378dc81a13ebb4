//! The time that a store tells, and the tokens that come from it. If clients and server have the
//! same clock, it cannot be seen whose clock it is.

use std::time::Duration;

use super::{
    StoreUnderTest,
    sample::{
        LEASE, PATIENCE, TTL, applied, claim, claimed, completion, heartbeat, id, look, purge_all,
        replaced, takeover,
    },
};
use crate::{
    record::{Draft, FencingToken, Moment, Time, TokenRule},
    store::Store,
};

/// D01, D02, D19: a lease is over by the time that every client of the store is told, and not
/// before. If they are all on one machine with the server, a store that takes the process's time
/// passes, too.
pub(super) async fn a_lease_ends_by_the_clock_of_the_store(subject: &dyn StoreUnderTest) {
    let (store, other) = (subject.store().await, subject.store().await);
    let (draft, held) = claimed(&*store, id(1)).await;
    let over = async || {
        let seen = look(&*other, id(1)).await;
        seen.record
            .is_some_and(|record| record.lease_is_over(seen.now))
    };
    assert!(!over().await);
    subject.advance(LEASE / 2).await;
    assert!(!over().await, "half a lease later it is not over");
    replaced(&*store, id(1), &held, &heartbeat(&draft)).await;
    subject.advance(LEASE * 3 / 4).await;
    assert!(!over().await, "a heartbeat begins the lease anew");
    subject.advance(LEASE / 4).await;
    assert!(over().await);
}

/// V4: every takeover has a greater token.
pub(super) async fn tokens_grow_over_takeovers(subject: &dyn StoreUnderTest) {
    let clients = [subject.store().await, subject.store().await];
    let mut record = applied(&*clients[0], id(1), None, &claim()).await;
    for turn in 0..20 {
        let next = applied(
            &*clients[turn % 2],
            id(1),
            Some(record.version),
            &takeover(&record),
        )
        .await;
        assert!(
            next.token > record.token,
            "{} follows {}",
            next.token,
            record.token
        );
        record = next;
    }
}

/// V4: a record that begins after a purge has a greater token than the one before it ever had.
pub(super) async fn tokens_grow_over_purge_and_a_new_beginning(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let mut largest = FencingToken::from_u64(0);
    for _ in 0..3 {
        let (_, held) = claimed(&*store, id(1)).await;
        assert!(held.token > largest, "{} follows {largest}", held.token);
        let taken = takeover(&held);
        let record = replaced(&*store, id(1), &held, &taken).await;
        largest = record.token;
        replaced(&*store, id(1), &record, &completion(&taken, "v")).await;
        subject.advance(TTL * 2).await;
        purge_all(&*store).await;
        assert_eq!(
            look(&*store, id(1)).await.record,
            None,
            "the record was purged"
        );
        after(&*store, largest).await;
    }
}

/// A token is above the floor it was given, also if that lies in the future.
pub(super) async fn a_token_follows_a_floor_above_the_clock(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let now = look(&*store, id(1)).await.now;
    let floor = u64::try_from(now.plus(TTL).as_micros()).expect("the clock is past 1970");
    let draft = Draft {
        token: TokenRule::Above(FencingToken::from_u64(floor)),
        ..claim()
    };
    let record = applied(&*store, id(1), None, &draft).await;
    assert_eq!(record.token, FencingToken::from_u64(floor + 1));
    let next = replaced(&*store, id(1), &record, &takeover(&record)).await;
    assert_eq!(next.token, FencingToken::from_u64(floor + 2));
}

/// A lease or retention too long to count ends at the last moment there is, not at a wrapped one.
pub(super) async fn a_moment_beyond_all_time_is_the_last_one(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let forever = Moment::In(Duration::MAX);
    let draft = Draft {
        lease: forever,
        expires: forever,
        ..claim()
    };
    let record = applied(&*store, id(1), None, &draft).await;
    assert_eq!(
        (record.lease_end, record.expires),
        (Time::from_micros(i64::MAX), Time::from_micros(i64::MAX))
    );
    let beaten = Draft {
        lease: forever,
        expires: forever,
        ..heartbeat(&draft)
    };
    let record = replaced(&*store, id(1), &record, &beaten).await;
    assert_eq!(
        (record.lease_end, record.expires),
        (Time::from_micros(i64::MAX), Time::from_micros(i64::MAX))
    );
    let done = Draft {
        expires: forever,
        ..completion(&draft, "receipt")
    };
    let record = replaced(&*store, id(1), &record, &done).await;
    assert_eq!(record.expires, Time::from_micros(i64::MAX));
}

/// A moment centuries away is that moment, to the microsecond: no store counts in numbers that
/// round, or loses a carry.
pub(super) async fn a_moment_far_away_is_exact(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    // On both sides of 2^53 microseconds, the last whole number that doubles have, and nearly as
    // far as moments go.
    let durations = [
        1_999_999_999,
        7_199_999_999_999_999,
        7_999_999_999_999_999,
        9_007_199_254_740_993,
        99_999_999_999_999_999,
        999_000_000_000_000_001,
        7_000_000_000_999_999_999,
    ];
    for (number, micros) in (0..).zip(durations) {
        let far = Moment::In(Duration::from_micros(micros));
        let draft = Draft {
            lease: far,
            expires: far,
            ..claim()
        };
        let held = applied(&*store, id(number), None, &draft).await;
        assert_eq!(
            held.expires,
            held.created.plus(Duration::from_micros(micros))
        );
        let done = Draft {
            expires: far,
            ..completion(&draft, "receipt")
        };
        replaced(&*store, id(number), &held, &done).await;
    }
}

/// Resolves when the store's clock is past a token: at once if the clock was moved, a tick later if
/// records were aged in its place.
async fn after(store: &dyn Store, token: FencingToken) {
    let passed = async {
        while u64::try_from(look(store, id(0)).await.now.as_micros()).unwrap_or(0) <= token.as_u64()
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, passed)
        .await
        .expect("the clock of the store runs, or was moved");
}
