//! The messages of a run, the same ones for each seed.

use std::collections::{BTreeMap, BTreeSet};

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use serde::{Deserialize, Serialize};

use crate::database::BALANCE;

const ACCOUNTS: i64 = 8;

/// One message in so many is poison.
const POISON: u64 = 40;

/// An order to move money.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// The number of its entries.
    pub number: u64,
    /// The account that pays.
    pub from: i64,
    /// The account that is paid.
    pub to: i64,
    /// How much.
    pub cents: i64,
    /// Why.
    pub note: String,
}

/// The messages that are sent, and how everything must stand at the end.
#[derive(Debug, Default)]
pub struct Plan {
    /// Ids and bodies, each one to three times, in the order of sending.
    pub sent: Vec<(String, Vec<u8>)>,
    /// The numbers of the transfers that are applied.
    pub applied: BTreeSet<i64>,
    /// The balances at the end.
    pub balances: BTreeMap<i64, i64>,
    /// Each dead letter, and its reason.
    pub dead: BTreeSet<(String, String)>,
}

impl Plan {
    /// Draws so many messages.
    #[must_use]
    pub fn draw(messages: u64, random: &mut StdRng) -> Self {
        let mut plan = Self {
            balances: (0..ACCOUNTS).map(|account| (account, BALANCE)).collect(),
            ..Self::default()
        };
        for number in 0..messages {
            plan.add(number, random);
        }
        // Copies lie close to each other, and meet each other and the holders.
        for window in plan.sent.chunks_mut(100) {
            window.shuffle(random);
        }
        plan
    }

    fn add(&mut self, number: u64, random: &mut StdRng) {
        let from = random.random_range(0..ACCOUNTS);
        let transfer = Transfer {
            number,
            from,
            to: (from + random.random_range(1..ACCOUNTS)) % ACCOUNTS,
            cents: random.random_range(1..500),
            note: String::new(),
        };
        let id = format!("transfer-{number}");
        let copies = random.random_range(1..=3);
        match number.is_multiple_of(POISON).then_some(number / POISON % 4) {
            None => {
                self.apply(&transfer);
                self.send(&id, &body(&transfer), copies);
            }
            Some(0) => {
                self.send(&id, b"{", copies);
                self.bury(&id, "invalid_message");
            }
            Some(1) => {
                let cents = 0;
                self.send(&id, &body(&Transfer { cents, ..transfer }), copies);
                self.bury(&id, "failed");
            }
            Some(2) => {
                self.send("", &body(&transfer), copies);
                self.bury("", "invalid_message");
            }
            Some(_) => {
                // Two messages of one id: the first one that is handled is applied.
                self.apply(&transfer);
                self.send(&id, &body(&transfer), copies);
                let note = "another one".to_owned();
                self.send(&id, &body(&Transfer { note, ..transfer }), 1);
                self.bury(&id, "key_reused");
            }
        }
    }

    fn send(&mut self, id: &str, body: &[u8], copies: usize) {
        let copies = std::iter::repeat_n((id.to_owned(), body.to_owned()), copies);
        self.sent.extend(copies);
    }

    fn apply(&mut self, transfer: &Transfer) {
        self.applied.insert(transfer.number.cast_signed());
        *self.balances.entry(transfer.from).or_default() -= transfer.cents;
        *self.balances.entry(transfer.to).or_default() += transfer.cents;
    }

    fn bury(&mut self, id: &str, reason: &str) {
        self.dead.insert((id.to_owned(), reason.to_owned()));
    }
}

fn body(transfer: &Transfer) -> Vec<u8> {
    serde_json::to_vec(transfer).expect("it is plain data")
}

/// The generator of a seed.
#[must_use]
pub fn random(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}
