//! Reads, on a schedule, how many calls stand open in the journal.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinHandle;

use crate::keys::{IdempotencyKeys, Inner};
use crate::observe::OpenCalls;
use crate::wire::deadline::before;
use idempotent_runtime::{__client::survive, StoreError};

/// The shortest interval.
const SHORTEST: Duration = Duration::from_millis(100);

/// How many intervals a reading is shown.
const SHOWN_FOR: u32 = 3;

/// So many open calls are counted, and no more.
const MOST: u32 = 10_000;

/// Reads the journal again and again, and tells
/// [observers](crate::ClientObserver::open_calls). Dropped, it stops.
#[derive(Debug)]
#[must_use = "dropped, it stops"]
pub struct Sampler(JoinHandle<()>);

impl Drop for Sampler {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl IdempotencyKeys {
    /// Starts to read how many calls stand open in the journal, and how old the oldest one is:
    /// every `every`, and at least every 100 ms apart. Calls under way are among them, so an age
    /// says more than a number. 10 000 are counted at most.
    ///
    /// Processes that share a journal read the same: take the greatest of their readings, not the
    /// sum. A reading that fails is logged. If none succeeded for three intervals, or the sampler
    /// is dropped, observers are told that there is none.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use idempotent_client::{IdempotencyKeys, Profile};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), reqwest::Error> {
    /// let builder = IdempotencyKeys::builder(Profile::ietf());
    /// let (http, keys) = builder.build(reqwest::Client::builder())?;
    /// let sampler = keys.sample(Duration::from_secs(15));
    /// // … until the program ends …
    /// drop(sampler);
    /// # let _ = http;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sample(&self, every: Duration) -> Sampler {
        let work = Work {
            inner: Arc::clone(&self.inner),
            every: every.max(SHORTEST),
            shows: false,
        };
        Sampler(tokio::spawn(work.run()))
    }
}

struct Work {
    inner: Arc<Inner>,
    every: Duration,
    /// Whether observers have a reading.
    shows: bool,
}

/// However its task ends, nothing is shown any more.
impl Drop for Work {
    fn drop(&mut self) {
        self.hide();
    }
}

impl Work {
    async fn run(mut self) {
        let timer = Arc::clone(&self.inner.timer);
        let shown_for = self.every.saturating_mul(SHOWN_FOR);
        let mut hides = timer.now().saturating_add(shown_for);
        loop {
            let next = timer.now().saturating_add(self.every);
            // A journal that is silent does not keep an old reading on show.
            match before(&*timer, hides, survive(self.read())).await {
                Some(Some(Ok(reading))) => {
                    hides = timer.now().saturating_add(shown_for);
                    self.shows = true;
                    let observers = &self.inner.observers;
                    observers.tell(|it| it.open_calls(Some(&reading)));
                }
                Some(Some(Err(error))) => {
                    tracing::warn!(%error, "the open calls of the journal cannot be counted");
                }
                Some(None) => tracing::warn!("the journal panicked while its calls were counted"),
                None => tracing::warn!("the journal does not say how many calls are open"),
            }
            if timer.now() >= hides {
                self.hide();
                hides = timer.now().saturating_add(shown_for);
            }
            timer.sleep_until(next).await;
        }
    }

    async fn read(&self) -> Result<OpenCalls, StoreError> {
        let (calls, oldest) = self.inner.journal.count_unfinished(MOST).await?;
        let now = self.inner.clock.now();
        Ok(OpenCalls {
            calls,
            is_capped: calls >= u64::from(MOST),
            oldest: oldest.map_or(Duration::ZERO, |oldest| now.since(oldest)),
        })
    }

    fn hide(&mut self) {
        if std::mem::take(&mut self.shows) {
            self.inner.observers.tell(|it| it.open_calls(None));
        }
    }
}
