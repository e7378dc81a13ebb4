//! The plan of a trip: its steps, and how they stand to each other.

use std::time::Duration;

use idempotent_runtime::OnCrash;
use rand::{RngExt, rngs::StdRng, seq::SliceRandom};

use super::trip::policy;
use crate::sim::LEASE;

/// The names of all steps.
pub(super) const LEGS: [&str; 6] = ["flight", "hotel", "car", "ferry", "train", "guide"];

/// One step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    /// Its place among the names.
    pub(super) number: usize,
    pub(super) has_undo: bool,
    pub(super) at_most_once: bool,
    /// Whether its errors say what is recorded of them.
    pub(super) is_classified: bool,
}

/// Steps that stand together.
#[derive(Clone, Debug)]
pub(super) enum Group {
    /// One behind the other, in a loop.
    Row(Vec<Leg>),
    Joined([Leg; 2]),
    /// Dropped after so long.
    Raced(Leg, Duration),
    /// In a task of its own, which the body may leave behind.
    Spawned(Leg, bool),
}

/// The same for every attempt at a key.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) groups: Vec<Group>,
    pub(super) on_crash: OnCrash,
    /// Whether bodies panic, undos fail, and arguments change, now and then.
    pub(super) panics: bool,
    pub(super) undos_fail: bool,
    pub(super) changes: bool,
}

impl Plan {
    pub(super) fn draw(rng: &mut StdRng) -> Self {
        let mut numbers: Vec<_> = (0..LEGS.len()).collect();
        numbers.shuffle(rng);
        numbers.truncate(rng.random_range(2..=LEGS.len()));
        let mut legs: Vec<_> = numbers.into_iter().map(|it| Leg::draw(rng, it)).collect();
        let mut groups = Vec::new();
        while let Some(leg) = legs.pop() {
            groups.push(match (rng.random_range(0..6), legs.pop()) {
                (0 | 1, Some(other)) => Group::Joined([leg, other]),
                (2 | 3, Some(other)) => Group::Row(vec![leg, other]),
                (kind, other) => {
                    legs.extend(other);
                    match kind {
                        4 => Group::Raced(leg, LEASE.mul_f64(rng.random_range(0.0..0.5))),
                        5 => Group::Spawned(leg, rng.random()),
                        _ => Group::Row(vec![leg]),
                    }
                }
            });
        }
        Self {
            groups,
            on_crash: policy(rng),
            panics: rng.random(),
            undos_fail: rng.random_range(0..3) == 0,
            changes: rng.random_range(0..3) == 0,
        }
    }

    pub(super) fn legs(&self) -> Vec<Leg> {
        let of_group = |group: &Group| match group {
            Group::Row(legs) => legs.clone(),
            Group::Joined(legs) => legs.to_vec(),
            Group::Raced(leg, _) | Group::Spawned(leg, _) => vec![*leg],
        };
        self.groups.iter().flat_map(of_group).collect()
    }
}

impl Leg {
    fn draw(rng: &mut StdRng, number: usize) -> Self {
        Self {
            number,
            has_undo: rng.random_range(0..3) > 0,
            at_most_once: rng.random_range(0..4) == 0,
            is_classified: rng.random(),
        }
    }
}
