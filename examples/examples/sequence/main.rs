//! A stream of 1,000 numbered events changes one account. Each event changes it once and in its
//! turn: in whatever order they come, however often, and whenever the process is killed.
//!
//! ```sh
//! cargo run --example sequence
//! cargo run --example sequence -- --unprotected   # without the library, the account is wrong
//! ```
//!
//! Two processes are at work, both from this one program. This one is the [source]: it delivers
//! each event one to three times and out of order, as [plan] says. It starts the [worker], which
//! applies the events in an SQLite file, and kills it ten times with SIGKILL. Read `account.rs`
//! first: its function `apply` gives a number to the library, and `deliver` obeys the decision.

mod account;

mod books;

mod worker;

mod plan;

mod source;

mod report;

use std::{error::Error, process::ExitCode};

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<ExitCode, Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [role] if role == worker::ROLE => {
            worker::run()?;
            Ok(ExitCode::SUCCESS)
        }
        [] => run(true),
        ["--unprotected"] => run(false),
        _ => {
            eprintln!("usage: sequence [--unprotected]");
            Ok(ExitCode::from(2))
        }
    }
}

fn run(protected: bool) -> Result<ExitCode, Failure> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("account.db");
    books::create(&file)?;
    let seen = source::deliver(&file, protected)?;
    report::report(&file, &seen)
}
