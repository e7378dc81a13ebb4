//! The facts that are known of a chaos run, put in order.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt::Write as _,
    sync::Arc,
};

use idempotent_runtime::{
    identity::RecordId,
    record::{Moment, Record, State, Time, TokenRule, Version, micros},
};

use super::{
    callers::Deed,
    judge::Evidence,
    witness::{Pages, Write, versions},
};

/// A write that is known to have stood.
pub(super) struct Stood<'a> {
    pub(super) write: &'a Write,
    pub(super) after: Arc<Record>,
    pub(super) before: Option<Arc<Record>>,
    /// By the store's clock, where that is known.
    pub(super) at: Option<Time>,
}

/// All of it, for the judge.
pub(super) struct Case<'a> {
    pub(super) about: &'a str,
    pub(super) evidence: &'a Evidence,
    pub(super) pages: &'a Pages,
    pub(super) stood: Vec<Stood<'a>>,
}
/// Every write that stood, in an order in which each comes after what it was written over.
pub(super) fn stood(pages: &Pages) -> Vec<Stood<'_>> {
    let seen = versions(&pages.looks);
    let mut records = HashMap::<Version, Arc<Record>>::new();
    let mut stood = Vec::new();
    for write in &pages.writes {
        let before = write.seen.and_then(|seen| records.get(&seen).cloned());
        let stamp = write.stamp();
        let after = match (seen.get(&write.draft.version), stamp) {
            (Some(record), _) => Arc::clone(record),
            (None, Some(stamp)) => {
                let mut record = write.draft.apply(before.as_deref(), stamp.now);
                (record.token, record.lease_end) = (stamp.token, stamp.lease_end);
                record.expires = stamp.expires;
                Arc::new(record)
            }
            (None, None) => continue,
        };
        let at = stamp.map(|stamp| stamp.now).or(match write.draft.lease {
            _ if after.state != State::Running => after.finished,
            Moment::In(lease) => after
                .lease_end
                .as_micros()
                .checked_sub(micros(lease))
                .map(Time::from_micros),
            Moment::Keep => None,
        });
        records.insert(write.draft.version, Arc::clone(&after));
        stood.push(Stood {
            write,
            after,
            before,
            at,
        });
    }
    stood
}

impl Case<'_> {
    /// Every outcome that stood under this key.
    pub(super) fn outcomes(&self, key: u64) -> BTreeSet<&[u8]> {
        self.of(key)
            .filter(|one| one.after.state == State::Done)
            .filter_map(|one| Some(&one.after.outcome.as_ref()?.bytes[..]))
            .collect()
    }
    /// Every version that stood under this key.
    pub(super) fn of(&self, key: u64) -> impl Iterator<Item = &Stood<'_>> {
        self.stood
            .iter()
            .filter(move |one| key_of(&one.after) == key)
    }

    pub(super) fn under(&self, key: u64, token: u64) -> impl Iterator<Item = &Deed> {
        let of_it = move |deed: &&Deed| (deed.key, deed.token) == (key, token);
        self.pages.deeds.iter().filter(of_it)
    }

    /// Asserts it, and shows all that is known of the key if it does not hold.
    pub(super) fn holds(&self, holds: bool, says: &str, key: u64) {
        if holds {
            return;
        }
        let mut events = Vec::new();
        let ids: HashSet<_> = self.of(key).map(|one| one.write.id).collect();
        let of_it = |id: &RecordId| ids.contains(id);
        for write in self.pages.writes.iter().filter(|write| of_it(&write.id)) {
            events.push((write.sent, format!("{write:?}")));
        }
        for look in self.pages.looks.iter().filter(|look| of_it(&look.id)) {
            events.push((look.sent, format!("{look:?}")));
        }
        for deed in self.pages.deeds.iter().filter(|deed| deed.key == key) {
            events.push((deed.at, format!("{deed:?}")));
        }
        for told in &self.evidence.told {
            if told.call.key == key {
                events.push((told.at, format!("{told:?}")));
            }
        }
        events.sort();
        let mut all = String::new();
        for (at, event) in events {
            let _ = writeln!(all, "{at}: {event}");
        }
        panic!("{}: {says}, of key {key}:\n{all}", self.about);
    }
}

impl Stood<'_> {
    /// When it was known here that it stands.
    pub(super) fn answered(&self) -> Option<u64> {
        self.write.stamp()?;
        self.write.answer.as_ref().map(|(at, _)| *at)
    }

    pub(super) fn draws(&self) -> bool {
        matches!(self.write.draft.token, TokenRule::Above(_))
    }
}

pub(super) fn key_of(record: &Record) -> u64 {
    let key = str::from_utf8(&record.subject.key).expect("keys are text");
    key.parse().expect("keys are numbers")
}
