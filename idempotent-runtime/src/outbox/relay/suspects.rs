//! Messages that failed, and the batches in which they go out again.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use super::Envelope;
use crate::outbox::walk::MOST;

/// For how long it is remembered that a message failed. It is longer than any pause, so that a
/// message whose receiver asks for the longest one is found to fail again.
const REMEMBERED: Duration = Duration::from_secs(30 * 60);

/// Knows the messages that failed, and which of them may have failed others beside them.
///
/// A broker may answer for a batch as a whole. So messages that failed without an answer go out in
/// batches of half the size, until the culprit is alone. The size doubles with each batch that is
/// answered, so that an outage leaves no small batches behind.
pub(super) struct Suspects {
    /// By key.
    failed: HashMap<Vec<u8>, Failed>,
    /// How many of them go out together.
    width: usize,
    /// Whether it is their turn, and not that of the messages that did not fail.
    is_next: bool,
}

/// A failure of the first message of a key.
pub(super) struct Failed {
    id: String,
    /// When it failed last.
    pub(super) last: Instant,
    /// Whether it failed by itself: it goes out alone.
    pub(super) is_alone: bool,
}

impl Default for Suspects {
    fn default() -> Self {
        Self {
            failed: HashMap::new(),
            width: MOST,
            is_next: false,
        }
    }
}

impl Suspects {
    fn known(&self, envelope: &Envelope) -> Option<&Failed> {
        let failed = self.failed.get(&envelope.place);
        failed.filter(|failed| failed.id == envelope.id)
    }

    /// Parts the messages that failed from the others, which they might fail. Returns the batch
    /// whose turn it is, and whether others wait for theirs.
    pub(super) fn part(&mut self, batch: Vec<Envelope>) -> (Vec<Envelope>, bool) {
        let now = Instant::now();
        self.failed
            .retain(|_, failed| now.duration_since(failed.last) < REMEMBERED);
        if self.failed.is_empty() {
            self.width = MOST;
        }
        // Another relay may have counted an attempt.
        let is_suspect = |it: &Envelope| it.attempts > 0 || self.known(it).is_some();
        let (mut suspects, others): (Vec<_>, Vec<_>) = batch.into_iter().partition(is_suspect);
        if suspects.is_empty() {
            return (others, false);
        }
        self.is_next = others.is_empty() || !self.is_next;
        if !self.is_next {
            return (others, true);
        }
        suspects.sort_by_key(|it| self.known(it).map(|failed| failed.last));
        let is_alone = |it: &Envelope| self.known(it).is_some_and(|failed| failed.is_alone);
        let together = suspects.iter().take(self.width);
        let together = together.take_while(|it| !is_alone(it)).count();
        let left = suspects.split_off(together.max(1));
        let has_more = !left.is_empty() || !others.is_empty();
        (suspects, has_more)
    }

    /// Forgets the messages of a batch that were confirmed, and notes how many of it failed without
    /// an answer for each.
    pub(super) fn settle(&mut self, confirmed: &[&Envelope], unanswered: usize) {
        let mut were_suspects = false;
        for envelope in confirmed {
            were_suspects |= self.failed.remove(&envelope.place).is_some();
        }
        if unanswered > 1 {
            self.width = unanswered / 2;
        } else if unanswered == 0 && were_suspects {
            self.width = self.width.saturating_mul(2).min(MOST);
        }
    }

    /// Notes that a message failed, and returns its failure before.
    pub(super) fn fail(&mut self, envelope: &Envelope, now: Instant) -> Option<Failed> {
        let before = self.failed.remove(&envelope.place);
        let before = before.filter(|failed| failed.id == envelope.id);
        let failed = Failed {
            id: envelope.id.clone(),
            last: now,
            is_alone: before.as_ref().is_some_and(|before| before.is_alone),
        };
        self.failed.insert(envelope.place.clone(), failed);
        before
    }

    /// Notes that a message failed by itself.
    pub(super) fn convict(&mut self, envelope: &Envelope) {
        if let Some(failed) = self.failed.get_mut(&envelope.place) {
            failed.is_alone = true;
        }
    }
}
