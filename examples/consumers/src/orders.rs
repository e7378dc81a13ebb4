//! The orders, and the mishaps that the consumers meet.

use serde::{Deserialize, Serialize};

pub(crate) const ORDERS: u32 = 200;

/// An order, as its producer sends it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) number: u32,
    pub(crate) cents: i64,
}

/// A message: the id of its producer, and its body.
pub(crate) struct Sent {
    pub(crate) id: String,
    pub(crate) body: Vec<u8>,
}

/// The orders that can be invoiced.
pub(crate) fn orders() -> impl Iterator<Item = Order> {
    (1..=ORDERS).map(|number| Order {
        number,
        cents: 100 + i64::from(number),
    })
}

pub(crate) fn id(number: u32) -> String {
    format!("order-{number}")
}

/// All messages: the orders, and among them three that no consumer can handle.
pub(crate) fn messages() -> Result<Vec<Sent>, serde_json::Error> {
    let mut messages = Vec::new();
    for order in orders() {
        messages.push(Sent {
            id: id(order.number),
            body: serde_json::to_vec(&order)?,
        });
    }
    let free = Order {
        number: 0,
        cents: 0,
    };
    let bodies = [
        ("free", serde_json::to_vec(&free)?),
        ("torn", b"{".to_vec()),
        ("", serde_json::to_vec(&free)?),
    ];
    for (place, (id, body)) in bodies.into_iter().enumerate() {
        let id = id.to_owned();
        messages.insert(60 * place, Sent { id, body });
    }
    Ok(messages)
}

/// The dead letters that come of them, in the order of their ids.
pub(crate) const DEAD_LETTERS: [(&str, &str); 3] = [
    ("", "invalid_message"),
    ("free", "failed"),
    ("torn", "invalid_message"),
];

/// Happens to the consumer of an order after its effect, and before it acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mishap {
    /// It is killed.
    Kill,
    /// Its connection is cut.
    Cut,
    /// It is so slow that the broker no longer waits.
    Slow,
}

impl Mishap {
    pub(crate) const ALL: [Self; 3] = [Self::Kill, Self::Cut, Self::Slow];

    pub(crate) fn of(number: u32) -> Option<Self> {
        match number % 40 {
            7 => Some(Self::Kill),
            20 => Some(Self::Cut),
            33 => Some(Self::Slow),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Cut => "cut",
            Self::Slow => "slow",
        }
    }
}
