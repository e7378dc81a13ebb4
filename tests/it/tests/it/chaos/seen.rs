//! The events that were seen in a chaos run that is over.

use idempotent_runtime::record::{State, TokenRule};

use super::{
    callers::{Failure, What},
    case::{Case, Stood, key_of},
    witness::{Answer, Fault, Write},
};
use crate::{tally::Tally, told};

impl Case<'_> {
    pub(super) fn count(&self, tally: &mut Tally) {
        for fault in &self.pages.faults {
            tally.saw(match fault {
                Fault::None => "a request without a fault",
                Fault::LosesTheRequest | Fault::LosesTheAnswer | Fault::Straggles => {
                    "lost on the way"
                }
                Fault::Panics => "a driver's panic",
            });
        }
        for write in &self.pages.writes {
            match &write.answer {
                Some((_, Answer::Applied(_) | Answer::Refused)) => {}
                Some((_, Answer::Failed)) => tally.saw("a write that the connection lost"),
                None => tally.saw("a write that nobody waited for"),
            }
        }
        for one in &self.stood {
            if let Some(kind) = kind_of(one) {
                tally.saw(kind);
            }
            if self.is_recognised(one) {
                tally.saw("one's own claim recognised");
            }
        }
        for deed in &self.pages.deeds {
            tally.saw(match deed.what {
                What::Began { is_takeover: true } => "a body after a takeover",
                What::Began { is_takeover: false } => "a body",
                What::Conflict => "a conflict at the gateway",
                What::Ended(..) => "a body's word",
                What::Gone => "a body that is gone",
                What::Asked(_) => "a reconciliation",
            });
        }
        for told in &self.evidence.told {
            tally.saw(match &told.result {
                Err(Failure::Refused(refusal)) => told::of_refusal(refusal),
                _ => told::of_answer(told.how.as_ref()),
            });
        }
        tally.saw_so_many("a caller that left, or died", self.evidence.left);
    }

    /// Whether a claim stood that was sent again, and its body ran under the token of the first
    /// time.
    fn is_recognised(&self, claim: &Stood<'_>) -> bool {
        let Stood { write, after, .. } = claim;
        let again = |other: &&Write| {
            let draws = matches!(other.draft.token, TokenRule::Above(_));
            draws && other.draft.attempt_id == after.attempt_id && other.sent > write.sent
        };
        let began = |what: &What| matches!(what, What::Began { .. });
        claim.draws()
            && after.state == State::Running
            && self.pages.writes.iter().any(|other| again(&other))
            && self
                .under(key_of(after), after.token.as_u64())
                .any(|deed| began(&deed.what))
    }
}

/// The kind of a write that stood.
fn kind_of(one: &Stood<'_>) -> Option<&'static str> {
    let before = one.before.as_deref();
    let was = |state| before.is_some_and(|before| before.state == state);
    let is_own = before.is_some_and(|before| before.attempt_id == one.after.attempt_id);
    Some(match one.after.state {
        State::Running if !was(State::Running) => return None,
        State::Running if is_own => "a heartbeat, or a lease ended",
        State::Running => "a takeover",
        State::Done => "an outcome",
        State::Released => "a release",
        State::Uncertain => "left uncertain",
        State::Parked => "parked",
        _ => return None,
    })
}
