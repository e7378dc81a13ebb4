//! How many storms blow, and what is seen in all of them.

use std::collections::BTreeMap;

use idempotent_runtime::client::{ClientError, Origin};

use crate::{judge::Evidence, programs::Ended};

/// How often each kind of thing was seen.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<&'static str, usize>);

impl Tally {
    pub(crate) fn saw(&mut self, kind: &'static str) {
        self.saw_so_many(kind, 1);
    }

    pub(crate) fn saw_so_many(&mut self, kind: &'static str, times: usize) {
        *self.0.entry(kind).or_default() += times;
    }

    /// Asserts that each of these was seen: where nothing happens, every promise is kept.
    pub(crate) fn assert_saw(&self, kinds: &[&str], about: &str) {
        let is_missed = |kind: &&&str| self.0.get(**kind).is_none_or(|times| *times == 0);
        let missed: Vec<_> = kinds.iter().filter(is_missed).collect();
        assert!(missed.is_empty(), "{about}: never {missed:?}: {self:?}");
    }
}

/// How many blow, where this variable may ask for another number.
///
/// # Panics
///
/// Where it asks for none, or for what is no number: nothing would be tested.
pub(crate) fn how_many(variable: &str, usually: u64) -> u64 {
    let Ok(asked) = std::env::var(variable) else {
        return usually;
    };
    let number = asked.parse().unwrap_or(0);
    assert!(
        number > 0,
        "{variable} is `{asked}`, and is to be 1 or more"
    );
    number
}

impl Evidence {
    pub(crate) fn count(&self, tally: &mut Tally) {
        for (kind, times) in &self.happened.0 {
            tally.saw_so_many(kind, *times);
        }
        for visit in &self.visits {
            tally.saw(match visit.times {
                1 => "a charge",
                _ => "a charge asked for again",
            });
        }
        for told in &self.told {
            tally.saw(match &told.ended {
                Ended::Answered { outcome, .. } if outcome.origin == Origin::Journal => {
                    "an answer of the journal"
                }
                Ended::Answered { receipt: None, .. } => "a refusal",
                Ended::Answered { outcome, .. } if outcome.replayed => "a replay",
                Ended::Answered { outcome, .. } if outcome.attempts > 1 => "an answer at last",
                Ended::Answered { .. } => "an answer at once",
                Ended::Failed(error) => match ClientError::of(error) {
                    Some(ClientError::Unknown { .. }) => "told that nobody knows",
                    Some(ClientError::Exhausted { .. }) => "told that nothing happened",
                    Some(ClientError::InFlight { .. }) => "told that it runs",
                    Some(ClientError::RetryLater { .. }) => "told to come later",
                    Some(ClientError::KeyReused { .. }) => "told of other arguments",
                    Some(ClientError::KeyReusedLocally { .. }) => {
                        "told of other arguments by the journal"
                    }
                    _ => "told something else",
                },
            });
        }
    }
}
