//! Decides what becomes of a key whose first message was not published.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use super::{
    Envelope, OnPoison, PublishError,
    builder::Settings,
    claims::{Attempted, Pause, Spent},
};
use crate::observe::{Observers, OutboxEvent};

/// Knows how publishing went so far, as this relay has seen it.
#[derive(Default)]
pub(super) struct Failures {
    topics: HashMap<String, Topic>,
    /// Which message of a key failed last, and when.
    failed: HashMap<Vec<u8>, (String, Instant)>,
    observers: Observers,
}

#[derive(Debug, Default)]
struct Topic {
    /// When a message of it was confirmed last.
    confirmed: Option<Instant>,
    /// Whether one was confirmed since the last outage.
    is_up: bool,
    /// How many outages came since.
    outages: u32,
    /// Until when nothing of it is published.
    pauses_until: Option<Instant>,
}

/// The first pause after an outage, and the longest.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);

/// For how long it is remembered that a message failed.
const REMEMBERED: Duration = Duration::from_secs(10 * 60);

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
            (topic.is_up, topic.outages, topic.pauses_until) = (true, 0, None);
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
        let now = Instant::now();
        self.failed
            .retain(|_, (_, last)| now.duration_since(*last) < REMEMBERED);
        for (envelope, error) in failed {
            let failure = (envelope.id.clone(), now);
            let before = self.failed.insert(envelope.place.clone(), failure);
            let before = before.filter(|(id, _)| *id == envelope.id);
            let topic = self.topics.entry(envelope.topic.clone()).or_default();
            let goes_on = before.is_some_and(|(_, last)| topic.confirmed > Some(last));
            if matches!(error, PublishError::Rejected(_)) || goes_on {
                pauses.push(self.after_attempt(envelope, error, settings));
                continue;
            }
            let pause = outages.entry(&envelope.topic).or_insert_with(|| {
                topic.outages += 1;
                let after = backoff(topic.outages);
                // One failure in a topic that is up is that of its key.
                if !std::mem::take(&mut topic.is_up) {
                    topic.pauses_until = Some(now + after);
                }
                of_topic(after)
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
                Some(Spent::SetAside(reason.to_owned()))
            }
        };
        Pause {
            places: vec![envelope.place.clone()],
            after: backoff(attempts),
            attempt: Some(Attempted {
                id: id.clone(),
                row: envelope.row,
                attempts,
                spent,
            }),
        }
    }

    /// Takes the messages out whose topic pauses, and tells for how long their keys wait.
    pub(super) fn take_out(&self, batch: &mut Vec<Envelope>) -> Vec<Pause> {
        let mut pauses: HashMap<String, Pause> = HashMap::new();
        let now = Instant::now();
        batch.retain(|envelope| {
            let topic = self.topics.get(&envelope.topic);
            let until = topic.and_then(|topic| topic.pauses_until);
            let Some(left) = until.and_then(|until| until.checked_duration_since(now)) else {
                return true;
            };
            let pause = pauses.entry(envelope.topic.clone());
            let pause = pause.or_insert_with(|| of_topic(left));
            pause.places.push(envelope.place.clone());
            false
        });
        pauses.into_values().collect()
    }
}

/// A pause of keys whose topic pauses.
fn of_topic(after: Duration) -> Pause {
    Pause {
        places: Vec::new(),
        after,
        attempt: None,
    }
}
