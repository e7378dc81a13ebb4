//! A call as the runtime knows it, where a model says no more of it than a small number.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use idempotent_runtime::{
    fingerprint::{ArgumentDigests, Fingerprint, Fingerprinted},
    policy::{OnCrash, OnExpired},
    protocol::Claim,
    record::{AttemptId, FencingToken, Holder, Subject, Time, Version},
};

/// The store's clock shows this, whatever happened before.
pub const NOW: Time = Time::from_micros(100);
/// A move of the clock.
pub const TICK: Duration = Duration::from_micros(1);
/// A record may see this many takeovers.
pub const TAKEOVERS: u32 = 2;
/// The token of a first claim is the time, and that of each further claim is larger by one.
const LOWEST_TOKEN: u64 = 99;

/// The version that stands.
pub const CURRENT: Version = Version::from_u128(1);
/// A version that is gone.
pub const STALE: Version = Version::from_u128(2);
/// A version that is not in use yet.
pub const FRESH: Version = Version::from_u128(3);

/// The attempt of this name.
#[must_use]
pub fn attempt(name: u8) -> AttemptId {
    AttemptId::from_u128(name.into())
}

/// The name of an attempt.
#[must_use]
pub fn attempt_name(attempt_id: AttemptId) -> u8 {
    attempt_id.to_bytes()[15]
}

/// The claim of an attempt, whose lease and whose retention are one move of the clock each.
#[must_use]
pub fn claim(by: u8, on_crash: OnCrash, goes_on: bool) -> Claim {
    Claim {
        subject: subject(),
        attempt_id: attempt(by),
        holder: holder(),
        on_crash,
        lease: TICK,
        ttl: TICK,
        keep: Duration::ZERO,
        on_expired: OnExpired::Run,
        max_takeovers: TAKEOVERS,
        numbered: None,
        goes_on,
    }
}

/// The arguments of the call, and of each of its steps.
#[must_use]
pub fn arguments() -> &'static Fingerprinted {
    static ARGUMENTS: LazyLock<Fingerprinted> = LazyLock::new(|| {
        Fingerprinted::stored(Fingerprint::from_bytes([0; 32]), ArgumentDigests::default())
    });
    &ARGUMENTS
}

/// The subject of the one record.
#[must_use]
pub fn subject() -> Arc<Subject> {
    static SUBJECT: LazyLock<Arc<Subject>> = LazyLock::new(|| {
        Arc::new(Subject {
            operation: "model".into(),
            scope: Vec::new(),
            key: Vec::new(),
            fingerprint: arguments().clone(),
        })
    });
    Arc::clone(&SUBJECT)
}

/// Any holder.
#[must_use]
pub fn holder() -> Holder {
    static HOLDER: LazyLock<Holder> = LazyLock::new(|| Holder {
        label: "worker".into(),
        trace_parent: None,
    });
    HOLDER.clone()
}

/// The number of attempts, as a model counts them.
///
/// # Panics
///
/// If a record saw more than 255.
#[must_use]
pub fn small(number: u32) -> u8 {
    u8::try_from(number).expect("a record sees few attempts")
}

/// Counts the claims of a record by its token.
#[must_use]
pub fn token_name(token: FencingToken) -> u8 {
    u8::try_from(token.as_u64().saturating_sub(LOWEST_TOKEN)).unwrap_or(u8::MAX)
}

/// The token of the claim with this number.
#[must_use]
pub fn token(name: u8) -> FencingToken {
    FencingToken::from_u64(LOWEST_TOKEN + u64::from(name))
}
