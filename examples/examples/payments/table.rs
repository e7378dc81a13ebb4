//! The requests and their answers, for people to read.

use std::{collections::BTreeSet, io, time::Duration};

use crate::{
    gateway::Entry,
    wire::{Charge, Receipt, Refusal},
};

/// The result of one request: an answer, or nothing.
pub(crate) type Came = io::Result<Result<Receipt, Refusal>>;

/// Every request that the client sent for one charge.
pub(crate) struct Table {
    amount: u64,
    calls: BTreeSet<u32>,
    requests: usize,
    receipts: Vec<Receipt>,
}

impl Table {
    pub(crate) fn begin(charge: &Charge) -> Self {
        println!(
            "{:>4}  {:<13}  {:<22}  {:>8}  on the way",
            "call", "sent", "came back", "after"
        );
        Self {
            amount: charge.amount,
            calls: BTreeSet::new(),
            requests: 0,
            receipts: Vec::new(),
        }
    }

    /// Prints one request of a call.
    pub(crate) fn row(&mut self, call: u32, amount: u64, came: &Came, after: Duration, note: &str) {
        if amount == self.amount {
            self.calls.insert(call);
            self.requests += 1;
        }
        let came = match came {
            Ok(Ok(receipt)) => {
                self.receipts.push(receipt.clone());
                format!("receipt {}", receipt.charge)
            }
            Ok(Err(refusal)) => format!("refused: {}", refusal.code),
            Err(_) => "nothing".to_owned(),
        };
        let (sent, after) = (
            format!("charge {}", money(amount)),
            format!("{} ms", after.as_millis()),
        );
        println!("{call:>4}  {sent:<13}  {came:<22}  {after:>8}  {note}");
    }

    /// Prints the result of all of it.
    pub(crate) fn end(&self, log: &[Entry]) {
        let charges = log.iter().filter(|entry| entry.is_new).count();
        println!(
            "\nThe gateway saw {} and made {}:",
            counted(log.len(), "request"),
            counted(charges, "charge")
        );
        for entry in log {
            let key = entry
                .key
                .as_deref()
                .map_or("no key", |key| key.get(..12).unwrap_or(key));
            let what = if entry.is_new { "made" } else { "recognised" };
            println!(
                "  {} {}  {key:<12}  {what} {}",
                entry.order,
                money(entry.amount),
                entry.charge
            );
        }
        let equal = self.receipts.windows(2).all(|pair| pair[0] == pair[1]);
        println!(
            "\nThe client made {} for one charge, sent {}, and got {}, {}.",
            counted(self.calls.len(), "call"),
            counted(self.requests, "request"),
            counted(self.receipts.len(), "receipt"),
            if equal { "all equal" } else { "NOT equal" }
        );
    }
}

fn money(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
