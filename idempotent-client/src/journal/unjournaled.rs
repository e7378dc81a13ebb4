//! Calls that stand in no journal and may have been done: their keys, for when they are sent again
//! in this process.

use std::{collections::HashMap, sync::Mutex};

use crate::journal::EntryId;
use crate::keys::lock;
use idempotent_runtime::Time;

/// The moment from which each such call has its key. Each is remembered from before its first
/// attempt until its outcome is known, so nothing is lost if its future is dropped.
#[derive(Debug, Default)]
pub(crate) struct Undecided(Mutex<HashMap<EntryId, Time>>);

/// Beyond so many, the oldest are forgotten: the callers that were told their keys have not come
/// back.
const MOST: usize = 10_000;

impl Undecided {
    pub(crate) fn since(&self, id: &EntryId) -> Option<Time> {
        lock(&self.0).get(id).copied()
    }

    pub(crate) fn remember(&self, id: &EntryId, since: Time) {
        let mut calls = lock(&self.0);
        if calls.len() >= MOST {
            make_room(&mut calls);
        }
        calls.insert(id.clone(), since);
    }

    pub(crate) fn forget(&self, id: &EntryId) {
        lock(&self.0).remove(id);
    }
}

/// Forgets an eighth of all at once, so that not every call looks for the oldest.
fn make_room(calls: &mut HashMap<EntryId, Time>) {
    let mut moments: Vec<_> = calls.values().copied().collect();
    let (_, &mut last, _) = moments.select_nth_unstable(MOST / 8);
    let mut left = MOST / 8;
    calls.retain(|_, since| {
        let goes = *since <= last && left > 0;
        left -= usize::from(goes);
        !goes
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::ClientKey;

    fn id(number: i64) -> EntryId {
        EntryId {
            origin: "https://api.example.com".into(),
            account: String::new(),
            key: ClientKey::new(number.to_string()).expect("a key"),
        }
    }

    #[test]
    fn cl39_of_many_calls_the_oldest_are_forgotten() {
        let calls = Undecided::default();
        let many = 3 * MOST as i64;
        for number in 0..many {
            calls.remember(&id(number), Time::from_micros(number));
            assert!(lock(&calls.0).len() <= MOST);
        }
        let newest = many - 1;
        assert_eq!(calls.since(&id(newest)), Some(Time::from_micros(newest)));
        assert_eq!(calls.since(&id(0)), None);
        calls.forget(&id(newest));
        assert_eq!(calls.since(&id(newest)), None);
    }

    #[test]
    fn cl39_calls_of_one_moment_make_room_for_others() {
        let calls = Undecided::default();
        for number in 0..2 * MOST as i64 {
            calls.remember(&id(number), Time::from_micros(0));
        }
        assert!(lock(&calls.0).len() <= MOST);
    }
}
