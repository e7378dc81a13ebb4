//! A task that verifies the trail again and again.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use idempotent_runtime::{Error, IntoDuration, Time};

use crate::{audit::Audit, error::AuditError, report::Report};

impl Audit {
    /// Verifies the whole trail now, and then again and again, until the task is stopped or
    /// dropped: `"1d"`, or a `Duration`. One process is enough. A divergence is logged at ERROR,
    /// and a verification that failed at WARN.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] if the duration cannot be read, or is shorter than a second.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_audit::Audit;
    /// # async fn example(audit: Audit) -> Result<(), idempotent_runtime::Error> {
    /// let verifying = audit.verify_every("1d")?;
    /// if let Some(verified) = verifying.last() {
    ///     println!("{}: {verified}", verified.at);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn verify_every(&self, every: impl IntoDuration) -> Result<VerifyTask, Error> {
        let every = every.into_duration()?;
        if every < Duration::from_secs(1) {
            return Err(Error::InvalidPolicy(
                "a trail is read as a whole at each verification: take hours, or a second at least",
            ));
        }
        let last = Verifications::new(every);
        let (audit, keeps) = (self.clone(), last.clone());
        let task = tokio::spawn(async move {
            loop {
                let began = Instant::now();
                keeps.keep(audit.verify().run().await, began);
                tokio::time::sleep(every).await;
            }
        });
        Ok(VerifyTask { last, task })
    }
}

/// Verifies the trail again and again, until it is dropped.
#[derive(Debug)]
#[must_use = "verifying ends when the task is dropped"]
pub struct VerifyTask {
    last: Verifications,
    task: tokio::task::JoinHandle<()>,
}

impl VerifyTask {
    /// Returns the last verification; `None` before the first one has ended.
    #[must_use]
    pub fn last(&self) -> Option<Arc<Verified>> {
        self.last.last()
    }

    /// Returns what shows the last verification elsewhere, as on a page.
    #[must_use]
    pub fn verifications(&self) -> Verifications {
        self.last.clone()
    }
}

impl Drop for VerifyTask {
    fn drop(&mut self) {
        self.task.abort();
        self.last.state().is_dropped = true;
    }
}

/// Returns the last verification of a [task](VerifyTask).
#[derive(Clone, Debug)]
pub struct Verifications(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    every: Duration,
    /// When the last verification ended, or else when the task began, and how long the longest one
    /// took.
    ended: Instant,
    longest: Duration,
    last: Option<Arc<Verified>>,
    is_dropped: bool,
}

impl Verifications {
    fn new(every: Duration) -> Self {
        Self(Arc::new(Mutex::new(State {
            every,
            ended: Instant::now(),
            longest: Duration::from_secs(60),
            last: None,
            is_dropped: false,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the last verification; `None` before the first one has ended.
    #[must_use]
    pub fn last(&self) -> Option<Arc<Verified>> {
        self.state().last.clone()
    }

    /// Returns whether the next verification does not come: the task was dropped, or is late by as
    /// long as it usually sleeps and works, and a minute at least. The last one is no news then.
    #[must_use]
    pub fn is_late(&self) -> bool {
        let state = self.state();
        let longest = (state.every + state.longest).saturating_mul(2);
        state.is_dropped || state.ended.elapsed() > longest
    }

    fn keep(&self, result: Result<Report, AuditError>, began: Instant) {
        let verified = Verified {
            at: now(),
            result: result.map_err(Arc::new),
        };
        match &verified.result {
            Ok(Report {
                divergence: Some(divergence),
                ..
            }) => tracing::error!(%divergence, "the audit trail is not what it was"),
            Err(error) => tracing::warn!(
                error = &**error as &dyn std::error::Error,
                "the audit trail could not be verified"
            ),
            Ok(_) => {}
        }
        let mut state = self.state();
        state.ended = Instant::now();
        state.longest = state.longest.max(began.elapsed());
        state.last = Some(Arc::new(verified));
    }
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let micros = since.unwrap_or_default().as_micros();
    Time::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

/// A verification that has ended. Its text is one sentence.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Verified {
    /// When it ended, by the clock of this process.
    pub at: Time,
    /// The report, or why there is none.
    pub result: Result<Report, Arc<AuditError>>,
}

impl Verified {
    /// Returns whether the trail was read, and is what it was.
    #[must_use]
    pub fn holds(&self) -> bool {
        matches!(&self.result, Ok(report) if report.divergence.is_none())
    }
}

impl std::fmt::Display for Verified {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.result {
            Err(error) => write!(f, "The audit trail could not be verified: {error}."),
            Ok(Report {
                divergence: Some(divergence),
                ..
            }) => write!(f, "The audit trail is not what it was: {divergence}."),
            Ok(report) => write!(
                f,
                "The audit trail holds: {} entries in {} batches.",
                report.entries, report.batches
            ),
        }
    }
}
