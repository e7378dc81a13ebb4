//! Decides what becomes of a key whose first message was not published.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use super::{
    Envelope, PublishError,
    claims::{Pause, Spent},
};

/// Knows how publishing went so far, as this relay has seen it.
#[derive(Debug, Default)]
pub(super) struct Failures {
    topics: HashMap<String, Topic>,
    /// When the first message of a key failed last.
    failed: HashMap<Vec<u8>, Instant>,
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
    pub(super) fn confirmed(&mut self, envelope: &Envelope) {
        let topic = self.topics.entry(envelope.topic.clone()).or_default();
        topic.confirmed = Some(Instant::now());
        topic.outages = 0;
        self.failed.remove(&envelope.place);
    }

    /// The pauses after these failures. An outage costs no attempt; a rejection does, and so does
    /// any other failure where another message of the topic was confirmed since.
    pub(super) fn pauses(
        &mut self,
        failed: &[(&Envelope, PublishError)],
        budget: u32,
    ) -> Vec<Pause> {
        let mut outages: HashMap<&str, Pause> = HashMap::new();
        let mut pauses = Vec::new();
        for (envelope, error) in failed {
            let before = self.failed.insert(envelope.place.clone(), Instant::now());
            let topic = self.topics.entry(envelope.topic.clone()).or_default();
            let goes_on = topic.confirmed > before.or(Some(Instant::now()));
            let counts = matches!(error, PublishError::Rejected(_)) || goes_on;
            if counts {
                pauses.push(after_attempt(envelope, error, budget));
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
        pauses.extend(outages.into_values());
        pauses
    }
}

fn after_attempt(envelope: &Envelope, error: &PublishError, budget: u32) -> Pause {
    let attempts = envelope.attempts.saturating_add(1);
    let spent = (attempts >= budget).then(|| spent(envelope, error.to_string()));
    Pause {
        places: vec![envelope.place.clone()],
        attempts: Some(match spent {
            Some(Spent::SetAside { .. }) => 0,
            _ => attempts,
        }),
        after: backoff(attempts),
        spent,
    }
}

fn spent(envelope: &Envelope, reason: String) -> Spent {
    let Envelope { id, topic, key, .. } = envelope;
    match key {
        Some(_) => {
            tracing::error!(
                topic,
                id,
                reason,
                "a key is parked: its first message could not be published"
            );
            Spent::Parked(reason)
        }
        None => {
            tracing::error!(
                topic,
                id,
                reason,
                "a message could not be published, and is set aside"
            );
            let id = id.clone();
            Spent::SetAside { id, reason }
        }
    }
}
