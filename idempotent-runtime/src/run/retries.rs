//! Trying again to claim, where the store fails.

use std::{slice, time::Duration};

use crate::{clock::Timer, store::StoreError};

/// How often a claim is sent again after the store failed, and how long after: a claim whose
/// answer was lost is recognised as one's own, so repeating it is safe.
pub(super) const RETRIES: [Duration; 2] = [Duration::from_millis(15), Duration::from_millis(60)];

/// The retries that are left.
pub(super) struct Retries(slice::Iter<'static, Duration>);

impl Retries {
    pub(super) fn new() -> Self {
        Self(RETRIES.iter())
    }

    /// Resolves when it is time to try again; gives the error back where trying again does not help, or has not helped.
    pub(super) async fn pause_after(
        &mut self,
        error: StoreError,
        timer: &dyn Timer,
    ) -> Result<(), StoreError> {
        timer.sleep(self.count(error)?).await;
        Ok(())
    }

    /// Takes a retry, and tells how long to pause before it.
    pub(super) fn count(&mut self, error: StoreError) -> Result<Duration, StoreError> {
        let pause = self.0.next().filter(|_| error.is_transient());
        pause.copied().ok_or(error)
    }
}
