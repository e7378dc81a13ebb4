//! The work of a relay, round by round.

use std::{pin::pin, sync::Arc, time::Duration};

use sqlx::{ConnectOptions, Connection};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, sleep_until},
};

use super::{
    Envelope, PublishError, Publisher, Settings,
    claims::{Claims, MOST},
    failures::Failures,
};
use crate::{
    outbox::{Outbox, dialect::OutboxDatabase, tables::Tables},
    run::{race, survive},
    store::StoreError,
};

type Options<DB> = <<DB as sqlx::Database>::Connection as Connection>::Options;

/// The shortest pause between two looks that found nothing.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);

/// How often a relay that has enough to do looks for more keys.
const NEXT_WALK: Duration = Duration::from_millis(100);

/// A relay at work.
pub(super) struct Work<DB: OutboxDatabase, P> {
    options: Options<DB>,
    tables: Arc<Tables>,
    publisher: P,
    settings: Settings,
    connection: Option<DB::Connection>,
    /// The name under which it claims: another one after each failure of the database.
    token: i64,
    /// Until when its claims stand, by its own clock; `None` where it has none.
    held_until: Option<Instant>,
    /// Where the last walk over the keys has ended.
    walked: Vec<u8>,
    walks_at: Instant,
    failures: Failures,
}

impl<DB: OutboxDatabase, P: Publisher> Work<DB, P> {
    pub(super) fn new(outbox: &Outbox<DB>, publisher: P, settings: Settings) -> Self {
        Self {
            options: (*outbox.pool.connect_options()).clone(),
            tables: Arc::clone(&outbox.tables),
            publisher,
            settings,
            connection: None,
            token: token(),
            held_until: None,
            walked: Vec::new(),
            walks_at: Instant::now(),
            failures: Failures::default(),
        }
    }

    pub(super) async fn run(mut self, wake: Arc<Notify>, stopped: watch::Receiver<bool>) {
        let mut pause = SHORTEST_PAUSE;
        while !*stopped.borrow() {
            match self.round().await {
                Ok(0) => {}
                Ok(_) => {
                    pause = SHORTEST_PAUSE;
                    continue;
                }
                Err(error) => {
                    tracing::warn!(%error, "a relay cannot reach its database");
                    self.connection = None;
                    self.token = token();
                    self.held_until = None;
                }
            }
            let resting = sleep(pause.mul_f64(rand::random_range(0.8..=1.2)));
            pause = match race(wake.notified(), resting).await {
                Some(()) => SHORTEST_PAUSE,
                None => (pause * 2).min(self.settings.longest_pause),
            };
        }
        if let Ok(mut claims) = self.claims().await
            && let Err(error) = claims.give_back(true).await
        {
            tracing::debug!(%error, "a relay does not give its keys back, and their lease ends by itself");
        }
    }

    async fn claims(&mut self) -> Result<Claims<'_, DB>, StoreError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                const DOING: &str = "connecting a relay";
                let opened = self.options.connect().await;
                let mut opened = opened.map_err(|error| DB::store_error(error, DOING))?;
                DB::query(&mut opened, DB::SESSION.to_owned(), DOING).await?;
                opened
            }
        };
        Ok(Claims {
            connection: self.connection.insert(connection),
            tables: &self.tables,
            token: self.token,
            lease: self.settings.lease,
        })
    }

    /// Publishes a batch, and tells how many messages it had.
    async fn round(&mut self) -> Result<usize, StoreError> {
        self.walk().await?;
        if self.held_until.is_none() {
            return Ok(0);
        }
        self.renew().await?;
        let batch = self.claims().await?.first_messages().await?;
        if batch.len() < MOST / 2 {
            self.walks_at = Instant::now();
        }
        if batch.is_empty() {
            self.claims().await?.give_back(false).await?;
            self.held_until = None;
            return Ok(0);
        }
        let results = self.publish(&batch).await?;
        let (mut confirmed, mut failed) = (Vec::new(), Vec::new());
        for (place, envelope) in batch.iter().enumerate() {
            match results.get(place) {
                Some(Ok(())) => confirmed.push(envelope),
                Some(Err(error)) => failed.push((envelope, error.clone())),
                None => failed.push((envelope, PublishError::Unknown)),
            }
        }
        self.claims().await?.delete(&confirmed).await?;
        for envelope in &confirmed {
            self.failures.confirmed(envelope);
        }
        for pause in self.failures.pauses(&failed, self.settings.budget) {
            self.claims().await?.pause(&pause).await?;
        }
        if !self.walked.is_empty() {
            // More keys wait than are held at once, and each has its turn.
            self.claims().await?.give_back(true).await?;
            self.held_until = None;
            self.walks_at = Instant::now();
        }
        Ok(confirmed.len())
    }

    /// Looks for keys that are due, and goes on where it ended last.
    async fn walk(&mut self) -> Result<(), StoreError> {
        if Instant::now() < self.walks_at {
            return Ok(());
        }
        let (walked, began) = (std::mem::take(&mut self.walked), Instant::now());
        let walk = self.claims().await?.claim(&walked).await?;
        if walk.has_claimed {
            let ends = began + self.settings.lease;
            self.held_until.get_or_insert(ends);
        }
        self.walked = walk.ended.unwrap_or_default();
        self.walks_at = Instant::now() + NEXT_WALK;
        Ok(())
    }

    /// Prolongs the leases, once a third of them is over.
    async fn renew(&mut self) -> Result<(), StoreError> {
        let now = Instant::now();
        let is_fresh = |ends| ends > now + self.settings.lease * 2 / 3;
        if self.held_until.is_some_and(is_fresh) {
            return Ok(());
        }
        self.claims().await?.renew().await?;
        self.held_until = Some(now + self.settings.lease);
        Ok(())
    }

    /// Has a batch published, and prolongs the leases meanwhile.
    async fn publish(
        &mut self,
        batch: &[Envelope],
    ) -> Result<Vec<Result<(), PublishError>>, StoreError> {
        let ends = Instant::now() + self.settings.publish_timeout;
        let (connection, token) = (self.connection.take(), self.token);
        let mut connection = connection;
        let mut publishing = pin!(survive(self.publisher.publish(batch)));
        loop {
            let next = (Instant::now() + self.settings.lease / 3).min(ends);
            if let Some(results) = race(publishing.as_mut(), sleep_until(next)).await {
                self.connection = connection;
                return Ok(results.unwrap_or_default());
            }
            if Instant::now() >= ends {
                self.connection = connection;
                return Ok(Vec::new());
            }
            if let Some(connection) = &mut connection {
                let mut claims = Claims::<DB> {
                    connection,
                    tables: &self.tables,
                    token,
                    lease: self.settings.lease,
                };
                let sent = Instant::now();
                claims.renew().await?;
                self.held_until = Some(sent + self.settings.lease);
            }
        }
    }
}

fn token() -> i64 {
    rand::random_range(1..=i64::MAX)
}
