//! A claim for the tests of what is done with claims.

use std::{sync::Arc, time::Duration};

use super::Claim;
use crate::{
    fingerprint::{ArgumentDigests, Fingerprint, Fingerprinted},
    policy::{OnCrash, OnExpired},
    record::{AttemptId, Holder, Subject},
};

/// A claim that asks for a lease of 30 seconds, and keeps its outcome for an hour.
pub(crate) fn claim(attempt_id: AttemptId, on_crash: OnCrash) -> Claim {
    Claim {
        subject: Arc::new(Subject {
            operation: "payments.charge".into(),
            scope: Vec::new(),
            key: Vec::new(),
            fingerprint: Fingerprinted::stored(
                Fingerprint::from_bytes([0; 32]),
                ArgumentDigests::default(),
            ),
        }),
        attempt_id,
        holder: Holder {
            label: "here".into(),
            trace_parent: None,
        },
        on_crash,
        lease: Duration::from_secs(30),
        ttl: Duration::from_secs(3600),
        keep: Duration::ZERO,
        on_expired: OnExpired::Run,
        max_takeovers: 5,
        numbered: None,
        goes_on: false,
    }
}
