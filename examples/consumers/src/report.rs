//! Compares all that there is with the plan.

use std::process::ExitCode;

use crate::{
    broker::{Broker, DeadLetter},
    orders::{self, DEAD_LETTERS, Mishap, ORDERS},
    run::Seen,
};

/// How many mishaps of each kind there are at least. A word of a worker may be lost with it.
const LEAST: u32 = 3;

/// Prints the figures, and fails where one is wrong.
pub(crate) fn report<B: Broker>(
    messages: usize,
    seen: &Seen,
    invoices: &[(u32, i64)],
    dead_letters: &[DeadLetter],
) -> ExitCode {
    let count = |word: &str| seen.words.get(word).copied().unwrap_or(0);
    println!(
        "{messages} messages, {ORDERS} of them orders that can be invoiced. Two workers competed for them on {}.",
        B::NAME
    );
    println!(
        "After the effect and before the acknowledgement {} were killed, {} lost the connection, {} were too slow.\n",
        count("kill"),
        count("cut"),
        count("slow")
    );
    println!("  deliveries    {:>5}", count("delivered"));
    println!("  effects       {:>5}", invoices.len());
    println!("  replays       {:>5}", count("replayed"));
    println!("  dead letters  {:>5}", dead_letters.len());
    for letter in dead_letters {
        println!("    {:?}: {}", letter.id, letter.reason);
    }
    println!();
    let wrong = wrong(B::ACK_WAIT.is_some(), count, invoices, dead_letters);
    for wrong in &wrong {
        println!("WRONG: {wrong}.");
    }
    if wrong.is_empty() {
        println!("Each order has one invoice.");
        return ExitCode::SUCCESS;
    }
    ExitCode::FAILURE
}

fn wrong(
    can_be_slow: bool,
    count: impl Fn(&str) -> u32,
    invoices: &[(u32, i64)],
    dead_letters: &[DeadLetter],
) -> Vec<String> {
    let mut wrong = Vec::new();
    let expected: Vec<(u32, i64)> = orders::orders().map(|it| (it.number, it.cents)).collect();
    if invoices != expected {
        let effects = invoices.len();
        wrong.push(format!("{ORDERS} orders had {effects} effects"));
    }
    let letters = dead_letters
        .iter()
        .map(|it| (it.id.as_str(), it.reason.as_str()));
    if !letters.eq(DEAD_LETTERS) {
        wrong.push("these are not the dead letters of the plan".to_owned());
    }
    for mishap in Mishap::ALL {
        let name = mishap.name();
        if count(name) < LEAST && (can_be_slow || mishap != Mishap::Slow) {
            wrong.push(format!("only {} mishaps `{name}`", count(name)));
        }
    }
    if count("replayed") < LEAST {
        wrong.push("the broker delivered too little again".to_owned());
    }
    wrong
}
