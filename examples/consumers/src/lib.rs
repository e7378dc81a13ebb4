//! A consumer behind a broker: 200 orders arrive, some of them again and again, and each one makes
//! one invoice.
//!
//! * `nats.rs` and `rabbitmq.rs` turn a disposition into the broker's own calls. They are the parts
//!   to copy.
//! * `worker.rs` is the consumer: a process that may be killed at any moment. `consume.rs` is its
//!   loop.
//! * `run.rs` sends the orders, starts two workers, troubles them, and counts the invoices.
//! * `publishers/` has the publishers for the relay of an outbox: parts to copy, too.
//! * `two_services/` has a service with an outbox and one with an inbox, and their own `run.rs`.

pub mod broker;
pub mod consume;
pub mod nats;
pub mod network;
pub mod publishers;
pub mod rabbitmq;
pub mod two_services;

mod books;
mod orders;
mod report;
mod run;
mod server;
mod worker;

use std::{error::Error, process::ExitCode};

use broker::Broker;

/// Any error; these programs only print it.
pub type Failure = Box<dyn Error + Send + Sync>;

/// The program: it takes its words from the command line.
pub fn program<B: Broker>() -> Result<ExitCode, Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [worker::ROLE, work] => {
            worker::run::<B>(&serde_json::from_str(work)?)?;
            Ok(ExitCode::SUCCESS)
        }
        [] => run::run::<B>(true),
        ["--unprotected"] => run::run::<B>(false),
        _ => {
            eprintln!("usage: {} [--unprotected]", B::NAME);
            Ok(ExitCode::from(2))
        }
    }
}
