//! Measures two ways to do the same work in turns, and prints how they compare.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tables and hints for people are its purpose"
)]

pub mod calls;
mod held;

use std::time::{Duration, Instant};

pub use self::held::Held;

/// How often each side is measured.
const ROUNDS: u32 = 31;

/// Tells whether this run measures: `cargo bench` does, `cargo test` only sees whether a benchmark
/// runs at all.
#[must_use]
pub fn is_measuring() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// The address of the server with which this run measures; `None` if it does not measure, or if no
/// address was given.
#[must_use]
pub fn server(variable: &str) -> Option<String> {
    if !is_measuring() {
        return None;
    }
    let url = std::env::var(variable).ok();
    if url.is_none() {
        hint(&format!(
            "{variable} is not set: `cargo xtask servers` starts a server"
        ));
    }
    url
}

/// Says what is not measured, and what is missing for that.
pub fn hint(missing: &str) {
    eprintln!("{missing}");
}

/// A table of ratios: the time that a piece of work takes with us, over the time that it takes
/// otherwise in the same round. Each column shows its own median.
#[derive(Debug)]
pub struct Ratios {
    what: &'static str,
    other: &'static str,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: String,
    rounds: Vec<(Duration, Duration)>,
}

impl Ratios {
    /// How often each side is given a turn.
    pub const TURNS: u32 = ROUNDS + 1;

    /// Begins a table about `what`, measured beside `other`.
    #[must_use]
    pub fn new(what: &'static str, other: &'static str) -> Self {
        Self {
            what,
            other,
            rows: Vec::new(),
        }
    }

    /// Measures both sides in turns. Each is given how often to do its work.
    pub fn time(
        &mut self,
        name: impl Into<String>,
        times: u32,
        mut ours: impl FnMut(u32),
        mut theirs: impl FnMut(u32),
    ) {
        // The first round of a side warms it up.
        let (_, _) = (once(times, &mut ours), once(times, &mut theirs));
        let rounds = (0..ROUNDS).map(|_| (once(times, &mut ours), once(times, &mut theirs)));
        let rounds = rounds.collect();
        self.add(name, rounds);
    }

    /// Adds rounds that were measured elsewhere: ours, then theirs.
    pub fn add(&mut self, name: impl Into<String>, rounds: Vec<(Duration, Duration)>) {
        let name = name.into();
        self.rows.push(Row { name, rounds });
    }

    /// Prints the table.
    pub fn print(&self) {
        println!("\n| {} | ours | {} | ratio |", self.what, self.other);
        println!("|---|---:|---:|---:|");
        for Row { name, rounds } in &self.rows {
            let ours = median(rounds.iter().map(|(ours, _)| ours.as_secs_f64()));
            let theirs = median(rounds.iter().map(|(_, theirs)| theirs.as_secs_f64()));
            let ratio = median(
                rounds
                    .iter()
                    .map(|(ours, theirs)| ours.div_duration_f64(*theirs)),
            );
            let [ours, theirs] = [ours, theirs].map(Duration::from_secs_f64);
            println!("| {name} | {ours:.2?} | {theirs:.2?} | {ratio:.2} |");
        }
        println!();
    }
}

fn once(times: u32, work: &mut impl FnMut(u32)) -> Duration {
    let began = Instant::now();
    work(times);
    began.elapsed() / times
}

/// The middle one, which other work of the machine moves least.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
