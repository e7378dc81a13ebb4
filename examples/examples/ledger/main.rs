//! Money moves between eight accounts. Each transfer moves it once, however often it is sent again,
//! and whenever the process is killed.
//!
//! ```sh
//! cargo run --example ledger
//! cargo run --example ledger -- --unprotected     # the same plan without the attribute: money moves too often
//! ```
//!
//! Two processes are at work, both from this one program. This one is the [bank]: it plans
//! transfers, and sends each of them one to three times. It starts the [ledger], which books them
//! in an SQLite file, and kills it ten times with SIGKILL. Read `ledger.rs` first: its function
//! `post` has the attribute.

mod ledger;

mod bank;

use std::{error::Error, process::ExitCode};

use serde::{Deserialize, Serialize};

type Failure = Box<dyn Error + Send + Sync>;

/// An order to move money.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Transfer {
    id: u32,
    from: i64,
    to: i64,
    cents: i64,
}

fn main() -> Result<ExitCode, Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [role, work] if role == ledger::ROLE => {
            ledger::run(serde_json::from_str(work)?)?;
            Ok(ExitCode::SUCCESS)
        }
        [] => bank::run(true),
        ["--unprotected"] => bank::run(false),
        _ => {
            eprintln!("usage: ledger [--unprotected]");
            Ok(ExitCode::from(2))
        }
    }
}
