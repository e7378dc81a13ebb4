//! The crash matrix. It has a case for every call of the store that a first call makes, before and
//! after that call of the store takes effect, and in every mode. The process is cut off there, for
//! good or for one answer. Then two others call.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use idempotent_runtime::{
    Error, Idempotency, Store, StoreError, StoreErrorKind,
    identity::RecordId,
    record::{Draft, Record, State, Version},
    store::{Snapshot, Swap},
    testing::{Fault, ManualClock, On, StoreOperation},
};

use crate::{
    answers::{is_in_progress, is_uncertain},
    charge::{Answer, Charge, Found, LEASE, MODES, Mode},
    harness::{World, while_time_goes_on},
};

on_every_store![
    d28_crash_matrix_cut_off_for_good,
    d28_crash_matrix_one_call_fails,
    d28_crash_matrix_of_a_takeover,
];

/// The moment at which the process is cut off from its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// The call does not arrive.
    Before,
    /// The call is applied, and its answer is lost.
    After,
}

/// A store that a process loses at its `n`th call, for good.
#[derive(Clone, Debug)]
struct Severed {
    store: Arc<dyn Store>,
    calls: Arc<AtomicUsize>,
    last: usize,
    cut: Cut,
}

impl Severed {
    async fn through<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let number = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let gone = Err(StoreError::new(
            StoreErrorKind::Unavailable,
            "reaching the store",
        ));
        match (number.cmp(&self.last), self.cut) {
            (std::cmp::Ordering::Less, _) => call.await,
            (std::cmp::Ordering::Equal, Cut::After) => {
                call.await?;
                gone
            }
            _ => gone,
        }
    }

    fn is_cut(&self) -> bool {
        self.calls.load(Ordering::SeqCst) >= self.last
    }
}

#[async_trait]
impl Store for Severed {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        self.through(self.store.load(id)).await
    }
    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        self.through(self.store.swap(id, seen, next)).await
    }
    async fn wait(
        &self,
        id: &RecordId,
        seen: Version,
        at_most: Duration,
    ) -> Result<(), StoreError> {
        self.through(self.store.wait(id, seen, at_most)).await
    }
    async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        self.through(self.store.purge(limit, keep)).await
    }
    async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        self.through(self.store.scan(after, limit)).await
    }
}

/// Asserts the end that every history must come to. `first` is the answer to the first call, if it
/// lived to be told anything.
async fn check(world: &World, charge: &Charge, key: &str, mode: Mode, first: Option<Answer>) {
    let began = world.runs(key);
    let second = charge.call().await;
    let third = charge.call().await;

    // The key is never stuck beyond the lease.
    assert!(!is_in_progress(&second), "{second:?}");
    assert_eq!(second, third, "later answers are equal");
    let runs = world.runs(key);
    match mode {
        Mode::Rerun | Mode::Detach => assert!(second.is_ok() && runs <= 2, "{second:?}, {runs}"),
        Mode::Uncertain => assert!(
            runs <= 1 && (second.is_ok() || is_uncertain(&second)),
            "{second:?}, {runs}"
        ),
        Mode::Reconcile(Found::Happened) => assert!(runs <= 1 && second.is_ok(), "{second:?}"),
        Mode::Reconcile(Found::Nothing) => assert!(runs <= 2 && second.is_ok(), "{second:?}"),
        Mode::Reconcile(Found::Unknown) => assert!(
            runs <= 1 && (second.is_ok() || is_uncertain(&second)),
            "{second:?}, {runs}"
        ),
    }
    if let Some(first) = first
        && began == 0
    {
        assert!(
            matches!(first, Err(Error::Store(_))),
            "nothing ran, and it was told {first:?}"
        );
    }
    if second.is_ok() {
        let stands = world.record_of(key).await.map(|record| record.state);
        assert_eq!(stands, Some(State::Done), "one recorded outcome");
    }
}

async fn d28_crash_matrix_cut_off_for_good(world: World) {
    let owner = world.owner().await;
    let mut number = 0;
    for mode in MODES {
        for cut in [Cut::Before, Cut::After] {
            for last in 1.. {
                number += 1;
                let key = format!("k{number}");
                let store = Severed {
                    store: world.store().await,
                    calls: Arc::default(),
                    last,
                    cut,
                };
                let timer = ManualClock::new();
                let mortal = Idempotency::builder(store.clone()).timer(timer.clone());
                let mortal = mortal.build().expect("the set-up is sound");
                let charge = Charge::of(&world, &owner).key(key.as_str()).mode(mode);
                let first = while_time_goes_on(&timer, charge.call_with(&mortal)).await;
                if !store.is_cut() {
                    assert_eq!(first, Ok("charged".into()));
                    assert!(last > 2, "a first call makes two calls of the store");
                    break;
                }
                drop(mortal);
                // The retries that still go on in the background are given up.
                timer.advance(Duration::from_secs(2 * 24 * 60 * 60));
                world.advance(LEASE).await;

                check(&world, &charge, &key, mode, Some(first)).await;
            }
        }
    }
}

async fn d28_crash_matrix_one_call_fails(world: World) {
    let mut number = 0;
    for mode in MODES {
        for fault in [Fault::LoseRequest, Fault::LoseAnswer] {
            for operation in [StoreOperation::Claim, StoreOperation::Ending] {
                number += 1;
                let key = format!("k{number}");
                let owner = world.owner().await;
                owner.fault(operation, On::Call(1), fault.clone());
                let charge = Charge::of(&world, &owner).key(key.as_str()).mode(mode);

                let first = while_time_goes_on(&owner.timer, charge.call()).await;

                let what = format!("{mode:?}, {fault:?} at {operation:?}");
                assert_eq!(first, Ok("charged".into()), "{what}");
                let drained = owner.clone();
                while_time_goes_on(&owner.timer, async move { drained.settled().await }).await;
                assert_eq!(charge.call().await, first, "{what}");
                assert_eq!(world.runs(&key), 1, "{what}");
                check(&world, &charge, &key, mode, Some(first)).await;
            }
        }
    }
}

async fn d28_crash_matrix_of_a_takeover(world: World) {
    let mut number = 0;
    for mode in MODES {
        for fault in [Fault::LoseRequest, Fault::LoseAnswer] {
            // Its first claim meets the record, its second one is the takeover.
            for (operation, nth) in [
                (StoreOperation::Claim, 1),
                (StoreOperation::Claim, 2),
                (StoreOperation::Ending, 1),
            ] {
                number += 1;
                let key = format!("k{number}");
                let (dead, owner) = (world.owner().await, world.owner().await);
                let charge = |owner| Charge::of(&world, owner).key(key.as_str()).mode(mode);
                charge(&dead).vanishes().await;
                world.advance(LEASE).await;
                owner.fault(operation, On::Call(nth), fault.clone());
                let first = while_time_goes_on(&owner.timer, charge(&owner).call()).await;

                let what = format!("{mode:?}, {fault:?} at {operation:?} {nth}");
                match mode {
                    Mode::Rerun | Mode::Detach | Mode::Reconcile(Found::Nothing) => {
                        assert_eq!(
                            (first, world.runs(&key)),
                            (Ok("charged".into()), 2),
                            "{what}"
                        );
                    }
                    Mode::Reconcile(Found::Happened) => {
                        assert_eq!((first, world.runs(&key)), (Ok("found".into()), 1), "{what}");
                    }
                    Mode::Uncertain | Mode::Reconcile(Found::Unknown) => {
                        assert!(
                            is_uncertain(&first) && world.runs(&key) == 1,
                            "{what}: {first:?}"
                        );
                    }
                }
                owner.store.heal();
                let later = charge(&world.owner().await);
                let drained = owner.clone();
                while_time_goes_on(&owner.timer, async move { drained.settled().await }).await;
                check(&world, &later, &key, mode, None).await;
            }
        }
    }
}
