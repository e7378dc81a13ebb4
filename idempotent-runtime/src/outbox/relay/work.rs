//! The work of a relay, round by round.

use std::{pin::pin, sync::Arc, time::Duration};

use sqlx::ConnectOptions as _;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, sleep_until, timeout},
};
use tracing::Instrument as _;

use super::{
    Envelope, PublishError, Publisher,
    ages::Ages,
    builder::Settings,
    claims::{BYTES, Claims, answered, fitting},
    envelope::span_of,
    failures::Failures,
    sleep::{Sleep, WakeSignal},
};
use crate::{
    error::Error,
    observe::Observers,
    outbox::{Outbox, dialect::OutboxDatabase, walk::MOST},
    race::{race, survive},
    store::StoreError,
};

/// The pause after a look also where it is woken again and again.
const LEAST_PAUSE: Duration = Duration::from_millis(10);

/// How long it tries to give its keys back when it is stopped.
const GIVE_BACK_LIMIT: Duration = Duration::from_secs(5);

/// When it purges at the latest, and how often from then on.
const FIRST_PURGE: Duration = Duration::from_secs(10 * 60);
const NEXT_PURGE: Duration = Duration::from_secs(60 * 60);

/// How often a relay that has enough to do looks for more keys.
const NEXT_WALK: Duration = Duration::from_millis(100);

/// The results of a batch.
type BatchResults = Vec<Result<(), PublishError>>;

/// A relay at work.
pub(super) struct Work<DB: OutboxDatabase, P> {
    outbox: Outbox<DB>,
    publisher: P,
    settings: Settings,
    connection: Option<DB::Connection>,
    /// The name under which it claims: another one after each failure of the database.
    token: i64,
    /// The names of before, whose keys it has not given back.
    old_tokens: Vec<i64>,
    /// How many keys it has claimed since it gave all of them back.
    claimed: usize,
    /// The last key of the last batch, where that was full.
    served: Vec<u8>,
    /// How many messages the next batch may have: about as many of the size of the last ones as it
    /// has room for.
    most: usize,
    /// Until when its claims stand, by its own clock; `None` where it has none.
    held_until: Option<Instant>,
    /// The key at which the last walk over the keys has ended.
    walked: Vec<u8>,
    walks_at: Instant,
    failures: Failures,
    ages: Ages,
    purges_at: Instant,
}

impl<DB: OutboxDatabase, P: Publisher> Work<DB, P> {
    pub(super) fn new(
        outbox: Outbox<DB>,
        publisher: P,
        settings: Settings,
        observers: Observers,
    ) -> Self {
        let now = Instant::now();
        Self {
            outbox,
            publisher,
            settings,
            connection: None,
            token: token(),
            old_tokens: Vec::new(),
            claimed: 0,
            served: Vec::new(),
            most: MOST,
            held_until: None,
            walked: Vec::new(),
            walks_at: now,
            failures: Failures::new(observers.clone()),
            ages: Ages::new(observers),
            purges_at: now + FIRST_PURGE.mul_f64(rand::random_range(0.1..=1.0)),
        }
    }

    /// Opens its connection, and sees there whether it can use the tables.
    pub(super) async fn begin(mut self) -> Result<Self, Error> {
        let tables = Arc::clone(&self.outbox.tables);
        let claims = self.claims().await?;
        let connection: &mut DB::Connection = claims.connection;
        tables.check::<DB>(connection, "checking an outbox").await?;
        self.failures.tell_of_parked(&self.outbox).await;
        Ok(self)
    }

    /// Works until it is stopped, and hears meanwhile whether there is more to do.
    pub(super) async fn run(self, wake: Arc<Notify>, stopped: watch::Receiver<bool>) {
        let signal = WakeSignal {
            wake,
            is_live: Arc::default(),
        };
        if self.outbox.pools_transactions {
            return self.rounds(signal, stopped).await;
        }
        let (pool, channel) = (&self.outbox.pool, &self.outbox.tables.channel);
        let listening = DB::listen(pool.clone(), channel.clone(), signal.clone());
        race(self.rounds(signal, stopped), listening).await;
    }

    async fn rounds(mut self, signal: WakeSignal, stopped: watch::Receiver<bool>) {
        let mut sleep = Sleep::new(signal.clone(), token());
        let pauses = self.settings.pauses;
        let mut pause = pauses.0;
        while !*stopped.borrow() {
            match self.turn(&mut sleep, pause).await {
                Ok(Round::Rest) => {
                    pause = rest(&signal.wake, pause, pauses).await;
                    self.walks_at = Instant::now();
                }
                Ok(Round::Again) => self.walks_at = Instant::now(),
                Ok(Round::Published) => pause = pauses.0,
                Err(error) => {
                    let place = DB::place(&self.outbox.pool.connect_options());
                    let table = &self.outbox.tables.messages;
                    tracing::warn!(%error, place, table, "a relay could not do its work, and tries again");
                    self.connection = None;
                    let old = std::mem::replace(&mut self.token, token());
                    self.old_tokens.push(old);
                    self.held_until = None;
                    pause = rest(&signal.wake, pause, pauses).await;
                }
            }
        }
        let given_back = async {
            let mut claims = self.claims().await?;
            claims.give_back().await?;
            sleep.withdraw(&mut claims).await
        };
        if let Ok(Err(error)) = timeout(GIVE_BACK_LIMIT, given_back).await {
            tracing::debug!(%error, "a relay does not give its keys back, and their lease ends by itself");
        }
    }

    async fn turn(&mut self, sleep: &mut Sleep, pause: Duration) -> Result<Round, StoreError> {
        if Instant::now() >= self.purges_at {
            self.purges_at = Instant::now() + NEXT_PURGE;
            let outbox = self.outbox.clone();
            outbox.purge_on(self.claims().await?.connection).await?;
        }
        if self.round().await? {
            sleep.withdraw(&mut self.claims().await?).await?;
            return Ok(Round::Published);
        }
        if !self.walked.is_empty() {
            return Ok(Round::Again);
        }
        let has_written = sleep.announce(&mut self.claims().await?, pause).await?;
        Ok(if has_written {
            Round::Again
        } else {
            Round::Rest
        })
    }

    async fn claims(&mut self) -> Result<Claims<'_, DB>, StoreError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.outbox).await?,
        };
        let mut claims = Claims {
            connection: self.connection.insert(connection),
            tables: &self.outbox.tables,
            token: self.token,
            lease: self.settings.lease,
            keeps: self.outbox.audit_retention.is_some(),
        };
        while let Some(old) = self.old_tokens.last() {
            claims.token = *old;
            claims.give_back().await?;
            self.old_tokens.pop();
        }
        claims.token = self.token;
        Ok(claims)
    }

    /// Publishes the first messages of the keys that are held. Returns whether there is more to do
    /// at once.
    async fn round(&mut self) -> Result<bool, StoreError> {
        self.walk().await?;
        if self.held_until.is_none() {
            return Ok(false);
        }
        self.renew().await?;
        let served = std::mem::take(&mut self.served);
        let most = self.most;
        let mut batch = self.claims().await?.first_messages(&served, most).await?;
        let bytes: usize = batch.iter().map(|it| it.payload.len()).sum();
        let is_full = bytes >= BYTES || batch.len() == most;
        self.most = fitting(bytes, batch.len());
        if batch.len() < MOST / 2 && !is_full {
            self.walks_at = Instant::now();
        }
        if batch.is_empty() {
            self.give_back().await?;
            return Ok(false);
        }
        if is_full {
            // Other keys may have found no room.
            let last = batch.last();
            self.served = last.map_or_else(Vec::new, |last| last.place.clone());
        }
        if self.is_late() {
            // Another relay may have taken the keys.
            return Ok(false);
        }
        for pause in self.failures.take_out(&mut batch) {
            self.claims().await?.pause(&pause).await?;
        }
        let (batch, has_more) = self.failures.part(batch);
        let has_sent = !batch.is_empty() && self.send(&batch).await?;
        if !self.walked.is_empty() || self.claimed >= 2 * MOST {
            // More keys wait than are held at once, and each has its turn.
            self.give_back().await?;
            self.walks_at = Instant::now();
        }
        Ok(has_sent || has_more)
    }

    /// Gives a batch to the publisher, and notes what became of it. Returns whether a message was
    /// confirmed.
    async fn send(&mut self, batch: &[Envelope]) -> Result<bool, StoreError> {
        let began = Instant::now();
        let (results, was_late) = self.publish(batch).await?;
        let elapsed = began.elapsed();
        let is_late = was_late || self.is_late();
        let (mut confirmed, mut failed) = (Vec::new(), Vec::new());
        for (place, envelope) in batch.iter().enumerate() {
            match results.get(place) {
                Some(Ok(())) => confirmed.push(envelope),
                Some(Err(error)) => failed.push((envelope, error.clone())),
                None => failed.push((envelope, PublishError::Unknown)),
            }
        }
        self.claims().await?.delete(&confirmed, is_late).await?;
        let confirmed = (&*confirmed, elapsed);
        for pause in self.failures.settle(confirmed, &failed, &self.settings) {
            let is_held = self.claims().await?.pause(&pause).await?;
            if let Some(attempt) = pause.attempt.filter(|_| is_held) {
                self.failures.tell(&attempt);
            }
        }
        Ok(!confirmed.0.is_empty())
    }

    /// Whether its leases may be over.
    fn is_late(&self) -> bool {
        self.held_until.is_none_or(|ends| ends <= Instant::now())
    }

    async fn give_back(&mut self) -> Result<(), StoreError> {
        self.claims().await?.give_back().await?;
        self.held_until = None;
        self.claimed = 0;
        Ok(())
    }

    /// Looks for keys that are due, and goes on where it ended last.
    async fn walk(&mut self) -> Result<(), StoreError> {
        if Instant::now() < self.walks_at {
            return Ok(());
        }
        let (walked, began) = (std::mem::take(&mut self.walked), Instant::now());
        let walk = self.claims().await?.claim(&walked).await?;
        let mut ages = std::mem::take(&mut self.ages);
        let mut claims = self.claims().await?;
        let measuring = ages.measure(&mut claims, walked.is_empty(), &walk.met);
        let measured = measuring.await;
        self.ages = ages;
        measured?;
        if walk.has_claimed {
            let ends = began + self.settings.lease;
            self.held_until.get_or_insert(ends);
            self.claimed += walk.met.iter().filter(|it| it.is_due).count();
        }
        self.walked = walk.end();
        if self.walked.is_empty() {
            self.ages.end();
        }
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

    /// Has a batch published, and prolongs the leases meanwhile; also tells whether they may have
    /// been over in between.
    async fn publish(&mut self, batch: &[Envelope]) -> Result<(BatchResults, bool), StoreError> {
        let ends = Instant::now() + self.settings.publish_timeout;
        let (mut connection, token, mut was_late) = (self.connection.take(), self.token, false);
        let span = span_of(batch, self.outbox.traces.as_ref());
        let publishing = async { self.publisher.publish(batch).await };
        let mut publishing = pin!(survive(publishing.instrument(span)));
        loop {
            let next = (Instant::now() + self.settings.lease / 3).min(ends);
            if let Some(results) = race(publishing.as_mut(), sleep_until(next)).await {
                self.connection = connection;
                return Ok((results.unwrap_or_default(), was_late));
            }
            if Instant::now() >= ends {
                self.connection = connection;
                return Ok((Vec::new(), was_late));
            }
            if let Some(connection) = &mut connection {
                let mut claims = Claims::<DB> {
                    connection,
                    tables: &self.outbox.tables,
                    token,
                    lease: self.settings.lease,
                    keeps: false,
                };
                let sent = Instant::now();
                was_late |= self.held_until.is_none_or(|ends| ends <= sent);
                claims.renew().await?;
                self.held_until = Some(sent + self.settings.lease);
            }
        }
    }
}

/// Opens a connection of our own, which depends on nothing that is set elsewhere.
pub(in crate::outbox) async fn connect<DB: OutboxDatabase>(
    outbox: &Outbox<DB>,
) -> Result<DB::Connection, StoreError> {
    const DOING: &str = "connecting to the database of an outbox";
    let options = (*outbox.pool.connect_options()).clone();
    let options = options.disable_statement_logging();
    answered(async {
        let opened = options.connect().await;
        let mut opened = opened.map_err(|error| DB::store_error(error, DOING))?;
        DB::query(&mut opened, DB::SESSION.to_owned(), DOING).await?;
        Ok(opened)
    })
    .await
}

/// Says how a relay goes on after a turn.
enum Round {
    /// It looks again at once.
    Again,
    /// It has published something, and looks again at once.
    Published,
    /// There was nothing to do.
    Rest,
}

/// Rests for so long, unless it is woken; tells how long the next rest is.
async fn rest(
    wake: &Notify,
    pause: Duration,
    (shortest, longest): (Duration, Duration),
) -> Duration {
    let earliest = Instant::now() + LEAST_PAUSE;
    let resting = sleep(pause.mul_f64(rand::random_range(0.8..=1.2)));
    match race(wake.notified(), resting).await {
        Some(()) => {
            sleep_until(earliest).await;
            shortest
        }
        None => (pause * 2).min(longest),
    }
}

fn token() -> i64 {
    rand::random_range(1..=i64::MAX)
}
