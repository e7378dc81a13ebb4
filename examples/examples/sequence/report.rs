//! The report: it reads the figures back from the database, and compares them with the plan.

use std::{path::Path, process::ExitCode};

use idempotent_runtime::{Idempotency, store::SqliteStore};

use super::{
    Failure, account, books,
    plan::{EVENTS, Events, Figures},
    source::{KILLS, Seen},
};

/// Prints the figures. It is a failure where one is wrong.
#[tokio::main(flavor = "current_thread")]
pub(super) async fn report(file: &Path, seen: &Seen) -> Result<ExitCode, Failure> {
    println!(
        "One account, {EVENTS} numbered events, each delivered one to three times and out of order to four tasks."
    );
    println!(
        "{} deliveries began, and met {} gaps.",
        seen.delivered, seen.gaps
    );
    println!(
        "The worker was killed {} times with SIGKILL, while {} deliveries were open.\n",
        seen.kills, seen.cut
    );
    let pool = books::open(file).await?;
    let found = books::read(&pool).await?;
    pool.close().await;
    let last = last_number(file).await?;
    let wrong = compare(&Events::plan().figures(), &found, last, seen.kills);
    if !wrong.is_empty() {
        println!("\nWRONG: {}.", wrong.join(", "));
        return Ok(ExitCode::FAILURE);
    }
    println!("\nEach event was applied once and in its turn: the balance equals the ordered sum.");
    Ok(ExitCode::SUCCESS)
}

/// The last number, as the record of the stream has it.
async fn last_number(file: &Path) -> Result<Option<u64>, Failure> {
    let idem = Idempotency::new(SqliteStore::open(file).await?);
    Ok(account::stream(&idem).position().await?.last)
}

/// Prints a table, and returns the names of the figures that are wrong.
fn compare(
    expected: &Figures,
    found: &Figures,
    last: Option<u64>,
    kills: u64,
) -> Vec<&'static str> {
    let last = last.map_or("none".to_owned(), |last| last.to_string());
    let mut wrong = Vec::new();
    let mut row = |figure, expected: String, found: String| {
        println!("  {figure:<16}{expected:>10}{found:>10}");
        if expected != found {
            wrong.push(figure);
        }
    };
    println!("  {:<16}{:>10}{:>10}", "", "expected", "found");
    let (events, applied) = (expected.events, found.events);
    row("events applied", events.to_string(), applied.to_string());
    row("balance", money(expected.balance), money(found.balance));
    let (ordered, checksum) = (expected.checksum, found.checksum);
    row("checksum", ordered.to_string(), checksum.to_string());
    row("last number", EVENTS.to_string(), last);
    row("kills", KILLS.to_string(), kills.to_string());
    wrong
}

fn money(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}
