//! The handles of all metrics, by the values of their labels.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use metrics::{Counter, Gauge, Histogram};

use super::{
    family::{Family, OTHER, Shown, made},
    recorder::Source,
    table::{self, Metric},
};
use crate::{
    observe::{CallEvent, CallOutcome, Sample, StepEvent},
    record::State,
    request::{INBOX, SEQUENCE},
    store::{StoreAction, StoreErrorKind, StoreEvent},
};

/// The kinds of errors of a store, and none.
const ERRORS: usize = 9;

pub(super) struct Handles {
    source: Source,
    shown: Arc<Shown>,
    operations: Family<Operation>,
    stores: Family<StoreCalls>,
    consumers: Family<Family<Counter>>,
    sequences: Family<Family<Counter>>,
    topics: Family<Topic>,
    pub(super) purged: Counter,
    /// Those that a sampler has set.
    sampled: OnceLock<Sampled>,
}

/// The metrics of an operation.
pub(super) struct Operation {
    calls: Calls,
    /// The calls that came by a route of the HTTP layer.
    routes: Family<Calls>,
    waits: OnceLock<Histogram>,
    pub(super) takeovers: Counter,
    pub(super) leases_lost: Counter,
    pub(super) completions_retried: Counter,
    steps: Family<Family<Counter>>,
}

/// The metrics of calls, by their outcome.
struct Calls([OnceLock<(Counter, Histogram)>; CallOutcome::ALL.len()]);

impl Calls {
    fn new() -> Self {
        Self(std::array::from_fn(|_| OnceLock::new()))
    }
}

/// The metrics of a store, by action and kind of error.
struct StoreCalls([[OnceLock<Histogram>; ERRORS]; StoreAction::ALL.len()]);

/// The metrics of a topic.
struct Topic {
    published: OnceLock<(Counter, Histogram)>,
    sampled: OnceLock<SampledTopic>,
}

struct SampledTopic {
    pending: Gauge,
    is_capped: Gauge,
    oldest_age: Gauge,
    blocked_keys: Gauge,
}

/// The gauges that have no topic.
struct Sampled {
    /// The number and the age, state by state.
    attention: [(Gauge, Gauge); State::ATTENTION.len()],
    is_capped: Gauge,
    clock_skew: Gauge,
}

impl Handles {
    pub(super) fn new(source: Source) -> Self {
        source.describe(table::METRICS);
        let shown = source.shown();
        Self {
            operations: Family::new("operation", &shown),
            stores: Family::new("store", &shown),
            consumers: Family::new("consumer", &shown),
            sequences: Family::new("sequence", &shown),
            topics: Family::new("topic", &shown),
            shown,
            purged: source.counter(&table::PURGED, &[]),
            sampled: OnceLock::new(),
            source,
        }
    }

    pub(super) fn operation<T>(&self, name: &str, using: impl FnOnce(&Operation, &str) -> T) -> T {
        self.operations
            .with(name, |name| self.new_operation(name), using)
    }

    fn new_operation(&self, name: &str) -> Operation {
        let counter = |metric| self.source.counter(metric, &[name]);
        // Alerts are about these. A counter that begins at its first event hides that event.
        for outcome in [CallOutcome::Unprotected, CallOutcome::KeyReused] {
            let labels = [name, outcome.name()];
            self.source.counter(&table::CALLS, &labels).increment(0);
        }
        Operation {
            calls: Calls::new(),
            routes: Family::new("route", &self.shown),
            waits: OnceLock::new(),
            takeovers: counter(&table::TAKEOVERS),
            leases_lost: counter(&table::LEASES_LOST),
            completions_retried: counter(&table::COMPLETIONS_RETRIED),
            steps: Family::new("step", &self.shown),
        }
    }

    pub(super) fn call(&self, event: &CallEvent<'_>) {
        self.operation(event.operation, |operation, name| {
            match event.route {
                None => self.ended(&operation.calls, event, (name, None)),
                Some(route) => operation.routes.with(
                    route,
                    |_| Calls::new(),
                    |calls, route| self.ended(calls, event, (name, Some(route))),
                ),
            }
            if !event.waited.is_zero() {
                let make = || self.source.histogram(&table::WAIT_DURATION, &[name]);
                made(&operation.waits, make).record(event.waited);
            }
        });
    }

    fn ended(
        &self,
        calls: &Calls,
        event: &CallEvent<'_>,
        (operation, route): (&str, Option<&str>),
    ) {
        let cell = &calls.0[event.outcome as usize];
        let (count, duration) = made(cell, || {
            let mut labels = vec![operation, event.outcome.name()];
            labels.extend(route);
            let count = self.source.counter(&table::CALLS, &labels);
            (count, self.source.histogram(&table::CALL_DURATION, &labels))
        });
        count.increment(1);
        duration.record(event.elapsed);
    }

    pub(super) fn store(&self, event: &StoreEvent) {
        let make = |_: &str| {
            let of_action = |_| std::array::from_fn(|_| OnceLock::new());
            StoreCalls(std::array::from_fn(of_action))
        };
        self.stores.with(event.store, make, |calls, store| {
            let place = event.error_kind.map_or(0, |kind| kind as usize + 1);
            let histogram = &calls.0[event.action as usize][place];
            let histogram = made(histogram, || {
                let error = event.error_kind.map_or("none", StoreErrorKind::name);
                let labels = [store, event.action.name(), error];
                self.source.histogram(&table::STORE_DURATION, &labels)
            });
            histogram.record(event.elapsed);
        });
    }

    pub(super) fn step(&self, metric: &Metric, event: &StepEvent<'_>) {
        self.operation(event.operation, |operation, name| {
            let of_step = |_: &str| Family::new("outcome", &self.shown);
            operation.steps.with(event.step, of_step, |outcomes, step| {
                let make = |outcome: &str| {
                    let labels = [name, step, outcome];
                    self.source.counter(metric, &labels)
                };
                outcomes.with(event.outcome.name(), make, |count, _| count.increment(1));
            });
        });
    }

    pub(super) fn consumer_message(&self, operation: &str, disposition: &str) {
        let consumer = operation.strip_prefix(INBOX).unwrap_or(operation);
        let metric = &table::CONSUMER_MESSAGES;
        self.count(&self.consumers, metric, consumer, disposition);
    }

    pub(super) fn sequence_number(&self, operation: &str, decision: &str) {
        let sequence = operation.strip_prefix(SEQUENCE).unwrap_or(operation);
        let metric = &table::SEQUENCE_NUMBERS;
        self.count(&self.sequences, metric, sequence, decision);
    }

    /// Counts one of these, by its name and by how it came out.
    fn count(&self, family: &Family<Family<Counter>>, metric: &Metric, name: &str, outcome: &str) {
        let of_name = |_: &str| Family::new("outcome", &self.shown);
        family.with(name, of_name, |outcomes, name| {
            let make = |outcome: &str| self.source.counter(metric, &[name, outcome]);
            outcomes.with(outcome, make, |count, _| count.increment(1));
        });
    }

    fn topic(&self, name: &str, using: impl FnOnce(&Topic, &str)) {
        let make = |_: &str| Topic {
            published: OnceLock::new(),
            sampled: OnceLock::new(),
        };
        self.topics.with(name, make, using);
    }

    pub(super) fn published(&self, topic: &str, messages: u64, elapsed: Duration) {
        self.topic(topic, |topic, name| {
            let (count, duration) = made(&topic.published, || {
                let count = self.source.counter(&table::OUTBOX_PUBLISHED, &[name]);
                let duration = &table::OUTBOX_PUBLISH_DURATION;
                (count, self.source.histogram(duration, &[name]))
            });
            count.increment(messages);
            duration.record(elapsed);
        });
    }

    pub(super) fn sampled(&self, sample: &Sample<'_>) {
        match *sample {
            Sample::Attention {
                state,
                records,
                is_capped,
                oldest,
            } => {
                let gauges = self.gauges();
                let place = State::ATTENTION.iter().position(|it| *it == state);
                if let Some(place) = place {
                    let (number, age) = &gauges.attention[place];
                    number.set(records as f64);
                    age.set(oldest);
                }
                gauges.is_capped.set(f64::from(u8::from(is_capped)));
            }
            Sample::Clock { ahead_micros } => {
                self.gauges().clock_skew.set(ahead_micros as f64 / 1e6);
            }
            Sample::Outbox {
                topic,
                pending,
                is_capped,
                oldest,
                blocked_keys,
            } => self.topic(topic, |topic, name| {
                if name == OTHER {
                    // Each topic would take the place of the one before.
                    return;
                }
                let gauges = made(&topic.sampled, || self.topic_gauges(name));
                gauges.pending.set(pending as f64);
                gauges.is_capped.set(f64::from(u8::from(is_capped)));
                gauges.oldest_age.set(oldest);
                gauges.blocked_keys.set(blocked_keys as f64);
            }),
            Sample::Outdated => self.outdated(),
        }
    }

    /// Shows that no reading is new enough.
    fn outdated(&self) {
        if let Some(gauges) = self.sampled.get() {
            let of_states = gauges
                .attention
                .iter()
                .flat_map(|(number, age)| [number, age]);
            let all = of_states.chain([&gauges.is_capped, &gauges.clock_skew]);
            all.for_each(|gauge| gauge.set(f64::NAN));
        }
        self.topics.for_each(|topic| {
            if let Some(it) = topic.sampled.get() {
                for gauge in [&it.pending, &it.is_capped, &it.oldest_age, &it.blocked_keys] {
                    gauge.set(f64::NAN);
                }
            }
        });
    }

    fn gauges(&self) -> &Sampled {
        let gauge = |metric, labels: &[&str]| self.source.gauge(metric, labels);
        made(&self.sampled, || Sampled {
            attention: State::ATTENTION.map(|state| {
                let kind = kind(state);
                let number = gauge(&table::ATTENTION, &[kind]);
                (number, gauge(&table::ATTENTION_OLDEST_AGE, &[kind]))
            }),
            is_capped: gauge(&table::ATTENTION_IS_CAPPED, &[]),
            clock_skew: gauge(&table::CLOCK_SKEW, &[]),
        })
    }

    fn topic_gauges(&self, topic: &str) -> SampledTopic {
        let gauge = |metric| self.source.gauge(metric, &[topic]);
        SampledTopic {
            pending: gauge(&table::OUTBOX_PENDING),
            is_capped: gauge(&table::OUTBOX_IS_CAPPED),
            oldest_age: gauge(&table::OUTBOX_OLDEST_AGE),
            blocked_keys: gauge(&table::OUTBOX_BLOCKED_KEYS),
        }
    }
}

/// The name of a state in which a record needs somebody.
fn kind(state: State) -> &'static str {
    match state {
        State::Uncertain => "uncertain",
        State::Parked => "parked",
        _ => "undoing",
    }
}
