//! Measures two ways to do the same work in turns, and prints how they compare.

#![allow(clippy::print_stdout, reason = "a table for people is its purpose")]

use std::time::{Duration, Instant};

/// How often each side is measured.
const ROUNDS: usize = 15;

/// Tells whether this run measures: `cargo bench` does, `cargo test` only sees whether a benchmark runs at all.
#[must_use]
pub fn is_measuring() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// A table of ratios: the median time that a piece of work takes with us, over that which it takes otherwise.
#[derive(Debug)]
pub struct Ratios {
    what: &'static str,
    other: &'static str,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: String,
    ours: Duration,
    theirs: Duration,
}

impl Ratios {
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
        let (our_times, their_times) = (0..ROUNDS)
            .map(|_| (once(times, &mut ours), once(times, &mut theirs)))
            .unzip();
        self.add(name, median(our_times), median(their_times));
    }

    /// Adds a row that was measured elsewhere.
    pub fn add(&mut self, name: impl Into<String>, ours: Duration, theirs: Duration) {
        let name = name.into();
        self.rows.push(Row { name, ours, theirs });
    }

    /// Prints the table.
    pub fn print(&self) {
        println!("\n| {} | ours | {} | ratio |", self.what, self.other);
        println!("|---|---:|---:|---:|");
        for Row { name, ours, theirs } in &self.rows {
            let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
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

/// The middle one, which what else the machine does moves least.
#[must_use]
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
