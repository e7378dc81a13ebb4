//! Duplicates of one call share the looks at its outcome.
//!
//! One look at a record is under way at once. Callers that come meanwhile wait for its end. Then
//! one of them looks, for all that have waited. So a look answers only callers that came before it
//! was sent, and shows each of them what stood during its call.
//!
//! A caller waits for others only for a moment. Then it looks by itself: the one that looks for it
//! may be kept from running.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{sync::Mutex as Turn, time::timeout};

use crate::{identity::RecordId, value::lock};

/// How long a caller waits for the looks of others.
const PATIENCE: Duration = Duration::from_millis(100);

/// The looks that are under way, by record.
pub(super) struct SharedLooks<A>(Mutex<HashMap<RecordId, Callers<A>>>);

/// The callers that look at one record, or wait for that.
struct Callers<A> {
    count: usize,
    looks: Arc<Looks<A>>,
}

/// The looks at one record.
struct Looks<A> {
    /// The caller that has it looks.
    turn: Turn<()>,
    last: Mutex<Last<A>>,
}

/// The last look at a record.
struct Last<A> {
    /// How many looks have begun.
    begun: u64,
    /// What the last one of them has shown, if it is over.
    shown: Option<A>,
}

impl<A: Clone> SharedLooks<A> {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    /// Looks at a record, or returns the answer of a look that began after this caller came.
    ///
    /// # Cancel safety
    ///
    /// If a caller goes away while it looks, another one that waits looks in its place.
    pub(super) async fn look<F: Future<Output = A>>(
        &self,
        id: &RecordId,
        look: impl FnOnce() -> F,
    ) -> A {
        let place = self.enter(id);
        let came = lock(&place.looks.last).begun;
        let Ok(_turn) = timeout(PATIENCE, place.looks.turn.lock()).await else {
            return look().await;
        };
        if let Some(answer) = place.looks.since(came) {
            return answer;
        }
        let number = place.looks.begin();
        let answer = look().await;
        place.looks.end(number, &answer);
        answer
    }

    fn enter(&self, id: &RecordId) -> Place<'_, A> {
        let mut all = lock(&self.0);
        let callers = all.entry(*id).or_insert_with(|| Callers {
            count: 0,
            looks: Arc::new(Looks::new()),
        });
        callers.count += 1;
        Place {
            all: self,
            id: *id,
            looks: Arc::clone(&callers.looks),
        }
    }
}

impl<A: Clone> Looks<A> {
    fn new() -> Self {
        Self {
            turn: Turn::new(()),
            last: Mutex::new(Last {
                begun: 0,
                shown: None,
            }),
        }
    }

    /// The answer of a look that began after so many, if it is over.
    fn since(&self, came: u64) -> Option<A> {
        let last = lock(&self.last);
        last.shown.clone().filter(|_| last.begun > came)
    }

    fn begin(&self) -> u64 {
        let mut last = lock(&self.last);
        last.begun += 1;
        last.shown = None;
        last.begun
    }

    fn end(&self, number: u64, answer: &A) {
        let mut last = lock(&self.last);
        if last.begun == number {
            last.shown = Some(answer.clone());
        }
    }
}

/// A caller among those that look at a record. The last one that leaves takes the record out.
struct Place<'a, A> {
    all: &'a SharedLooks<A>,
    id: RecordId,
    looks: Arc<Looks<A>>,
}

impl<A> Drop for Place<'_, A> {
    fn drop(&mut self) {
        let mut all = lock(&self.all.0);
        if let Some(callers) = all.get_mut(&self.id) {
            callers.count -= 1;
            if callers.count == 0 {
                all.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        pin::pin,
        sync::atomic::{AtomicU32, Ordering},
        task::{Context, Waker},
    };

    use super::*;

    const ID: RecordId = RecordId::from_bytes([1; 32]);
    const LOOK: Duration = Duration::from_millis(10);

    /// A look that takes ten milliseconds, and shows how many began before it.
    async fn look(begun: &AtomicU32) -> u32 {
        let number = begun.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(LOOK).await;
        number
    }

    #[tokio::test(start_paused = true)]
    async fn callers_that_come_during_a_look_share_the_next_one() {
        let (all, begun) = (SharedLooks::new(), AtomicU32::new(0));
        let one = || all.look(&ID, || look(&begun));

        let (first, second, third) = tokio::join!(one(), one(), one());

        assert_eq!([first, second, third], [0, 1, 1]);
        assert_eq!(
            one().await,
            2,
            "a look that is over answers no later caller"
        );
        assert!(lock(&all.0).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn callers_of_other_records_look_at_once() {
        let (all, begun) = (SharedLooks::new(), AtomicU32::new(0));
        let other = RecordId::from_bytes([2; 32]);
        let began = tokio::time::Instant::now();

        tokio::join!(
            all.look(&ID, || look(&begun)),
            all.look(&other, || look(&begun))
        );

        assert_eq!(began.elapsed(), LOOK);
    }

    #[tokio::test(start_paused = true)]
    async fn if_the_one_that_looks_goes_away_another_one_looks() {
        let (all, begun) = (SharedLooks::new(), AtomicU32::new(0));
        let one = || all.look(&ID, || look(&begun));
        let left = timeout(LOOK / 2, one());

        let (left, waiting) = tokio::join!(left, one());

        assert!(left.is_err());
        assert_eq!(waiting, 1);
        assert!(lock(&all.0).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_kept_from_running_keeps_the_others_for_a_moment_only() {
        let (all, begun) = (SharedLooks::new(), AtomicU32::new(0));
        let mut blocked = pin!(all.look(&ID, pending::<u32>));
        let is_pending = blocked
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending();
        assert!(is_pending);
        let began = tokio::time::Instant::now();

        all.look(&ID, || look(&begun)).await;

        assert_eq!(began.elapsed(), PATIENCE + LOOK);
    }
}
