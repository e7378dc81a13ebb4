//! Sets up a handle.

use std::{sync::Arc, time::Duration};

use crate::{
    clock::Timer,
    codec::{Codec, Coder},
    duration::IntoDuration,
    engine::parts::{Parts, TraceParent},
    error::Error,
    fingerprint::FingerprintKey,
    handle::Idempotency,
    observe::Observer,
    policy::{InFlight, OnCrash, OnMissingKey, OnOutage, Verdict},
    record::limits::{LONGEST, check_durations, check_lease},
    store::Store,
};

/// Sets up a handle. Its settings count unless the attribute or a call says otherwise.
///
/// | setting | default |
/// |---|---|
/// | `ttl` | 24 hours |
/// | `audit_retention` | nothing: what has expired may be deleted at once |
/// | `lease` | 30 seconds |
/// | `in_flight` | wait, at most 10 seconds |
/// | `on_error` | replay |
/// | `on_crash` | rerun |
/// | `on_missing_key` | refuse |
/// | `on_outage` | closed |
/// | `max_takeovers` | 5 |
/// | `max_run_time` | 24 hours |
/// | `step_grace` | 30 seconds |
/// | `undo_timeout` | 1 minute |
/// | `transaction_warning` | 5 seconds |
/// | `max_outcome` | 16 MiB |
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    parts: Parts,
    ttl: Option<Duration>,
    lease: Option<Duration>,
    mistake: Option<Error>,
}

impl Builder {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            parts: Parts::new(store),
            ttl: None,
            lease: None,
            mistake: None,
        }
    }

    /// Finishes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] when a duration cannot be read, is zero where it must not be, too
    /// short, or too long. It is also the error when `lease` is said and is not shorter than the
    /// ttl, or when `on_crash` is `Reconcile`. [`Error::Store`] when the store does not
    /// [accept](Store::accepts) the crash policy.
    pub fn build(mut self) -> Result<Idempotency, Error> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        let defaults = &mut self.parts.defaults;
        defaults.ttl = self.ttl.unwrap_or(defaults.ttl);
        check_lease(Some(defaults.ttl), self.lease)?;
        defaults.lease = self.lease.unwrap_or(defaults.lease);
        check_durations(defaults.ttl, defaults.lease, &*self.parts.timer)?;
        if defaults.max_run_time.is_zero() {
            return Err(Error::InvalidPolicy(
                "heartbeats are to keep a body for no time at all: give `max_run_time` a longer one",
            ));
        }
        if defaults.undo_timeout.is_zero() {
            return Err(Error::InvalidPolicy(
                "an undo is to take no time at all: give `undo_timeout` a longer one",
            ));
        }
        if self.parts.defaults.audit_retention > LONGEST {
            return Err(Error::InvalidPolicy(
                "records are to be kept for longer than a hundred years",
            ));
        }
        if self.parts.enabled {
            self.parts.store.accepts(self.parts.defaults.on_crash)?;
        } else {
            tracing::warn!("idempotency is switched off: every duplicate runs");
        }
        Ok(Idempotency::from_parts(self.parts))
    }

    /// Sets how long an outcome answers duplicates, counted from completion: `"24h"`, or a
    /// `Duration`.
    pub fn ttl(mut self, ttl: impl IntoDuration) -> Self {
        self.ttl = self.read(ttl).or(self.ttl);
        self
    }

    /// Sets how long records stay after they have expired, for an audit: `"90d"`, or a `Duration`.
    ///
    /// An expired record answers no call, whether it is kept or not, unless the call asks to be
    /// refused, with [`OnExpired::Refuse`](crate::OnExpired::Refuse).
    /// [`lookup`](Idempotency::lookup) finds it as [`Status::Expired`](crate::Status::Expired),
    /// until a call uses the key again, whose record takes its place, or a purge comes by when the
    /// time is over. Every handle that purges a store decides for all of its records, so set the
    /// same everywhere. A longer time that is set afterwards counts for the records that already
    /// stand. Redis and the memory store also forget by themselves: there the time counts that was
    /// set when the record was last written.
    pub fn audit_retention(mut self, retention: impl IntoDuration) -> Self {
        if let Some(retention) = self.read(retention) {
            self.parts.defaults.audit_retention = retention;
        }
        self
    }

    /// Sets how long a holder may be silent: `"30s"`, or a `Duration`. Heartbeats come at a third
    /// of it. The shortest is 100 milliseconds, except where [`timer`](Self::timer) is a manual
    /// clock.
    pub fn lease(mut self, lease: impl IntoDuration) -> Self {
        self.lease = self.read(lease).or(self.lease);
        self
    }

    /// Sets how long heartbeats keep a body that runs, counted from its claim: `"24h"` unless set,
    /// or a `Duration`. After that its lease ends while it still runs: under `rerun` the next call
    /// runs the body beside it, elsewhere the record becomes uncertain, or is reconciled. Take
    /// longer than any body may run. An outcome that the store does not take is tried again for as
    /// long, too.
    pub fn max_run_time(mut self, max_run_time: impl IntoDuration) -> Self {
        if let Some(max_run_time) = self.read(max_run_time) {
            self.parts.defaults.max_run_time = max_run_time;
        }
        self
    }

    /// Sets how long a call whose body has returned waits for its steps in other tasks, and how
    /// long a body is polled to find its undos again. A step or an undo that has not ended then is
    /// unknown.
    pub fn step_grace(mut self, step_grace: impl IntoDuration) -> Self {
        if let Some(step_grace) = self.read(step_grace) {
            self.parts.defaults.step_grace = step_grace;
        }
        self
    }

    /// Sets how long one try of an undo may take: `"1m"` unless set, or a `Duration`. After that it
    /// is dropped, and has failed as one that returns an `Err`: it is tried again, three times in
    /// all, and then the next undo comes to its turn.
    pub fn undo_timeout(mut self, undo_timeout: impl IntoDuration) -> Self {
        if let Some(undo_timeout) = self.read(undo_timeout) {
            self.parts.defaults.undo_timeout = undo_timeout;
        }
        self
    }

    /// Sets after how long a body in a transaction is warned about: `"5s"` unless set, or a
    /// `Duration`. It counts from the claim. The log names the operation, once a call. A
    /// transaction that is open for long holds locks: make calls to other services before it, or
    /// after.
    pub fn transaction_warning(mut self, transaction_warning: impl IntoDuration) -> Self {
        if let Some(transaction_warning) = self.read(transaction_warning) {
            self.parts.defaults.transaction_warning = transaction_warning;
        }
        self
    }

    /// Sets what a duplicate does while the first call runs.
    pub fn in_flight(mut self, in_flight: InFlight) -> Self {
        self.parts.defaults.in_flight = in_flight;
        self
    }

    /// Sets what becomes of an `Err` where the attribute does not say.
    pub fn on_error(mut self, on_error: Verdict) -> Self {
        self.parts.defaults.on_error = on_error;
        self
    }

    /// Sets what becomes of a record whose holder vanished: `Rerun` or `Uncertain`.
    ///
    /// `Reconcile` needs a function, so only the attribute and [`CallBuilder`](crate::CallBuilder)
    /// can say it.
    pub fn on_crash(mut self, on_crash: OnCrash) -> Self {
        if on_crash == OnCrash::Reconcile {
            self.mistake = Some(Error::InvalidPolicy(
                "`reconcile` needs a function to ask: say it in the attribute, `on_crash = reconcile(path)`",
            ));
        }
        self.parts.defaults.on_crash = on_crash;
        self
    }

    /// Sets what becomes of a call whose key, or a part of it, is `None`.
    pub fn on_missing_key(mut self, on_missing_key: OnMissingKey) -> Self {
        self.parts.defaults.on_missing_key = on_missing_key;
        self
    }

    /// Sets what becomes of a call when the store cannot be reached at the claim.
    pub fn on_outage(mut self, on_outage: OnOutage) -> Self {
        self.parts.defaults.on_outage = on_outage;
        self
    }

    /// Sets how many takeovers a record may see before it is parked.
    pub fn max_takeovers(mut self, takeovers: u32) -> Self {
        self.parts.defaults.max_takeovers = takeovers;
        self
    }

    /// Sets how many bytes an encoded outcome may have; a longer one is recorded as *done, not
    /// replayable*.
    pub fn max_outcome(mut self, bytes: usize) -> Self {
        self.parts.defaults.max_outcome = bytes;
        self
    }

    /// Sets how outcomes are encoded, in place of JSON.
    pub fn codec(mut self, codec: impl Codec + 'static) -> Self {
        self.parts.coder = Coder::Other(Arc::new(codec));
        self
    }

    /// Adds an observer, which is told of every transition and answer.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.parts.observers.add(Arc::new(observer));
        self
    }

    /// Makes fingerprints an HMAC with this secret, so that they do not reveal the values of
    /// the arguments.
    pub fn fingerprint_key(mut self, key: FingerprintKey) -> Self {
        self.parts.fingerprint_key = Some(key);
        self
    }

    /// Leaves the readable key and scope out of the records: only their hash identifies them.
    /// Outcomes, also those of steps, stay readable.
    pub fn redact_keys(mut self) -> Self {
        self.parts.redact_keys = true;
        self
    }

    /// Sets how this process is named in the records it holds; by default its process id.
    pub fn holder_name(mut self, name: &str) -> Self {
        self.parts.holder_name = name.into();
        self
    }

    /// Sets where the W3C `traceparent` of the call at hand comes from, for linking a replay to its
    /// first run.
    pub fn trace_parent(
        mut self,
        current: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.parts.trace_parent = Some(TraceParent(Arc::new(current)));
        self
    }

    /// Sets the timer that measures waiting and heartbeats: for tests with a manual clock. Stores
    /// bound their own waits by tokio's time all the same.
    pub fn timer(mut self, timer: impl Timer + 'static) -> Self {
        self.parts.timer = Arc::new(timer);
        self
    }

    /// The kill switch: a handle that is not enabled runs every body without touching the store.
    /// One warning says so when it is built, and
    /// [`CallOutcome::Unprotected`](crate::CallOutcome::Unprotected) at each call.
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.parts.enabled = enabled;
        self
    }

    fn read(&mut self, duration: impl IntoDuration) -> Option<Duration> {
        duration
            .into_duration()
            .map_err(|error| self.mistake = Some(error))
            .ok()
    }
}
