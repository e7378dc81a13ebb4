//! Decides what becomes of a key whose first message was not published.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use super::{
    Envelope, OnPoison, PublishError,
    builder::Settings,
    claims::{Pause, Spent},
};
use crate::observe::{Observers, OutboxEvent};

/// Knows how publishing went so far, as this relay has seen it.
#[derive(Default)]
pub(super) struct Failures {
    topics: HashMap<String, Topic>,
    /// When the first message of a key failed last.
    failed: HashMap<Vec<u8>, Instant>,
    observers: Observers,
}

#[derive(Debug, Default)]
struct Topic {
    /// When a message of it was confirmed last.
    confirmed: Option<Instant>,
    /// How many outages came since.
    outages: u32,
}

/// The first pause after an outage, and the longest.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);

fn backoff(times: u32) -> Duration {
    let longest = SHORTEST
        .saturating_mul(2_u32.saturating_pow(times))
        .min(LONGEST);
    longest.mul_f64(rand::random_range(0.5..=1.0))
}

impl Failures {
    pub(super) fn new(observers: Observers) -> Self {
        Self {
            observers,
            ..Self::default()
        }
    }

    pub(super) fn confirmed(&mut self, confirmed: &[&Envelope]) {
        let mut sent: HashMap<&str, u64> = HashMap::new();
        for envelope in confirmed {
            let topic = self.topics.entry(envelope.topic.clone()).or_default();
            topic.confirmed = Some(Instant::now());
            topic.outages = 0;
            self.failed.remove(&envelope.place);
            *sent.entry(&envelope.topic).or_default() += 1;
        }
        for (topic, messages) in sent {
            let sent = OutboxEvent::Sent { topic, messages };
            self.observers.outbox(&sent);
        }
    }

    /// The pauses after these failures. An outage costs no attempt; a rejection does, and so does
    /// any other failure where another message of the topic was confirmed since.
    pub(super) fn pauses(
        &mut self,
        failed: &[(&Envelope, PublishError)],
        settings: &Settings,
    ) -> Vec<Pause> {
        let mut outages: HashMap<&str, Pause> = HashMap::new();
        let mut pauses = Vec::new();
        for (envelope, error) in failed {
            let before = self.failed.insert(envelope.place.clone(), Instant::now());
            let topic = self.topics.entry(envelope.topic.clone()).or_default();
            let goes_on = topic.confirmed > before.or(Some(Instant::now()));
            if matches!(error, PublishError::Rejected(_)) || goes_on {
                pauses.push(self.after_attempt(envelope, error, settings));
                continue;
            }
            let pause = outages.entry(&envelope.topic).or_insert_with(|| {
                topic.outages += 1;
                Pause {
                    places: Vec::new(),
                    attempts: None,
                    after: backoff(topic.outages),
                    spent: None,
                }
            });
            pause.places.push(envelope.place.clone());
        }
        for (topic, pause) in &outages {
            self.observers.outbox(&OutboxEvent::Outage {
                topic,
                messages: pause.places.len() as u64,
                pause: pause.after,
            });
        }
        pauses.extend(outages.into_values());
        pauses
    }

    fn after_attempt(
        &self,
        envelope: &Envelope,
        error: &PublishError,
        settings: &Settings,
    ) -> Pause {
        let Envelope { id, topic, key, .. } = envelope;
        let (attempts, reason) = (envelope.attempts.saturating_add(1), error.to_string());
        self.observers.outbox(&OutboxEvent::Failed {
            topic,
            id,
            reason: &reason,
            attempts,
        });
        let reason = &*reason;
        let is_spent = attempts >= settings.budget;
        let parks = key.is_some() && settings.on_poison == OnPoison::Park;
        let spent = match (is_spent, parks) {
            (false, _) => None,
            (true, true) => {
                self.observers
                    .outbox(&OutboxEvent::Parked { topic, id, reason });
                Some(Spent::Parked(reason.to_owned()))
            }
            (true, false) => {
                let set_aside = OutboxEvent::SetAside { topic, id, reason };
                self.observers.outbox(&set_aside);
                let (id, reason) = (id.clone(), reason.to_owned());
                Some(Spent::SetAside { id, reason })
            }
        };
        Pause {
            places: vec![envelope.place.clone()],
            attempts: Some(if matches!(spent, Some(Spent::SetAside { .. })) {
                0
            } else {
                attempts
            }),
            after: backoff(attempts),
            spent,
        }
    }
}
