//! The work that is left when a call cannot do it itself.

use std::{sync::Arc, time::Duration};

use tokio::sync::SemaphorePermit;
use tracing::field;

use crate::{
    engine::ending,
    engine::heartbeat::{Registration, Shared},
    engine::lease::Lease,
    engine::retries::Refusals,
    engine::swap::swap,
    identity::RecordId,
    observe::RecordChange,
    protocol::{Claim, Ending, Meaning},
    race::{race, survive},
    record::{RawOutcome, Version},
    store::{Store, StoreError, StoreErrorKind, Swap},
};

/// How long a write in the background waits for its turn, and for the store's answer, even where
/// the lease is shorter.
const SHORTEST_LIMIT: Duration = Duration::from_secs(1);

/// How often a short write is sent after a refused one: a server may hang up on that, and the
/// connection is made anew.
const CONNECTIONS: u32 = 3;

/// Something for the heartbeat thread.
#[derive(Debug)]
pub(crate) enum Job {
    /// Writes how a holding ended.
    End {
        lease: Arc<Lease>,
        ending: Ending,
        reran: bool,
        /// Keeps the lease alive until it is written; `None` where nothing runs any more.
        place: Option<Registration>,
    },
    /// Gives up a claim whose answer never came: it may stand, or be under way.
    Abandon {
        id: RecordId,
        claim: Claim,
        /// The version that it was sent over.
        seen: Option<Version>,
        /// When its caller went away, by the handle's own timer.
        since: Duration,
    },
}

impl Job {
    pub(crate) async fn run(mut self, store: &dyn Store, heartbeats: &Shared) {
        let (lease, mut pause) = (self.lease(), Duration::from_millis(20));
        // A holding or claim that is not kept alive need not be ended once its lease is over.
        let (began, at_most) = match &self {
            Job::End { place: Some(_), .. } => (heartbeats.timer.now(), heartbeats.max_run_time),
            Job::End { place: None, .. } => (heartbeats.timer.now(), lease),
            Job::Abandon { since, .. } => (*since, lease),
        };
        loop {
            let turn = self.turn(heartbeats).await;
            let waited = heartbeats.timer.now().saturating_sub(began);
            if turn.is_some() && waited >= at_most.max(SHORTEST_LIMIT) {
                self.say_given_up(None);
                return;
            }
            let Err(error) = self.within(store, heartbeats).await else {
                return;
            };
            drop(turn);
            let tried = heartbeats.timer.now().saturating_sub(began);
            // A right that is missing mostly says nothing of the outcome: a server that was
            // read-only because another one takes over takes everything later on.
            let patience = match error.kind() {
                StoreErrorKind::Denied => at_most,
                _ => lease.min(at_most),
            };
            let is_refused = tried > patience && !error.is_transient();
            if is_refused && self.happened_without_outcome(store, heartbeats).await {
                return;
            }
            if tried > at_most {
                self.say_given_up(Some(&error));
                return;
            }
            let pausing = heartbeats.timer.sleep(pause);
            match &self {
                Job::End { lease, .. } => drop(race(lease.flush_requested(), pausing).await),
                Job::Abandon { .. } => pausing.await,
            }
            pause = (pause * 2).min(lease / 3).max(Duration::from_millis(1));
        }
    }

    /// Says that the lease decides what happens next. An outcome is lost by that. A claim whose
    /// caller has gone away is not, and an outage, which is told of, leaves one for each call.
    fn say_given_up(&self, error: Option<&StoreError>) {
        let ((operation, id), error) = (self.call(), error.map(field::display));
        match self {
            Job::End { .. } => {
                let id = id.to_hex();
                tracing::error!(
                    operation,
                    id,
                    error,
                    "gave up a write in the background: the lease decides what happens next"
                );
            }
            Job::Abandon { .. } => tracing::debug!(
                operation,
                %id,
                error,
                "a claim was not given up: its lease decides what happens next"
            ),
        }
    }

    /// Names the call in what is said of it.
    fn call(&self) -> (&str, &RecordId) {
        match self {
            Job::End { lease, .. } => (lease.attempt.operation(), lease.attempt.id()),
            Job::Abandon { id, claim, .. } => (&claim.subject.operation, id),
        }
    }

    fn lease(&self) -> Duration {
        match self {
            Job::End { lease, .. } => lease.holding.lease(),
            Job::Abandon { claim, .. } => claim.lease,
        }
    }

    /// Waits until this claim is the one that is given up. While a store is out of reach, every
    /// call that comes in leaves one, and all have to be given up once it is back. A heartbeat that
    /// stood in line behind them would come too late.
    async fn turn<'a>(&self, heartbeats: &'a Shared) -> Option<SemaphorePermit<'a>> {
        match self {
            Job::Abandon { .. } => heartbeats.giving_up.acquire().await.ok(),
            Job::End { .. } => None,
        }
    }

    /// A store that will not take the outcome, perhaps because of its size, can still say that the
    /// call happened; whether it did. If it does not take that, either, the outcome is not in the
    /// way, and is kept: the disk may be full.
    async fn happened_without_outcome(&mut self, store: &dyn Store, heartbeats: &Shared) -> bool {
        let Some(outcome) = self.replace_outcome(RawOutcome::not_replayable()) else {
            return false;
        };
        let mut answer = self.within(store, heartbeats).await;
        for _ in 1..CONNECTIONS {
            let Err(error) = &answer else { break };
            if error.kind() != StoreErrorKind::Unavailable {
                break;
            }
            answer = self.within(store, heartbeats).await;
        }
        let has_happened = answer.is_ok();
        if has_happened {
            let (operation, id) = self.call();
            tracing::error!(
                operation,
                id = id.to_hex(),
                "the store refuses an outcome: it is recorded as happened, and cannot be replayed"
            );
        } else {
            self.replace_outcome(outcome);
        }
        has_happened
    }

    /// Puts another outcome in the place of the one that is to be written; `None` where there is
    /// none.
    fn replace_outcome(&mut self, with: RawOutcome) -> Option<RawOutcome> {
        match self {
            Job::End {
                ending: Ending::Done(outcome),
                ..
            } => Some(std::mem::replace(outcome, with)),
            _ => None,
        }
    }

    /// A write that gets no answer, or panics, is tried again, on a new connection if the store has
    /// one. If a connection hangs for a claim, those behind it in line still pass before their
    /// leases are over.
    async fn within(&self, store: &dyn Store, heartbeats: &Shared) -> Result<(), StoreError> {
        let at_most = match self {
            Job::End { .. } => self.lease(),
            Job::Abandon { .. } => self.lease() / 2,
        };
        let limit = heartbeats.timer.sleep(at_most.max(SHORTEST_LIMIT));
        let written = race(survive(self.once(store, heartbeats)), limit).await;
        let failed = |kind| Err(StoreError::new(kind, "writing in the background"));
        match written {
            Some(Some(answer)) => answer,
            Some(None) => failed(StoreErrorKind::Other),
            None => failed(StoreErrorKind::Unavailable),
        }
    }

    async fn once(&self, store: &dyn Store, heartbeats: &Shared) -> Result<(), StoreError> {
        match self {
            Job::End {
                lease,
                ending,
                reran,
                place: _,
            } => ending::end(store, &heartbeats.observers, lease, ending, *reran)
                .await
                .map(drop),
            Job::Abandon {
                id, claim, seen, ..
            } => {
                let (mut snapshot, mut refusals) = (store.load(id).await?, Refusals::default());
                while let Some((over, draft)) = claim.abandon(*seen, &snapshot, Version::random()) {
                    match swap(store, id, over, &draft).await? {
                        Swap::Applied(_) => {
                            let stood = snapshot.record.as_deref();
                            if let Some(stood) = stood.filter(|stood| claim.holds(stood)) {
                                let operation = &claim.subject.operation;
                                // It is told as if the call had ended it: a takeover that is given
                                // up does not count, but it was one.
                                let (observers, attempt) = (&heartbeats.observers, stood.attempt);
                                let tell = |it| observers.transition(operation, id, attempt, it);
                                // Observers were not told that it began.
                                let meaning = Meaning::won(stood, claim.goes_on);
                                tell(RecordChange::of_claim(meaning, stood.passes()));
                                tell(ending::step(&Ending::Unpolled, draft.state));
                            }
                            break;
                        }
                        Swap::Refused(stands) => {
                            refusals.met(&stands);
                            // It is tried again as after any other failure.
                            refusals.pause(|| Duration::ZERO)?;
                            snapshot = stands;
                        }
                    }
                }
                Ok(())
            }
        }
    }
}
