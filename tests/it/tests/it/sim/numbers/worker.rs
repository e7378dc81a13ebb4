//! Workers that deliver the numbers of a stream, in copies and out of order.

use std::{collections::VecDeque, time::Duration};

use idempotent_runtime::{
    Attempt, Error, Idempotency, InFlight, OnCrash, clock::Timer, sequence::Decision,
    sequence::Standing, testing::ManualClock,
};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};

use crate::{
    scripts::{Say, stored, verdict},
    sim::{LEASE, faults::Faults, stage::Notes},
    told,
};

pub(super) type Failure = crate::scripts::Failure<String>;

/// The last number of every stream, which begins with 1.
pub(super) const LAST: u64 = 10;

/// How many calls a worker makes at most.
const CALLS: usize = 80;

/// The rules of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) accepts_gaps: bool,
    pub(super) on_crash: OnCrash,
}

/// Something that happened outside the store.
#[derive(Clone, Debug)]
pub(super) enum Note {
    /// A body was polled, under this token of the stream, at this time of its process, after so
    /// many writes.
    Began {
        under: (u32, u64),
        number: u64,
        timer: Duration,
        writes: usize,
    },
    /// It came to its end, and said this, as it is stored.
    Ended {
        under: (u32, u64),
        stored: String,
        say: Option<Say>,
    },
    Told(Told),
}

/// The answer to a worker.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) stream: u32,
    pub(super) number: u64,
    /// How many writes there were when the call began, and when it ended.
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) answer: Answer,
}

#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// The value as it is stored.
    Decided(Decision<String>),
    /// The error of the body, as it is stored.
    Declined(String, Say),
    Refused(&'static str),
    /// The caller left, or the body panicked.
    Nothing,
}

/// One of several workers of a stream.
#[derive(Clone)]
pub(super) struct Worker {
    pub(super) idem: Idempotency,
    pub(super) timer: ManualClock,
    pub(super) conditions: Faults,
    pub(super) notes: Notes<Note>,
    pub(super) stream: u32,
    pub(super) rules: Rules,
    pub(super) seed: u64,
    pub(super) is_calm: bool,
}

impl Worker {
    /// Delivers every number twice, until it was told of each, or loses patience.
    pub(super) async fn deliver(self) -> Option<()> {
        let mut rng = StdRng::seed_from_u64(self.seed);
        let mut left: Vec<_> = (1..=LAST).flat_map(|number| [number; 2]).collect();
        for window in left.chunks_mut(7) {
            window.shuffle(&mut rng);
        }
        let mut left = VecDeque::from(left);
        for _ in 0..CALLS {
            let pause = LEASE.mul_f64(rng.random_range(0.0..0.4));
            self.timer.sleep(pause).await;
            let number = left.pop_front()?;
            let leaves =
                (rng.random_range(0..8) == 0).then(|| LEASE.mul_f64(rng.random_range(0.0..1.0)));
            match self.one(number, rng.random(), leaves).await {
                Answer::Decided(Decision::Gap { expected, got }) => {
                    left.push_front(got);
                    left.push_front(expected);
                }
                Answer::Decided(_) | Answer::Declined(_, Say::Declined) => {}
                Answer::Refused("told something else") => {}
                _ => left.push_front(number),
            }
        }
        None
    }

    /// Delivers every number in order, and does what an operator would where the stream stops.
    pub(super) async fn finish(self) -> Option<()> {
        for number in 1..=LAST {
            for _ in 0..3 {
                match self.one(number, 0, None).await {
                    Answer::Refused("told that nobody knows") => self.settle(true, 0).await,
                    Answer::Refused("told that it is parked") => self.settle(true, 1).await,
                    Answer::Decided(_) | Answer::Declined(..) => break,
                    Answer::Refused("told something else") => break,
                    // A larger number, whose holder vanished, goes first.
                    Answer::Refused("told that it runs") if self.rules.accepts_gaps => break,
                    other => panic!("{number} of {}: {other:?}", self.stream),
                }
            }
        }
        Some(())
    }

    async fn one(&self, number: u64, seed: u64, leaves: Option<Duration>) -> Answer {
        let from = self.conditions.writes();
        let worker = self.clone();
        let mut call = tokio::spawn(async move { worker.apply(number, seed).await });
        let ended = match leaves {
            None => call.await,
            Some(leaves) => tokio::select! {
                ended = &mut call => ended,
                () = self.timer.sleep(leaves) => {
                    call.abort();
                    call.await
                }
            },
        };
        let answer = match crate::panics::came_of(ended) {
            None => Answer::Nothing,
            Some(Ok(decision)) => Answer::Decided(decision),
            Some(Err(Failure::Refused(refusal))) => Answer::Refused(told::of_refusal(&refusal)),
            Some(Err(Failure::Declined { word, say })) => {
                let error = Failure::Declined { word, say };
                Answer::Declined(stored::<String>(&Err(error)), say)
            }
        };
        self.notes.note(Note::Told(Told {
            stream: self.stream,
            number,
            from,
            to: self.conditions.writes(),
            answer: answer.clone(),
        }));
        answer
    }

    async fn apply(&self, number: u64, seed: u64) -> Result<Decision<String>, Failure> {
        let stream = self.idem.sequence("accounts", &self.stream);
        let stream = stream.on_crash(self.rules.on_crash);
        let stream = stream.in_flight(match seed % 3 {
            0 => InFlight::Reject,
            _ => InFlight::Wait(LEASE),
        });
        let call = match (self.rules.accepts_gaps, seed % 5) {
            (true, _) => stream.accept_gaps().number(number),
            (false, 0) => stream.first(1).wait_for_gap(LEASE / 2).number(number),
            (false, _) => stream.first(1).number(number),
        };
        let call = call.arguments(&number);
        let call = call.classify_errors(verdict as fn(&Failure) -> _);
        call.run(async |attempt| self.body(&attempt, number, seed).await)
            .await
    }

    async fn body(&self, attempt: &Attempt, number: u64, seed: u64) -> Result<String, Failure> {
        let token = attempt.fencing_token().expect("every call is protected");
        let under = (self.stream, token.as_u64());
        self.notes.note(Note::Began {
            under,
            number,
            timer: self.timer.now(),
            writes: self.conditions.writes(),
        });
        let word = format!("{number} of {} under {token:?}", self.stream);
        let mut rng = StdRng::seed_from_u64(seed);
        let (mut say, mut panics) = (None, false);
        if !self.is_calm {
            let takes = match rng.random_range(0..6) {
                0 => LEASE.mul_f64(rng.random_range(0.0..2.0)),
                _ => LEASE.mul_f64(rng.random_range(0.0..0.1)),
            };
            self.timer.sleep(takes).await;
            match rng.random_range(0..20) {
                0 => say = Some(Say::Declined),
                1 => say = Some(Say::Nothing),
                2 => say = Some(Say::Perhaps),
                3 => panics = true,
                _ => {}
            }
        }
        assert!(!panics, "a body that panics");
        let result = match say {
            None => Ok(word),
            Some(say) => Err(Failure::Declined { word, say }),
        };
        let stored = stored(&result);
        self.notes.note(Note::Ended { under, stored, say });
        result
    }

    /// An operator acts where the stream stops. Only a vanished or stopped number is settled.
    pub(super) async fn settle(&self, ends: bool, how: u32) {
        let stream = self.idem.sequence("accounts", &self.stream).accept_gaps();
        let Ok(position) = stream.position().await else {
            return;
        };
        let Some(running) = position.running else {
            return;
        };
        let number = running.number;
        let ended: Result<(), Error> = match (running.standing, ends, how) {
            (Standing::Parked, ..) => stream.skip(number).because("it kills its holders").await,
            (_, true, _) => stream.settle(number).as_done().await,
            (_, false, _) => stream.settle(number).release().await,
        };
        drop(ended);
    }
}
