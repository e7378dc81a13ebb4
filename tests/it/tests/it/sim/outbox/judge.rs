//! Asks every promise of the outbox of what was sent, published and set aside.

use std::collections::{BTreeMap, HashSet};

use idempotent_runtime::outbox::Envelope;

use super::Sent;
use crate::tally::Tally;

/// All that is known of a simulation that is over.
pub(super) struct Evidence {
    /// Every message, and whether its transaction was committed.
    pub(super) sent: BTreeMap<Sent, bool>,
    /// All that the publisher took, in order, copies included.
    pub(super) arrived: Vec<Envelope>,
    pub(super) said: Vec<&'static str>,
    /// The ids of the messages that were discarded, or set aside.
    pub(super) aside: Vec<String>,
}

impl Evidence {
    pub(super) fn judge(&self, about: &str) {
        let ids: HashSet<_> = self.sent.keys().map(|sent| &sent.id).collect();
        assert_eq!(ids.len(), self.sent.len(), "{about}: two share an id");
        let came: HashSet<_> = self.arrived.iter().map(|it| &it.id).collect();
        let aside: HashSet<_> = self.aside.iter().collect();
        for (sent, committed) in &self.sent {
            let arrived = came.contains(&sent.id) || aside.contains(&sent.id);
            assert_eq!(arrived, *committed, "{about}: {sent:?}");
        }
        let by_id: BTreeMap<_, _> = self.sent.keys().map(|sent| (&sent.id, sent)).collect();
        for envelope in &self.arrived {
            let sent = by_id.get(&envelope.id);
            let sent = sent.unwrap_or_else(|| panic!("{about}: nobody sent {envelope:?}"));
            let payload = sent.number.to_string();
            let same = (sent.key, payload.as_bytes());
            let its = (envelope.key.as_deref(), &envelope.payload[..]);
            assert_eq!(its, same, "{about}: another message");
        }
        self.judge_order(about);
    }

    /// First arrivals are in order within a key, and number and writer agree about the order.
    fn judge_order(&self, about: &str) {
        let mut seen = HashSet::new();
        let mut last: BTreeMap<_, &Envelope> = BTreeMap::new();
        for envelope in self.arrived.iter().filter(|it| seen.insert(&it.id)) {
            let Some(key) = &envelope.key else { continue };
            if let Some(before) = last.insert(key, envelope) {
                assert!(
                    before.number < envelope.number,
                    "{about}: out of order: {before:?} {envelope:?}"
                );
            }
        }
        let per_writer = super::TRANSACTIONS * 4;
        let mut numbers = BTreeMap::new();
        for envelope in &self.arrived {
            numbers.insert(&envelope.id, envelope.number);
        }
        for one in self.sent.keys() {
            for other in self.sent.keys() {
                let same_key = one.key.is_some() && one.key == other.key;
                let same_writer = one.number / per_writer == other.number / per_writer;
                let (Some(first), Some(second)) = (numbers.get(&one.id), numbers.get(&other.id))
                else {
                    continue;
                };
                let in_order = one.number >= other.number || first < second;
                assert!(
                    !same_key || !same_writer || in_order,
                    "{about}: {one:?} {other:?}"
                );
            }
        }
    }

    pub(super) fn count(&self, tally: &mut Tally) {
        let came: HashSet<_> = self.arrived.iter().map(|it| &it.id).collect();
        tally.saw_so_many("a message that arrived", came.len());
        tally.saw_so_many("a copy", self.arrived.len() - came.len());
        tally.saw_so_many("a message discarded, or set aside", self.aside.len());
        let rolled_back = self.sent.values().filter(|committed| !**committed);
        let kind = "a message of a transaction that was rolled back";
        tally.saw_so_many(kind, rolled_back.count());
        for said in &self.said {
            tally.saw(said);
        }
    }
}
