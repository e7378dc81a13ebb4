//! Stands between a handle and its store: loses what is sent, and writes down all that was asked
//! and answered.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use idempotent_runtime::{
    StoreError, StoreErrorKind,
    identity::RecordId,
    record::{Draft, Record, Time, Version},
    store::{Snapshot, Stamp, Store, Swap},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::sync::watch;

use super::callers::{Books, Deed};

/// A process's way to the store.
#[derive(Clone, Debug)]
pub(super) struct Witness {
    inner: Arc<dyn Store>,
    link: Arc<Link>,
    ledger: Arc<Ledger>,
}

/// How a process fares on the way to the store.
#[derive(Debug)]
pub(super) struct Link {
    rng: Mutex<StdRng>,
    /// How many of a hundred requests meet something.
    faults: u32,
    lease: Duration,
    is_healed: AtomicBool,
    is_dead: AtomicBool,
    stalls: watch::Sender<bool>,
}

/// The fault that a request meets.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// It is answered.
    None,
    /// It never arrives.
    LosesTheRequest,
    /// It is applied, and its answer never arrives.
    LosesTheAnswer,
    /// It is applied after its caller was told that there is no answer.
    Straggles,
    /// The driver panics.
    Panics,
}

/// All that was asked, answered and done in a chaos run, in the order in which it was seen here.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Pages>);

#[derive(Debug, Default)]
pub(super) struct Pages {
    now: u64,
    pub(super) writes: Vec<Write>,
    pub(super) looks: Vec<Look>,
    pub(super) deeds: Vec<Deed>,
    /// The fault that each request met.
    pub(super) faults: Vec<Fault>,
    /// The times that the store's clock was known to have come to, and since when.
    pub(super) times: Vec<(u64, Time)>,
    pub(super) books: Books,
}

/// A write that was sent.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) sent: u64,
    pub(super) id: RecordId,
    pub(super) seen: Option<Version>,
    pub(super) draft: Draft,
    /// When it was answered, and how.
    pub(super) answer: Option<(u64, Answer)>,
}

#[derive(Clone, Debug)]
pub(super) enum Answer {
    Applied(Stamp),
    Refused,
    Failed,
}

/// The record that a look, or a refused write, showed.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub(super) sent: u64,
    pub(super) id: RecordId,
    pub(super) record: Option<Arc<Record>>,
    /// The version that a refused write had seen.
    pub(super) refused: Option<Version>,
}

impl Link {
    pub(super) fn new(seed: u64, faults: u32, lease: Duration) -> Self {
        Self {
            rng: Mutex::new(StdRng::seed_from_u64(seed)),
            faults,
            lease,
            is_healed: AtomicBool::new(false),
            is_dead: AtomicBool::new(false),
            stalls: watch::Sender::new(false),
        }
    }

    /// From now on, nothing that is sent reaches the store, and no answer reaches this process.
    pub(super) fn die(&self) {
        self.is_dead.store(true, Ordering::SeqCst);
    }

    pub(super) fn heal(&self) {
        self.is_healed.store(true, Ordering::SeqCst);
        self.stall(false);
    }

    /// Keeps requests and answers back until it is told otherwise.
    pub(super) fn stall(&self, stalls: bool) {
        self.stalls.send_replace(stalls);
    }

    /// Whether anything comes through, once it does not stall.
    async fn leads_on(&self) -> bool {
        let open = self.stalls.subscribe();
        // The sender lives in `self`, so the channel cannot close.
        let _ = { open }.wait_for(|stalls| !*stalls).await;
        !self.is_dead.load(Ordering::SeqCst)
    }

    fn draw(&self) -> (Fault, Duration) {
        if self.is_healed.load(Ordering::SeqCst) {
            return (Fault::None, Duration::ZERO);
        }
        let mut rng = lock(&self.rng);
        // It is sooner than a lease: for so long a claim that was given up is kept from standing.
        let pause = self.lease.mul_f64(rng.random_range(0.0..0.5));
        if rng.random_range(0..100) >= self.faults {
            let pause = if rng.random_range(0..20) == 0 {
                pause
            } else {
                Duration::ZERO
            };
            return (Fault::None, pause);
        }
        let fault = match rng.random_range(0..20) {
            0..5 => Fault::LosesTheRequest,
            5..13 => Fault::LosesTheAnswer,
            13..19 => Fault::Straggles,
            _ => Fault::Panics,
        };
        (fault, pause)
    }
}

impl Ledger {
    /// A moment after all that is written down so far.
    pub(super) fn tick(&self) -> u64 {
        lock(&self.0).tick()
    }

    pub(super) fn note(&self, deed: impl FnOnce(u64) -> Deed) {
        let mut pages = lock(&self.0);
        let deed = deed(pages.tick());
        pages.deeds.push(deed);
    }

    pub(super) fn books<T>(&self, ask: impl FnOnce(&mut Books) -> T) -> T {
        ask(&mut lock(&self.0).books)
    }

    pub(super) fn pages(&self) -> MutexGuard<'_, Pages> {
        lock(&self.0)
    }

    fn look(&self, sent: u64, id: RecordId, snapshot: &Snapshot, refused: Option<Version>) {
        let mut pages = lock(&self.0);
        pages.tell(snapshot.now);
        pages.looks.push(Look {
            sent,
            id,
            record: snapshot.record.clone(),
            refused,
        });
    }
}

impl Pages {
    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    fn tell(&mut self, now: Time) {
        let at = self.tick();
        self.times.push((at, now));
    }
}

impl Witness {
    pub(super) fn new(inner: Arc<dyn Store>, link: Arc<Link>, ledger: Arc<Ledger>) -> Self {
        Self {
            inner,
            link,
            ledger,
        }
    }

    async fn through<T: Send + 'static>(
        &self,
        doing: &'static str,
        act: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let silence = || StoreError::new(StoreErrorKind::Unavailable, doing);
        if !self.link.leads_on().await {
            return Err(silence());
        }
        let (fault, pause) = self.link.draw();
        self.ledger.pages().faults.push(fault);
        let answer = match fault {
            Fault::LosesTheRequest => Err(silence()),
            Fault::Panics => panic!("a driver that panics"),
            Fault::Straggles => {
                tokio::spawn(async move {
                    tokio::time::sleep(pause).await;
                    act.await
                });
                return Err(silence());
            }
            Fault::LosesTheAnswer => act.await.and_then(|_| Err(silence())),
            Fault::None => act.await,
        };
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        if !self.link.leads_on().await {
            return Err(silence());
        }
        answer
    }
}

#[async_trait]
impl Store for Witness {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        let (inner, ledger, id) = (Arc::clone(&self.inner), Arc::clone(&self.ledger), *id);
        self.through("loading", async move {
            let sent = ledger.tick();
            let answer = inner.load(&id).await;
            if let Ok(snapshot) = &answer {
                ledger.look(sent, id, snapshot, None);
            }
            answer
        })
        .await
    }

    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        let (inner, ledger) = (Arc::clone(&self.inner), Arc::clone(&self.ledger));
        let (id, draft) = (*id, next.clone());
        self.through("writing", async move {
            let (sent, index) = {
                let mut pages = ledger.pages();
                let sent = pages.tick();
                pages.writes.push(Write {
                    sent,
                    id,
                    seen,
                    draft: draft.clone(),
                    answer: None,
                });
                (sent, pages.writes.len() - 1)
            };
            let answer = inner.swap(&id, seen, &draft).await;
            let noted = match &answer {
                Ok(Swap::Applied(stamp)) => Answer::Applied(*stamp),
                Ok(Swap::Refused(snapshot)) => {
                    ledger.look(sent, id, snapshot, seen);
                    Answer::Refused
                }
                Err(_) => Answer::Failed,
            };
            let mut pages = ledger.pages();
            if let Answer::Applied(stamp) = &noted {
                pages.tell(stamp.now);
            }
            let at = pages.tick();
            pages.writes[index].answer = Some((at, noted));
            drop(pages);
            answer
        })
        .await
    }

    async fn wait(
        &self,
        id: &RecordId,
        seen: Version,
        at_most: Duration,
    ) -> Result<(), StoreError> {
        self.inner.wait(id, seen, at_most).await
    }

    async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        let inner = Arc::clone(&self.inner);
        self.through("purging", async move { inner.purge(limit, keep).await })
            .await
    }

    async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        self.inner.scan(after, limit).await
    }

    async fn for_heartbeats(&self) -> Result<Option<Arc<dyn Store>>, StoreError> {
        let own = self.inner.for_heartbeats().await?;
        Ok(own.map(|inner| {
            let (link, ledger) = (Arc::clone(&self.link), Arc::clone(&self.ledger));
            Arc::new(Self::new(inner, link, ledger)) as Arc<dyn Store>
        }))
    }
}

impl Write {
    pub(super) fn stamp(&self) -> Option<Stamp> {
        match &self.answer {
            Some((_, Answer::Applied(stamp))) => Some(*stamp),
            _ => None,
        }
    }

    /// Whether it is known not to stand.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.answer, Some((_, Answer::Refused)))
    }
}

/// Every version that was seen, as it was seen first.
pub(super) fn versions(looks: &[Look]) -> HashMap<Version, Arc<Record>> {
    let mut seen = HashMap::new();
    for record in looks.iter().filter_map(|look| look.record.as_ref()) {
        seen.entry(record.version)
            .or_insert_with(|| Arc::clone(record));
    }
    seen
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
