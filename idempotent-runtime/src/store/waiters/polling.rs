//! Looking again and again, if no notification says that a record moved.

use std::time::Duration;

use crate::{
    identity::RecordId,
    record::Version,
    store::{Store, StoreError},
};

pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(5);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Looks again and again, in growing intervals, until the record is no longer at version `seen`, or
/// `at_most` has passed.
pub(crate) async fn poll_until_moved<S: Store + ?Sized>(
    store: &S,
    id: &RecordId,
    seen: Version,
    at_most: Duration,
) -> Result<(), StoreError> {
    let looking = async {
        let mut pause = FIRST_PAUSE;
        while store
            .load(id)
            .await?
            .record
            .is_some_and(|record| record.version == seen)
        {
            tokio::time::sleep(jittered(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(())
    };
    let looked = tokio::time::timeout(at_most, looking).await;
    looked.unwrap_or(Ok(()))
}

/// Somewhere in the upper half of `pause`, so that calls that began together do not look together.
pub(super) fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::random_range(0.5..=1.0))
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::{
        pin::pin,
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
    };

    use async_trait::async_trait;

    use super::*;
    use crate::{
        record::{Draft, Record, Time},
        store::{MemoryStore, Snapshot, Swap, waiters::Waiters},
    };

    const ONE: RecordId = RecordId::from_bytes([1; 32]);

    /// Answers the same version for so many looks, then that nothing stands there.
    #[derive(Debug)]
    struct Stubborn {
        inner: MemoryStore,
        looks: AtomicU32,
        moves_at: u32,
    }

    #[async_trait]
    impl Store for Stubborn {
        async fn load(&self, _: &RecordId) -> Result<Snapshot, StoreError> {
            let look = self.looks.fetch_add(1, Ordering::SeqCst) + 1;
            let record =
                (look < self.moves_at).then(|| Arc::new(crate::store::memory::tests::record(SEEN)));
            Ok(Snapshot {
                now: Time::from_micros(0),
                record,
            })
        }
        async fn swap(
            &self,
            id: &RecordId,
            seen: Option<Version>,
            next: &Draft,
        ) -> Result<Swap, StoreError> {
            self.inner.swap(id, seen, next).await
        }
        async fn wait(
            &self,
            id: &RecordId,
            seen: Version,
            at_most: Duration,
        ) -> Result<(), StoreError> {
            poll_until_moved(self, id, seen, at_most).await
        }
        async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
            self.inner.purge(limit, keep).await
        }
        async fn scan(
            &self,
            after: Option<RecordId>,
            limit: u32,
        ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
            self.inner.scan(after, limit).await
        }
    }

    const SEEN: Version = Version::from_u128(7);

    fn stubborn(moves_at: u32) -> Stubborn {
        Stubborn {
            inner: MemoryStore::new(),
            looks: AtomicU32::new(0),
            moves_at,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn polling_sees_what_nobody_wakes_for() {
        let store = stubborn(4);
        let began = tokio::time::Instant::now();

        store
            .wait(&ONE, SEEN, Duration::from_secs(60))
            .await
            .expect("the store answers");

        // Three pauses of 5, 10 and 20 ms, each shortened by at most half; tokio rounds up to whole
        // milliseconds.
        let took = began.elapsed();
        assert!(
            took >= Duration::from_micros(17_500) && took <= Duration::from_millis(38),
            "{took:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn polling_slows_down_to_two_looks_a_second_and_ends_at_its_bound() {
        let store = stubborn(u32::MAX);
        let began = tokio::time::Instant::now();

        store
            .wait(&ONE, SEEN, Duration::from_secs(60))
            .await
            .expect("the store answers");

        assert!(began.elapsed() < Duration::from_millis(60_002));
        let looks = store.looks.load(Ordering::SeqCst);
        assert!((120..=260).contains(&looks), "{looks} looks");
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_look_of_one_that_is_not_polled() {
        use crate::store::waiters::look::PollInterval;
        // Each looks once for itself, and then one of four three times for all of them.
        let (store, waiters) = (stubborn(1 + 4 + 3), Waiters::new());
        let wait = || {
            let (store, waiters) = (&store, &waiters);
            waiters.wait(store, &ONE, SEEN, Duration::from_secs(60), || {
                PollInterval::POLLING
            })
        };
        let mut leads = pin!(wait());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(leads.as_mut().poll(&mut context).is_pending());
        let began = tokio::time::Instant::now();

        let (a, b, c, d) = tokio::join!(wait(), wait(), wait(), wait());

        assert!([a, b, c, d].iter().all(Result::is_ok));
        let took = began.elapsed();
        assert!(
            took >= Duration::from_secs(3) && took < Duration::from_secs(10),
            "{took:?}"
        );
        assert_eq!(store.looks.load(Ordering::SeqCst), 8);
    }
}
