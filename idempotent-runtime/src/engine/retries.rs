//! Trying again to claim, where the store fails.

use std::{slice, time::Duration};

use crate::{
    clock::Timer,
    store::{Snapshot, StoreError, StoreErrorKind},
};

/// How often a claim is sent again after the store failed, and how long after. A claim whose answer
/// was lost is recognised by its caller, so repeating it is safe.
pub(crate) const RETRIES: [Duration; 2] = [Duration::from_millis(15), Duration::from_millis(60)];

/// The retries that are left.
pub(crate) struct Retries(slice::Iter<'static, Duration>);

impl Retries {
    pub(crate) fn new() -> Self {
        Self(RETRIES.iter())
    }

    /// Resolves when it is time to try again; gives the error back where trying again does not
    /// help, or has not helped.
    pub(crate) async fn pause_after(
        &mut self,
        error: StoreError,
        timer: &dyn Timer,
    ) -> Result<(), StoreError> {
        timer.sleep(self.count(error)?).await;
        Ok(())
    }

    /// Takes a retry, and tells how long to pause before it.
    pub(crate) fn count(&mut self, error: StoreError) -> Result<Duration, StoreError> {
        let pause = self.0.next().filter(|_| error.is_transient());
        pause.copied().ok_or(error)
    }
}

/// How often in a row a claim that found nothing to wait for may be refused before it pauses:
/// mostly another call was quicker.
const AT_ONCE: u32 = 16;

/// How often it pauses then, each time for twice as long: after that, no store that works still
/// refuses it.
const PAUSES: u32 = 6;

/// The refusals that a claim has met in a row.
#[derive(Default)]
pub(crate) struct Refusals {
    met: u32,
    shows_nothing: bool,
}

impl Refusals {
    pub(crate) fn met(&mut self, refused: &Snapshot) {
        self.met += 1;
        self.shows_nothing = refused.record.is_none();
    }

    /// How long to pause before the next claim; an error where the caller's patience is over, or no
    /// patience would help.
    pub(crate) fn pause(
        &self,
        patience: impl FnOnce() -> Duration,
    ) -> Result<Duration, StoreError> {
        let Some(paused) = self.met.checked_sub(AT_ONCE) else {
            return Ok(Duration::ZERO);
        };
        let patience = patience();
        if paused < PAUSES && !patience.is_zero() {
            return Ok(patience.min(RETRIES[0] * 2_u32.pow(paused)));
        }
        let (kind, source) = if self.shows_nothing {
            (
                StoreErrorKind::Denied,
                "every claim is refused, and no record is shown: something hides it, or the store is not what it has to be",
            )
        } else {
            (
                StoreErrorKind::Busy,
                "the record moves before each claim of it",
            )
        };
        Err(StoreError::new(kind, "claiming a record").with_source(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Time;

    const MINUTE: Duration = Duration::from_secs(60);

    fn refused(times: u32) -> Refusals {
        let shows_nothing = Snapshot {
            now: Time::from_micros(1),
            record: None,
        };
        let mut refusals = Refusals::default();
        (0..times).for_each(|_| refusals.met(&shows_nothing));
        refusals
    }

    #[test]
    fn mend_41_a_claim_gives_up_after_its_count_of_refusals() {
        for times in 1..AT_ONCE {
            let pause = refused(times).pause(|| MINUTE);
            assert_eq!(pause.ok(), Some(Duration::ZERO), "{times}");
        }
        for (times, millis) in (AT_ONCE..).zip([15, 30, 60, 120, 240, 480]) {
            let pause = refused(times).pause(|| MINUTE);
            assert_eq!(pause.ok(), Some(Duration::from_millis(millis)), "{times}");
        }
        let error = refused(AT_ONCE + PAUSES).pause(|| MINUTE);
        let kind = error.expect_err("no pause is left").kind();
        assert_eq!(kind, StoreErrorKind::Denied);
    }

    #[test]
    fn mend_41_a_claim_gives_up_when_the_patience_of_its_caller_is_over() {
        let pause = refused(AT_ONCE).pause(|| Duration::from_millis(4));
        assert_eq!(pause.ok(), Some(Duration::from_millis(4)));
        assert!(refused(AT_ONCE).pause(|| Duration::ZERO).is_err());
    }
}
