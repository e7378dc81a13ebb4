//! How the parts of a handle are that work in the background.

use std::time::{Duration, SystemTime};

use crate::{
    engine::heartbeat::HeartbeatHealth,
    handle::{Idempotency, PurgeHealth},
    identity::RecordId,
    record::Time,
    store::{StoreError, StoreHealth},
};

/// The health of a handle: [`Idempotency::health`] makes it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Health {
    /// The answer of the store to one look.
    pub store: Result<StorePulse, StoreError>,
    /// The connections of the store, and its listener.
    pub connections: StoreHealth,
    /// The heartbeats of this handle.
    pub heartbeats: HeartbeatHealth,
    /// The last purge of this handle; `None` where none has ended yet.
    pub last_purge: Option<PurgeHealth>,
}

/// The answer of a store to one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StorePulse {
    /// How long it took.
    pub round_trip: Duration,
    /// How many microseconds the store's clock is ahead of this process's, negative where it is
    /// behind. It is exact to half the round trip. Leases and ttls go by the store's clock alone,
    /// so a difference harms no call; it misleads people who compare times.
    pub clock_ahead_micros: i64,
}

impl Idempotency {
    /// Looks at the store once, and returns how it and the work in the background are. It never
    /// fails: where the store does, that is the answer.
    ///
    /// For a probe of readiness, ask whether `store` is `Ok`. Do not restart a process because it
    /// is not: its leases would end.
    ///
    /// # Cancel safety
    ///
    /// It only reads.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::Idempotency;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let idem = Idempotency::memory();
    /// let health = idem.health().await;
    /// assert!(health.store.is_ok());
    /// assert_eq!(health.heartbeats.held, 0);
    /// # }
    /// ```
    pub async fn health(&self) -> Health {
        let timer = self.timer();
        let (began, sent) = (timer.now(), wall_clock());
        let look = self.store().load(&RecordId::from_bytes([0; 32])).await;
        let round_trip = timer.now().saturating_sub(began);
        let here = sent.plus(round_trip / 2).as_micros();
        Health {
            store: look.map(|snapshot| StorePulse {
                round_trip,
                clock_ahead_micros: snapshot.now.as_micros().saturating_sub(here),
            }),
            connections: self.store().health(),
            heartbeats: self.engine().heartbeats().health(),
            last_purge: self.last_purge(),
        }
    }
}

fn wall_clock() -> Time {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Time::from_micros(0).plus(since.unwrap_or_default())
}
