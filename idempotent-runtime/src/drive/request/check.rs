//! Checks a description, and makes the request of it.

use std::{sync::Arc, time::Duration};

#[cfg(feature = "_sql")]
use super::Call;
use super::{Asked, Description, Protection, Request};
use crate::{
    engine::audit::OPEN_IN_AUDIT,
    error::Error,
    fingerprint::Fingerprinted,
    handle::Idempotency,
    identity::RecordId,
    key::{Key, KeyError},
    observe::UnprotectedReason,
    policy::{OnExpired, OnMissingKey, OnOutage},
    record::limits::{check_durations, check_lease},
    record::{AttemptId, Subject},
};

/// How the operations of consumers begin.
pub(crate) const INBOX: &str = "inbox:";

/// How the operations of sequences begin.
pub(crate) const SEQUENCE: &str = "sequence:";

/// The operation of records that keep the operations of a program.
pub(crate) const OPERATIONS: &str = "operations:";

/// The beginnings that no other call takes.
const RESERVED: [(&str, &str); 3] = [
    (
        INBOX,
        "names that begin with `inbox:` are those of consumers: give the operation another one",
    ),
    (
        SEQUENCE,
        "names that begin with `sequence:` are those of sequences: give the operation another one",
    ),
    (
        OPERATIONS,
        "names that begin with `operations:` are those under which programs keep their operations: give the operation another one",
    ),
];

#[cfg(feature = "_sql")]
impl Call {
    /// Refuses settings that have no meaning in a transaction, which holds the key itself. A
    /// transaction that is not our own would stay open while a call waits.
    pub(crate) fn in_transaction(&mut self, is_own: bool) {
        const NUMBER_WAITS: &str = "`in_flight` and `wait_for_gap` have no meaning in a transaction of yours, which would stay open meanwhile: leave them out";
        let it = &*self.0;
        let holds = it.policy.lease.is_some() || it.policy.on_crash.is_some();
        let waits = !is_own && it.policy.in_flight.is_some();
        let mistake = match it.numbered {
            Some(number) if !is_own && !number.patience.is_zero() => NUMBER_WAITS,
            Some(_) if holds => {
                "`lease` and `on_crash` have no meaning in a transaction, which holds the number itself: leave them out"
            }
            Some(_) if waits => NUMBER_WAITS,
            None if holds || waits || it.policy.on_outage.is_some() => match is_own {
                true => {
                    "`lease`, `on_crash` and `on_outage` have no meaning in a transaction, which holds the key itself: leave them out"
                }
                false => {
                    "`lease`, `in_flight`, `on_crash` and `on_outage` have no meaning in a transaction, which holds the key itself: leave them out"
                }
            },
            None if it.old_key.is_some() || it.old_name.is_some() => {
                "`also_accept_name` and `also_accept_key` are not looked up in a transaction, where a look does not wait for another one that is open: leave them out"
            }
            _ => return,
        };
        self.refuse(Error::InvalidPolicy(mistake));
    }
}

impl Description {
    pub(super) fn check(mut self: Box<Self>, handle: Idempotency) -> Result<Request, Error> {
        if !handle.is_enabled() {
            if let Some(audit) = handle.engine().audit() {
                audit.ran_unprotected();
            }
            return Ok(self.switched_off(handle));
        }
        let (ttl, lease) = self.check_policy(&handle)?;
        let defaults = handle.defaults();
        let operation = self.name;
        let invalid = |part| Error::invalid_key(&operation, part);
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
                numbered: self.numbered,
                lease,
                ttl,
                on_expired: self.policy.on_expired,
                max_takeovers: self.policy.max_takeovers.unwrap_or(defaults.max_takeovers),
            }),
        };
        let identity = (operation, id, old_id);
        let number = self.numbered.map(|it| it.number);
        let request = Request::new(handle, &self.policy, identity, protection);
        Ok(Request {
            number,
            room: self.room,
            route: self.route,
            sent_by: self.sent_by,
            ..request
        })
    }

    /// The time to live and the lease, after a check that every setting of the call is allowed.
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
        check_lease(Some(ttl), self.policy.lease)?;
        check_expired(self.policy.on_expired, defaults.audit_retention)?;
        if self.name.trim().is_empty() {
            return Err(Error::InvalidPolicy(
                "the name of the operation is empty: give it a stable one, such as `payments.charge`",
            ));
        }
        let reserved = RESERVED.iter();
        let mut reserved = reserved.filter(|(begin, _)| self.name.starts_with(begin));
        if let Some((_, mistake)) = reserved.next().filter(|_| !self.is_reserved) {
            return Err(Error::InvalidPolicy(mistake));
        }
        let on_outage = self.policy.on_outage.unwrap_or(defaults.on_outage);
        if on_outage == OnOutage::Open && handle.engine().audit().is_some() {
            return Err(Error::InvalidPolicy(OPEN_IN_AUDIT));
        }
        if self.key.is_none() && self.arguments.is_empty() {
            return Err(Error::InvalidPolicy(
                "the call has no key and no arguments that could be one, so every call would be a duplicate of the first: give `key`",
            ));
        }
        Ok((ttl, lease))
    }

    /// Makes a call that runs without a record. The key that it hands downstream is the usual one,
    /// if that can be made.
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
        let number = self.numbered.map(|it| it.number);
        let request = Request::new(handle, &self.policy, (self.name, id, None), protection);
        Request {
            number,
            route: self.route,
            sent_by: self.sent_by,
            ..request
        }
    }
}

/// A key for a call without one: nothing is stored under it, it only has to differ from the next
/// one.
fn stand_in() -> [u8; 16] {
    AttemptId::random().to_bytes()
}

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

/// The key of a call: the one that was given, or its arguments. If it is missing and the call may
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

/// Refuses a refusal that would never come: a record that is not kept is new.
pub(crate) fn check_expired(on_expired: OnExpired, keep: Duration) -> Result<(), Error> {
    if on_expired == OnExpired::Refuse && keep.is_zero() {
        return Err(Error::InvalidPolicy(
            "an expired outcome can only be refused while its record stays: say for how long with `audit_retention` of the handle's builder",
        ));
    }
    Ok(())
}
