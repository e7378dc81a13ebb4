//! A relay that sleeps, and is woken.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use super::claims::Claims;
use crate::{outbox::dialect::OutboxDatabase, store::StoreError};

/// For how long an entry says that a relay sleeps.
const ASLEEP: Duration = Duration::from_secs(60);

/// A relay whose pause is shorter than this is not asleep.
const SHORTEST_SLEEP: Duration = Duration::from_millis(400);

/// Wakes a relay from outside.
#[derive(Clone, Debug)]
pub struct WakeSignal {
    /// Wakes the relay.
    pub(in crate::outbox) wake: Arc<Notify>,
    /// Whether the server's notifications come through.
    pub(in crate::outbox) is_live: Arc<AtomicBool>,
}

/// Says in the database that a relay sleeps, so that writers notify it.
pub(super) struct Sleep {
    signal: WakeSignal,
    relay: i64,
    /// Until when its entry counts.
    until: Option<Instant>,
}

impl Sleep {
    pub(super) fn new(signal: WakeSignal, relay: i64) -> Self {
        Self {
            signal,
            relay,
            until: None,
        }
    }

    /// Writes that the relay sleeps, where this is not written yet; whether it wrote, after which
    /// the relay looks once more.
    pub(super) async fn announce<DB: OutboxDatabase>(
        &mut self,
        claims: &mut Claims<'_, DB>,
        pause: Duration,
    ) -> Result<bool, StoreError> {
        let soon = Instant::now() + ASLEEP / 4;
        if pause < SHORTEST_SLEEP
            || !self.signal.is_live.load(Ordering::Acquire)
            || self.until.is_some_and(|until| until > soon)
        {
            return Ok(false);
        }
        let until = Instant::now() + ASLEEP;
        self.write(claims, Some(ASLEEP)).await?;
        self.until = Some(until);
        Ok(true)
    }

    /// Takes the entry back.
    pub(super) async fn withdraw<DB: OutboxDatabase>(
        &mut self,
        claims: &mut Claims<'_, DB>,
    ) -> Result<(), StoreError> {
        if self.until.take().is_none() {
            return Ok(());
        }
        self.write(claims, None).await
    }

    /// Entries that are long over go, too.
    async fn write<DB: OutboxDatabase>(
        &self,
        claims: &mut Claims<'_, DB>,
        asleep: Option<Duration>,
    ) -> Result<(), StoreError> {
        let (relays, now, relay) = (&claims.tables.relays, DB::NOW, self.relay);
        let long = crate::record::micros(ASLEEP * 60);
        let mut text =
            format!("DELETE FROM {relays} WHERE relay = {relay} OR sleeps_until < {now} - {long}");
        if let Some(asleep) = asleep {
            let asleep = crate::record::micros(asleep);
            text += &format!(
                ";\nINSERT INTO {relays} (relay, sleeps_until) VALUES ({relay}, {now} + {asleep})"
            );
        }
        claims.query(text).await.map(drop)
    }
}
