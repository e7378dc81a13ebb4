//! The writes of a holder, for tests that speak to a store past the library.

use std::{sync::Arc, time::Duration};

use idempotent_runtime::{
    Store,
    fingerprint::{ArgumentDigests, Fingerprint, Fingerprinted},
    identity::RecordId,
    policy::OnCrash,
    record::{
        AttemptId, Draft, FencingToken, Holder, Moment, RawOutcome, Record, State, Subject,
        TokenRule, Version,
    },
    store::{Stamp, Swap},
};

const HOUR: Duration = Duration::from_secs(3600);

/// A first claim.
pub(crate) fn claim() -> Draft {
    Draft {
        version: Version::random(),
        subject: Some(Arc::new(Subject {
            operation: "test.charge".into(),
            scope: b"tenant".to_vec(),
            key: b"key".to_vec(),
            fingerprint: Fingerprinted::stored(
                Fingerprint::from_bytes([1; 32]),
                ArgumentDigests::from_bytes(&[1]).expect("no arguments"),
            ),
        })),
        state: State::Running,
        token: TokenRule::Above(FencingToken::from_u64(0)),
        attempt: 1,
        attempt_id: AttemptId::random(),
        holder: Holder {
            label: "host:1".into(),
            trace_parent: None,
        },
        on_crash: OnCrash::Rerun,
        lease: Moment::In(HOUR),
        expires: Moment::In(HOUR),
        keep: Duration::ZERO,
        outcome: None,
        note: None,
    }
}

/// A first claim whose lease and expiry are over at once.
pub(crate) fn abandoned() -> Draft {
    Draft {
        lease: Moment::In(Duration::ZERO),
        expires: Moment::In(Duration::ZERO),
        ..claim()
    }
}

/// Its holder's heartbeat.
pub(crate) fn heartbeat(of: &Draft) -> Draft {
    Draft {
        version: Version::random(),
        subject: None,
        token: TokenRule::Keep,
        ..of.clone()
    }
}

/// Its holder's last write.
pub(crate) fn completion(of: &Draft, bytes: Vec<u8>) -> Draft {
    Draft {
        state: State::Done,
        lease: Moment::Keep,
        outcome: Some(RawOutcome::value(bytes)),
        ..heartbeat(of)
    }
}

/// Writes to a store, and asserts that the write is applied.
pub(crate) async fn applied(
    store: &dyn Store,
    id: &RecordId,
    seen: Option<Version>,
    next: &Draft,
) -> Stamp {
    match store.swap(id, seen, next).await {
        Ok(Swap::Applied(stamp)) => stamp,
        other => panic!("it was not written: {other:?}"),
    }
}

/// The first of the records that stand in a store.
pub(crate) async fn only(store: &dyn Store) -> (RecordId, Arc<Record>) {
    store.scan(None, 1).await.expect("a list").remove(0)
}
