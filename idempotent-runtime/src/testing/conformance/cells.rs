//! A versioned cell: looks and swaps.

use std::{sync::Arc, time::Duration};

use super::{
    StoreUnderTest,
    sample::{
        LEASE, STATES, TTL, anew, applied, claim, claimed, completion, heartbeat, id, look, next,
        purged, refused, release, replaced, swap, takeover,
    },
};
use crate::{
    fingerprint::{Arguments, Fingerprinted},
    identity::RecordId,
    record::{
        Draft, FencingToken, Moment, RawOutcome, State, Subject as About, TokenRule, Version,
    },
    store::Swap,
};

/// F01: a look where nothing stands finds nothing, without an error.
pub(super) async fn nothing_stands_under_a_new_id(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    assert_eq!(look(&*store, id(1)).await.record, None);
    let mut neighbour = *id(1).as_bytes();
    neighbour[31] ^= 1;
    applied(&*store, RecordId::from_bytes(neighbour), None, &claim()).await;
    assert_eq!(look(&*store, id(1)).await.record, None);
}

/// F02: a claim is stamped by the store, and stands as written for every client.
pub(super) async fn a_claim_stands_as_written(subject: &dyn StoreUnderTest) {
    let (store, other) = (subject.store().await, subject.store().await);
    let record = applied(&*store, id(1), None, &claim()).await;
    assert_eq!(record.lease_end, record.created.plus(LEASE));
    assert_eq!(record.expires, record.created.plus(LEASE + TTL));
    assert_eq!(record.finished, None);
    let seen = look(&*other, id(1)).await;
    assert_eq!(
        seen.record,
        Some(record.clone()),
        "another client sees the same"
    );
    assert!(seen.now >= record.created, "one clock serves every client");
}

/// F03: the second claim is refused, the first one untouched, and shown in the refusal.
pub(super) async fn a_second_claim_is_refused_and_shown_what_stands(subject: &dyn StoreUnderTest) {
    let (store, other) = (subject.store().await, subject.store().await);
    applied(&*store, id(0), None, &claim()).await;
    let first = applied(&*store, id(1), None, &claim()).await;
    let snapshot = refused(&*other, id(1), None, &claim()).await;
    assert_eq!(snapshot.record, Some(first));
}

/// F05, F08, F09: a client that saw the version that stands writes the next one.
pub(super) async fn a_swap_over_the_version_seen_is_applied(subject: &dyn StoreUnderTest) {
    let (store, other) = (subject.store().await, subject.store().await);
    let endings = [
        completion,
        |of: &Draft, _| release(of),
        |of: &Draft, _| next(of, State::Uncertain),
    ];
    for (number, ending) in (0..).zip(endings) {
        let (draft, held) = claimed(&*store, id(number)).await;
        let beaten = replaced(&*other, id(number), &held, &heartbeat(&draft)).await;
        let ended = replaced(&*store, id(number), &beaten, &ending(&draft, "v")).await;
        assert!(ended.finished.is_some());
        assert_eq!(ended.token, held.token);
    }
}

/// F08, F09: a client that saw another version writes nothing, whatever the draft.
pub(super) async fn a_swap_over_another_version_is_refused(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let draft = claim();
    let old = applied(&*store, id(1), None, &draft).await;
    replaced(&*store, id(1), &old, &heartbeat(&draft)).await;
    for stale in [
        heartbeat(&draft),
        completion(&draft, "stale"),
        release(&draft),
        takeover(&old),
        claim(),
    ] {
        refused(&*store, id(1), Some(old.version), &stale).await;
        refused(&*store, id(1), Some(Version::random()), &stale).await;
    }
}

/// D16: prolonging or ending a record that is not there is refused, and creates nothing.
pub(super) async fn a_swap_where_nothing_stands_creates_nothing(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let draft = claim();
    for stale in [
        heartbeat(&draft),
        completion(&draft, "stale"),
        release(&draft),
        claim(),
    ] {
        let snapshot = refused(&*store, id(1), Some(draft.version), &stale).await;
        assert_eq!(snapshot.record, None);
    }
}

/// A05: an expired record still stands: a claim must have seen it, so that its token counts. A done
/// or released record may be gone by itself, and a record that begins there has a greater token all
/// the same.
pub(super) async fn a_claim_where_an_expired_record_stands_is_refused(
    subject: &dyn StoreUnderTest,
) {
    let store = subject.store().await;
    applied(&*store, id(1), None, &claim()).await;
    let (draft, held) = claimed(&*store, id(2)).await;
    replaced(&*store, id(2), &held, &completion(&draft, "v")).await;
    subject.advance(TTL * 2).await;
    let abandoned = look(&*store, id(1)).await.record;
    assert!(abandoned.is_some(), "what was running still stands");
    for id in [id(1), id(2)] {
        let Some(stands) = look(&*store, id).await.record else {
            let record = applied(&*store, id, None, &claim()).await;
            assert!(record.token > held.token);
            continue;
        };
        let snapshot = refused(&*store, id, None, &claim()).await;
        assert_eq!(snapshot.record.as_ref(), Some(&stands));
        assert!(
            stands.is_expired(snapshot.now),
            "the record is expired by the clock of the store"
        );
        let record = replaced(&*store, id, &stands, &anew(&stands)).await;
        assert_eq!(record.outcome, None, "the old outcome is gone");
        assert_eq!(record.finished, None);
        assert!(record.token > stands.token);
    }
}

/// F13: a completion changes what it says and nothing else.
pub(super) async fn a_completion_keeps_the_subject(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let (draft, held) = claimed(&*store, id(1)).await;
    subject.advance(LEASE / 3).await;
    let before = look(&*store, id(1)).await.record.expect("the claim stands");
    let done = replaced(&*store, id(1), &held, &completion(&draft, "v")).await;
    assert_eq!(done.subject, held.subject);
    assert_eq!(done.created, before.created);
    assert_eq!(done.lease_end, before.lease_end);
    assert_eq!(
        done.finished.map(|finished| finished.plus(TTL)),
        Some(done.expires)
    );
}

/// B20: a claim with a subject begins anew, with that subject.
pub(super) async fn a_claim_over_a_record_replaces_its_subject(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let (draft, held) = claimed(&*store, id(1)).await;
    let released = replaced(&*store, id(1), &held, &release(&draft)).await;
    subject.advance(LEASE).await;
    let mut arguments = Arguments::new();
    arguments.argument("amount", &2);
    let fingerprint = arguments.finish(None).expect("they are encoded");
    let about_other = Arc::new(About {
        operation: "conformance.refund".into(),
        scope: b"another tenant".to_vec(),
        key: b"other".to_vec(),
        fingerprint: Fingerprinted::stored(fingerprint.fingerprint(), fingerprint.digests()),
    });
    let other = Draft {
        subject: Some(Arc::clone(&about_other)),
        token: TokenRule::Above(released.token),
        ..claim()
    };
    let again = replaced(&*store, id(1), &released, &other).await;
    assert_eq!(again.subject, about_other);
    assert!(
        again.lease_end == again.created.plus(LEASE),
        "the record begins now"
    );
}

/// F10: a released record is claimed at once, with a greater token.
pub(super) async fn a_released_record_is_claimed_at_once(subject: &dyn StoreUnderTest) {
    let (store, other) = (subject.store().await, subject.store().await);
    let (draft, held) = claimed(&*store, id(1)).await;
    let released = replaced(&*store, id(1), &held, &release(&draft)).await;
    let record = replaced(&*other, id(1), &released, &anew(&released)).await;
    assert!(record.token > held.token);
}

/// The moments that a draft says to keep stay as they stand, also after time has passed.
pub(super) async fn what_a_draft_keeps_stays(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let draft = Draft {
        token: TokenRule::Above(FencingToken::from_u64(41)),
        ..claim()
    };
    let held = applied(&*store, id(1), None, &draft).await;
    subject.advance(LEASE * 2).await;
    let before = look(&*store, id(1)).await.record.expect("the claim stands");
    let left = replaced(&*store, id(1), &held, &next(&draft, State::Uncertain)).await;
    assert_eq!(
        (left.token, left.lease_end, left.expires),
        (before.token, before.lease_end, before.expires)
    );
    let ended = Draft {
        lease: Moment::In(Duration::ZERO),
        ..next(&draft, State::Running)
    };
    let ended = replaced(&*store, id(1), &left, &ended).await;
    assert_eq!(ended.finished, None, "a running record has not finished");
    assert_eq!(ended.expires, before.expires);
}

/// There is no moment to keep if nothing stood: a lease and a retention that a draft keeps there
/// are over at once.
pub(super) async fn where_nothing_stood_nothing_is_kept(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let draft = Draft {
        lease: Moment::Keep,
        expires: Moment::Keep,
        ..claim()
    };
    let record = applied(&*store, id(1), None, &draft).await;
    assert_eq!(
        (record.lease_end, record.expires),
        (record.created, record.created)
    );
}

/// A record may begin in any state, as one that keeps a place does, or one that was brought along.
pub(super) async fn a_record_begins_in_any_state(subject: &dyn StoreUnderTest) {
    let (store, other) = (subject.store().await, subject.store().await);
    for (number, state) in (0..).zip(STATES) {
        let outcome = (state == State::Done).then(|| RawOutcome::value("v"));
        let draft = Draft {
            state,
            outcome,
            ..claim()
        };
        let record = applied(&*store, id(number), None, &draft).await;
        assert_eq!(record.finished.is_none(), state == State::Running);
        assert_eq!(look(&*other, id(number)).await.record, Some(record));
    }
}

/// A claim of a done record is shown it and the time, whatever a client knows of it: also if only
/// the version tells that it is another outcome.
pub(super) async fn a_claim_of_what_is_done_is_shown_what_stands(subject: &dyn StoreUnderTest) {
    let (store, other) = (subject.store().await, subject.store().await);
    let (draft, held) = claimed(&*store, id(1)).await;
    let mut done = replaced(&*store, id(1), &held, &completion(&draft, "v")).await;
    for value in ["w", "x"] {
        for client in [&store, &other] {
            // First without a look, from which the client would know.
            let Swap::Refused(snapshot) = swap(&**client, id(1), None, &claim()).await else {
                panic!("it is written over")
            };
            assert_eq!(snapshot.record.as_ref(), Some(&done));
            let snapshot = refused(&**client, id(1), None, &claim()).await;
            assert_eq!(snapshot.record.as_ref(), Some(&done));
        }
        let over = Draft {
            expires: Moment::Keep,
            ..completion(&draft, value)
        };
        done = replaced(&*other, id(1), &done, &over).await;
    }
    let released = Draft {
        expires: Moment::Keep,
        ..release(&draft)
    };
    let released = replaced(&*other, id(1), &done, &released).await;
    for client in [&store, &other] {
        let snapshot = refused(&**client, id(1), None, &claim()).await;
        assert_eq!(snapshot.record.as_ref(), Some(&released));
    }
}

/// Ids and versions that differ in one bit are different ones, and a version counts only under its
/// own id.
pub(super) async fn ids_and_versions_are_compared_whole(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let bytes = *id(1).as_bytes();
    for place in [0, 15, 31] {
        let mut near = bytes;
        near[place] ^= 0x20;
        applied(&*store, RecordId::from_bytes(near), None, &claim()).await;
    }
    assert_eq!(look(&*store, id(1)).await.record, None);

    let version = u128::from_be_bytes(*b"abcdefgh\0jklmnop");
    let draft = Draft {
        version: Version::from_u128(version),
        ..claim()
    };
    applied(&*store, id(1), None, &draft).await;
    for bit in [0, 5, 56, 127] {
        refused(
            &*store,
            id(1),
            Some(Version::from_u128(version ^ (1 << bit))),
            &heartbeat(&draft),
        )
        .await;
    }
    let elsewhere = applied(&*store, id(2), None, &claim()).await;
    refused(&*store, id(1), Some(elsewhere.version), &heartbeat(&draft)).await;
    for misplaced in [completion(&draft, "v"), takeover(&elsewhere), claim()] {
        refused(&*store, id(1), Some(elsewhere.version), &misplaced).await;
    }
    assert_eq!(look(&*store, id(2)).await.record, Some(elsewhere));
    for extreme in [0, u128::MAX] {
        let seen = look(&*store, id(1))
            .await
            .record
            .map(|record| record.version);
        let draft = Draft {
            version: Version::from_u128(extreme),
            ..heartbeat(&draft)
        };
        applied(&*store, id(1), seen, &draft).await;
    }
}

/// A peek sees without asking what a look finds, after every write of every client.
pub(super) async fn a_peek_sees_what_stands(subject: &dyn StoreUnderTest) {
    let (store, other) = (subject.store().await, subject.store().await);
    let peeks_true = async || {
        for client in [&store, &other] {
            if let Some(peeked) = client.peek(&id(1)) {
                let found = look(&**client, id(1)).await;
                assert_eq!(peeked.record, found.record);
                assert!(peeked.now <= found.now, "one clock serves peeks and looks");
            }
        }
    };
    peeks_true().await;
    let (draft, held) = claimed(&*store, id(1)).await;
    peeks_true().await;
    subject.advance(LEASE / 2).await;
    let beaten = replaced(&*other, id(1), &held, &heartbeat(&draft)).await;
    peeks_true().await;
    replaced(&*store, id(1), &beaten, &completion(&draft, "v")).await;
    peeks_true().await;
    subject.advance(LEASE + TTL).await;
    let peeked = store.peek(&id(1)).and_then(|peeked| {
        let record = peeked.record?;
        Some(record.is_expired(peeked.now))
    });
    assert_ne!(peeked, Some(false), "time passes for peeks, too");
    purged(&*store, 10).await;
    peeks_true().await;
}
