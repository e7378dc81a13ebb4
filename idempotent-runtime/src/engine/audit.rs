//! An audit of the records, looked at while calls go on.
//!
//! A call that would write a record pays one load of a number. The first one waits for a look. From
//! then on a task looks every ten seconds. A trail that does not stand, or that was not seen for 30
//! seconds, refuses every claim, until a look finds it again. If the task is gone with its runtime,
//! the next call looks again.

use std::{
    fmt,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::time::timeout;

use crate::{
    clock::Timer,
    error::{BoxError, Error},
    identity::RecordId,
    store::Store,
    value::lock,
};

/// A trail that the database writes, as the crate `idempotent-audit` makes one.
///
/// # Cancel safety
///
/// A future of these methods may be dropped at any await: an event is then written whole or not at
/// all.
#[async_trait]
pub trait AuditTrail: fmt::Debug + Send + Sync + 'static {
    /// Looks whether the trail stands, and in which store.
    ///
    /// # Errors
    ///
    /// Fails if the database does not answer.
    async fn look(&self) -> Result<TrailState, BoxError>;

    /// Writes an event.
    ///
    /// # Errors
    ///
    /// Fails if the event could not be written.
    async fn write(&self, event: &AuditEvent) -> Result<(), BoxError>;
}

/// The state of a trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrailState {
    /// It stands.
    Stands {
        /// The id of the store whose records it audits.
        store: String,
    },
    /// It does not, for this reason.
    Broken(String),
}

/// An event of a program, which is no change of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// Its name, such as `start`.
    pub event: &'static str,
    /// The process.
    pub holder: Arc<str>,
    /// The details.
    pub detail: String,
}

/// How often the task looks.
const EVERY: Duration = Duration::from_secs(10);

/// How long a trail may be out of sight.
const UNSEEN: Duration = Duration::from_secs(30);

/// How long one look may take.
const LOOK: Duration = Duration::from_secs(10);

/// States of [`AuditWatch::state`].
const UNKNOWN: u8 = 0;
const STANDS: u8 = 1;
const MISSING: u8 = 2;

/// The watch over a trail.
#[derive(Debug)]
pub(crate) struct AuditWatch {
    trail: Arc<dyn AuditTrail>,
    store: Arc<dyn Store>,
    timer: Arc<dyn Timer>,
    holder: Arc<str>,
    about: String,
    state: AtomicU8,
    /// Whether its start is an entry, and its stop none yet.
    has_started: AtomicBool,
    /// Why it is missing.
    reason: Mutex<Arc<str>>,
    /// Calls that ran while the handle was switched off, and were told of in no event yet.
    unprotected: AtomicU64,
    looking: tokio::sync::Mutex<()>,
    task: Mutex<Option<tokio::task::AbortHandle>>,
}

impl AuditWatch {
    pub(crate) fn new(
        trail: Arc<dyn AuditTrail>,
        (store, timer): (&Arc<dyn Store>, &Arc<dyn Timer>),
        holder: &Arc<str>,
        about: String,
    ) -> Arc<Self> {
        Arc::new(Self {
            trail,
            store: Arc::clone(store),
            timer: Arc::clone(timer),
            holder: Arc::clone(holder),
            about,
            state: AtomicU8::new(UNKNOWN),
            has_started: AtomicBool::new(false),
            reason: Mutex::new("it was not looked at yet".into()),
            unprotected: AtomicU64::new(0),
            looking: tokio::sync::Mutex::const_new(()),
            task: Mutex::new(None),
        })
    }

    /// Whether it stands, as far as is known.
    pub(crate) fn stands(&self) -> bool {
        self.state.load(Ordering::Acquire) == STANDS
    }

    /// Waits for a look if there was none, and fails unless the trail stands.
    pub(crate) async fn confirm(self: &Arc<Self>, operation: &Arc<str>) -> Result<(), Error> {
        let _alone = self.looking.lock().await;
        if self.state.load(Ordering::Acquire) == UNKNOWN {
            let mut fault = self.look().await.err();
            if let Some(Fault::Unseen(_)) = fault {
                // A database may fail once, as beside a change of its tables.
                fault = self.look().await.err();
            }
            self.note(fault);
            if self.stands() {
                let told = self.tell("start", self.about.clone()).await;
                self.has_started.store(told, Ordering::Relaxed);
            }
            self.start();
        }
        match self.stands() {
            true => Ok(()),
            false => Err(Error::AuditMissing {
                operation: Arc::clone(operation),
                reason: Arc::clone(&lock(&self.reason)),
            }),
        }
    }

    /// Counts a call that ran while the handle was switched off. The task writes the count.
    pub(crate) fn ran_unprotected(self: &Arc<Self>) {
        self.unprotected.fetch_add(1, Ordering::Relaxed);
        if lock(&self.task).is_none() && tokio::runtime::Handle::try_current().is_ok() {
            self.start();
        }
    }

    /// Writes what is left to tell, and that the process stops.
    pub(crate) async fn stop(&self) {
        self.tell_unprotected().await;
        if self.has_started.swap(false, Ordering::Relaxed) {
            self.tell("stop", self.about.clone()).await;
        }
    }

    /// Writes that an outcome is revealed to this person.
    ///
    /// # Errors
    ///
    /// [`Error::AuditMissing`] if the event could not be written.
    pub(crate) async fn revealed(
        &self,
        operation: &Arc<str>,
        id: &RecordId,
        by: &str,
    ) -> Result<(), Error> {
        let detail = format!("record {}, to {by}", id.to_hex());
        match self.tell("reveal", detail).await {
            true => Ok(()),
            false => Err(Error::AuditMissing {
                operation: Arc::clone(operation),
                reason: "the event `reveal` could not be written".into(),
            }),
        }
    }

    async fn tell_unprotected(&self) {
        let count = self.unprotected.swap(0, Ordering::Relaxed);
        if count > 0
            && !self
                .tell("kill_switch", format!("{count} calls ran unprotected"))
                .await
        {
            self.unprotected.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Writes an event, and returns whether it stands.
    async fn tell(&self, event: &'static str, detail: String) -> bool {
        let holder = Arc::clone(&self.holder);
        let event = AuditEvent {
            event,
            holder,
            detail,
        };
        match timeout(LOOK, self.trail.write(&event)).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::warn!(
                    error = &*error,
                    event = event.event,
                    "an event of the audit was not written"
                );
                false
            }
            Err(_) => {
                tracing::warn!(
                    event = event.event,
                    "an event of the audit was not written in time"
                );
                false
            }
        }
    }

    /// Looks: the error says why the trail is not that of the store, or was not seen.
    async fn look(&self) -> Result<(), Fault> {
        let look = async {
            let store = match self.trail.look().await.map_err(Fault::unseen)? {
                TrailState::Stands { store } => store,
                TrailState::Broken(reason) => return Err(Fault::Missing(reason)),
            };
            let own = self.store.transactions();
            let own = own.ok_or_else(|| Fault::Missing(NO_TRAIL.to_owned()))?;
            match own.store_id().await {
                Ok(Some(own)) if own == store => Ok(()),
                Ok(_) => Err(Fault::Missing(ELSEWHERE.to_owned())),
                Err(error) => Err(Fault::unseen(error.into())),
            }
        };
        let late = |_| {
            Err(Fault::Unseen(
                "the database did not answer in time".to_owned(),
            ))
        };
        timeout(LOOK, look).await.unwrap_or_else(late)
    }

    fn note(&self, fault: Option<Fault>) {
        let state = match fault {
            None => STANDS,
            Some(Fault::Missing(reason) | Fault::Unseen(reason)) => {
                *lock(&self.reason) = reason.into();
                MISSING
            }
        };
        let before = self.state.swap(state, Ordering::AcqRel);
        if before != state && state == MISSING {
            tracing::error!(
                reason = &**lock(&self.reason),
                "the audit is missing: calls are refused"
            );
        }
    }

    /// Starts the task that looks again and again. It ends with the watch.
    fn start(self: &Arc<Self>) {
        let mut task = lock(&self.task);
        if task.is_none() {
            let watching = watch(Ended(Arc::downgrade(self)), Arc::clone(&self.timer));
            *task = Some(tokio::spawn(watching).abort_handle());
        }
    }
}

/// Why a memory has no trail.
pub(crate) const NO_TRAIL: &str =
    "this store has no audit: those of Postgres, MariaDB, MySQL and SQLite have";

/// Why a call may not run without its record.
pub(crate) const OPEN_IN_AUDIT: &str = "a body that runs without a record leaves no entry in the audit: leave `on_outage = open` out, or the audit";

const ELSEWHERE: &str =
    "it audits the records of another store: give both the same database and prefix";

/// Why a look found no trail.
enum Fault {
    /// It is not there.
    Missing(String),
    /// It may be there.
    Unseen(String),
}

impl Fault {
    fn unseen(error: BoxError) -> Self {
        Self::Unseen(format!("it could not be looked at: {error}"))
    }
}

/// Tells that the task is gone, however it ended.
struct Ended(Weak<AuditWatch>);

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(watch) = self.0.upgrade() {
            watch.state.store(UNKNOWN, Ordering::Release);
            *lock(&watch.task) = None;
        }
    }
}

impl Drop for AuditWatch {
    fn drop(&mut self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }
}

async fn watch(of: Ended, timer: Arc<dyn Timer>) {
    let mut seen = timer.now();
    loop {
        timer.sleep(EVERY).await;
        let Some(watch) = of.0.upgrade() else { return };
        watch.tell_unprotected().await;
        let fault = watch.look().await.err();
        let is_unseen = matches!(fault, Some(Fault::Unseen(_)));
        if !is_unseen {
            seen = timer.now();
        }
        if !is_unseen || timer.now().saturating_sub(seen) >= UNSEEN {
            watch.note(fault);
        }
    }
}
