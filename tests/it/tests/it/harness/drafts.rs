//! What a holder writes, for tests that speak to a store past the library.

use std::{sync::Arc, time::Duration};

use idempotent_runtime::{
    fingerprint::{ArgumentDigests, Fingerprint, Fingerprinted},
    policy::OnCrash,
    record::{
        AttemptId, Draft, FencingToken, Holder, Moment, RawOutcome, State, Subject, TokenRule,
        Version,
    },
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
    }
}

/// What its holder writes at the end.
pub(crate) fn completion(of: &Draft, bytes: Vec<u8>) -> Draft {
    Draft {
        version: Version::random(),
        subject: None,
        state: State::Done,
        token: TokenRule::Keep,
        lease: Moment::Keep,
        outcome: Some(RawOutcome::value(bytes)),
        ..of.clone()
    }
}
