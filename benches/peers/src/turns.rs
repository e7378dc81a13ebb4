//! Both sides in turns, and how their latencies compare.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::sides::{Ours, Side, Theirs};

/// How often each side is measured. One turn more comes first, and warms the side up.
const ROUNDS: usize = 31;

/// The latencies of both sides, as many `callers` see them.
pub struct Turns {
    callers: usize,
    calls: u32,
    rounds: Vec<Round>,
}

/// The median latency of each side, in the same round.
struct Round {
    ours: Duration,
    theirs: Duration,
}

impl Turns {
    pub async fn measure(callers: usize, calls: u32, ours: &Ours, theirs: &Theirs) -> Self {
        let mut rounds = Vec::new();
        for _ in 0..=ROUNDS {
            let ours = turn(ours, callers, calls).await;
            let theirs = turn(theirs, callers, calls).await;
            rounds.push(Round { ours, theirs });
        }
        rounds.remove(0);
        Self {
            callers,
            calls,
            rounds,
        }
    }

    /// How many calls each side made, with those that warmed it up.
    pub fn calls_of_a_side(&self) -> i64 {
        let turns = i64::try_from(self.rounds.len() + 1).expect("few rounds");
        turns * i64::from(self.calls)
    }

    /// Prints a line of the table. The ratio is the median over all rounds.
    pub fn print(&self, target: f64) {
        let column = |of: fn(&Round) -> f64| median(self.rounds.iter().map(of).collect());
        let ours = column(|round| round.ours.as_secs_f64());
        let theirs = column(|round| round.theirs.as_secs_f64());
        let ratio = column(|round| round.ours.div_duration_f64(round.theirs));
        let [ours, theirs] = [ours, theirs].map(Duration::from_secs_f64);
        let missed = if ratio > target { ", **missed**" } else { "" };
        let Self { callers, .. } = self;
        println!(
            "| {callers} at once | {ours:.2?} | {theirs:.2?} | {ratio:.2} | {target}{missed} |"
        );
    }
}

/// Makes so many calls, and gives the median of how long one took.
async fn turn<S: Side>(side: &S, callers: usize, calls: u32) -> Duration {
    let calls = usize::try_from(calls).expect("few calls");
    let mut running = JoinSet::new();
    for caller in 0..callers {
        let side = side.clone();
        let share = calls / callers + usize::from(caller < calls % callers);
        running.spawn(async move {
            let mut latencies = Vec::with_capacity(share);
            for _ in 0..share {
                let began = Instant::now();
                side.call().await;
                latencies.push(began.elapsed().as_secs_f64());
            }
            latencies
        });
    }
    let latencies = running.join_all().await;
    Duration::from_secs_f64(median(latencies.into_iter().flatten().collect()))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
