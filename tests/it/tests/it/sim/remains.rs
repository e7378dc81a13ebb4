//! The judgement of a simulation in which everything comes through in time.

use std::collections::HashMap;

use idempotent_runtime::{Error, record::State};

use super::{
    callers::{Failure, What},
    judge::{Evidence, is_left},
};
use crate::scripts::Say;

impl Evidence {
    /// If everything comes through in time, V5, V8 and V13 hold: no lease is lost, a body's word is
    /// recorded, and no attempt is left to its lease.
    pub(super) fn judge_remains(&self, about: &str) {
        let mut last = HashMap::new();
        for entry in &self.ledger {
            let Some(after) = &entry.after else { continue };
            let before = entry.before.as_deref();
            let by = match before.filter(|before| is_left(before, after)) {
                Some(before) => before.attempt_id,
                None => after.attempt_id,
            };
            last.insert((entry.id, by), (entry.at, after));
        }
        for (at, record) in last.values() {
            assert!(
                record.state != State::Running || record.lease_is_over(*at),
                "V13, left to its lease: {about}: {record:?}"
            );
        }
        for told in &self.told {
            let is_lost = matches!(&told.result, Err(Failure::Refused(Error::LeaseLost { .. })));
            assert!(!is_lost, "V5, nobody took it: {about}: {told:?}");
        }
        for deed in &self.deeds {
            if let What::Ended(stored, None | Some(Say::Declined)) = &deed.what {
                assert!(
                    self.stood(stored).next().is_some(),
                    "V8, never recorded: {about}: {deed:?}"
                );
            }
        }
    }
}
