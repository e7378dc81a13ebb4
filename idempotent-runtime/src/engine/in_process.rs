//! Calls of this process that run in transactions, by record. A duplicate waits for them before it
//! takes a connection, so that duplicates do not use up the pool.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Mutex,
    time::Duration,
};

use tokio::sync::watch;

use crate::race::race;
use crate::{clock::Timer, identity::RecordId, value::lock};

/// The calls that run. A duplicate receives whether the outcome is recorded.
#[derive(Debug, Default)]
pub(crate) struct InProcess(Mutex<HashMap<RecordId, watch::Receiver<bool>>>);

/// A call that others of its record wait for, until it is dropped.
pub(crate) struct First<'a> {
    all: &'a InProcess,
    id: RecordId,
    recorded: watch::Sender<bool>,
}

impl InProcess {
    /// Waits until no other call of the record runs in this process, or has recorded its outcome:
    /// then there is nothing to hold. It fails at the moment `until`.
    pub(crate) async fn enter(
        &self,
        id: RecordId,
        timer: &dyn Timer,
        until: Duration,
    ) -> Result<Entered<'_>, Waited> {
        let waiting = async {
            let mut waited = false;
            loop {
                let mut running = match self.first(id) {
                    Ok(first) => {
                        let first = Some(first);
                        return Entered { first, waited };
                    }
                    Err(running) => running,
                };
                waited = true;
                if running.wait_for(|recorded| *recorded).await.is_ok() {
                    let first = None;
                    return Entered { first, waited };
                }
            }
        };
        race(waiting, timer.sleep_until(until)).await.ok_or(Waited)
    }

    fn first(&self, id: RecordId) -> Result<First<'_>, watch::Receiver<bool>> {
        match lock(&self.0).entry(id) {
            Entry::Occupied(running) => Err(running.get().clone()),
            Entry::Vacant(free) => {
                let (recorded, waiting) = watch::channel(false);
                free.insert(waiting);
                Ok(First {
                    all: self,
                    id,
                    recorded,
                })
            }
        }
    }
}

/// It has waited for all others, if there were any.
pub(crate) struct Entered<'a> {
    /// Its own place, unless the outcome is recorded.
    pub(crate) first: Option<First<'a>>,
    pub(crate) waited: bool,
}

/// It waited for as long as it may.
#[derive(Debug)]
pub(crate) struct Waited;

impl First<'_> {
    /// Lets all duplicates go on at once, to the outcome.
    pub(crate) fn recorded(&self) {
        self.recorded.send_replace(true);
    }
}

impl Drop for First<'_> {
    fn drop(&mut self) {
        lock(&self.all.0).remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemTimer;

    const ID: RecordId = RecordId::from_bytes([7; 32]);
    const EVER: Duration = Duration::MAX;

    #[tokio::test]
    async fn a_duplicate_waits_until_the_first_call_is_gone() {
        let (all, timer) = (InProcess::default(), SystemTimer);
        let first = all.enter(ID, &timer, EVER).await.expect("it is free");
        assert!(!first.waited);
        assert!(all.enter(ID, &timer, Duration::ZERO).await.is_err());
        let other = RecordId::from_bytes([8; 32]);
        assert!(all.enter(other, &timer, Duration::ZERO).await.is_ok());

        let (next, ()) = tokio::join!(all.enter(ID, &timer, EVER), async { drop(first) });
        let next = next.expect("it is its turn");
        assert!(next.first.is_some() && next.waited);
        drop(next);
        assert!(lock(&all.0).is_empty());
    }

    #[tokio::test]
    async fn all_duplicates_of_a_recorded_outcome_go_on_at_once() {
        let (all, timer) = (InProcess::default(), SystemTimer);
        let entered = all.enter(ID, &timer, EVER).await.expect("it is free");
        let first = entered.first.expect("it is the first");
        let duplicate = || all.enter(ID, &timer, EVER);
        let (one, other, ()) = tokio::join!(duplicate(), duplicate(), async { first.recorded() });
        assert!(one.is_ok_and(|entered| entered.first.is_none()));
        assert!(other.is_ok_and(|entered| entered.first.is_none()));
    }
}
