//! The project's commands: `cargo xtask test` runs everything that can fail, `cargo xtask lint` everything that can
//! be found out without running it, and `cargo xtask servers` lends people the servers of the tests.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "talking to the terminal is its job"
)]

mod plan;
mod run;
mod servers;
mod tail;
mod tally;

#[cfg(test)]
mod readme;

use std::{process::ExitCode, thread, time::Instant};

use servers::Servers;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    match (words.next().as_deref(), words.next()) {
        (Some("test"), None) => run::all(&plan::test()),
        (Some("lint"), None) => run::all(&plan::lint()),
        (Some("servers"), None) => lend(),
        _ => {
            eprintln!(
                "usage: cargo xtask test      every test, doc test, example and benchmark's build\n       \
                        cargo xtask lint      formatting, clippy, documentation, licences\n       \
                        cargo xtask servers   the servers of the tests, until Ctrl-C"
            );
            ExitCode::from(2)
        }
    }
}

/// Starts the servers, and stays until it is ended.
fn lend() -> ExitCode {
    let began = Instant::now();
    let servers = match Servers::start() {
        Ok(servers) => servers,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    for (name, value) in servers.environment() {
        println!("export {name}='{value}'");
    }
    let seconds = began.elapsed().as_secs_f32();
    println!("# ready after {seconds:.1} s; Ctrl-C ends them");
    loop {
        thread::park();
    }
}
