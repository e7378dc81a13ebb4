//! The plan: the events, how they are delivered, and the figures they give. It is the same at every
//! start.

use std::collections::BTreeMap;

use serde::Serialize;

pub(super) const EVENTS: u64 = 1000;

/// How far the numbers of two deliveries may be apart that change places.
const WINDOW: u64 = 12;

/// A change of the account.
#[derive(Serialize)]
pub(super) struct Event {
    pub(super) number: u64,
    pub(super) cents: i64,
}

/// The source of the events: any of them can be read again.
pub(super) struct Events(BTreeMap<u64, Event>);

impl Events {
    pub(super) fn plan() -> Self {
        let mut draw = draws();
        let events = (1..=EVENTS).map(|number| {
            let cents = 1 + draw(500).cast_signed();
            (number, Event { number, cents })
        });
        Self(events.collect())
    }

    pub(super) fn read(&self, number: u64) -> &Event {
        &self.0[&number]
    }

    /// The figures after each event was applied once and in its turn.
    pub(super) fn figures(&self) -> Figures {
        let mut figures = Figures::default();
        for event in self.0.values() {
            figures.events += 1;
            figures.balance += event.cents;
            figures.checksum = (figures.checksum * 31 + event.cents) % 1_000_003;
        }
        figures
    }
}

/// The figures of the account.
#[derive(Default)]
pub(super) struct Figures {
    pub(super) events: i64,
    pub(super) balance: i64,
    /// It tells whether events changed places.
    pub(super) checksum: i64,
}

/// The number of each delivery's event: each event one to three times, shuffled within a window.
pub(super) fn deliveries() -> BTreeMap<usize, u64> {
    let mut draw = draws();
    let mut sent = Vec::new();
    for number in 1..=EVENTS {
        for _ in 0..=draw(3) {
            sent.push((number + draw(WINDOW), number));
        }
    }
    sent.sort_by_key(|(when, _)| *when);
    let numbers = sent.into_iter().map(|(_, number)| number);
    numbers.enumerate().collect()
}

/// Numbers as by chance, the same ones at every start, each below a limit.
pub(super) fn draws() -> impl FnMut(u64) -> u64 {
    let mut state = 1_u64;
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    }
}
