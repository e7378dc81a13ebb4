//! Sets up a handle.

use std::{sync::Arc, time::Duration};

use crate::{
    clock::Timer,
    codec::{Codec, Coder},
    duration::IntoDuration,
    engine::{
        Engine,
        audit::{AuditTrail, NO_TRAIL, OPEN_IN_AUDIT},
        parts::{Defaults, Parts, Traces},
    },
    error::Error,
    fingerprint::FingerprintKey,
    handle::Idempotency,
    observe::Observer,
    policy::{InFlight, OnCrash, OnMissingKey, OnOutage, Verdict},
    record::limits::{LONGEST, check_durations, check_lease},
    store::Store,
    value::setters,
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
    audit: Option<Arc<dyn AuditTrail>>,
    mistake: Option<Error>,
}

impl Builder {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            parts: Parts::new(store),
            ttl: None,
            lease: None,
            audit: None,
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
        self.check_audit()?;
        if self.parts.enabled {
            self.parts.store.accepts(self.parts.defaults.on_crash)?;
        } else {
            tracing::warn!("idempotency is switched off: every duplicate runs");
        }
        if let Some(observer) = self.parts.observers.of_store(&self.parts.timer) {
            self.parts.store = observer.observe(self.parts.store);
        }
        self.name_build();
        Ok(Idempotency::from_engine(
            Engine::new(self.parts).audited(self.audit),
        ))
    }

    fn check_audit(&self) -> Result<(), Error> {
        let parts = &self.parts;
        if self.audit.is_none() {
            return Ok(());
        }
        if parts.store.transactions().is_none() {
            return Err(Error::InvalidPolicy(NO_TRAIL));
        }
        match parts.defaults.on_outage {
            OnOutage::Open => Err(Error::InvalidPolicy(OPEN_IN_AUDIT)),
            _ => Ok(()),
        }
    }

    /// Adds version and build to the name of the holder, for an audit.
    fn name_build(&mut self) {
        let parts = &mut self.parts;
        let (name, version) = (&parts.holder_name, env!("CARGO_PKG_VERSION"));
        let named = match &parts.build_id {
            Some(build) => format!("{name} ({version}, {build})"),
            None if self.audit.is_some() => format!("{name} ({version})"),
            None => return,
        };
        parts.holder_name = named.into();
    }

    #[allow(dead_code, reason = "a room above calls it, where there is one")]
    pub(crate) fn traced(mut self, traces: Traces) -> Self {
        self.parts.traces = Some(traces);
        self
    }

    setters! {
        /// Sets how long an outcome answers duplicates, counted from completion: `"24h"`, or a
        /// `Duration`.
        ttl(it, ttl: impl IntoDuration) { it.ttl = it.read(ttl).or(it.ttl) }

        /// Sets how long records stay after they have expired, for an audit: `"90d"`, or a
        /// `Duration`.
        ///
        /// An expired record answers no call, whether it is kept or not, unless the call asks to be
        /// refused, with [`OnExpired::Refuse`](crate::OnExpired::Refuse).
        /// [`lookup`](Idempotency::lookup) finds it as [`Status::Expired`](crate::Status::Expired),
        /// until a call uses the key again, whose record takes its place, or a purge comes by when
        /// the time is over. Every handle that purges a store decides for all of its records, so
        /// set the same everywhere. A longer time that is set afterwards counts for the records
        /// that already stand. Redis and the memory store also forget by themselves: there the time
        /// counts that was set when the record was last written.
        audit_retention(it, retention: impl IntoDuration) {
            it.set(retention, |defaults| &mut defaults.audit_retention);
        }

        /// Sets how long a holder may be silent: `"30s"`, or a `Duration`. Heartbeats come at a
        /// third of it. The shortest is 100 milliseconds, except where [`timer`](Self::timer) is a
        /// manual clock.
        lease(it, lease: impl IntoDuration) { it.lease = it.read(lease).or(it.lease) }

        /// Sets how long heartbeats keep a body that runs, counted from its claim: `"24h"` unless
        /// set, or a `Duration`. After that its lease ends while it still runs: under `rerun` the
        /// next call runs the body beside it, elsewhere the record becomes uncertain, or is
        /// reconciled. Take longer than any body may run. An outcome that the store does not take
        /// is tried again for as long, too.
        max_run_time(it, max_run_time: impl IntoDuration) {
            it.set(max_run_time, |defaults| &mut defaults.max_run_time);
        }

        /// Sets how long a call whose body has returned waits for its steps in other tasks, and how
        /// long a body is polled to find its undos again. A step or an undo that has not ended then
        /// is unknown.
        step_grace(it, step_grace: impl IntoDuration) {
            it.set(step_grace, |defaults| &mut defaults.step_grace);
        }

        /// Sets how long one try of an undo may take: `"1m"` unless set, or a `Duration`. After
        /// that it is dropped, and has failed as one that returns an `Err`: it is tried again,
        /// three times in all, and then the next undo comes to its turn.
        undo_timeout(it, undo_timeout: impl IntoDuration) {
            it.set(undo_timeout, |defaults| &mut defaults.undo_timeout);
        }

        /// Sets after how long a body in a transaction is warned about: `"5s"` unless set, or a
        /// `Duration`. It counts from the claim. The log names the operation, once a call. A
        /// transaction that is open for long holds locks: make calls to other services before it,
        /// or after.
        transaction_warning(it, transaction_warning: impl IntoDuration) {
            it.set(transaction_warning, |defaults| &mut defaults.transaction_warning);
        }

        /// Sets what a duplicate does while the first call runs.
        in_flight(it, in_flight: InFlight) { it.parts.defaults.in_flight = in_flight }

        /// Sets what becomes of an `Err` where the attribute does not say.
        on_error(it, on_error: Verdict) { it.parts.defaults.on_error = on_error }

        /// Sets what becomes of a record whose holder vanished: `Rerun` or `Uncertain`.
        ///
        /// `Reconcile` needs a function, so only the attribute and
        /// [`CallBuilder`](crate::CallBuilder) can say it.
        on_crash(it, on_crash: OnCrash) {
            if on_crash == OnCrash::Reconcile {
                it.mistake = Some(Error::InvalidPolicy(
                    "`reconcile` needs a function to ask: say it in the attribute, `on_crash = reconcile(path)`",
                ));
            }
            it.parts.defaults.on_crash = on_crash;
        }

        /// Sets what becomes of a call whose key, or a part of it, is `None`.
        on_missing_key(it, on_missing_key: OnMissingKey) {
            it.parts.defaults.on_missing_key = on_missing_key;
        }

        /// Sets what becomes of a call when the store cannot be reached at the claim.
        on_outage(it, on_outage: OnOutage) { it.parts.defaults.on_outage = on_outage }

        /// Sets how many takeovers a record may see before it is parked.
        max_takeovers(it, takeovers: u32) { it.parts.defaults.max_takeovers = takeovers }

        /// Sets how many bytes an encoded outcome may have; a longer one is recorded as *done, not
        /// replayable*.
        max_outcome(it, bytes: usize) { it.parts.defaults.max_outcome = bytes }

        /// Sets how outcomes are encoded, in place of JSON.
        codec(it, codec: impl Codec + 'static) { it.parts.coder = Coder::Other(Arc::new(codec)) }

        /// Adds an observer, which is told of every transition and answer.
        observer(it, observer: impl Observer + 'static) {
            it.parts.observers.add(Arc::new(observer));
        }

        /// Makes fingerprints an HMAC with this secret, so that they do not reveal the values of
        /// the arguments.
        fingerprint_key(it, key: FingerprintKey) { it.parts.fingerprint_key = Some(key) }

        /// Leaves the readable key and scope out of the records: only their hash identifies them.
        /// Outcomes, also those of steps, stay readable.
        redact_keys(it) { it.parts.redact_keys = true }

        /// Sets how this process is named in the records it holds; by default its process id.
        holder_name(it, name: &str) { it.parts.holder_name = name.into() }

        /// Names the build of the program, such as the hash of its commit. Records, and the entries
        /// of an audit, have it behind the name of the holder.
        build_id(it, build: &str) { it.parts.build_id = Some(build.into()) }

        /// Demands this audit of the records, as the crate `idempotent-audit` makes one.
        ///
        /// The first call looks whether it stands, and a task looks every ten seconds from then on.
        /// If it does not, or was not seen for 30 seconds, calls fail with
        /// [`Error::AuditMissing`]: a body runs only if its call leaves an entry. Calls that are
        /// under way end as usual. `on_outage = open`, which runs bodies without a record, is
        /// refused beside it, and so is a store without an audit.
        ///
        /// Start, [stop](Idempotency::shutdown) and the count of calls that ran while the handle
        /// was not [enabled](Self::enabled) leave entries, too.
        audit(it, audit: impl AuditTrail) { it.audit = Some(Arc::new(audit)) }

        /// Sets where the W3C `traceparent` of the call at hand comes from, for linking a replay to
        /// its first run.
        trace_parent(it, current: impl Fn() -> Option<String> + Send + Sync + 'static) {
            it.parts.traces = Some(Traces::named(current));
        }

        /// Sets the timer that measures waiting and heartbeats: for tests with a manual clock.
        /// Stores bound their own waits by tokio's time all the same.
        timer(it, timer: impl Timer + 'static) { it.parts.timer = Arc::new(timer) }

        /// The kill switch: a handle that is not enabled runs every body without touching the
        /// store. One warning says so when it is built, and
        /// [`CallOutcome::Unprotected`](crate::CallOutcome::Unprotected) at each call.
        enabled(it, enabled: bool) { it.parts.enabled = enabled }
    }

    fn set(&mut self, duration: impl IntoDuration, place: fn(&mut Defaults) -> &mut Duration) {
        if let Some(duration) = self.read(duration) {
            *place(&mut self.parts.defaults) = duration;
        }
    }

    fn read(&mut self, duration: impl IntoDuration) -> Option<Duration> {
        duration
            .into_duration()
            .map_err(|error| self.mistake = Some(error))
            .ok()
    }
}
