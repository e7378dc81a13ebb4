//! The kinds of events that were seen in a simulation that is over.

use idempotent_client::{ClientError, Origin};

use crate::{judge::Evidence, programs::Ended, tally::Tally};

impl Evidence {
    pub(crate) fn count(&self, tally: &mut Tally) {
        for kind in &self.happened {
            tally.saw(kind);
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
                Ended::Failed(error) => match ClientError::from_error(error) {
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
