//! The settings of a consumer.

use std::{sync::Arc, time::Duration};

use super::Consumer;
use crate::{
    duration::{IntoDuration, read},
    error::Error,
    handle::Idempotency,
    key::{Key, KeyPart},
    operation::Policy,
    policy::{InFlight, OnCrash},
    record::limits::{LONGEST, check_durations, check_lease},
    request::INBOX,
    value::setters,
};

/// Says what becomes of a message whose handler failed for good: the `Err` is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFailure {
    /// It is a dead letter.
    #[default]
    DeadLetter,
    /// It is acknowledged, as one that was processed.
    Ack,
}

#[derive(Debug)]
pub(super) struct Settings {
    pub(super) handle: Idempotency,
    pub(super) operation: Arc<str>,
    pub(super) scope: Option<Key>,
    /// With the downtime.
    pub(super) policy: Policy,
    pub(super) max_deliveries: u32,
    pub(super) concurrency: usize,
    pub(super) on_failure: OnFailure,
    /// For how long the record of a dead letter stays, at least.
    pub(super) keep_dead_letters: Option<Duration>,
}

impl Settings {
    pub(super) fn on_crash(&self) -> OnCrash {
        let of_handle = self.handle.defaults().on_crash;
        self.policy.on_crash.unwrap_or(of_handle)
    }
}

/// Sets up a consumer. `broker_retention`, or `broker_retention_unlimited`, is required.
///
/// | setting | default |
/// |---|---|
/// | `ttl` | 7 days |
/// | `downtime` | a day |
/// | `max_deliveries` | 20 |
/// | `concurrency` | 16 |
/// | `in_flight` | reject |
/// | `on_failure` | dead letter |
/// | `keep_dead_letters` | only as long as its record stands by itself, if it has one |
/// | `scope` | none |
/// | `lease`, `on_crash`, `max_takeovers` | those of the handle |
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct ConsumerBuilder {
    settings: Settings,
    ttl: Option<Duration>,
    downtime: Duration,
    retention: Option<Retention>,
    mistake: Option<Error>,
}

#[derive(Clone, Copy, Debug)]
enum Retention {
    Limited(Duration),
    Unlimited,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl ConsumerBuilder {
    pub(super) fn new(handle: &Idempotency, name: &str) -> Self {
        let empty = name.trim().is_empty();
        Self {
            settings: Settings {
                handle: handle.clone(),
                operation: format!("{INBOX}{name}").into(),
                scope: None,
                policy: Policy {
                    in_flight: Some(InFlight::Reject),
                    ..Policy::NEVER_UNPROTECTED
                },
                max_deliveries: 20,
                concurrency: 16,
                on_failure: OnFailure::default(),
                keep_dead_letters: None,
            },
            ttl: None,
            downtime: DAY,
            retention: None,
            mistake: empty.then_some(Error::InvalidPolicy(
                "the name of the consumer is empty: give it a stable one, such as `billing`",
            )),
        }
    }

    setters! {
        /// Sets how long a message is known: `"7d"`, or a `Duration`. It is at least the time that
        /// the broker keeps a message. The record lives for the downtime more.
        ttl(it, ttl: impl IntoDuration) { it.ttl = read(ttl, &mut it.mistake).or(it.ttl) }

        /// Sets for how long consumers may be down while the broker keeps messages: a day unless
        /// set.
        downtime(it, downtime: impl IntoDuration) {
            it.downtime = read(downtime, &mut it.mistake).unwrap_or(it.downtime);
        }

        /// Says how long the broker keeps a message.
        broker_retention(it, retention: impl IntoDuration) {
            let retention = read(retention, &mut it.mistake).map(Retention::Limited);
            it.retention = retention.or(it.retention);
        }

        /// Says that the broker keeps a message until it is acknowledged. Then [`ttl`](Self::ttl)
        /// must be said, too: a message that comes after it is processed again.
        broker_retention_unlimited(it) { it.retention = Some(Retention::Unlimited) }
    }

    /// Sets the scope, such as the tenant whose messages it consumes. It is a part of the identity.
    pub fn scope<K: KeyPart + ?Sized>(mut self, scope: &K) -> Self {
        let invalid = Error::invalid_key(&self.settings.operation, "scope");
        match Key::from_part(scope).map_err(invalid) {
            Ok(scope) => self.settings.scope = Some(scope),
            Err(mistake) => {
                self.mistake.get_or_insert(mistake);
            }
        }
        self
    }

    setters! {
        /// Sets how long a consumer that holds a message may be silent.
        lease(it, lease: impl IntoDuration) {
            it.settings.policy.lease = read(lease, &mut it.mistake).or(it.settings.policy.lease);
        }

        /// Sets what becomes of a message whose consumer vanished: `Rerun` or `Uncertain`.
        on_crash(it, on_crash: OnCrash) {
            if on_crash == OnCrash::Reconcile {
                it.mistake.get_or_insert(Error::InvalidPolicy(
                    "a consumer has no function to ask what became of a message: say `Rerun` or `Uncertain`",
                ));
            }
            it.settings.policy.on_crash = Some(on_crash);
        }

        /// Sets after how many consumers that vanished a message is parked.
        max_takeovers(it, max_takeovers: u32) {
            it.settings.policy.max_takeovers = Some(max_takeovers);
        }

        /// Sets what becomes of a copy while another one runs: refused at once unless set.
        in_flight(it, in_flight: InFlight) { it.settings.policy.in_flight = Some(in_flight) }

        /// Sets from which delivery on an `Err` that is released makes a dead letter. Have the
        /// broker's own limit above it, or none.
        max_deliveries(it, max_deliveries: u32) {
            it.settings.max_deliveries = max_deliveries.max(1);
        }

        /// Sets how many messages of a [batch](Consumer::batch) are processed at once.
        concurrency(it, concurrency: usize) { it.settings.concurrency = concurrency.max(1) }

        /// Sets what becomes of a message whose `Err` is recorded.
        on_failure(it, on_failure: OnFailure) { it.settings.on_failure = on_failure }

        /// Has each dead letter leave a record for at least this long, `"30d"` or a `Duration`:
        /// [`Consumer::lookup`] finds it by the id of the message, and lists by the consumer. Its
        /// note names the reason. It costs two round trips a dead letter. Where the store fails
        /// then, or takes longer than 5 seconds, the message comes again, unless its transaction
        /// has committed. These leave none: a message without an id, one whose payload cannot be
        /// encoded, and one whose id another message has. A redrive has a record of its own, which
        /// only lists find.
        keep_dead_letters(it, kept: impl IntoDuration) {
            let kept = read(kept, &mut it.mistake);
            it.settings.keep_dead_letters = kept.or(it.settings.keep_dead_letters);
        }
    }

    /// Makes the consumer.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] where the name is empty, or a duration is none or too long. It is
    /// also that where the broker keeps messages for longer than the ttl, or nothing was said of
    /// how long it keeps them. [`Error::InvalidKey`] where the scope cannot be one.
    /// [`Error::Store`] where the store does not accept the crash policy.
    pub fn build(self) -> Result<Consumer, Error> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        let ttl = self.ttl.unwrap_or(7 * DAY);
        match self.retention {
            None => {
                return Err(Error::InvalidPolicy(
                    "the consumer does not know how long the broker keeps a message: say `broker_retention`, or `broker_retention_unlimited`",
                ));
            }
            Some(Retention::Limited(retention)) if retention > ttl => {
                return Err(Error::InvalidPolicy(
                    "the broker keeps messages for longer than the ttl, so an old one would be processed again: give a `ttl` of at least `broker_retention`",
                ));
            }
            Some(Retention::Unlimited) if self.ttl.is_none() => {
                return Err(Error::InvalidPolicy(
                    "a broker without a limit may deliver a message again at any time: say by `ttl` for how long it is known",
                ));
            }
            Some(_) => {}
        }
        let mut settings = self.settings;
        let none = Duration::from_millis(1);
        if settings
            .keep_dead_letters
            .is_some_and(|kept| kept < none || kept > LONGEST)
        {
            return Err(Error::InvalidPolicy(
                "`keep_dead_letters` is how long a dead letter is kept: give at least a millisecond and at most a hundred years",
            ));
        }
        let ttl = ttl.saturating_add(self.downtime).min(LONGEST);
        settings.policy.ttl = Some(ttl);
        let (lease, defaults) = (settings.policy.lease, settings.handle.defaults());
        check_durations(
            ttl,
            lease.unwrap_or(defaults.lease),
            settings.handle.timer(),
        )?;
        check_lease(Some(ttl), lease)?;
        settings.handle.store().accepts(settings.on_crash())?;
        Ok(Consumer(Arc::new(settings)))
    }
}
