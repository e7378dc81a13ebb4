//! The answers, for people to read.

use crate::{Failure, network::Trouble};

/// The result of one call.
pub(crate) struct Row {
    pub(crate) attempts: u32,
    pub(crate) replayed: bool,
    pub(crate) status: u16,
    pub(crate) body: String,
}

pub(crate) struct Table {
    answers: Vec<String>,
    calls: usize,
}

impl Table {
    pub(crate) fn begin() -> Self {
        println!(
            "{:>4}  {:<37}  {:>8}  {:<6}  {:<8}  answer",
            "call", "the first attempt", "attempts", "status", "replayed"
        );
        Self {
            answers: Vec::new(),
            calls: 0,
        }
    }

    pub(crate) fn row(&mut self, number: usize, trouble: Trouble, came: &Result<Row, Failure>) {
        self.calls += 1;
        let trouble = trouble.words();
        match came {
            Ok(row) => {
                let replayed = if row.replayed { "yes" } else { "no" };
                let (attempts, status, body) = (row.attempts, row.status, &row.body);
                println!(
                    "{number:>4}  {trouble:<37}  {attempts:>8}  {status:<6}  {replayed:<8}  {body}"
                );
                self.answers.push(format!("{status} {body}"));
            }
            Err(error) => println!("{number:>4}  {trouble:<37}  {error}"),
        }
    }

    pub(crate) fn end(&self, charges: &[String]) {
        let equal = self.answers.windows(2).all(|pair| pair[0] == pair[1]);
        println!(
            "\n{} calls with one key, {} answers, {}. Charges made: {}.",
            self.calls,
            self.answers.len(),
            if equal { "all equal" } else { "NOT equal" },
            charges.len()
        );
        for charge in charges {
            println!("  {charge}");
        }
    }
}
