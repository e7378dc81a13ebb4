//! How a tiered store is set up.

use std::{sync::Arc, time::Duration};

use super::{OutcomeTier, Shared, TieredStore, in_flight::InFlight, tier::Tier, time::StoreTime};
use crate::{
    clock::{Clock, Timer},
    store::{Store, moment::Clocks},
    value::setters,
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

    setters! {
        /// Sets how long a copy is given after the primary store was asked for it, and how long the
        /// primary store's time is reckoned on without asking: a minute unless set.
        age(it, age: Duration) { it.age = age }

        /// Sets how long an answer of the fast tier is waited for: 50 milliseconds unless set.
        patience(it, patience: Duration) { it.patience = patience }

        /// Sets how long the fast tier is left alone after it failed: a second unless set.
        pause(it, pause: Duration) { it.pause = pause }

        /// Sets what measures all of these: for tests with a manual clock.
        timer(it, timer: impl Timer + 'static) { it.clocks.set_timer(timer) }

        /// Sets the wall clock that tells how long the machine was suspended, while the timer stood
        /// still: for tests with a manual clock.
        clock(it, clock: impl Clock + 'static) { it.clocks.set_wall(clock) }
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
            observer: None,
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
