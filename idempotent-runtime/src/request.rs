//! A call, described: what it is about and what it chose, before it is run.

use std::{sync::Arc, time::Duration};

use serde::Serialize;

use crate::{
    attempt::is_held,
    clock::Timer,
    error::Error,
    fingerprint::{Arguments, Fingerprinted},
    handle::{AsHandle, Idempotency, in_force},
    identity::RecordId,
    key::{Key, KeyError, KeyPart},
    lease::{Claim, replays},
    observe::{CallEvent, CallOutcome, UnprotectedReason},
    operation::{Policy, Reader, Site},
    policy::{InFlight, OnCrash, OnExpired, OnMissingKey, OnOutage, Verdict},
    record::{AttemptId, Record, Subject, Time},
    store::Snapshot,
};

/// A value that can be a part of a fingerprint.
#[diagnostic::on_unimplemented(
    message = "the argument of type `{Self}` cannot be fingerprinted",
    label = "needs `serde::Serialize`",
    note = "leave it out with `skip(…)` when it is a pool, a client, a transaction or a clock; derive `serde::Serialize` when it says what is asked for",
    note = "for an extractor, write the pattern `Json(body): Json<T>`, so that `body` is the argument; for a type parameter, write `T: serde::Serialize`; `Arc` and `Rc` have it with the feature `rc` of serde"
)]
pub trait Fingerprintable: Serialize {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + ?Sized> Fingerprintable for T {}

/// A call that is being described: what the attribute's expansion writes into.
#[derive(Debug)]
pub struct Call(Box<Description>);

/// What is known of a call so far. It stays where it is from the first word to the last, because moving
/// it costs more than an allocation.
#[derive(Debug)]
struct Description {
    name: Arc<str>,
    site: Option<&'static Site>,
    handle: Option<Idempotency>,
    key: Option<Result<Key, KeyError>>,
    old_key: Option<Result<Key, KeyError>>,
    old_name: Option<Arc<str>>,
    scope: Option<Result<Key, KeyError>>,
    arguments: Arguments,
    policy: Policy,
    opted_out: bool,
    mistake: Option<Error>,
}

/// A call, ready to be run.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) handle: Idempotency,
    pub(crate) operation: Arc<str>,
    pub(crate) id: RecordId,
    pub(crate) old_id: Option<RecordId>,
    pub(crate) protection: Protection,
    pub(crate) in_flight: InFlight,
    pub(crate) on_outage: OnOutage,
    pub(crate) on_crash: OnCrash,
    pub(crate) on_error: Verdict,
    pub(crate) version: u32,
}

/// Whether a call has a record.
#[derive(Debug)]
pub(crate) enum Protection {
    /// It has one, or claims one.
    Record(Asked),
    /// It runs without, for this reason.
    None(UnprotectedReason),
}

/// What a call asks of its record: what a claim is made of, where no outcome stands there already.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) subject: Arc<Subject>,
    pub(crate) on_crash: OnCrash,
    lease: Duration,
    ttl: Duration,
    on_expired: OnExpired,
}

/// Begins to describe a call of an annotated function.
#[must_use]
pub fn begin(site: &'static Site) -> Call {
    let mut call = Call::named(Arc::clone(site.name()));
    call.0.site = Some(site);
    call.0.policy = site.policy;
    call.0.old_name = site.also_accept.map(Arc::from);
    call
}

impl Call {
    pub(crate) fn named(name: Arc<str>) -> Self {
        Self(Box::new(Description {
            name,
            site: None,
            handle: None,
            key: None,
            old_key: None,
            old_name: None,
            scope: None,
            arguments: Arguments::new(),
            policy: Policy::UNSAID,
            opted_out: false,
            mistake: None,
        }))
    }

    /// Sets the handle, in place of the one in force.
    pub fn handle<H: AsHandle + ?Sized>(&mut self, handle: &H) {
        self.0.handle = Some(handle.as_handle().clone());
    }

    /// Sets the key.
    pub fn key<K: KeyPart + ?Sized>(&mut self, key: &K) {
        self.0.key = Some(Key::from_part(key));
    }

    /// Makes the fingerprint of the arguments the key.
    pub fn key_from_arguments(&mut self) {
        self.0.key = None;
    }

    /// Sets the key that an older build used for the same call.
    pub fn also_accept_key<K: KeyPart + ?Sized>(&mut self, key: &K) {
        self.0.old_key = Some(Key::from_part(key));
    }

    /// Sets the name that an older build used for the same operation.
    pub(crate) fn also_accept_name(&mut self, name: &str) {
        self.0.old_name = Some(name.into());
    }

    /// Sets the scope.
    pub fn scope<K: KeyPart + ?Sized>(&mut self, scope: &K) {
        self.0.scope = Some(Key::from_part(scope));
    }

    /// Notes how the annotated function, which returns `R`, reads its outcomes back.
    pub(crate) fn reads<R>(&self, value: Reader, error: Reader) {
        if let Some(site) = self.0.site {
            site.reads::<R>(value, error);
        }
    }

    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    pub(crate) fn has_old_identity(&self) -> bool {
        self.0.old_key.is_some() || self.0.old_name.is_some()
    }

    /// Adds an argument to the fingerprint.
    pub fn argument<T: Fingerprintable + ?Sized>(&mut self, name: &'static str, value: &T) {
        self.0.arguments.argument(name, value);
    }

    /// Sets what the fingerprint is taken of.
    pub fn fingerprint<T: Fingerprintable + ?Sized>(&mut self, value: &T) {
        self.0.arguments.whole(value);
    }

    /// Sets how long the outcome answers duplicates.
    pub fn ttl(&mut self, ttl: Duration) {
        self.0.policy.ttl = Some(ttl);
    }

    /// Sets how long a holder may be silent.
    pub fn lease(&mut self, lease: Duration) {
        self.0.policy.lease = Some(lease);
    }

    /// Sets what a duplicate does meanwhile.
    pub fn in_flight(&mut self, in_flight: InFlight) {
        self.0.policy.in_flight = Some(in_flight);
    }

    pub(crate) fn policy(&mut self) -> &mut Policy {
        &mut self.0.policy
    }

    pub(crate) fn opt_out(&mut self) {
        self.0.opted_out = true;
    }

    /// Notes why the call cannot be run; the first mistake counts.
    pub(crate) fn refuse(&mut self, mistake: Error) {
        self.0.mistake.get_or_insert(mistake);
    }

    /// Puts everything together; nothing has been written when it fails.
    pub(crate) fn prepare(self) -> Result<Request, Error> {
        let mut described = self.0;
        let Some(handle) = described.handle.take().or_else(in_force) else {
            let operation = described.name;
            return Err(Error::NotConfigured { operation });
        };
        let told = handle
            .observers()
            .are_there()
            .then(|| (handle.clone(), Arc::clone(&described.name)));
        described.check(handle).inspect_err(|_| {
            if let Some((handle, operation)) = told {
                handle.observers().answered(&CallEvent {
                    operation: &operation,
                    id: None,
                    answer: CallOutcome::Refused,
                    elapsed: Duration::ZERO,
                });
            }
        })
    }
}

impl Description {
    fn check(mut self: Box<Self>, handle: Idempotency) -> Result<Request, Error> {
        if !handle.is_enabled() {
            return Ok(self.switched_off(handle));
        }
        let (ttl, lease) = self.check_policy(&handle)?;
        let defaults = handle.defaults();
        let operation = self.name;
        let invalid = |part| {
            let operation = &operation;
            move |source| Error::InvalidKey {
                operation: Arc::clone(operation),
                part,
                source,
            }
        };
        let fingerprint = self
            .arguments
            .finish(handle.fingerprint_key())
            .map_err(|source| Error::InvalidArguments {
                operation: Arc::clone(&operation),
                source,
            })?;
        let scope = self.scope.take().transpose().map_err(invalid("scope"))?;
        let on_missing_key = self
            .policy
            .on_missing_key
            .unwrap_or(defaults.on_missing_key);
        let opted_out = self.opted_out.then_some(UnprotectedReason::OptedOut);
        let may_run = on_missing_key == OnMissingKey::Run || opted_out.is_some();
        let (key, unprotected) =
            chosen_key(self.key.take(), &fingerprint, may_run).map_err(invalid("key"))?;
        let framed_scope = scope.as_ref().map(Key::framed);
        let id = RecordId::new(&operation, framed_scope, key.framed());
        let old_name = self.old_name.as_deref();
        let old_key = self.old_key.take();
        let old_id = old_id(old_name, old_key, (&operation, framed_scope, &key));
        let old_id = old_id.map_err(invalid("key"))?;
        let subject = || Subject {
            operation: Arc::clone(&operation),
            scope: handle.shown(scope),
            key: handle.shown(Some(key)),
            fingerprint,
        };
        let protection = match opted_out.or(unprotected) {
            Some(why) => Protection::None(why),
            None => Protection::Record(Asked {
                subject: Arc::new(subject()),
                on_crash: self.policy.on_crash.unwrap_or(defaults.on_crash),
                lease,
                ttl,
                on_expired: self.policy.on_expired,
            }),
        };
        let identity = (operation, id, old_id);
        Ok(Request::new(handle, &self.policy, identity, protection))
    }

    /// The time to live and the lease, once all that was said of the call can be.
    fn check_policy(&mut self, handle: &Idempotency) -> Result<(Duration, Duration), Error> {
        if let Some(mistake) = self.mistake.take() {
            return Err(mistake);
        }
        if let Some(site) = self.site {
            handle.meet(site)?;
        }
        let defaults = handle.defaults();
        let ttl = self.policy.ttl.unwrap_or(defaults.ttl);
        let lease = self.policy.lease.unwrap_or(defaults.lease);
        check_durations(ttl, lease, handle.timer())?;
        check_lease(self.policy.ttl, self.policy.lease)?;
        check_expired(self.policy.on_expired, defaults.audit_retention)?;
        if self.name.trim().is_empty() {
            return Err(Error::InvalidPolicy(
                "the name of the operation is empty: give it a stable one, such as `payments.charge`",
            ));
        }
        if self.key.is_none() && self.arguments.is_empty() {
            return Err(Error::InvalidPolicy(
                "the call has no key and no arguments that could be one, so every call would be a duplicate of the first: give `key`",
            ));
        }
        Ok((ttl, lease))
    }

    /// Lets nothing stand in the way of the body. What that hands downstream is what it would be otherwise, where that can be told.
    fn switched_off(self, handle: Idempotency) -> Request {
        if let Some(site) = self.site {
            let _it_may_be_a_duplicate = handle.meet(site);
        }
        let from_arguments = || match self.arguments.is_empty() {
            true => Err(KeyError::Missing),
            false => self
                .arguments
                .finish(handle.fingerprint_key())
                .map_or(Err(KeyError::Missing), |arguments| {
                    Key::from_part(arguments.fingerprint().as_bytes())
                }),
        };
        let key = self.key.unwrap_or_else(from_arguments);
        let id = match (key, self.scope.transpose()) {
            (Ok(key), Ok(scope)) => {
                RecordId::new(&self.name, scope.as_ref().map(Key::framed), key.framed())
            }
            _ => RecordId::new(&self.name, None, &stand_in()),
        };
        let protection = Protection::None(UnprotectedReason::Disabled);
        Request::new(handle, &self.policy, (self.name, id, None), protection)
    }
}

/// A key for a call without one: nothing is stored under it, it only has to differ from the next one.
fn stand_in() -> [u8; 16] {
    AttemptId::random().to_bytes()
}

impl Request {
    /// Takes from the handle what the policy leaves open.
    fn new(
        handle: Idempotency,
        policy: &Policy,
        (operation, id, old_id): (Arc<str>, RecordId, Option<RecordId>),
        protection: Protection,
    ) -> Self {
        let defaults = handle.defaults();
        Self {
            operation,
            id,
            old_id,
            protection,
            in_flight: policy.in_flight.unwrap_or(defaults.in_flight),
            on_outage: policy.on_outage.unwrap_or(defaults.on_outage),
            on_crash: policy.on_crash.unwrap_or(defaults.on_crash),
            on_error: defaults.on_error,
            version: policy.version,
            handle,
        }
    }

    /// Finds the outcome that answers this call where the store can tell at once: nothing is claimed then.
    pub(crate) fn recall(&self, asked: &Asked) -> Option<(Arc<Record>, Time)> {
        if self.old_id.is_some() || is_held(&self.id) {
            return None;
        }
        let Snapshot { now, record } = self.handle.store().peek(&self.id)?;
        let replayed = |record: &Arc<Record>| replays(record, &asked.subject.fingerprint, now);
        Some((record.filter(replayed)?, now))
    }

    /// The claim of this call: another attempt for every time that it is made.
    pub(crate) fn claim(&self, asked: &Asked) -> Claim {
        let defaults = self.handle.defaults();
        Claim {
            subject: Arc::clone(&asked.subject),
            attempt_id: AttemptId::random(),
            holder: self.handle.holder(),
            on_crash: asked.on_crash,
            lease: asked.lease,
            ttl: asked.ttl,
            keep: defaults.audit_retention,
            on_expired: asked.on_expired,
            max_takeovers: defaults.max_takeovers,
        }
    }

    /// Tells whether a record answers this call, and not another one that had the same key after a release.
    pub(crate) fn is_about(&self, record: &Record) -> bool {
        match &self.protection {
            Protection::Record(asked) => record.subject.fingerprint == asked.subject.fingerprint,
            Protection::None(_) => false,
        }
    }
}

/// Refuses a refusal that would never come: what is not kept is new.
/// The identity that a call had in an older build, by what it has now.
fn old_id(
    old_name: Option<&str>,
    old_key: Option<Result<Key, KeyError>>,
    (name, scope, key): (&str, Option<&[u8]>, &Key),
) -> Result<Option<RecordId>, KeyError> {
    let old_key = match old_key {
        // No build has ever recorded anything under it.
        Some(Err(KeyError::Missing)) => return Ok(None),
        None if old_name.is_none() => return Ok(None),
        old_key => old_key.transpose()?,
    };
    let (old_name, old_key) = (old_name.unwrap_or(name), old_key.as_ref().unwrap_or(key));
    Ok(Some(RecordId::new(old_name, scope, old_key.framed())))
}

/// The key of a call: the one that was given, or its arguments. Where it is missing and the call may
/// run all the same, one that stands in for it.
fn chosen_key(
    given: Option<Result<Key, KeyError>>,
    fingerprint: &Fingerprinted,
    may_run: bool,
) -> Result<(Key, Option<UnprotectedReason>), KeyError> {
    match given {
        None => Ok((Key::from_part(fingerprint.fingerprint().as_bytes())?, None)),
        Some(Err(KeyError::Missing)) if may_run => Ok((
            Key::from_part(&stand_in())?,
            Some(UnprotectedReason::MissingKey),
        )),
        Some(given) => Ok((given?, None)),
    }
}

pub(crate) fn check_expired(on_expired: OnExpired, keep: Duration) -> Result<(), Error> {
    if on_expired == OnExpired::Refuse && keep.is_zero() {
        return Err(Error::InvalidPolicy(
            "an expired outcome can only be refused while its record stays: say for how long with `audit_retention` of the handle's builder",
        ));
    }
    Ok(())
}

/// A hundred years: anything longer is a mistake, and would overflow a store's clock.
pub const LONGEST: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

/// Refuses a pair that somebody has said and that cannot be meant; one of the two alone may be longer than the other's default.
pub(crate) fn check_lease(ttl: Option<Duration>, lease: Option<Duration>) -> Result<(), Error> {
    match (ttl, lease) {
        (Some(ttl), Some(lease)) if lease >= ttl => Err(Error::InvalidPolicy(
            "the lease is not shorter than the ttl: it is how long a crashed call is waited for, 30 seconds are usual",
        )),
        _ => Ok(()),
    }
}

/// The shortest lease by a timer that nobody moves by hand: now and then, a store takes some ten
/// milliseconds to answer.
const SHORTEST_LEASE: Duration = Duration::from_millis(100);

/// Refuses durations that no store can keep its promises with.
pub(crate) fn check_durations(
    ttl: Duration,
    lease: Duration,
    timer: &dyn Timer,
) -> Result<(), Error> {
    match () {
        () if ttl < Duration::from_millis(1) => Err(Error::InvalidPolicy(
            "the ttl is shorter than a millisecond: an outcome would answer no duplicate",
        )),
        () if lease < Duration::from_millis(1) => Err(Error::InvalidPolicy(
            "the lease is shorter than a millisecond: no holder could keep it",
        )),
        () if lease < SHORTEST_LEASE && !timer.is_manual() => Err(Error::InvalidPolicy(
            "the lease is shorter than 100 ms, so that it would be over before a busy store answers: give at least `\"100ms\"`, 30 seconds are usual; only by a manual clock it may be shorter",
        )),
        () if ttl > LONGEST || lease > LONGEST => Err(Error::InvalidPolicy(
            "the ttl or the lease is longer than a hundred years",
        )),
        () => Ok(()),
    }
}
