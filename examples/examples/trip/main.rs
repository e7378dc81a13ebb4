//! A trip is a flight, a hotel and a car, booked at three gateways. Each booking is a step of one
//! call. The process that books is killed in each step, and while it undoes.
//!
//! ```sh
//! cargo run --example trip
//! cargo run --example trip -- --unprotected   # without the library, bookings are doubled or left
//! ```
//!
//! Five processes are at work, all from this one program: this one, which starts and kills the
//! others, the [desk], which books, and three [gateway]s, each with a log on disk. Read `agency.rs`
//! first: its function `book` is the call, with its steps and their undos.

mod agency;

mod desk;

mod gateway;

mod plan;

mod report;

use std::{error::Error, process::ExitCode};

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<ExitCode, Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [role] if role == desk::ROLE => desk::run()?,
        [role, log] if role == gateway::ROLE => gateway::run(log)?,
        [] => return run(true),
        ["--unprotected"] => return run(false),
        _ => {
            eprintln!("usage: trip [--unprotected]");
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn run(protected: bool) -> Result<ExitCode, Failure> {
    let folder = tempfile::tempdir()?;
    let gateways = plan::GATEWAYS.map(|name| gateway::start(name, folder.path()));
    let [flight, hotel, car] = gateways;
    let gateways = [flight?, hotel?, car?];
    let agency = plan::Agency {
        file: folder.path().join("trips.db"),
        gateways: gateways.each_ref().map(|gateway| gateway.address),
        protected,
    };
    println!("Each booking is a step of one call, at a gateway that is a process of its own.\n");
    let mut report = report::Report::default();
    plan::killed_at_every_step(&agency, &gateways, &mut report)?;
    plan::killed_while_it_undoes(&agency, &gateways, &mut report)?;
    plan::parked_and_resumed(&agency, &gateways, &mut report)?;
    Ok(report.end())
}
