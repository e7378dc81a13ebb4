//! The project's commands: `cargo xtask test` runs everything that can fail, `cargo xtask lint`
//! everything that can be found out without running it, and `cargo xtask servers` lends people the
//! servers of the tests.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "talking to the terminal is its job"
)]

mod floors;
mod plan;
mod plot;
mod run;
mod servers;
mod tail;
mod tally;
mod way;

#[cfg(test)]
mod readme;

use std::{process::ExitCode, thread, time::Instant};

use servers::Servers;

const USAGE: &str = "\
usage: cargo xtask test                every test and doc test, with the examples that they run
       cargo xtask lint                formatting, floors, clippy, documentation, licences
       cargo xtask docs                the documentation of all crates with all features, and its path
       cargo xtask floors              whether each room imports rooms below it alone
       cargo xtask plot                the pictures of the README: ratios of the benches, and a duplicate's way
       cargo xtask servers [NAME...]   the servers of the tests, or these, until Ctrl-C";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["test"] => run::all(&plan::test()),
        ["lint"] => run::all(&plan::lint()),
        ["docs"] => documented(),
        ["floors"] => floors::check(),
        ["plot"] => match plot::write().and_then(|()| way::write()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        ["help"] | [.., "--help" | "-h"] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        ["servers", ref names @ ..] => lend(names),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Builds the documentation, and prints where it is.
fn documented() -> ExitCode {
    let ended = run::all(&[plan::docs()]);
    let first = plan::target().join("doc/idempotent_runtime/index.html");
    println!("{}", first.display());
    ended
}

/// Starts the servers, and stays until it is ended.
fn lend(names: &[&str]) -> ExitCode {
    let began = Instant::now();
    let servers = match Servers::start(names) {
        Ok(servers) => servers,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    for (name, value) in servers.environment() {
        println!("export {name}={}", quoted(value));
    }
    let seconds = began.elapsed().as_secs_f32();
    println!("# ready after {seconds:.1} s; Ctrl-C ends them");
    loop {
        thread::park();
    }
}

/// A word as a shell reads it: the folder that an address names may have any letters.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_shell_reads_an_address_as_it_is() {
        for address in [
            "redis://127.0.0.1:6379",
            "a b",
            "l'or",
            "'",
            "$HOME `id` \\ \"",
            "",
        ] {
            let line = format!("export ADDRESS={}; printf %s \"$ADDRESS\"", quoted(address));
            let output = Command::new("sh").args(["-c", &line]).output();
            let output = output.expect("a shell");
            assert_eq!(String::from_utf8_lossy(&output.stdout), address, "{line}");
        }
    }
}
