//! Decides what becomes of a key whose first message was not published.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use super::{
    Envelope, OnPoison, PublishError,
    builder::Settings,
    claims::{Attempted, Pause, Spent},
    suspects::Suspects,
};
use crate::{
    observe::{Observers, OutboxEvent},
    outbox::{Outbox, OutboxDatabase},
};

/// Knows how publishing went so far, as this relay has seen it.
#[derive(Default)]
pub(super) struct Failures {
    topics: HashMap<String, Topic>,
    suspects: Suspects,
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

/// The longest pause that a receiver may ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(10 * 60);

/// How many keys that are parked a relay tells of when it begins.
const PARKED_AT_START: u32 = 100;

fn backoff(times: u32) -> Duration {
    let longest = SHORTEST.saturating_mul(2_u32.saturating_pow(times));
    longest.min(LONGEST).mul_f64(rand::random_range(0.5..=1.0))
}

/// The pause that the receiver asks for.
fn asked(error: &PublishError) -> Duration {
    match error {
        PublishError::RetryAfter(asked) => (*asked).min(LONGEST_ASKED),
        _ => Duration::ZERO,
    }
}

impl Topic {
    /// Notes an outage, and returns how long its messages pause. The whole topic pauses, except
    /// where the failure is that of one key: the topic was up, or the message has failed alone.
    fn outage(&mut self, is_alone: bool, now: Instant) -> Duration {
        self.outages += 1;
        let after = backoff(self.outages);
        if !is_alone && !std::mem::take(&mut self.is_up) {
            self.pauses_until = Some(now + after);
        }
        after
    }

    /// Has the topic wait for as long as its receiver asks, and returns how long that is.
    fn wait(&mut self, error: &PublishError, now: Instant) -> Duration {
        let asked = asked(error);
        if !asked.is_zero() {
            self.pauses_until = self.pauses_until.max(Some(now + asked));
        }
        asked
    }
}

impl Failures {
    pub(super) fn new(observers: Observers) -> Self {
        Self {
            observers,
            ..Self::default()
        }
    }

    /// Notes the results of a batch, for which the publisher took `elapsed`. Returns the pauses after
    /// its failures. An outage costs no attempt. A rejection does, and so does any other failure of a
    /// message that failed by itself, if another message of the topic was confirmed since it failed
    /// before.
    pub(super) fn settle(
        &mut self,
        (confirmed, elapsed): (&[&Envelope], Duration),
        failed: &[(&Envelope, PublishError)],
        settings: &Settings,
    ) -> Vec<Pause> {
        let is_answer = |error: &PublishError| matches!(error, PublishError::Rejected(_));
        let unanswered = failed.iter().filter(|(_, error)| !is_answer(error)).count();
        self.suspects.settle(confirmed, unanswered);
        self.confirmed(confirmed, elapsed);
        let mut outages: HashMap<&str, Pause> = HashMap::new();
        let mut pauses = Vec::new();
        let now = Instant::now();
        for (envelope, error) in failed {
            let before = self.suspects.fail(envelope, now);
            let topic = self.topics.entry(envelope.topic.clone()).or_default();
            let last = before.as_ref().map(|before| before.last);
            let goes_on = last.is_some() && topic.confirmed > last;
            let is_culprit = goes_on && unanswered == 1;
            if is_culprit && !is_answer(error) {
                self.suspects.convict(envelope);
            }
            if is_culprit || is_answer(error) {
                pauses.push(attempted(envelope, error, settings));
                continue;
            }
            let is_alone = before.is_some_and(|before| before.is_alone);
            let pause = outages.entry(&envelope.topic);
            let pause = pause.or_insert_with(|| of_topic(topic.outage(is_alone, now)));
            pause.after = pause.after.max(topic.wait(error, now));
            pause.places.push(envelope.place.clone());
        }
        self.tell_outages(&outages);
        pauses.extend(outages.into_values());
        pauses
    }

    fn tell_outages(&self, outages: &HashMap<&str, Pause>) {
        for (topic, pause) in outages {
            self.observers.outbox(&OutboxEvent::Outage {
                topic,
                messages: pause.places.len() as u64,
                pause: pause.after,
            });
        }
    }

    fn confirmed(&mut self, confirmed: &[&Envelope], elapsed: Duration) {
        let mut sent: HashMap<&str, u64> = HashMap::new();
        for envelope in confirmed {
            let topic = self.topics.entry(envelope.topic.clone()).or_default();
            topic.confirmed = Some(Instant::now());
            (topic.is_up, topic.outages, topic.pauses_until) = (true, 0, None);
            *sent.entry(&envelope.topic).or_default() += 1;
        }
        for (topic, messages) in sent {
            self.observers.outbox(&OutboxEvent::Sent {
                topic,
                messages,
                elapsed,
            });
        }
    }

    /// Tells observers of an attempt that was counted.
    pub(super) fn tell(&self, attempt: &Attempted) {
        let Attempted { id, topic, .. } = attempt;
        let (reason, attempts) = (&*attempt.reason, attempt.attempts);
        self.observers.outbox(&OutboxEvent::Failed {
            topic,
            id,
            reason,
            attempts,
        });
        let ended = match attempt.spent {
            None => return,
            Some(Spent::Parked) => OutboxEvent::Parked { topic, id, reason },
            Some(Spent::SetAside) => OutboxEvent::SetAside { topic, id, reason },
        };
        self.observers.outbox(&ended);
    }

    /// Tells observers of keys that other relays have parked. If they cannot be read, the work of the
    /// relay fails, too, and is tried again.
    pub(super) async fn tell_of_parked<DB: OutboxDatabase>(&self, outbox: &Outbox<DB>) {
        let parked = outbox.parked().limit(PARKED_AT_START).await;
        for key in parked.unwrap_or_default() {
            let (topic, id, reason) = (&*key.topic, &*key.id, &*key.reason);
            let parked = OutboxEvent::Parked { topic, id, reason };
            self.observers.outbox(&parked);
        }
    }

    /// Takes those of the messages that go out now, and tells whether others wait for their turn.
    pub(super) fn part(&mut self, batch: Vec<Envelope>) -> (Vec<Envelope>, bool) {
        self.suspects.part(batch)
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

/// The pause of a key after an attempt at its first message.
fn attempted(envelope: &Envelope, error: &PublishError, settings: &Settings) -> Pause {
    let attempts = envelope.attempts.saturating_add(1);
    let parks = envelope.key.is_some() && settings.on_poison == OnPoison::Park;
    let end = if parks {
        Spent::Parked
    } else {
        Spent::SetAside
    };
    Pause {
        places: vec![envelope.place.clone()],
        after: backoff(attempts).max(asked(error)),
        attempt: Some(Attempted {
            id: envelope.id.clone(),
            topic: envelope.topic.clone(),
            row: envelope.row,
            attempts,
            reason: error.to_string(),
            spent: (attempts >= settings.budget).then_some(end),
        }),
    }
}

#[cfg(test)]
mod tests;
