//! Deleting records that are no longer needed.

use std::{sync::Arc, time::Duration};

use tokio::sync::Barrier;

use super::{
    StoreUnderTest,
    sample::{
        LEASE, STATES, TTL, anew, applied, claim, claimed, completion, id, look, next, purged,
        release, replaced, standing, swap, takeover,
    },
};
use crate::{
    policy::OnCrash,
    record::{Draft, Moment, RawOutcome, State, Version},
    store::{Store, Swap},
};

/// F16, F17, V12: a purge deletes expired records, and none that a call still holds or that must be
/// settled. A done or released record may be gone by itself once it is expired.
pub(super) async fn purge_deletes_only_what_is_expired(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let (short, long) = (Moment::In(LEASE), Moment::In(TTL));
    let mut numbers = 0..;
    let mut all = Vec::new();
    for state in STATES {
        for on_crash in [OnCrash::Rerun, OnCrash::Reconcile, OnCrash::Uncertain] {
            for (lease, expires) in [(short, short), (short, long), (long, short), (long, long)] {
                let id = id(numbers.next().unwrap_or(0));
                let draft = Draft {
                    on_crash,
                    lease,
                    expires,
                    ..claim()
                };
                let held = applied(&*store, id, None, &draft).await;
                if state != State::Running {
                    let outcome = (state == State::Done).then(|| RawOutcome::value("v"));
                    let ended = Draft {
                        outcome,
                        ..next(&draft, state)
                    };
                    replaced(&*store, id, &held, &ended).await;
                }
                let may_be_gone =
                    matches!(state, State::Done | State::Released) && expires == short;
                all.push((id, may_be_gone));
            }
        }
    }
    assert_eq!(purged(&*store, 1000).await, 0, "nothing is expired yet");
    subject.advance(Duration::from_secs(60)).await;
    let mut expected = Vec::new();
    let mut gone = 0;
    for (id, may_be_gone) in all {
        let seen = look(&*store, id).await;
        let Some(record) = seen.record else {
            assert!(may_be_gone, "{id:?} is gone by itself");
            expected.push((id, None));
            continue;
        };
        let expired = record.is_expired(seen.now);
        gone += u64::from(expired);
        expected.push((id, (!expired).then_some(record)));
    }
    assert!(gone > 0, "the clock moved on");
    assert_eq!(purged(&*store, 1000).await, gone);
    for (id, record) in expected {
        assert_eq!(look(&*store, id).await.record, record);
    }
    assert_eq!(purged(&*store, 1000).await, 0);
}

/// A record that an operator resumed and no call asked for again is abandoned like any other
/// record.
pub(super) async fn purge_deletes_what_was_resumed_and_left(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let (draft, held) = claimed(&*store, id(0)).await;
    let parked = next(&draft, State::Parked);
    replaced(&*store, id(0), &held, &parked).await;
    let resumed = Draft {
        lease: Moment::In(Duration::ZERO),
        expires: Moment::In(LEASE),
        ..next(&draft, State::Running)
    };
    applied(&*store, id(0), Some(parked.version), &resumed).await;
    let purge = async || store.purge(10, Duration::ZERO).await;
    assert_eq!(purge().await, Ok(0), "it may be called for");

    subject.advance(2 * LEASE).await;

    assert_eq!(purge().await, Ok(1));
}

/// F16: a purge deletes no more than it was asked to, and counts what it deleted.
pub(super) async fn purge_goes_in_bounded_batches(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    expired(subject, &store, 25).await;
    let mut counts = Vec::new();
    for limit in [0, 10, 10, 10, 10] {
        counts.push(purged(&*store, limit).await);
    }
    assert_eq!(counts, [0, 10, 10, 5, 0]);
}

/// A record that was expired and is claimed again must not be purged.
pub(super) async fn purge_spares_what_was_claimed_again(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    expired(subject, &store, 2).await;
    let old = standing(&*store, id(1)).await;
    let record = replaced(&*store, id(1), &old, &anew(&old)).await;
    assert_eq!(purged(&*store, 10).await, 1);
    assert_eq!(look(&*store, id(1)).await.record, Some(record));
}

/// A purge looks and deletes in one step: one that deletes what it saw before takes a record from a
/// call that has claimed it meanwhile.
pub(super) async fn a_purge_beside_a_takeover_takes_nothing_that_was_claimed(
    subject: &dyn StoreUnderTest,
) {
    let store = subject.store().await;
    let (purger, taker) = (subject.store().await, subject.store().await);
    for round in 0..50 {
        let abandoned = Draft {
            lease: Moment::In(Duration::ZERO),
            expires: Moment::In(Duration::ZERO),
            ..claim()
        };
        let begun = swap(&*taker, id(round), None, &abandoned).await;
        assert!(matches!(begun, Swap::Applied(_)), "{begun:?}");
        let Some(seen) = look(&*taker, id(round)).await.record else {
            // It need not be kept, so a store that sweeps may have forgotten it.
            continue;
        };
        let again = takeover(&seen);
        let version = again.version;
        let start = Arc::new(Barrier::new(2));
        let taking = tokio::spawn({
            let (taker, start) = (Arc::clone(&taker), Arc::clone(&start));
            async move {
                start.wait().await;
                swap(&*taker, id(round), Some(seen.version), &again).await
            }
        });
        let purging = tokio::spawn({
            let purger = Arc::clone(&purger);
            async move {
                start.wait().await;
                purger.purge(10, Duration::ZERO).await
            }
        });
        let taken = taking.await.expect("the swap is answered");
        let purged = purging.await.expect("the purge ends");
        purged.expect("a purge is answered");
        if let Swap::Applied(_) = taken {
            let found = look(&*store, id(round)).await.record;
            assert_eq!(
                found.map(|record| record.version),
                Some(version),
                "whoever took over in round {round} holds"
            );
        }
    }
}

/// A record that is kept for an audit is spared until that is over.
pub(super) async fn purge_spares_what_is_kept(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    expired(subject, &store, 3).await;
    let mut counts = Vec::new();
    for _ in 0..3 {
        counts.push(store.purge(10, TTL).await.expect("a purge is answered"));
        subject.advance(TTL / 2).await;
    }
    assert_eq!(counts, [0, 0, 3]);
}

/// A kept record is kept from its expiry on, also if its call ended long after it was claimed.
pub(super) async fn purge_counts_what_is_kept_from_its_expiry(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let draft = Draft {
        keep: TTL,
        ..claim()
    };
    let held = applied(&*store, id(1), None, &draft).await;
    subject.advance(TTL / 2).await;
    let ended = completion(&draft, "v");
    replaced(&*store, id(1), &held, &ended).await;
    subject.advance(2 * TTL - LEASE).await;

    assert_eq!(store.purge(10, TTL).await, Ok(0), "it is still kept");
    assert_eq!(standing(&*store, id(1)).await.version, ended.version);

    subject.advance(2 * LEASE).await;
    store.purge(10, TTL).await.expect("a purge is answered");
    assert_eq!(look(&*store, id(1)).await.record, None);
}

/// A record that is kept for an audit is not forgotten by the store itself either, and binds no
/// call.
pub(super) async fn what_is_kept_stays_until_then(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let mut kept = Vec::new();
    for number in 0..20 {
        kept.push((id(number), ended(&*store, number, TTL).await));
    }
    subject.advance(TTL).await;
    // A store that sweeps does so when others come in.
    for number in 100..160 {
        applied(&*store, id(number), None, &claim()).await;
    }
    for (id, version) in &kept {
        let seen = look(&*store, *id).await;
        let record = seen.record.expect("it is kept");
        assert_eq!(record.version, *version);
        assert!(record.is_expired(seen.now), "it binds no call");
    }
    assert_eq!(store.purge(1000, TTL).await, Ok(0), "it is still kept");
    subject.advance(LEASE).await;
    store.purge(1000, TTL).await.expect("a purge is answered");
    for (id, _) in &kept {
        assert_eq!(
            look(&*store, *id).await.record,
            None,
            "it was kept long enough"
        );
    }
}

/// The purge says how long expired records stay, also those that were to stay for longer when they
/// were written.
pub(super) async fn a_purge_says_how_long_is_kept(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    for number in 0..4 {
        ended(&*store, number, 2 * TTL).await;
    }
    subject.advance(TTL).await;
    let purge = async |keep| store.purge(10, keep).await;
    assert_eq!(purge(TTL).await, Ok(0), "not for that long yet");
    assert_eq!(purge(TTL / 2).await, Ok(4));
    for number in 0..4 {
        assert_eq!(look(&*store, id(number)).await.record, None);
    }
}

/// F19: purges at once do not block each other for ever, and count each record once.
pub(super) async fn purgers_at_once_count_each_record_once(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    expired(subject, &store, 200).await;
    let live = applied(&*store, id(1000), None, &claim()).await;
    let mut purgers = Vec::new();
    for _ in 0..4 {
        let store = subject.store().await;
        purgers.push(tokio::spawn(async move {
            let mut sum = 0;
            for _ in 0..20 {
                sum += purged(&*store, 15).await;
            }
            sum
        }));
    }
    let mut sum = 0;
    for purger in purgers {
        sum += purger.await.expect("the purger ends");
    }
    assert_eq!(sum, 200);
    assert_eq!(look(&*store, id(1000)).await.record, Some(live));
}

/// Leaves `count` expired records under the ids from 0: abandoned ones, which no store forgets by
/// itself.
/// Ends the `number`th call, which expires soon and is kept for `keep` from then on.
async fn ended(store: &dyn Store, number: u32, keep: Duration) -> Version {
    let (draft, held) = claimed(store, id(number)).await;
    let ending = match number % 2 {
        0 => completion(&draft, "v"),
        _ => release(&draft),
    };
    let ended = Draft {
        expires: Moment::In(LEASE),
        keep,
        ..ending
    };
    replaced(store, id(number), &held, &ended).await.version
}

async fn expired(subject: &dyn StoreUnderTest, store: &Arc<dyn Store>, count: u32) {
    for number in 0..count {
        applied(&**store, id(number), None, &claim()).await;
    }
    subject.advance(TTL + LEASE).await;
}
