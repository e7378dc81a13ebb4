//! Keeps the failures of the fast tier from costing more than a moment.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
    time::Duration,
};

use super::OutcomeTier;
use crate::{
    clock::Timer,
    identity::RecordId,
    race::{race, survive},
    record::Record,
    store::StoreError,
    value::lock,
};

/// The fast tier, asked with patience, and left alone for a while after it failed.
#[derive(Debug)]
pub(super) struct Tier {
    fast: Arc<dyn OutcomeTier>,
    timer: Arc<dyn Timer>,
    patience: Duration,
    pause: Duration,
    /// Until when it is left alone, by the timer.
    rests_until: Mutex<Option<Duration>>,
}

impl Tier {
    pub(super) fn new(
        fast: Arc<dyn OutcomeTier>,
        timer: Arc<dyn Timer>,
        patience: Duration,
        pause: Duration,
    ) -> Self {
        Self {
            fast,
            timer,
            patience,
            pause,
            rests_until: Mutex::new(None),
        }
    }

    /// The copy, if there is one; `None` where it could not be asked.
    pub(super) async fn find(&self, id: &RecordId) -> Option<Option<Arc<Record>>> {
        self.ask(self.fast.find(id)).await
    }

    /// The copy, if there is one at hand.
    pub(super) fn peek(&self, id: &RecordId) -> Option<Arc<Record>> {
        if self.rests() {
            return None;
        }
        // A tier that panics is left alone when it is asked.
        catch_unwind(AssertUnwindSafe(|| self.fast.peek(id))).ok()?
    }

    pub(super) async fn put(&self, id: &RecordId, record: &Arc<Record>, at_most: Duration) {
        self.ask(self.fast.put(id, record, at_most)).await;
    }

    pub(super) async fn forget(&self, id: &RecordId) {
        self.ask(self.fast.forget(id)).await;
    }

    async fn ask<T>(&self, asked: impl Future<Output = Result<T, StoreError>>) -> Option<T> {
        if self.rests() {
            return None;
        }
        let answer = race(survive(asked), self.timer.sleep(self.patience)).await;
        match answer {
            Some(Some(Ok(answer))) => return Some(answer),
            Some(Some(Err(error))) => {
                tracing::warn!(%error, "the fast tier failed, and is left alone for a while");
            }
            Some(None) => {
                tracing::error!("the fast tier panicked, and is left alone for a while");
            }
            None => {
                tracing::warn!("the fast tier did not answer, and is left alone for a while");
            }
        }
        *lock(&self.rests_until) = Some(self.timer.now().saturating_add(self.pause));
        None
    }

    fn rests(&self) -> bool {
        let mut until = lock(&self.rests_until);
        *until = until.filter(|until| self.timer.now() < *until);
        until.is_some()
    }
}
