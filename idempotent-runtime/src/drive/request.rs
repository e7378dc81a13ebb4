//! A call, described: what it is about and what it chose, before it is run.
//!
//! Fronts fill a description; `check` makes the request of it, with every setting resolved, or says
//! which one cannot be. No store is asked before that.

pub(crate) mod check;
mod front;
pub(crate) mod waiting_room;

use std::{sync::Arc, time::Duration};

use serde::Serialize;

pub(crate) use self::check::{INBOX, OPERATIONS, SEQUENCE};
pub(crate) use self::waiting_room::WaitingRoom;
use crate::{
    attempt::{Asking, Attempt, Stage, WithoutId, is_held},
    drive::{DescribedCall, run::ActiveCall},
    duration::IntoDuration,
    error::Error,
    fingerprint::Arguments,
    handle::{AsHandle, Idempotency, in_force},
    identity::RecordId,
    key::{Key, KeyError, KeyPart},
    observe::{CallEvent, CallOutcome, UnprotectedReason},
    operation::{Policy, Reader, Site},
    policy::{InFlight, OnCrash, OnExpired, OnOutage, Verdict},
    protocol::{CallNumber, Claim, replays},
    record::{AttemptId, FencingToken, LONGEST_TTL, Record, Subject, Time},
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

/// The description of a call so far. It stays where it is from the first word to the last, because
/// moving it costs more than an allocation.
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
    /// Whether a front end of ours gave the name.
    is_reserved: bool,
    numbered: Option<CallNumber>,
    room: Option<WaitingRoom>,
    route: Option<Arc<str>>,
    sent_by: Option<Arc<str>>,
}

/// A call, ready to be run.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) handle: Idempotency,
    pub(crate) operation: Arc<str>,
    /// The id of its record. Until the call is admitted, the record may stand under `old_id`.
    pub(crate) id: RecordId,
    pub(crate) old_id: Option<RecordId>,
    pub(crate) protection: Protection,
    pub(crate) in_flight: InFlight,
    pub(crate) on_outage: OnOutage,
    pub(crate) on_crash: OnCrash,
    pub(crate) on_error: Verdict,
    /// Whether an `Err` of the call can be recorded.
    pub(crate) errors_can_end: bool,
    pub(crate) version: u32,
    /// The number of a call of a stream.
    number: Option<u64>,
    /// The room in which it waits for another call, where that is bounded.
    pub(crate) room: Option<WaitingRoom>,
    /// The template of the path that the request of a front end came by.
    pub(crate) route: Option<Arc<str>>,
    /// The `traceparent` of the message that the call handles.
    pub(crate) sent_by: Option<Arc<str>>,
}

/// Whether a call has a record.
#[derive(Debug)]
pub(crate) enum Protection {
    /// It has one, or claims one.
    Record(Asked),
    /// It runs without, for this reason.
    None(UnprotectedReason),
}

/// The terms of a call for its record: a claim is made of them if no outcome stands there already.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) subject: Arc<Subject>,
    pub(crate) on_crash: OnCrash,
    pub(crate) numbered: Option<CallNumber>,
    lease: Duration,
    ttl: Duration,
    max_takeovers: u32,
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
            is_reserved: false,
            numbered: None,
            room: None,
            route: None,
            sent_by: None,
        }))
    }

    /// The same for a front end, whose names no other call takes.
    pub(crate) fn reserved(
        handle: &Idempotency,
        name: &Arc<str>,
        (scope, key): (Option<Result<Key, KeyError>>, Result<Key, KeyError>),
        policy: Policy,
    ) -> Self {
        let mut call = Self::named(Arc::clone(name));
        call.handle(handle);
        call.0.is_reserved = true;
        call.0.key = Some(key);
        call.0.scope = scope;
        call.0.policy = policy;
        call
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

    /// Adds an argument to the fingerprint.
    pub fn argument<T: Fingerprintable + ?Sized>(&mut self, name: &'static str, value: &T) {
        self.0.arguments.argument(name, value);
    }

    /// Sets what the fingerprint is taken of.
    pub fn fingerprint<T: Fingerprintable + ?Sized>(&mut self, value: &T) {
        self.0.arguments.whole(value);
    }

    /// The same, where errors call it by the word by which the caller gave it.
    pub(crate) fn whole<T: Fingerprintable + ?Sized>(&mut self, shown: &'static str, value: &T) {
        self.0.arguments.whole_as(shown, value);
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

    /// Sets a duration of the policy, or refuses the call where it cannot be read.
    pub(crate) fn duration(
        &mut self,
        duration: impl IntoDuration,
        place: fn(&mut Policy) -> &mut Option<Duration>,
    ) {
        match duration.into_duration() {
            Ok(duration) => *place(&mut self.0.policy) = Some(duration),
            Err(error) => self.refuse(error),
        }
    }

    pub(crate) fn policy(&mut self) -> &mut Policy {
        &mut self.0.policy
    }

    /// Makes it a call with a number.
    pub(crate) fn number(&mut self, numbered: CallNumber) {
        self.0.numbered = Some(numbered);
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
        let prepared = self.prepared();
        if let Err(mistake) = &prepared {
            Asking::of(WithoutId::Call).answered(Some(mistake));
        }
        prepared
    }

    /// The same, of a call that begins now.
    pub(crate) fn describe(self) -> DescribedCall {
        self.prepare().map(ActiveCall::new).map_err(Box::new)
    }

    fn prepared(self) -> Result<Request, Error> {
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
                    route: None,
                    id: None,
                    outcome: CallOutcome::Refused,
                    elapsed: Duration::ZERO,
                    waited: Duration::ZERO,
                    attempt: None,
                    store_error: None,
                });
            }
        })
    }
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
            errors_can_end: true,
            version: policy.version,
            number: None,
            room: None,
            route: None,
            sent_by: None,
            handle,
        }
    }

    /// Finds the outcome that answers this call, if the store can tell at once. Nothing is claimed
    /// then.
    pub(crate) fn recall(&self, asked: &Asked) -> Option<(Arc<Record>, Time)> {
        if self.old_id.is_some() || asked.numbered.is_some() || self.is_held() {
            return None;
        }
        let Snapshot { now, record } = self.handle.store().peek(&self.id)?;
        let replayed = |record: &Arc<Record>| replays(record, &asked.subject.fingerprint, now);
        Some((record.filter(replayed)?, now))
    }

    /// Whether the call would be made inside its own body.
    pub(crate) fn is_held(&self) -> bool {
        is_held(self.handle.id(), &self.id)
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
            ttl: asked.ttl.min(LONGEST_TTL),
            keep: defaults.audit_retention,
            on_expired: asked.on_expired,
            max_takeovers: asked.max_takeovers,
            numbered: asked.numbered,
            goes_on: false,
        }
    }

    /// The attempt that runs the body.
    pub(crate) fn attempt(
        &self,
        id: RecordId,
        attempt: u32,
        token: Option<FencingToken>,
        stage: Stage,
        passes: bool,
    ) -> Attempt {
        let attempt = Attempt::new(id, Arc::clone(&self.operation), attempt, token, stage);
        attempt.after(self.number, passes)
    }

    /// The subject of the call, if it has a record.
    pub(crate) fn subject(&self) -> Option<Arc<Subject>> {
        match &self.protection {
            Protection::Record(asked) => Some(Arc::clone(&asked.subject)),
            Protection::None(_) => None,
        }
    }

    /// Tells whether a record answers this call, and not another one that had the same key after a
    /// release.
    pub(crate) fn is_about(&self, record: &Record) -> bool {
        match &self.protection {
            Protection::Record(asked) => record.subject.fingerprint == asked.subject.fingerprint,
            Protection::None(_) => false,
        }
    }
}
