//! Holders that were too slow, and answers that were lost.

use std::sync::Arc;

use super::{
    StoreUnderTest,
    sample::{
        LEASE, applied, claim, claimed, completion, heartbeat, id, look, next, refused, release,
        replaced, same, standing, swap, takeover,
    },
};
use crate::{
    record::{Draft, Record, State, Version},
    store::{Stamp, Store, Swap},
};

/// A holds, its lease ends, and B takes over, each through a client of its own.
async fn overtaken(
    subject: &dyn StoreUnderTest,
) -> (
    Arc<dyn Store>,
    Draft,
    Arc<Record>,
    Arc<dyn Store>,
    Draft,
    Arc<Record>,
) {
    let (a, b) = (subject.store().await, subject.store().await);
    let first = claim();
    let held = applied(&*a, id(1), None, &first).await;
    subject.advance(LEASE * 2).await;
    let seen = look(&*b, id(1)).await;
    let record = seen.record.expect("the first claim stands");
    assert!(
        record.lease_is_over(seen.now),
        "the lease is over by the clock of the store"
    );
    let second = takeover(&record);
    let taken = replaced(&*b, id(1), &record, &second).await;
    assert!(taken.token > held.token, "a takeover has a greater token");
    (a, first, held, b, second, taken)
}

/// D04: the completion of a holder that was overtaken is refused, before and after the new holder
/// completes, and the refusal shows the outcome that counts.
pub(super) async fn a_stale_owner_cannot_complete(subject: &dyn StoreUnderTest) {
    let (a, first, held, b, second, taken) = overtaken(subject).await;
    // Without a look before, from which the client would know that it was overtaken.
    let late = swap(&*a, id(1), Some(held.version), &completion(&first, "a")).await;
    let Swap::Refused(snapshot) = late else {
        panic!("it was overtaken: {late:?}")
    };
    assert_eq!(snapshot.record.as_ref(), Some(&taken));
    refused(&*a, id(1), Some(held.version), &completion(&first, "a")).await;
    let done = replaced(&*b, id(1), &taken, &completion(&second, "b")).await;
    let snapshot = refused(&*a, id(1), Some(held.version), &completion(&first, "a")).await;
    assert_eq!(
        snapshot.record.and_then(|record| record.outcome.clone()),
        done.outcome
    );
}

/// D06: the heartbeat of a holder that was overtaken is refused and prolongs nothing.
pub(super) async fn a_stale_owner_cannot_prolong(subject: &dyn StoreUnderTest) {
    let (a, first, held, b, _, taken) = overtaken(subject).await;
    let snapshot = refused(&*a, id(1), Some(held.version), &heartbeat(&first)).await;
    assert_ne!(
        snapshot.record.map(|record| record.attempt_id),
        Some(first.attempt_id),
        "the refusal names the new holder"
    );
    assert_eq!(standing(&*b, id(1)).await.lease_end, taken.lease_end);
}

/// F08: a holder that was overtaken cannot release what the new holder holds or has completed.
pub(super) async fn a_stale_owner_cannot_release(subject: &dyn StoreUnderTest) {
    let (a, first, held, b, second, taken) = overtaken(subject).await;
    refused(&*a, id(1), Some(held.version), &release(&first)).await;
    replaced(&*b, id(1), &taken, &completion(&second, "b")).await;
    refused(&*a, id(1), Some(held.version), &release(&first)).await;
}

/// D08: a duplicate that was refused cannot end a record that it does not hold.
pub(super) async fn a_refused_duplicate_deletes_nothing(subject: &dyn StoreUnderTest) {
    let (a, b) = (subject.store().await, subject.store().await);
    let first = applied(&*a, id(1), None, &claim()).await;
    let duplicate = claim();
    refused(&*b, id(1), None, &duplicate).await;
    refused(&*b, id(1), Some(duplicate.version), &release(&duplicate)).await;
    assert_eq!(standing(&*a, id(1)).await, first);
}

/// V5: a claim whose answer was lost is refused when it is tried again, by a snapshot that carries
/// its attempt id.
pub(super) async fn a_lost_claim_is_recognised_by_its_attempt(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let draft = claim();
    applied(&*store, id(1), None, &draft).await;
    for again in [
        draft.clone(),
        Draft {
            version: Version::random(),
            ..draft.clone()
        },
    ] {
        let snapshot = refused(&*store, id(1), None, &again).await;
        let record = snapshot.record.expect("the refusal shows the record");
        assert_eq!(record.attempt_id, draft.attempt_id);
        assert_eq!(record.version, draft.version);
    }
}

/// V5: a completion whose answer was lost is refused when it is tried again, and the outcome stands
/// once.
pub(super) async fn a_lost_completion_is_recognised_by_its_attempt(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let (draft, held) = claimed(&*store, id(1)).await;
    let ending = completion(&draft, "v");
    let done = match swap(&*store, id(1), Some(held.version), &ending).await {
        Swap::Applied(_) => standing(&*store, id(1)).await,
        Swap::Refused(snapshot) => panic!("the completion was refused because of {snapshot:?}"),
    };
    let snapshot = refused(&*store, id(1), Some(held.version), &ending).await;
    let record = snapshot.record.expect("the refusal shows the record");
    assert_eq!(
        (record.attempt_id, record.state),
        (draft.attempt_id, State::Done)
    );
    assert_eq!(record, done);
}

/// The store that heartbeats are given reaches the same records: a call that claims through one
/// store is prolonged and ended through the other.
pub(super) async fn heartbeats_go_to_the_same_records(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let own = store.for_heartbeats().await;
    let own = own.expect("heartbeats are given a store, or share this one");
    let beats = own.unwrap_or_else(|| Arc::clone(&store));

    let (draft, held) = claimed(&*store, id(1)).await;
    let beaten = replaced(&*beats, id(1), &held, &heartbeat(&draft)).await;
    let done = replaced(&*beats, id(1), &beaten, &completion(&draft, "v")).await;
    same(&*standing(&*store, id(1)).await, &done);

    let (draft, held) = claimed(&*beats, id(2)).await;
    same(&*standing(&*store, id(2)).await, &held);
    let done = replaced(&*store, id(2), &held, &completion(&draft, "v")).await;
    same(&*standing(&*beats, id(2)).await, &done);
}

/// A client writes over a version without having seen the record, as one that goes on for another
/// does: it is told what it kept.
pub(super) async fn a_client_that_has_seen_nothing_is_told_what_it_wrote(
    subject: &dyn StoreUnderTest,
) {
    let (store, other) = (subject.store().await, subject.store().await);
    let draft = claim();
    for (number, ending) in (0..).zip([
        heartbeat(&draft),
        completion(&draft, "v"),
        release(&draft),
        next(&draft, State::Uncertain),
    ]) {
        let begun = Draft {
            version: Version::random(),
            ..draft.clone()
        };
        let held = applied(&*store, id(number), None, &begun).await;
        let stale = heartbeat(&draft);
        let refused = swap(&*other, id(number), Some(stale.version), &stale).await;
        assert!(matches!(refused, Swap::Refused(_)), "{refused:?}");

        let stranger = subject.store().await;
        let Swap::Applied(stamp) = swap(&*stranger, id(number), Some(held.version), &ending).await
        else {
            panic!("the version stands")
        };

        let expected = ending.apply(Some(&held), stamp.now);
        assert_eq!(stamp, Stamp::from_record(&expected, stamp.now));
        let found = look(&*store, id(number)).await.record;
        same(&found.expect("a record stands"), &expected);
    }
}
