//! The kinds of events that were seen in a simulation that is over.

use idempotent_runtime::{
    CallReport, OnCrash,
    record::{Record, State},
};

use super::{
    callers::{Failure, What, is_settled},
    faults::Fault,
    judge::Evidence,
    kept::Entry,
};
use crate::{tally::Tally, told};

impl Evidence {
    pub(super) fn count(&self, tally: &mut Tally) {
        for fault in &self.faults {
            tally.saw(match fault {
                Fault::None => "a call without a fault",
                Fault::LosesTheRequest => "a lost request",
                Fault::LosesTheAnswer => "a lost answer",
                Fault::Straggles => "a straggler",
                Fault::Fails => "a failure",
                Fault::Panics => "a driver's panic",
            });
        }
        for entry in &self.ledger {
            if let Some(kind) = self.kind_of(entry) {
                tally.saw(kind);
            }
            if entry.is_lost && self.is_recognised(entry) {
                tally.saw("one's own write recognised");
            }
        }
        for deed in &self.deeds {
            tally.saw(match deed.what {
                What::Began => "a body",
                What::Ended(..) => "a body's word",
                What::Panicked => "a body's panic",
                What::Asked(_) => "a reconciliation",
            });
        }
        for told in &self.told {
            tally.saw(match &told.result {
                Err(Failure::Refused(refusal)) => told::of_refusal(refusal),
                _ => told::of_answer(told.how.as_ref()),
            });
        }
        tally.saw_so_many("a caller that left, or died", self.left);
    }

    /// The kind of this write.
    fn kind_of(&self, entry: &Entry) -> Option<&'static str> {
        let Some(after) = entry.after.as_deref() else {
            return Some("a purge");
        };
        let before = entry.before.as_deref();
        let was = |state| before.is_some_and(|before| before.state == state);
        let is_own = before.is_some_and(|before| before.attempt_id == after.attempt_id);
        let by_operator = |record: &Record| {
            let outcome = record.outcome.as_ref();
            outcome.is_some_and(|outcome| is_settled(&outcome.bytes))
        };
        Some(match after.state {
            State::Running if !was(State::Running) => return None,
            State::Running if is_own => "a heartbeat, or a lease ended",
            State::Running if after.on_crash == OnCrash::Reconcile => "a takeover to ask",
            State::Running => "a takeover",
            State::Done if by_operator(after) => "a settlement",
            State::Done if was(State::Uncertain) => "an outcome that came late",
            State::Done => "an outcome",
            State::Released => "a release",
            State::Uncertain => "left uncertain",
            State::Parked => "parked",
            _ => return None,
        })
    }

    /// Whether a write whose answer was lost was told of afterwards: a claim by its body, an
    /// outcome by its caller.
    fn is_recognised(&self, entry: &Entry) -> bool {
        let Some(after) = entry.after.as_deref() else {
            return false;
        };
        let token = entry.token(after);
        match after.state {
            State::Running if entry.before.as_ref().is_none_or(|before| before.token != after.token) => {
                self.under(token).any(|what| *what == What::Began)
            }
            State::Done => self.told.iter().any(|told| {
                let by_it = matches!(&told.how, Some(CallReport::Executed { token: of, recorded: true, .. }) if *of == after.token);
                by_it && told.call.key == token.0
            }),
            _ => false,
        }
    }
}
