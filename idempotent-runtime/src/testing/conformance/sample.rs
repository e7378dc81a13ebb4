//! The drafts that the cases write, and what they expect of the answers.

use std::{sync::Arc, time::Duration};

use tokio::{task::yield_now, time::timeout};

use crate::{
    fingerprint::{ArgumentDigests, Arguments, Fingerprint, Fingerprinted},
    identity::RecordId,
    policy::OnCrash,
    record::{
        AttemptId, Draft, FencingToken, Holder, Moment, RawOutcome, Record, State, Subject, Time,
        TokenRule, Version,
    },
    store::{Snapshot, Stamp, Store, Swap},
};

/// Every state of a record.
pub(super) const STATES: [State; 6] = [
    State::Running,
    State::Done,
    State::Released,
    State::Uncertain,
    State::Parked,
    State::Undoing,
];

pub(super) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const TTL: Duration = Duration::from_secs(3600);

/// Longer than any store takes to answer; only ever reached by a store that hangs.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// The `number`th id of a case; they sort by their numbers.
pub(super) fn id(number: u32) -> RecordId {
    let mut bytes = [0xa5; 32];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    RecordId::from_bytes(bytes)
}

pub(super) fn subject(key: impl Into<Vec<u8>>) -> Arc<Subject> {
    let key = key.into();
    let mut fingerprint = [7; 32];
    fingerprint[0] = key.first().copied().unwrap_or(0);
    Arc::new(Subject {
        operation: "conformance.charge".into(),
        scope: b"tenant".to_vec(),
        key,
        fingerprint: Fingerprinted::stored(Fingerprint::from_bytes(fingerprint), digests()),
    })
}

pub(super) fn digests() -> ArgumentDigests {
    let mut arguments = Arguments::new();
    arguments.argument("amount", &1);
    let fingerprint = arguments.finish(None).expect("they are encoded");
    fingerprint.digests()
}

pub(super) fn holder() -> Holder {
    Holder {
        label: "host:1".into(),
        trace_parent: None,
    }
}

/// A first claim.
pub(crate) fn claim() -> Draft {
    Draft {
        version: Version::random(),
        subject: Some(subject("key")),
        state: State::Running,
        token: TokenRule::Above(FencingToken::from_u64(0)),
        attempt: 1,
        attempt_id: AttemptId::random(),
        holder: holder(),
        on_crash: OnCrash::Rerun,
        lease: Moment::In(LEASE),
        expires: Moment::In(LEASE + TTL),
        keep: Duration::ZERO,
        outcome: None,
        note: None,
    }
}

/// The first claim of a life that follows the one of `record`.
pub(super) fn anew(record: &Record) -> Draft {
    Draft {
        token: TokenRule::Above(record.token),
        ..claim()
    }
}

/// Another's claim over a record whose holder vanished.
pub(super) fn takeover(record: &Record) -> Draft {
    Draft {
        subject: None,
        attempt: record.attempt + 1,
        token: TokenRule::Above(record.token),
        on_crash: record.on_crash,
        ..claim()
    }
}

/// The holder's own next version, in `state`.
pub(super) fn next(of: &Draft, state: State) -> Draft {
    Draft {
        version: Version::random(),
        subject: None,
        state,
        token: TokenRule::Keep,
        lease: Moment::Keep,
        expires: Moment::Keep,
        outcome: None,
        ..of.clone()
    }
}

pub(crate) fn heartbeat(of: &Draft) -> Draft {
    Draft {
        lease: Moment::In(LEASE),
        expires: Moment::In(LEASE + TTL),
        ..next(of, State::Running)
    }
}

pub(crate) fn completion(of: &Draft, value: &'static str) -> Draft {
    let outcome = Some(RawOutcome::value(value.as_bytes()).with_schema(3));
    Draft {
        expires: Moment::In(TTL),
        outcome,
        ..next(of, State::Done)
    }
}

pub(super) fn release(of: &Draft) -> Draft {
    Draft {
        expires: Moment::In(TTL),
        ..next(of, State::Released)
    }
}

/// Looks.
pub(super) async fn look(store: &dyn Store, id: RecordId) -> Snapshot {
    store.load(&id).await.expect("a load is answered")
}

/// Looks, and expects that something stands there.
pub(super) async fn standing(store: &dyn Store, id: RecordId) -> Arc<Record> {
    look(store, id).await.record.expect("a record stands")
}

pub(super) async fn swap(
    store: &dyn Store,
    id: RecordId,
    seen: Option<Version>,
    draft: &Draft,
) -> Swap {
    let swap = store.swap(&id, seen, draft).await;
    swap.expect("a swap is answered")
}

/// Swaps, and expects that it is applied, that the stamp is right, and that a look finds what the
/// model says.
pub(super) async fn applied(
    store: &dyn Store,
    id: RecordId,
    seen: Option<Version>,
    draft: &Draft,
) -> Arc<Record> {
    let before = look(store, id).await;
    let stamp = match swap(store, id, seen, draft).await {
        Swap::Applied(stamp) => stamp,
        Swap::Refused(snapshot) => {
            panic!("a swap over {seen:?} was refused because of {snapshot:?}")
        }
    };
    let expected = draft.apply(before.record.as_deref(), stamp.now);
    assert_eq!(
        stamp,
        Stamp::from_record(&expected, stamp.now),
        "the stamp says what was written"
    );
    let after = look(store, id).await;
    in_order(before.now, stamp.now, after.now);
    let found = after.record.expect("a record stands");
    same(&found, &expected);
    found
}

/// Writes a first claim where nothing stands, as [`applied`] does. It returns both.
pub(super) async fn claimed(store: &dyn Store, id: RecordId) -> (Draft, Arc<Record>) {
    let draft = claim();
    let held = applied(store, id, None, &draft).await;
    (draft, held)
}

/// Writes over the version of `seen`, as [`applied`] does.
pub(super) async fn replaced(
    store: &dyn Store,
    id: RecordId,
    seen: &Record,
    draft: &Draft,
) -> Arc<Record> {
    applied(store, id, Some(seen.version), draft).await
}

/// Swaps, and expects that it is refused and changes nothing.
pub(super) async fn refused(
    store: &dyn Store,
    id: RecordId,
    seen: Option<Version>,
    draft: &Draft,
) -> Snapshot {
    let before = look(store, id).await;
    let snapshot = match swap(store, id, seen, draft).await {
        Swap::Refused(snapshot) => snapshot,
        Swap::Applied(stamp) => {
            panic!("a swap over {seen:?} was applied as {stamp:?} over {before:?}")
        }
    };
    assert_eq!(
        snapshot.record, before.record,
        "a refusal shows what stands"
    );
    let after = look(store, id).await;
    in_order(before.now, snapshot.now, after.now);
    assert_eq!(
        after.record, before.record,
        "a refused swap changes nothing"
    );
    snapshot
}

/// Expects that what was written comes back: also the digests of the arguments, which are no part
/// of equality.
pub(super) fn same(found: &Record, expected: &Record) {
    assert_eq!(found, expected, "what was written comes back");
    let digests = [found, expected].map(|record| record.subject.fingerprint.digests());
    assert_eq!(digests[0], digests[1], "the arguments come back");
}

/// Purges what is expired, and returns how many records that were.
pub(super) async fn purged(store: &dyn Store, limit: u32) -> u64 {
    let purged = store.purge(limit, Duration::ZERO).await;
    purged.expect("a purge is answered")
}

/// Lists a page of the records.
pub(super) async fn scanned(
    store: &dyn Store,
    after: Option<RecordId>,
    limit: u32,
) -> Vec<(RecordId, Arc<Record>)> {
    let listed = store.scan(after, limit).await;
    listed.expect("a scan is answered")
}

/// Purges until nothing is left to purge.
pub(super) async fn purge_all(store: &dyn Store) {
    let purging = async {
        while purged(store, 1000).await > 0 {
            yield_now().await;
        }
    };
    let purged = timeout(PATIENCE, purging).await;
    purged.expect("what was counted is gone");
}

/// Expects that a swap between two looks told the time. It may be ahead a little, where it is
/// reckoned on and not asked for.
pub(super) fn in_order(before: Time, told: Time, after: Time) {
    assert!(
        before <= told.plus(PATIENCE),
        "{told:?} was told after {before:?}"
    );
    assert!(
        told <= after.plus(PATIENCE),
        "{told:?} was told before {after:?}"
    );
}
