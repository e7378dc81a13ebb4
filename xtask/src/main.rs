//! The project's commands: `cargo xtask test` runs everything that can fail, `cargo xtask lint` everything that can
//! be found out without running it.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "talking to the terminal is its job"
)]

mod plan;
mod run;
mod tally;

#[cfg(test)]
mod readme;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let steps = match (words.next().as_deref(), words.next()) {
        (Some("test"), None) => plan::test(),
        (Some("lint"), None) => plan::lint(),
        _ => {
            eprintln!(
                "usage: cargo xtask test   every test, doc test, example and benchmark's build\n       \
                        cargo xtask lint   formatting, clippy, documentation, licences"
            );
            return ExitCode::from(2);
        }
    };
    run::all(&steps)
}
