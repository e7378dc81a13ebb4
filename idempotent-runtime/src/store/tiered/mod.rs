//! A fast tier of finished outcomes in front of the store that decides.

mod builder;
mod in_flight;
mod outcomes;
mod tier;
mod time;

use std::{future::poll_fn, pin::pin, sync::Arc, time::Duration};

use async_trait::async_trait;

pub use self::{builder::TieredBuilder, outcomes::OutcomeCache};
use self::{
    in_flight::{Guard, InFlight},
    tier::Tier,
    time::StoreTime,
};
use crate::{
    identity::RecordId,
    policy::OnCrash,
    record::{Draft, RawOutcome, Record, State, Time, Version},
    store::{
        Snapshot, StepStore, Store, StoreError, Swap, TransactionStore,
        forward::forward,
        moment::{Clocks, Moment},
        observed::{StoreAction, StoreObserver},
    },
};

/// Answers replays from a fast tier, and lets another store, the primary one, decide everything
/// else.
///
/// The primary store takes every claim and keeps every record. The fast tier holds copies of
/// *finished* records only, and no record that is held or must be settled: [`OutcomeCache`]
/// in the process's own memory, `RedisOutcomes` for all processes (feature `redis`), or an
/// [`OutcomeTier`] of your own. A replay whose record is there asks the primary store nothing; any
/// other call makes the round trips that it makes without a tier. Other arguments under the same
/// key are found in a copy as they are in the record.
///
/// Losing the fast tier loses nothing. If it fails, or does not answer within its
/// [patience](TieredBuilder::patience), the primary store is asked at once, and the tier is left
/// alone for a [pause](TieredBuilder::pause).
///
/// # What a copy can miss
///
/// The protocol never changes a finished record before it expires, and an expired copy is not
/// given: expiry is judged by the primary store's own clock, which is reckoned on from its last
/// answer, never for longer than the age below. By the timer or the wall clock of this machine,
/// whichever went further: one that was suspended gives no expired copy, unless its clock was set
/// back meanwhile by as much, and one that is set forward only costs a question to the primary
/// store. So copies differ from the primary store only if finished records are deleted or rewritten
/// past the protocol. A write through this store or its clones takes the copy out of the tier
/// before it is answered, as long as the tier answers. A write of another process is seen when the
/// copy is as old as copies may [be](TieredBuilder::age), a minute unless set.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use idempotent_runtime::{Idempotency, MemoryStore, store::{OutcomeCache, TieredStore}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let primary = MemoryStore::new();
/// let store = TieredStore::builder(primary, OutcomeCache::new(10_000));
/// let store = store.age(Duration::from_secs(10)).build();
/// Idempotency::new(store).install()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct TieredStore {
    primary: Arc<dyn Store>,
    /// Is told of each copy that answers.
    observer: Option<StoreObserver>,
    shared: Arc<Shared>,
}

/// Keeps copies of finished records where they are found sooner than in the store that decides.
///
/// It may forget any of them at any time.
///
/// # Errors
///
/// Each method fails where the tier does, of whatever kind. That costs its caller nothing but the
/// time it takes, and has the tier left alone for a [pause](TieredBuilder::pause).
///
/// # Cancel safety
///
/// A future of these methods may be dropped at any await.
#[async_trait]
pub trait OutcomeTier: std::fmt::Debug + Send + Sync + 'static {
    /// The copy that was put under `id` last, unless it was forgotten or its time is over.
    async fn find(&self, id: &RecordId) -> Result<Option<Arc<Record>>, StoreError>;

    /// The same where that takes no waiting, as in the process's own memory; `None` also where it
    /// would.
    fn peek(&self, id: &RecordId) -> Option<Arc<Record>> {
        let _ = id;
        None
    }

    /// Puts a copy in the place of what is there, for no longer than `at_most`.
    async fn put(
        &self,
        id: &RecordId,
        record: &Arc<Record>,
        at_most: Duration,
    ) -> Result<(), StoreError>;

    /// Forgets what is there: it is not found once this has resolved.
    async fn forget(&self, id: &RecordId) -> Result<(), StoreError>;
}

/// The state that a store, its clones, and the one for heartbeats share.
#[derive(Debug)]
struct Shared {
    tier: Tier,
    clocks: Clocks,
    age: Duration,
    time: StoreTime,
    in_flight: InFlight,
}

impl TieredStore {
    /// Puts `fast` in front of `primary`, with the defaults of [`TieredBuilder`].
    pub fn new(primary: impl Store, fast: impl OutcomeTier) -> Self {
        Self::builder(primary, fast).build()
    }

    /// Sets up a store with options.
    pub fn builder(primary: impl Store, fast: impl OutcomeTier) -> TieredBuilder {
        TieredBuilder::new(Arc::new(primary), Arc::new(fast))
    }
}

/// The result of looking for a copy.
enum Lookup<'a> {
    /// It may be given as an answer.
    Found(Snapshot),
    /// The primary store has to be asked.
    Ask(Query<'a>),
}

/// A query to the primary store that is about to be sent.
struct Query<'a> {
    id: &'a RecordId,
    guard: Guard<'a>,
    sent_at: Moment,
    /// Whether the tier said that it has no copy.
    has_no_copy: bool,
}

impl Shared {
    /// The time by the primary store's clock; `None` where it was not told of late.
    fn now(&self) -> Option<Time> {
        self.time.reckoned(self.clocks.now(), self.age)
    }

    /// A copy that is at hand, and may be given as an answer now.
    fn peek(&self, id: &RecordId) -> Option<Snapshot> {
        if self.in_flight.are_under_way(id) {
            return None;
        }
        let record = self.tier.peek(id)?;
        let now = self.now()?;
        answers(&record, now).then(|| Snapshot {
            now,
            record: Some(record),
        })
    }

    /// Looks for a copy that may be given as an answer now.
    async fn look_up<'a>(&'a self, id: &'a RecordId) -> Lookup<'a> {
        let now = || self.now();
        let copy = if self.in_flight.are_under_way(id) || now().is_none() {
            None
        } else {
            self.tier.find(id).await
        };
        if let (Some(Some(record)), Some(now)) = (&copy, now())
            && answers(record, now)
        {
            let record = Some(Arc::clone(record));
            return Lookup::Found(Snapshot { now, record });
        }
        Lookup::Ask(Query {
            id,
            guard: self.in_flight.look(id),
            sent_at: self.clocks.now(),
            has_no_copy: matches!(copy, Some(None)),
        })
    }

    /// Takes a copy of what the primary store answered, if it is finished and this process did not
    /// write meanwhile.
    async fn learn(&self, asked: Query<'_>, answer: &Snapshot) {
        self.time.observe(answer.now, asked.sent_at);
        let finished = answer.record.as_ref().filter(|record| is_finished(record));
        let Some(record) = finished else {
            return self.forget(asked).await;
        };
        // As old as the question, since something else may stand there from then on.
        let asked_since = self.clocks.now().since(asked.sent_at);
        let left = self.age.saturating_sub(asked_since);
        let at_most = left.min(record.expires.since(answer.now));
        if at_most.is_zero() {
            return;
        }
        let Some(fill) = asked.guard.fill() else {
            return;
        };
        self.tier.put(asked.id, record, at_most).await;
        if fill.is_outdated() {
            self.tier.forget(asked.id).await;
        }
    }

    /// Forgets a copy of what stands no more, unless there was none a moment ago, and none came
    /// since.
    async fn forget(&self, asked: Query<'_>) {
        if !asked.has_no_copy || asked.guard.was_filled() {
            let _guard = self.in_flight.write(asked.id);
            self.tier.forget(asked.id).await;
        }
    }
}

/// Whether a copy may be given as an answer at this time.
fn answers(copy: &Record, now: Time) -> bool {
    is_finished(copy) && !copy.is_expired(now)
}

/// Only what no call and no operator of the protocol changes any more. The next number moves a
/// stream that is done, and an operator may know an outcome that could not be kept.
fn is_finished(record: &Record) -> bool {
    let lacks_outcome = record
        .outcome
        .as_ref()
        .is_some_and(RawOutcome::is_not_replayable);
    record.state == State::Done && !record.is_stream() && !lacks_outcome
}

// The records that a purge deletes are expired, and so is every copy of them.
forward! {
    impl[] TieredStore, |it| it.primary, {
        async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
            let asked = match self.look_up(id).await {
                Lookup::Found(snapshot) => return Ok(snapshot),
                Lookup::Ask(query) => query,
            };
            let snapshot = self.primary.load(id).await?;
            self.shared.learn(asked, &snapshot).await;
            Ok(snapshot)
        }

        fn peek(&self, id: &RecordId) -> Option<Snapshot> {
            let began = self.begins();
            let found = self.shared.peek(id)?;
            self.has_found(began);
            Some(found)
        }

        async fn swap(
            &self,
            id: &RecordId,
            seen: Option<Version>,
            next: &Draft,
        ) -> Result<Swap, StoreError> {
            let shared = &self.shared;
            let Some(seen) = seen else {
                return self.claim(id, next).await;
            };
            // Nothing is given from the tier and nothing put there until this has ended, so it is
            // forgotten at the same time.
            let guard = shared.in_flight.write(id);
            let sent_at = shared.clocks.now();
            let mut swapping = pin!(self.primary.swap(id, Some(seen), next));
            let mut forgetting = pin!(shared.tier.forget(id));
            let mut forgotten = false;
            let answer = poll_fn(|context| {
                forgotten = forgotten || forgetting.as_mut().poll(context).is_ready();
                swapping.as_mut().poll(context)
            })
            .await;
            if !forgotten {
                forgetting.await;
            }
            drop(guard);
            let answer = answer?;
            let now = match &answer {
                Swap::Applied(stamp) => stamp.now,
                Swap::Refused(snapshot) => snapshot.now,
            };
            shared.time.observe(now, sent_at);
            Ok(answer)
        }

        async fn for_heartbeats(&self) -> Result<Option<Arc<dyn Store>>, StoreError> {
            let own = self.primary.for_heartbeats().await?;
            Ok(own.map(|primary| Arc::new(Self { primary, ..self.clone() }) as Arc<dyn Store>))
        }

        fn observed(&self, observer: &StoreObserver) -> Option<Arc<dyn Store>> {
            Some(Arc::new(Self {
                primary: observer.observe(Arc::clone(&self.primary)),
                observer: Some(observer.clone()),
                shared: Arc::clone(&self.shared),
            }))
        }

        /// It goes past the tier, which holds no copy of a record that a call may write over: only
        /// of one that is done and has not expired.
    }
}

impl TieredStore {
    /// Looks for a copy that may be given as an answer now.
    async fn look_up<'a>(&'a self, id: &'a RecordId) -> Lookup<'a> {
        let began = self.begins();
        let looked = self.shared.look_up(id).await;
        if let Lookup::Found(_) = looked {
            self.has_found(began);
        }
        looked
    }

    fn begins(&self) -> Duration {
        let observer = self.observer.as_ref();
        observer.map_or(Duration::ZERO, |observer| observer.timer.now())
    }

    /// Tells of a copy that answers, for which was looked since `began`.
    fn has_found(&self, began: Duration) {
        if let Some(observer) = &self.observer {
            observer.tell("tier", StoreAction::Load, began, &Ok(()));
        }
    }

    /// Puts `next` where nothing stands; a copy is as good a refusal as the record.
    async fn claim(&self, id: &RecordId, next: &Draft) -> Result<Swap, StoreError> {
        let shared = &self.shared;
        let asked = match self.look_up(id).await {
            Lookup::Found(snapshot) => return Ok(Swap::Refused(snapshot)),
            Lookup::Ask(query) => query,
        };
        let answer = self.primary.swap(id, None, next).await?;
        match &answer {
            Swap::Refused(snapshot) => shared.learn(asked, snapshot).await,
            Swap::Applied(stamp) => {
                shared.time.observe(stamp.now, asked.sent_at);
                shared.forget(asked).await;
            }
        }
        Ok(answer)
    }
}
