//! Compares the charges with what all callers were told.

use std::collections::BTreeMap;

use idempotent_client::{ClientError, ClientOutcome, Origin};
use idempotent_runtime::OnCrash;
use reqwest::StatusCode;

use crate::{
    programs::{Call, Ended, Told},
    service::{Receipt, Visit},
};

/// All that is known of a simulation that is over.
pub(crate) struct Evidence {
    pub(crate) on_crash: &'static [OnCrash],
    pub(crate) drawn: Vec<Call>,
    pub(crate) visits: Vec<Visit>,
    /// The charges before the programs asked again.
    pub(crate) in_the_run: Vec<Visit>,
    /// The statements that the gateway knows to be wrong.
    pub(crate) lies: Vec<String>,
    /// The events that befell the network, processes and programs.
    pub(crate) happened: Vec<&'static str>,
    pub(crate) told: Vec<Told>,
    /// The keys of the calls that each journal holds open.
    pub(crate) open: Vec<Vec<String>>,
}

/// An account and an intent.
type Name<'a> = (&'a str, &'a str);

impl Evidence {
    pub(crate) fn judge(&self, about: &str) {
        self.judge_charges(about);
        assert!(self.lies.is_empty(), "lies: {about}: {:?}", self.lies);
        for told in &self.told {
            let about = &format!("{about}: {told:?}");
            match &told.ended {
                Ended::Answered {
                    status,
                    receipt,
                    outcome,
                } => {
                    match receipt {
                        Some(receipt) => self.judge_receipt(&told.call, *status, receipt, about),
                        None => self.judge_refusal(&told.call, *status, outcome, about),
                    }
                    let key = outcome.key.as_ref().expect("every call has a key");
                    assert!(
                        receipt.is_none()
                            || !self.open[told.journal]
                                .iter()
                                .any(|open| open == key.as_str()),
                        "answered, and still open: {about}"
                    );
                }
                Ended::Failed(error) => {
                    let error = ClientError::from_error(error);
                    self.judge_failure(&told.call, error, about);
                }
            }
        }
        self.judge_replays(about);
        self.judge_last_words(about);
    }

    /// An intent is charged once, under one key. If handlers run at most once, it is not even asked
    /// for twice.
    fn judge_charges(&self, about: &str) {
        let mut visited = BTreeMap::<Name<'_>, &Visit>::new();
        for visit in &self.visits {
            let receipt = &visit.receipt;
            let name = (&*receipt.account, &*receipt.wish.intent);
            let other = visited.insert(name, visit);
            assert!(
                other.is_none(),
                "two charges: {about}: {visit:?}, {other:?}"
            );
            assert!(
                visit.times == 1 || self.on_crash.contains(&OnCrash::Rerun),
                "charged again: {about}: {visit:?}"
            );
        }
    }

    /// The answer to a call is what happened, to the same account for the same wish.
    fn judge_receipt(&self, call: &Call, status: StatusCode, receipt: &Receipt, about: &str) {
        assert_eq!(
            (&*receipt.account, &receipt.wish),
            (call.account, &call.wish),
            "another call's answer: {about}"
        );
        assert!(
            self.visits.iter().any(|visit| visit.receipt == *receipt),
            "it did not happen: {about}"
        );
        let is_declined = status == StatusCode::PAYMENT_REQUIRED;
        assert_eq!(receipt.is_declined, is_declined, "another status: {about}");
    }

    /// A refusal says that this attempt did nothing; one before it may still be on its way, and
    /// then the call is open.
    fn judge_refusal(&self, call: &Call, status: StatusCode, outcome: &ClientOutcome, about: &str) {
        assert!(
            matches!(
                status,
                StatusCode::FORBIDDEN | StatusCode::UNPROCESSABLE_ENTITY
            ),
            "an answer without a receipt: {about}"
        );
        assert!(
            outcome.attempts > 1 || call.is_shared() || !self.is_charged(call),
            "it took effect: {about}"
        );
    }

    /// An error says what is true.
    fn judge_failure(&self, call: &Call, error: Option<&ClientError>, about: &str) {
        match error {
            Some(ClientError::Unknown { .. } | ClientError::RetryLater { .. }) => {}
            // It is known who made a call only if no other call asks for the same.
            Some(ClientError::Exhausted { .. } | ClientError::InFlight { .. }) => assert!(
                call.is_shared() || !self.is_charged(call),
                "it took effect: {about}"
            ),
            Some(ClientError::KeyReused { .. } | ClientError::KeyReusedLocally { .. }) => {
                let same = |other: &&Call| {
                    (other.account, &other.wish.intent) == (call.account, &call.wish.intent)
                };
                let mut others = self.drawn.iter().filter(same);
                assert!(
                    others.any(|other| other.wish.cents != call.wish.cents),
                    "nobody asked for anything else: {about}"
                );
            }
            _ => panic!("there was no reason for that: {about}"),
        }
    }

    fn is_intent_charged(&self, call: &Call) -> bool {
        self.visits.iter().any(|visit| {
            let receipt = &visit.receipt;
            (&*receipt.account, &receipt.wish.intent) == (call.account, &call.wish.intent)
        })
    }

    fn is_charged(&self, call: &Call) -> bool {
        self.in_the_run.iter().any(|visit| {
            (&*visit.receipt.account, &visit.receipt.wish) == (call.account, &call.wish)
        })
    }

    /// Only a caller that made the handler run is told that it ran now. There may be several such
    /// callers if the store could not be told of a run that was answered, and the handler ran
    /// again.
    fn judge_replays(&self, about: &str) {
        for visit in &self.visits {
            let was_run = |told: &&Told| match &told.ended {
                Ended::Answered {
                    receipt: Some(receipt),
                    outcome,
                    ..
                } => {
                    let is_repeated = outcome.replayed || outcome.origin == Origin::Journal;
                    !is_repeated && *receipt == visit.receipt
                }
                _ => false,
            };
            let ran: Vec<_> = self.told.iter().filter(was_run).collect();
            assert!(
                ran.len() <= visit.times as usize,
                "it did not run so often: {about}: {visit:?}, {ran:?}"
            );
        }
    }

    /// When all is over, every caller that asks is told how it ended, if that can be known.
    fn judge_last_words(&self, about: &str) {
        for call in self.drawn.iter().filter(|call| call.is_named()) {
            let again = call.again();
            for journal in 0..self.open.len() {
                let asked = |told: &&Told| told.journal == journal && told.call == again;
                let last = self.told.iter().rfind(asked);
                let last = last.unwrap_or_else(|| panic!("never asked again: {about}: {call:?}"));
                assert!(last.is_settled(), "not settled: {about}: {last:?}");
                let is_refused = matches!(&last.ended, Ended::Answered { receipt: None, .. });
                assert!(
                    !is_refused || !self.is_intent_charged(call),
                    "a refusal in the place of what happened: {about}: {last:?}"
                );
            }
        }
    }
}
