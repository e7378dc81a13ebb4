//! Asks whether each disposition follows the records of its message.

use std::collections::HashSet;

use idempotent_runtime::{
    OnCrash,
    consumer::DeadLetterReason,
    record::{AttemptId, RawOutcome, Record, State},
};

use super::{
    DELIVERIES, MAX_DELIVERIES,
    delivery::{Came, Deed, Delivery, Ends, Told, Why, id_of},
};
use crate::{
    scripts::Say,
    sim::{kept::Entry, stage::Unrecorded},
    tally::Tally,
};

/// All that is known of a simulation that is over.
pub(super) struct Evidence {
    pub(super) ledger: Vec<Entry>,
    pub(super) deeds: Vec<Deed>,
    pub(super) unrecorded: Vec<Unrecorded>,
    pub(super) told: Vec<Told>,
    pub(super) left: usize,
    pub(super) on_crash: OnCrash,
}

/// Whether an outcome stands that is no error.
fn is_done(record: &Record) -> bool {
    let outcome = record.outcome.as_ref();
    record.state == State::Done && !outcome.is_some_and(RawOutcome::is_error)
}

fn has_failed(record: &Record) -> bool {
    record.state == State::Done && !is_done(record)
}

fn is_again(before: &Record, claim: &Entry) -> bool {
    let after = claim.after.as_deref();
    after.is_some_and(|after| after.attempt_id == before.attempt_id)
}

/// How a delivery's own handler ended.
#[derive(Clone, Copy, Debug)]
struct Own {
    token: u64,
    ends: Ends,
    /// Whether the store had answered that this stands when the consumer was told.
    is_recorded: bool,
}

impl Own {
    fn is_of(&self, record: &Record) -> bool {
        record.token.as_u64() == self.token
    }
}

impl Evidence {
    pub(super) fn judge(&self, about: &str) {
        let mut bodies = HashSet::new();
        for deed in self.deeds.iter().filter(|deed| deed.ended.is_none()) {
            let about = format!("{about}: {deed:?}");
            let id = id_of(deed.delivery.message, deed.delivery.redrive);
            assert!(
                bodies.insert((id, deed.token)),
                "two under one token: {about}"
            );
            self.judge_handler(deed, &about);
        }
        for entry in &self.ledger {
            let (Some(before), Some(after)) = (&entry.before, &entry.after) else {
                continue;
            };
            // An operator may say what an outcome was that could not be kept.
            let lacked = before.outcome.as_ref();
            let lacked = lacked.is_some_and(RawOutcome::is_not_replayable);
            let same = before.outcome == after.outcome;
            let stays = before.state != State::Done || same || lacked;
            assert!(stays, "an outcome was changed: {about}: {entry:?}");
        }
        for told in &self.told {
            let about = format!("{about}: {told:?}");
            self.judge_told(told, &about);
            if told.delivery.number >= DELIVERIES {
                let retried = matches!(told.came, Came::Retry(_));
                assert!(!retried, "it is still not settled: {about}");
            }
        }
    }

    /// The record of a message or its redrive after so many writes.
    fn at(&self, message: u32, redrive: u32, writes: usize) -> Option<&Record> {
        let id = id_of(message, redrive);
        let entry = self.ledger[..writes].iter().rfind(|entry| entry.id == id);
        entry.and_then(|entry| entry.after.as_deref())
    }

    /// Every version that stood while this was delivered, of the message and its earlier redrives.
    fn stood(&self, told: &Told) -> Vec<(u32, &Record)> {
        let of_one = |redrive: u32| {
            let id = id_of(told.delivery.message, redrive);
            let first = self.at(told.delivery.message, redrive, told.from);
            let during = self.ledger[told.from..told.to].iter();
            let during = during.filter(move |entry| entry.id == id);
            let during = during.filter_map(|entry| entry.after.as_deref());
            first.into_iter().chain(during).map(move |it| (redrive, it))
        };
        (0..=told.delivery.redrive).flat_map(of_one).collect()
    }

    /// A handler runs if nothing stands of the message, and of its earlier redrives.
    fn judge_handler(&self, deed: &Deed, about: &str) {
        let Delivery {
            message, redrive, ..
        } = deed.delivery;
        for earlier in 0..redrive {
            let was = self.at(message, earlier, deed.from);
            let is = self.at(message, earlier, deed.at);
            let (Some(was), Some(is)) = (was, is) else {
                continue;
            };
            let strict = self.on_crash == OnCrash::Uncertain && is.state == State::Running;
            let forbids = is_done(is) || is.state == State::Uncertain || strict;
            assert!(
                was.version != is.version || !forbids,
                "an earlier one may have had its effect: {about}: {is:?}"
            );
        }
        let id = id_of(message, redrive);
        let claim = self.ledger.iter().find(|entry| {
            let after = entry.after.as_deref();
            entry.id == id && after.is_some_and(|after| after.token.as_u64() == deed.token)
        });
        let claim = claim.unwrap_or_else(|| panic!("nobody claimed it: {about}"));
        let has_begun = |before: &Record| {
            let same = |other: &Deed| {
                let its = (other.delivery.message, other.delivery.redrive, other.token);
                its == (message, redrive, before.token.as_u64())
            };
            self.deeds.iter().any(same)
        };
        let is_free = claim
            .before
            .as_deref()
            .is_none_or(|before| match before.state {
                State::Released => true,
                // The answer to a claim may have been lost, and the same attempt claimed again.
                State::Running if is_again(before, claim) => !has_begun(before),
                State::Running => {
                    before.lease_is_over(claim.at) && before.on_crash == OnCrash::Rerun
                }
                _ => false,
            });
        assert!(is_free, "it was not free: {about}: {claim:?}");
    }

    /// The end of the handler that this delivery ran.
    fn own(&self, told: &Told) -> Option<Own> {
        let is_own = |deed: &&Deed| deed.delivery.number == told.delivery.number;
        let mut ended = self.deeds.iter().filter(is_own).rev();
        let (deed, ends) = ended.find_map(|deed| Some((deed, deed.ended?)))?;
        let id = id_of(told.delivery.message, told.delivery.redrive);
        let is_it = |it: &Unrecorded| {
            let is_meanwhile = (told.from..=told.to).contains(&it.at);
            is_meanwhile && it.id == id && it.attempt == deed.attempt
        };
        Some(Own {
            token: deed.token,
            ends,
            is_recorded: !self.unrecorded.iter().any(is_it),
        })
    }

    fn judge_told(&self, told: &Told, about: &str) {
        let (stood, own) = (self.stood(told), self.own(told));
        let redrive = told.delivery.redrive;
        let any = |is: &dyn Fn(&Record) -> bool| stood.iter().any(|(_, it)| is(it));
        let this =
            |is: &dyn Fn(&Record) -> bool| stood.iter().any(|(of, it)| *of == redrive && is(it));
        // A record that an operator settled has the token of the last handler, and no holder.
        let by_own = |record: &Record| {
            let is_held = record.attempt_id != AttemptId::NOBODY;
            is_held && own.is_some_and(|it| it.is_of(record) && it.ends == Ends::Well)
        };
        let may_be = match &told.came {
            Came::Ack { replayed: false } => this(&|it| is_done(it) && by_own(it)),
            Came::Ack { replayed: true } => any(&|it| is_done(it) && !by_own(it)),
            Came::Dead(DeadLetterReason::Failed) => this(&has_failed),
            Came::Dead(DeadLetterReason::Uncertain) => {
                let strict = self.on_crash == OnCrash::Uncertain;
                let vanished = |(of, it): &(u32, &Record)| {
                    strict && *of < redrive && it.state == State::Running
                };
                any(&|it| it.state == State::Uncertain) || stood.iter().any(vanished)
            }
            Came::Dead(DeadLetterReason::Parked) => any(&|it| it.state == State::Parked),
            Came::Dead(DeadLetterReason::Exhausted) => {
                told.delivery.delivery >= MAX_DELIVERIES
                    && own.is_some_and(|own| own.ends == Ends::Error(Say::Nothing))
            }
            Came::Dead(DeadLetterReason::KeyReused) => {
                let another = |it: &Told| it.delivery.payload != told.delivery.payload;
                self.told.iter().any(another) || self.left > 0
            }
            Came::Dead(_) => false,
            Came::Retry(why) => {
                let was = self.at(told.delivery.message, redrive, told.from);
                let stands = was.is_some_and(|was| was.state == State::Done);
                let is_away = *why == Why::Ours("told that the store is away");
                let waits = *why == Why::None && redrive > 0;
                !stands || is_away || waits
            }
        };
        assert!(
            may_be,
            "the disposition does not follow: {about}: {own:?} {stood:?}"
        );
        Self::judge_retry(told, own, &stood, about);
    }

    /// A retry for an error of the handler is for that of this delivery, and has an end. It comes
    /// where nothing is recorded of the handler; if the store did not answer, that may be written
    /// in the background meanwhile.
    fn judge_retry(told: &Told, own: Option<Own>, stood: &[(u32, &Record)], about: &str) {
        let Came::Retry(Why::Own(say)) = told.came else {
            return;
        };
        let own = own.unwrap_or_else(|| panic!("no handler ran: {about}"));
        assert_eq!(own.ends, Ends::Error(say), "another error: {about}");
        let by_own = |(of, it): &(u32, &Record)| *of == told.delivery.redrive && own.is_of(it);
        let mut outcomes = stood.iter().filter(|(_, it)| it.state == State::Done);
        let is_released = say == Say::Nothing && !outcomes.any(by_own);
        assert!(
            is_released || !own.is_recorded,
            "its outcome was recorded: {about}: {stood:?}"
        );
        let is_dead = say == Say::Nothing && told.delivery.delivery >= MAX_DELIVERIES;
        assert!(!is_dead, "it comes again without an end: {about}");
    }

    pub(super) fn count(&self, tally: &mut Tally) {
        for deed in &self.deeds {
            tally.saw(match deed.ended {
                None if deed.delivery.redrive > 0 => "a redrive that ran",
                None => "a handler",
                Some(Ends::Panic) => "a panic",
                Some(_) => "an end of a handler",
            });
        }
        for told in &self.told {
            tally.saw(match &told.came {
                Came::Ack { replayed: true } => "acknowledged as a replay",
                Came::Ack { replayed: false } => "acknowledged",
                Came::Retry(Why::Own(_)) => "retried for its own error",
                Came::Retry(Why::Ours(_)) => "retried for an error of ours",
                Came::Retry(Why::None) => "retried without an error",
                Came::Dead(DeadLetterReason::Failed) => "dead: failed",
                Came::Dead(DeadLetterReason::Exhausted) => "dead: exhausted",
                Came::Dead(DeadLetterReason::Uncertain) => "dead: uncertain",
                Came::Dead(DeadLetterReason::Parked) => "dead: parked",
                Came::Dead(DeadLetterReason::KeyReused) => "dead: key_reused",
                Came::Dead(_) => "dead: something else",
            });
        }
        tally.saw_so_many("a consumer that left, or died", self.left);
    }
}
