//! How a tiered store is set up.

use std::{sync::Arc, time::Duration};

use super::{OutcomeTier, Shared, TieredStore, in_flight::InFlight, tier::Tier, time::StoreTime};
use crate::{
    clock::{Clock, Timer},
    store::{Store, moment::Clocks},
};

/// Sets up a [`TieredStore`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct TieredBuilder {
    primary: Arc<dyn Store>,
    fast: Arc<dyn OutcomeTier>,
    clocks: Clocks,
    age: Duration,
    patience: Duration,
    pause: Duration,
}

impl TieredBuilder {
    pub(super) fn new(primary: Arc<dyn Store>, fast: Arc<dyn OutcomeTier>) -> Self {
        Self {
            primary,
            fast,
            clocks: Clocks::default(),
            age: Duration::from_secs(60),
            patience: Duration::from_millis(50),
            pause: Duration::from_secs(1),
        }
    }

    /// Sets how long a copy is given after the primary store was asked for it, and how long the
    /// primary store's time is reckoned on without asking: a minute unless set.
    pub fn age(mut self, age: Duration) -> Self {
        self.age = age;
        self
    }

    /// Sets how long an answer of the fast tier is waited for: 50 milliseconds unless set.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets how long the fast tier is left alone after it failed: a second unless set.
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Sets what measures all of these: for tests with a manual clock.
    pub fn timer(mut self, timer: impl Timer + 'static) -> Self {
        self.clocks.set_timer(timer);
        self
    }

    /// Sets the wall clock that tells how long the machine was suspended, while the timer stood
    /// still: for tests with a manual clock.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clocks.set_wall(clock);
        self
    }

    pub(super) fn clocks(mut self, clocks: Clocks) -> Self {
        self.clocks = clocks;
        self
    }

    /// Finishes.
    #[must_use]
    pub fn build(self) -> TieredStore {
        let tier = Tier::new(
            self.fast,
            Arc::clone(self.clocks.timer()),
            self.patience,
            self.pause,
        );
        TieredStore {
            primary: self.primary,
            shared: Arc::new(Shared {
                tier,
                clocks: self.clocks,
                age: self.age,
                time: StoreTime::default(),
                in_flight: InFlight::default(),
            }),
        }
    }
}
