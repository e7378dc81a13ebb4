//! The calls, the deeds of their bodies, and the answers to all callers.

use std::time::Duration;

use idempotent_runtime::{
    Attempt, CallReport, Idempotency, InFlight, OnCrash, Reconciled, Verdict, clock::Timer,
    record::Time, testing::ManualClock,
};
use rand::{RngExt, rngs::StdRng};

use super::{KEYS, LEASE, faults::Faults, stage::Notes};
use crate::scripts::{self, Form, Say, stored, verdict};

/// One call, as it was drawn.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) number: usize,
    pub(super) key: u32,
    /// The argument that the fingerprint is taken of.
    pub(super) amount: u32,
    pub(super) on_crash: OnCrash,
    form: Form,
    in_flight: InFlight,
    /// How long after the beginning it comes.
    comes: Duration,
    /// When its caller stops waiting for it.
    leaves: Option<Duration>,
    takes: Duration,
    ends: Ends,
    finds: Finds,
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Value,
    Error(Say),
    Panic,
}

/// The finding of a reconciling function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finds {
    Happened,
    Nothing,
    Unclear,
}

pub(super) type Failure = scripts::Failure<String>;

/// Something that a body or a reconciling function did, under a fencing token.
#[derive(Clone, Debug)]
pub(super) struct Deed {
    pub(super) under: Token,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The body was polled.
    Began,
    /// The body came to its end, and said this, as it is stored.
    Ended(String, Option<Say>),
    Panicked,
    /// The reconciling function was asked.
    Asked(Finds),
}

/// A fencing token, and the key that it belongs to. Tokens of two keys may be equal.
pub(super) type Token = (u32, u64);

/// The answer to a caller.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) call: Call,
    /// When the call began, by the store's clock.
    pub(super) began: Time,
    /// How many writes there were then, and when it ended.
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) result: Result<String, Failure>,
    /// How the answer came about, if the form of the call tells.
    pub(super) how: Option<CallReport>,
}

/// Everything that happened outside the store.
pub(super) type Diary = Notes<Deed>;

impl Call {
    /// Draws a call. `on_crash` is the choice of every call of its key, or `None` if each call
    /// makes its own choice.
    pub(super) fn draw(rng: &mut StdRng, number: usize, on_crash: Option<OnCrash>) -> Self {
        let mut lease = |most: f64| LEASE.mul_f64(rng.random_range(0.0..most));
        let (comes, leaves, short, long) = (lease(8.0), lease(3.0), lease(0.3), lease(2.5));
        let any = [OnCrash::Rerun, OnCrash::Uncertain, OnCrash::Reconcile];
        Self {
            number,
            key: rng.random_range(0..KEYS),
            amount: u32::from(rng.random_range(0..8) == 0),
            on_crash: on_crash.unwrap_or_else(|| any[rng.random_range(0..3)]),
            form: match rng.random_range(0..4) {
                0 => Form::Detached,
                _ => Form::Attached,
            },
            in_flight: match rng.random_range(0..4) {
                0 => InFlight::Reject,
                _ => InFlight::Wait(LEASE),
            },
            comes,
            leaves: (rng.random_range(0..3) == 0).then_some(leaves),
            takes: match rng.random_range(0..4) {
                0 => long,
                1 => Duration::ZERO,
                _ => short,
            },
            ends: match rng.random_range(0..12) {
                0 => Ends::Panic,
                1 => Ends::Error(Say::Declined),
                2 => Ends::Error(Say::Nothing),
                3 => Ends::Error(Say::Perhaps),
                _ => Ends::Value,
            },
            finds: match rng.random_range(0..3) {
                0 => Finds::Happened,
                1 => Finds::Nothing,
                _ => Finds::Unclear,
            },
        }
    }

    /// The call that tells, when all is over, how a key ended.
    pub(super) fn last(key: u32, number: usize, on_crash: OnCrash) -> Self {
        Self {
            number,
            key,
            amount: 0,
            on_crash,
            form: Form::Attached,
            in_flight: InFlight::Reject,
            comes: Duration::ZERO,
            leaves: None,
            takes: Duration::ZERO,
            ends: Ends::Value,
            finds: Finds::Nothing,
        }
    }

    /// Makes the call; `None` if its caller left.
    pub(super) async fn make(
        self,
        idem: Idempotency,
        timer: ManualClock,
        conditions: Faults,
        diary: Diary,
    ) -> Option<Told> {
        timer.sleep(self.comes).await;
        let (began, from) = (conditions.now(), conditions.writes());
        let answer = self.clone().run(idem, timer.clone(), diary);
        let (result, how) = match self.leaves {
            None => answer.await,
            Some(leaves) => tokio::select! {
                answer = answer => answer,
                () = timer.sleep(leaves) => return None,
            },
        };
        Some(Told {
            to: conditions.writes(),
            call: self,
            began,
            from,
            result,
            how,
        })
    }

    async fn run(
        self,
        idem: Idempotency,
        timer: ManualClock,
        diary: Diary,
    ) -> (Result<String, Failure>, Option<CallReport>) {
        let call = idem
            .call("charge")
            .key(&self.key)
            .arguments(&self.amount)
            .in_flight(self.in_flight)
            .classify_errors(verdict as fn(&Failure) -> Verdict);
        let (script, asked) = (self.clone(), self.clone());
        let noted = diary.clone();
        let body = move |attempt: Attempt| script.body(attempt, timer, diary);
        match (self.on_crash, self.form) {
            (OnCrash::Reconcile, _) => {
                let ask = move |attempt: Attempt| asked.ask(attempt, noted);
                (call.reconcile(ask, body).await, None)
            }
            (on_crash, Form::Detached) => (call.on_crash(on_crash).run_detached(body).await, None),
            (on_crash, Form::Attached) => {
                let (result, how) = call.on_crash(on_crash).run_detailed(body).await;
                (result, Some(how))
            }
        }
    }

    async fn body(
        self,
        attempt: Attempt,
        timer: ManualClock,
        diary: Diary,
    ) -> Result<String, Failure> {
        let under = self.token(&attempt);
        diary.note(Deed {
            under,
            what: What::Began,
        });
        timer.sleep(self.takes).await;
        let text = self.text(under);
        let (result, say) = match self.ends {
            Ends::Panic => {
                diary.note(Deed {
                    under,
                    what: What::Panicked,
                });
                panic!("a body that panics")
            }
            Ends::Value => (Ok(text), None),
            Ends::Error(say) => (Err(Failure::Declined { word: text, say }), Some(say)),
        };
        diary.note(Deed {
            under,
            what: What::Ended(stored(&result), say),
        });
        result
    }

    async fn ask(self, attempt: Attempt, diary: Diary) -> Reconciled<String, Failure> {
        let under = self.token(&attempt);
        diary.note(Deed {
            under,
            what: What::Asked(self.finds),
        });
        match self.finds {
            Finds::Unclear => Reconciled::Unknown,
            Finds::Nothing => Reconciled::RunAgain,
            Finds::Happened => {
                let found = Ok(self.text(under));
                diary.note(Deed {
                    under,
                    what: What::Ended(stored(&found), None),
                });
                Reconciled::Happened(self.text(under))
            }
        }
    }

    fn token(&self, attempt: &Attempt) -> Token {
        let token = attempt.fencing_token();
        (self.key, token.expect("every call is protected").as_u64())
    }

    /// The text that only this call says, and only under this token.
    fn text(&self, (_, token): Token) -> String {
        format!(
            "{} of {} by {} under {token}",
            self.amount, self.key, self.number
        )
    }

    /// Whether this call said so.
    pub(super) fn has_said(&self, text: &str) -> bool {
        text.starts_with(&format!(
            "{} of {} by {} ",
            self.amount, self.key, self.number
        ))
    }

    /// Whether a call with this key and these arguments said so, or an operator of this key.
    pub(super) fn may_hear(&self, text: &str) -> bool {
        text.starts_with(&format!("{} of {} by ", self.amount, self.key))
            || text == settled(self.key)
    }
}

/// The word of an operator about a key.
fn settled(key: u32) -> String {
    format!("any of {key} by an operator")
}

/// Whether an operator said so, as it is stored.
pub(super) fn is_settled(stored: &[u8]) -> bool {
    stored.ends_with(b" by an operator\"")
}

/// Settles a key, if there is anything to settle, or lets it be tried again. The answer to that is
/// no matter.
pub(super) async fn settle(idem: Idempotency, key: u32, resumes: bool) {
    let settling = idem.settle("charge", None::<&str>, &key);
    let settling = settling.expect("numbers are keys");
    if resumes {
        let _ = settling.resume().await;
    } else {
        let _ = settling.with_value(&settled(key)).await;
    }
}

impl Told {
    /// The word of a body, as it is stored, and the text in it; nothing if there was no answer.
    pub(super) fn heard(&self) -> Option<(String, &String)> {
        scripts::heard(&self.result)
    }
}
