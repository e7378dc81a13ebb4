//! The settings of a sequence.

use std::{sync::Arc, time::Duration};

use super::numbered::NumberedCall;
use crate::{
    duration::{IntoDuration, read},
    error::Error,
    handle::Idempotency,
    key::{Key, KeyError, KeyPart},
    operation::Policy,
    policy::{InFlight, OnCrash},
    protocol::{CallNumber, sequence::Gaps},
    record::limits::check_durations,
    request::{Call, SEQUENCE},
    value::setters,
};

/// A stream of numbered calls. Clones are the same stream.
///
/// | setting | default |
/// |---|---|
/// | which numbers may be missing | none: say [`first`](Sequence::first), or [`accept_gaps`](Sequence::accept_gaps) |
/// | `expires_after` | never |
/// | `scope` | none |
/// | `lease`, `on_crash`, `in_flight`, `max_takeovers` | those of the handle |
///
/// Its parameter is the rule for numbers that are missing. A number can only be given once there is
/// one:
///
/// ```compile_fail,E0277
/// # let idem = idempotent_runtime::Idempotency::memory();
/// let _ = idem.sequence("accounts", "account-7").number(1);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a sequence does nothing until a number is run"]
pub struct Sequence<G = NoRule> {
    pub(super) handle: Idempotency,
    pub(super) operation: Arc<str>,
    pub(super) key: Result<Key, KeyError>,
    pub(super) scope: Option<Result<Key, KeyError>>,
    policy: Policy,
    pub(super) expires_after: Option<Duration>,
    /// The number that the stream begins with, where that was said.
    pub(super) first: Option<u64>,
    pub(super) mistake: Option<Error>,
    keeps_error_text: bool,
    gaps: G,
}

/// Nothing was said of numbers that are missing.
#[derive(Clone, Copy, Debug)]
pub struct NoRule;

/// No number may be missing, from the first one on.
#[derive(Clone, Copy, Debug)]
pub struct FromFirst {
    first: u64,
    patience: Option<Duration>,
}

/// Every larger number is applied.
#[derive(Clone, Copy, Debug)]
pub struct AcceptGaps;

/// A rule for numbers that are missing.
#[diagnostic::on_unimplemented(
    message = "the sequence does not say where it begins",
    label = "needs a first number",
    note = "say `first(1)`, with the number that the stream begins with, or `accept_gaps()`, so that every larger number is applied"
)]
pub trait GapRule {
    #[doc(hidden)]
    fn gaps(&self) -> (Gaps, Duration);
}

impl GapRule for FromFirst {
    fn gaps(&self) -> (Gaps, Duration) {
        match self.patience {
            Some(patience) => (Gaps::Wait(self.first), patience),
            None => (Gaps::Refuse(self.first), Duration::ZERO),
        }
    }
}

impl GapRule for AcceptGaps {
    fn gaps(&self) -> (Gaps, Duration) {
        (Gaps::Accept, Duration::ZERO)
    }
}

impl Sequence {
    pub(super) fn new(handle: &Idempotency, name: &str, key: Result<Key, KeyError>) -> Self {
        let empty = name.trim().is_empty();
        Self {
            handle: handle.clone(),
            operation: format!("{SEQUENCE}{name}").into(),
            key,
            scope: None,
            policy: Policy::NEVER_UNPROTECTED,
            expires_after: None,
            first: None,
            mistake: empty.then_some(Error::InvalidPolicy(
                "the name of the sequence is empty: give it a stable one, such as `accounts`",
            )),
            keeps_error_text: false,
            gaps: NoRule,
        }
    }

    /// Says with which number a stream begins. No number may be missing from then on. Smaller ones
    /// are [`Past`](super::Decision::Past), so a source that begins with 0 says `first(0)`.
    pub fn first(self, first: u64) -> Sequence<FromFirst> {
        let patience = None;
        Sequence {
            first: Some(first),
            ..self.with(FromFirst { first, patience })
        }
    }

    /// Applies every larger number: for states where only the newest one counts. Numbers that are
    /// left out are [`Past`](super::Decision::Past) from then on.
    ///
    /// A larger number also takes the place of one whose holder vanished, where that one may run
    /// again. Observers are told [`Passed`](crate::RecordChange::Passed).
    pub fn accept_gaps(self) -> Sequence<AcceptGaps> {
        self.with(AcceptGaps)
    }
}

impl Sequence<FromFirst> {
    setters! {
        /// Refuses a number as long as one before it is missing: it is a
        /// [`Gap`](super::Decision::Gap). This is the default.
        refuse_gaps(it) { it.gaps.patience = None }

        /// Waits for this long for numbers that are missing, `"10s"` or a `Duration`; then it is a
        /// [`Gap`](super::Decision::Gap). It holds no connection meanwhile.
        wait_for_gap(it, at_most: impl IntoDuration) {
            it.gaps.patience = read(at_most, &mut it.mistake).or(it.gaps.patience);
        }
    }
}

impl<G> Sequence<G> {
    /// Sets the scope, such as the tenant, or the epoch of a producer. It is a part of the
    /// identity.
    pub fn scope<K: KeyPart + ?Sized>(mut self, scope: &K) -> Self {
        self.scope = Some(Key::from_part(scope));
        self
    }

    setters! {
        /// Sets how long the holder of a number may be silent: `"30s"`, or a `Duration`.
        lease(it, lease: impl IntoDuration) { it.policy.lease = read(lease, &mut it.mistake).or(it.policy.lease) }

        /// Sets what becomes of a number whose holder vanished: `Rerun` or `Uncertain`. An
        /// uncertain number stops the stream until it is [settled](Self::settle).
        on_crash(it, on_crash: OnCrash) {
            if on_crash == OnCrash::Reconcile {
                it.mistake.get_or_insert(Error::InvalidPolicy(
                    "a sequence has no function to ask what became of a number: say `Rerun` or `Uncertain`",
                ));
            }
            it.policy.on_crash = Some(on_crash);
        }

        /// Sets what a copy and a larger number do while a number is held.
        in_flight(it, in_flight: InFlight) { it.policy.in_flight = Some(in_flight) }

        /// Sets after how many holders that vanished a number is parked. Each number has this
        /// budget.
        max_takeovers(it, max_takeovers: u32) { it.policy.max_takeovers = Some(max_takeovers) }

        /// Sets how long after its last number a stream is forgotten: `"90d"`, or a `Duration`.
        /// Then it begins anew. A stream does not expire unless this is said.
        expires_after(it, after: impl IntoDuration) {
            it.expires_after = read(after, &mut it.mistake).or(it.expires_after);
        }

        /// Keeps the text of the last error of a number that fails, of at most 1,000 bytes, in the
        /// note of the stream. Without this, the note has the type of the error alone: a text may
        /// hold data of customers.
        keep_error_text(it) { it.keeps_error_text = true }
    }

    /// Begins with a call of the stream, by its number. A number is a `u64`: anything else does not
    /// compile.
    ///
    /// ```compile_fail,E0308
    /// # let idem = idempotent_runtime::Idempotency::memory();
    /// let _ = idem.sequence("accounts", "account-7").first(1).number("2");
    /// ```
    pub fn number(self, number: u64) -> NumberedCall
    where
        G: GapRule,
    {
        let identity = (self.scope, self.key);
        let mut call = Call::reserved(&self.handle, &self.operation, identity, self.policy);
        if let Some(mistake) = self.mistake {
            call.refuse(mistake);
        }
        if let Some(after) = self.expires_after {
            let lease = self.policy.lease;
            let lease = lease.unwrap_or(self.handle.defaults().lease);
            if after.is_zero() || check_durations(after, lease, self.handle.timer()).is_err() {
                call.refuse(Error::InvalidPolicy(
                    "`expires_after` is how long a sequence is known after its last number: give at least a millisecond and at most a hundred years",
                ));
            }
        }
        let (gaps, patience) = self.gaps.gaps();
        call.number(CallNumber {
            number,
            gaps,
            patience,
            expires_after: self.expires_after,
        });
        NumberedCall::new(call, number, self.operation, self.keeps_error_text)
    }

    fn with<H>(self, gaps: H) -> Sequence<H> {
        Sequence {
            gaps,
            handle: self.handle,
            operation: self.operation,
            key: self.key,
            scope: self.scope,
            policy: self.policy,
            expires_after: self.expires_after,
            first: self.first,
            mistake: self.mistake,
            keeps_error_text: self.keeps_error_text,
        }
    }
}
