//! Calls that book trips in steps, and the deeds of their steps and undos.

use std::{sync::Arc, time::Duration};

use idempotent_runtime::{
    Attempt, BoxError, CallReport, Error, Idempotency, InFlight, OnCrash, StepContext, Undo,
    Verdict, clock::Timer, step, testing::ManualClock,
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::plan::{Group, LEGS, Leg, Plan};
use crate::{
    scripts::{Form, Say, stored},
    sim::{LEASE, faults::Faults, kept::Mark, stage::Notes},
};

pub(super) type Failure = crate::scripts::Failure<String>;

/// A fencing token, and the key that it belongs to.
pub(super) type Token = (u32, u64);

/// Something that a step or an undo did.
#[derive(Clone, Debug)]
pub(super) struct Deed {
    pub(super) under: Token,
    /// How much was written then.
    pub(super) at: Mark,
    /// When it was, by the timer of its process.
    pub(super) timer: Duration,
    pub(super) leg: usize,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The body of a step was polled.
    Began,
    /// The step gave its caller this, as it is stored.
    Gave(String),
    /// The step was refused.
    Refused,
    /// A body panicked.
    Panicked,
    /// An undo was polled, and was told this value.
    Undoes(Option<String>),
    Undone,
    NotUndone,
}

/// One call of a trip, as it was drawn.
#[derive(Clone, Debug)]
pub(super) struct Trip {
    pub(super) key: u32,
    pub(super) plan: Arc<Plan>,
    pub(super) seed: u64,
    pub(super) form: Form,
    pub(super) in_flight: InFlight,
    /// How long after the beginning it comes, and when its caller leaves.
    pub(super) comes: Duration,
    pub(super) leaves: Option<Duration>,
    /// Whether everything that runs in it ends well, at once.
    pub(super) is_calm: bool,
}

/// The answer to a caller.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) key: u32,
    pub(super) result: Result<String, Failure>,
    pub(super) how: Option<CallReport>,
}

/// One attempt at a trip.
#[derive(Clone)]
struct Run {
    trip: Trip,
    attempt: Attempt,
    timer: ManualClock,
    conditions: Faults,
    notes: Notes<Deed>,
}

fn verdict(failure: &Failure) -> Verdict {
    match failure {
        Failure::Refused(_) => Verdict::Release,
        declined @ Failure::Declined { .. } => crate::scripts::verdict(declined),
    }
}

impl Trip {
    /// Makes the call; `None` if its caller left.
    pub(super) async fn make(
        self,
        idem: Idempotency,
        timer: ManualClock,
        conditions: Faults,
        notes: Notes<Deed>,
    ) -> Option<Told> {
        timer.sleep(self.comes).await;
        let (key, leaves) = (self.key, self.leaves);
        let answer = self.run(idem, timer.clone(), conditions, notes);
        let (result, how) = match leaves {
            None => answer.await,
            Some(leaves) => tokio::select! {
                answer = answer => answer,
                () = timer.sleep(leaves) => return None,
            },
        };
        Some(Told { key, result, how })
    }

    async fn run(
        self,
        idem: Idempotency,
        timer: ManualClock,
        conditions: Faults,
        notes: Notes<Deed>,
    ) -> (Result<String, Failure>, Option<CallReport>) {
        let call = idem.call("trip").key(&self.key).in_flight(self.in_flight);
        let call = call.on_crash(self.plan.on_crash).classify_errors(verdict);
        let form = self.form;
        let body = move |attempt: Attempt| {
            let run = Run {
                trip: self,
                attempt,
                timer,
                conditions,
                notes,
            };
            async move { run.body().await }
        };
        match form {
            Form::Detached => (call.run_detached(body).await, None),
            Form::Attached => {
                let (result, how) = call.run_detailed(body).await;
                (result, Some(how))
            }
        }
    }
}

impl Run {
    async fn body(self) -> Result<String, Failure> {
        for group in &self.trip.plan.groups {
            match group {
                Group::Row(legs) => {
                    for leg in legs {
                        self.with_one_more_try(*leg).await?;
                    }
                }
                Group::Joined([one, other]) => {
                    tokio::try_join!(self.book(*one, 0), self.book(*other, 0))?;
                }
                Group::Raced(leg, limit) => {
                    tokio::select! {
                        booked = self.book(*leg, 0) => drop(booked?),
                        () = self.timer.sleep(*limit) => {}
                    }
                }
                Group::Spawned(leg, is_left) => {
                    let (run, leg) = (self.clone(), *leg);
                    let task = async move { run.book(leg, 0).await };
                    let task = tokio::spawn(self.attempt.enter(task));
                    if !is_left && let Ok(booked) = task.await {
                        booked?;
                    }
                }
            }
        }
        self.end()
    }

    /// A step whose body said that nothing happened may run again in the same attempt.
    async fn with_one_more_try(&self, leg: Leg) -> Result<String, Failure> {
        match self.book(leg, 0).await {
            Err(Failure::Declined {
                say: Say::Nothing, ..
            }) if !leg.at_most_once => self.book(leg, 1).await,
            booked => booked,
        }
    }

    fn end(&self) -> Result<String, Failure> {
        let text = self.text("the end");
        if self.trip.is_calm {
            return Ok(text);
        }
        let declined = |say| {
            let word = text.clone();
            Err(Failure::Declined { word, say })
        };
        match self.draw(20).random_range(0..20) {
            0..9 => declined(Say::Declined),
            9 => declined(Say::Nothing),
            10 => declined(Say::Perhaps),
            11 if self.trip.plan.panics => panic!("a body that panics"),
            _ => Ok(text.clone()),
        }
    }

    async fn book(&self, leg: Leg, again: u64) -> Result<String, Failure> {
        let run = self.clone();
        let body = move |_: StepContext| async move { run.leg(leg, again).await };
        let is_changed = self.trip.plan.changes
            && !self.trip.is_calm
            && self.draw(40 + leg.number as u64).random_range(0..15) == 0;
        let step = step(LEGS[leg.number], body).arguments(&is_changed);
        let step = match leg.at_most_once {
            true => step.at_most_once(),
            false => step,
        };
        let run = self.clone();
        let undo = move |undo| run.clone().undo(leg, undo);
        let verdict = verdict as fn(&Failure) -> Verdict;
        let gave = match (leg.has_undo, leg.is_classified) {
            (true, true) => step.on_error(verdict).undo(undo).await,
            (true, false) => step.undo(undo).await,
            (false, true) => step.on_error(verdict).await,
            (false, false) => step.await,
        };
        let recorded = match &gave {
            Ok(_) => true,
            Err(Failure::Declined { say, .. }) => leg.is_classified && *say == Say::Declined,
            Err(Failure::Refused(_)) => {
                self.note(leg, What::Refused);
                false
            }
        };
        if recorded {
            self.note(leg, What::Gave(stored(&gave)));
        }
        gave
    }

    async fn leg(self, leg: Leg, again: u64) -> Result<String, Failure> {
        self.note(leg, What::Began);
        let word = self.text(LEGS[leg.number]);
        if self.trip.is_calm {
            return Ok(word);
        }
        let mut rng = self.draw(leg.number as u64 + 100 * (1 + again));
        let takes = match rng.random_range(0..8) {
            0 => LEASE.mul_f64(rng.random_range(0.0..1.5)),
            1..4 => LEASE.mul_f64(rng.random_range(0.0..0.2)),
            _ => Duration::ZERO,
        };
        self.timer.sleep(takes).await;
        let say = match rng.random_range(0..100) {
            0..4 => Say::Declined,
            4..10 => Say::Nothing,
            10 => Say::Perhaps,
            11..13 if self.trip.plan.panics => {
                self.note(leg, What::Panicked);
                panic!("a body that panics")
            }
            _ => return Ok(word),
        };
        Err(Failure::Declined { word, say })
    }

    async fn undo(self, leg: Leg, undo: Undo<String>) -> Result<(), BoxError> {
        self.note(leg, What::Undoes(undo.into_value()));
        if !self.trip.is_calm {
            // An undo is tried several times, each with a draw of its own.
            let mut rng = self.draw(10_000 + self.notes.all().len() as u64);
            if rng.random_range(0..2) == 0 {
                let takes = LEASE.mul_f64(rng.random_range(0.0..1.5));
                self.timer.sleep(takes).await;
            }
            if self.trip.plan.undos_fail && rng.random_range(0..3) == 0 {
                self.note(leg, What::NotUndone);
                return Err("the gateway is busy".into());
            }
        }
        self.note(leg, What::Undone);
        Ok(())
    }

    /// The draws of this attempt, of which each is independent of the others.
    fn draw(&self, salt: u64) -> StdRng {
        let (key, token) = self.token();
        let salts = [u64::from(key), token, salt];
        let mixed = salts.iter().fold(self.trip.seed, |mixed, salt| {
            (mixed ^ salt)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .rotate_left(23)
        });
        StdRng::seed_from_u64(mixed)
    }

    fn token(&self) -> Token {
        let token = self.attempt.fencing_token();
        let token = token.expect("every call is protected").as_u64();
        (self.trip.key, token)
    }

    fn text(&self, of: &str) -> String {
        let (key, token) = self.token();
        format!("{of} of {key} under {token}")
    }

    fn note(&self, leg: Leg, what: What) {
        self.notes.note(Deed {
            under: self.token(),
            at: self.conditions.mark(),
            timer: self.timer.now(),
            leg: leg.number,
            what,
        });
    }
}

/// An operator does this to a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hand {
    Resumes,
    Undoes,
    Settles,
}

/// The answer to an operator is no matter.
pub(super) async fn settle(idem: Idempotency, key: u32, hand: Hand) {
    let settle = idem.settle("trip", None::<&str>, &key);
    let settle = settle.expect("numbers are keys");
    match hand {
        Hand::Resumes => drop(settle.resume().await),
        Hand::Settles => drop(settle.with_value(&operators_word(key)).await),
        Hand::Undoes => {
            let error = Failure::Declined {
                word: operators_word(key),
                say: Say::Declined,
            };
            drop(settle.undo(&error).await);
        }
    }
}

fn operators_word(key: u32) -> String {
    format!("any of {key} by an operator")
}

/// Whether a refusal leaves it open what became of the call.
pub(super) fn is_open(error: &Error) -> bool {
    matches!(
        error,
        Error::InProgress { .. } | Error::Store(_) | Error::LeaseLost { .. }
    )
}

/// The policy of a trip that is drawn.
pub(super) fn policy(rng: &mut StdRng) -> OnCrash {
    match rng.random_range(0..5) {
        0 => OnCrash::Uncertain,
        _ => OnCrash::Rerun,
    }
}
