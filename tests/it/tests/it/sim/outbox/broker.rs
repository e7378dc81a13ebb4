//! A publisher that is away, refuses, keeps silent, panics, and takes longer than a lease.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::outbox::{Envelope, PublishError, Publisher};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::LEASE;
use crate::sim::stage::Notes;

#[derive(Clone)]
pub(super) struct Broker {
    rng: Arc<Mutex<StdRng>>,
    is_healed: Arc<AtomicBool>,
    arrived: Notes<Envelope>,
    said: Notes<&'static str>,
}

/// How many orders a broker does not take: one of so many.
const POISON: u32 = 7;

impl Broker {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            rng: Arc::new(Mutex::new(StdRng::seed_from_u64(!seed))),
            is_healed: Arc::default(),
            arrived: Notes::default(),
            said: Notes::default(),
        }
    }

    /// From now on it takes everything.
    pub(super) fn heal(&self) {
        self.is_healed.store(true, Ordering::SeqCst);
    }

    pub(super) fn arrived(&self) -> Vec<Envelope> {
        self.arrived.all()
    }

    pub(super) fn said(&self) -> Vec<&'static str> {
        self.said.all()
    }

    fn draw(&self, below: u32) -> u32 {
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        rng.random_range(0..below)
    }

    fn take(&self, envelope: &Envelope) -> Result<(), PublishError> {
        let healed = self.is_healed.load(Ordering::SeqCst);
        if healed {
            self.arrived.note(envelope.clone());
            return Ok(());
        }
        let number: u32 = serde_json::from_slice(&envelope.payload).expect("a number");
        if number.is_multiple_of(POISON) {
            self.said.note("a rejection");
            return Err(PublishError::Rejected("it is poison".into()));
        }
        match self.draw(20) {
            0 => {
                self.said.note("a rejection");
                Err(PublishError::Rejected("not today".into()))
            }
            1 => {
                self.said.note("an unknown answer");
                Err(PublishError::Unknown)
            }
            2 => {
                self.arrived.note(envelope.clone());
                self.said.note("an unknown answer");
                Err(PublishError::Unknown)
            }
            _ => {
                self.arrived.note(envelope.clone());
                Ok(())
            }
        }
    }
}

impl Publisher for Broker {
    async fn publish(&self, batch: &[Envelope]) -> Vec<Result<(), PublishError>> {
        let is_healed = self.is_healed.load(Ordering::SeqCst);
        match if is_healed { 99 } else { self.draw(15) } {
            0 => {
                self.said.note("an outage");
                return vec![Err(PublishError::Outage); batch.len()];
            }
            1 => {
                self.said.note("a panic");
                panic!("a publisher that panics");
            }
            2 => {
                let longer = LEASE.mul_f64(f64::from(self.draw(20)) / 10.0);
                tokio::time::sleep(longer).await;
            }
            3 => {
                self.said.note("an unknown answer");
                let taken = batch.iter().take(batch.len() / 2);
                return taken.map(|envelope| self.take(envelope)).collect();
            }
            4..10 => tokio::time::sleep(Duration::from_millis(2)).await,
            _ => {}
        }
        batch.iter().map(|envelope| self.take(envelope)).collect()
    }
}
