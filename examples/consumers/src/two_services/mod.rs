//! Two services and a broker between them: orders, outbox, broker, inbox, invoices.
//!
//! * `orders.rs` writes orders, and a message with each one. Its relay publishes.
//! * `invoices.rs` consumes, and writes an invoice for each order.
//! * `run.rs` starts both as processes, kills them, restarts the broker of `server.rs`, and
//!   `report.rs` compares the rows of both databases.

mod invoices;
mod orders;
mod plan;
mod report;
mod run;
mod server;

use std::{env, process::ExitCode};

use self::{plan::Service, server::Local};
use crate::{Failure, nats::Nats, rabbitmq::RabbitMq};

/// The program: it takes its words from the command line.
pub fn program() -> Result<ExitCode, Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["nats", ref words @ ..] => on::<Nats>(words),
        ["rabbitmq", ref words @ ..] => on::<RabbitMq>(words),
        ref words => on::<Nats>(words),
    }
}

fn on<B: Local>(words: &[&str]) -> Result<ExitCode, Failure> {
    match words {
        [] => run::run::<B>(true),
        ["--unprotected"] => run::run::<B>(false),
        [role, work] if *role == Service::Orders.role() => {
            orders::run::<B>(&serde_json::from_str(work)?)?;
            Ok(ExitCode::SUCCESS)
        }
        [role, work] if *role == Service::Invoices.role() => {
            invoices::run::<B>(&serde_json::from_str(work)?)?;
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            eprintln!("usage: two_services [nats|rabbitmq] [--unprotected]");
            Ok(ExitCode::from(2))
        }
    }
}
