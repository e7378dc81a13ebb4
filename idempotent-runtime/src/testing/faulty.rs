//! A store that fails where a test says so.

mod fault;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;

pub use self::fault::{Fault, On, StoreOperation};

use crate::{
    identity::RecordId,
    policy::OnCrash,
    record::{Draft, OutcomeKind, State},
    store::{
        Store, StoreError, StoreErrorKind, TransactionStore,
        through::{through, transactions_through},
    },
    value::{lock, opaque},
};

/// Wraps a store: counts its calls, and fails, delays or loses those that a test names. Clones
/// share everything, and so does the store that it hands out for heartbeats.
///
/// # Examples
///
/// The claim is applied, and its answer is lost:
///
/// ```
/// use idempotent_runtime::{store::MemoryStore, testing::{Fault, FaultyStore, On, StoreOperation}};
///
/// let store = FaultyStore::new(MemoryStore::new());
/// store.fault(StoreOperation::Claim, On::Call(1), Fault::LoseAnswer);
/// // … one call of an idempotent function over `store` …
/// assert_eq!(store.calls(StoreOperation::Claim), 0);
/// ```
#[derive(Clone, Debug)]
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    plan: Arc<Mutex<Plan>>,
    peeks: bool,
}

#[derive(Default)]
struct Plan {
    faults: Vec<(StoreOperation, On, Fault)>,
    calls: HashMap<StoreOperation, u64>,
    swaps_to: HashMap<State, u64>,
    under_way: u64,
}

opaque!(Plan, |it| faults = it.faults, calls = it.calls);

impl FaultyStore {
    /// Wraps `store`, without faults.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self {
            inner: Arc::new(store),
            plan: Arc::default(),
            peeks: false,
        }
    }

    /// Lets calls [peek](Store::peek) at what stands in the wrapped store, while no fault is
    /// planned. Otherwise every one of them asks, as it would ask a server, and is counted.
    #[must_use]
    pub fn peeking(mut self) -> Self {
        self.peeks = true;
        self
    }

    /// Plans a fault. Several may meet one call: they happen in the order in which they were
    /// planned.
    pub fn fault(&self, operation: StoreOperation, nth: On, fault: Fault) {
        let mut plan = lock(&self.plan);
        let nth = match nth {
            On::Next => On::Call(plan.calls.get(&operation).copied().unwrap_or(0) + 1),
            nth => nth,
        };
        plan.faults.push((operation, nth, fault));
    }

    /// Plans an outage: every load, swap, step, wait, purge and scan fails with this kind until
    /// [`heal`](FaultyStore::heal).
    pub fn outage(&self, kind: StoreErrorKind) {
        for operation in [
            StoreOperation::Load,
            StoreOperation::Swap,
            StoreOperation::LoadSteps,
            StoreOperation::WriteStep,
            StoreOperation::Wait,
            StoreOperation::Purge,
            StoreOperation::Scan,
        ] {
            self.fault(operation, On::Every, Fault::Fail(kind));
        }
    }

    /// Forgets every fault. A call that is held at a gate stays there until the gate is opened.
    pub fn heal(&self) {
        lock(&self.plan).faults.clear();
    }

    /// How many calls of this operation there were, those that failed included.
    #[must_use]
    pub fn calls(&self, operation: StoreOperation) -> u64 {
        lock(&self.plan).calls.get(&operation).copied().unwrap_or(0)
    }

    /// How many swaps to this state there were, those that failed included.
    #[must_use]
    pub fn swaps_to(&self, state: State) -> u64 {
        lock(&self.plan).swaps_to.get(&state).copied().unwrap_or(0)
    }

    /// How many round trips there were: loads and swaps, those of steps included, and neither
    /// heartbeats nor waits.
    #[must_use]
    pub fn round_trips(&self) -> u64 {
        let of_steps =
            self.calls(StoreOperation::LoadSteps) + self.calls(StoreOperation::WriteStep);
        let of_records = self.calls(StoreOperation::Load) + self.calls(StoreOperation::Claim);
        of_records + self.calls(StoreOperation::Ending) + of_steps
    }

    /// How many calls have arrived and are neither answered nor dropped. Waits are among them, and
    /// calls that a gate holds.
    #[must_use]
    pub fn under_way(&self) -> u64 {
        lock(&self.plan).under_way
    }

    /// Counts a call that stands for all of `operations`, and finds the faults that it meets.
    fn arrive(&self, operations: &[StoreOperation], state: Option<State>) -> Arrived {
        let mut plan = lock(&self.plan);
        for operation in operations {
            *plan.calls.entry(*operation).or_default() += 1;
        }
        plan.under_way += 1;
        if let Some(state) = state {
            *plan.swaps_to.entry(state).or_default() += 1;
        }
        let met = |(operation, nth, _): &&(StoreOperation, On, Fault)| {
            operations.contains(operation)
                && match nth {
                    On::Call(number) => plan.calls.get(operation) == Some(number),
                    On::Next => false,
                    On::Every => true,
                }
        };
        let faults = plan.faults.iter().filter(met);
        Arrived {
            faults: faults.map(|(_, _, fault)| fault.clone()).collect(),
            plan: Arc::clone(&self.plan),
        }
    }

    /// Runs a call through its faults.
    async fn through<T>(
        &self,
        operation: StoreOperation,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let arrived = self.arrive(&[operation], None);
        arrived.meet(operation.doing(), call).await
    }

    /// Runs a swap to this draft through its faults.
    async fn through_write<T>(
        &self,
        next: &Draft,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let mut operations = vec![StoreOperation::Swap, StoreOperation::of(next)];
        operations.extend(next.outcome.as_ref().map(|outcome| match outcome.kind {
            OutcomeKind::NotReplayable => StoreOperation::NotReplayable,
            _ => StoreOperation::Outcome,
        }));
        let arrived = self.arrive(&operations, Some(next.state));
        arrived.meet(StoreOperation::Swap.doing(), call).await
    }
}

/// A call that has arrived; it is over when this is dropped.
struct Arrived {
    faults: Vec<Fault>,
    plan: Arc<Mutex<Plan>>,
}

impl Arrived {
    async fn meet<T>(
        self,
        doing: &'static str,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        for fault in &self.faults {
            match fault {
                Fault::Fail(kind) => {
                    return Err(StoreError::new(*kind, doing).with_source("a planned fault"));
                }
                Fault::LoseRequest => return Err(lost(doing)),
                Fault::Delay(gate) => gate.pass().await,
                Fault::Panic => panic!("a planned panic while {doing}"),
                Fault::LoseAnswer | Fault::FailAnswer(_) | Fault::DelayAnswer(_) => {}
            }
        }
        let answer = call.await;
        for fault in &self.faults {
            match fault {
                Fault::LoseAnswer => return Err(lost(doing)),
                Fault::FailAnswer(kind) => {
                    return Err(StoreError::new(*kind, doing).with_source("a planned fault"));
                }
                Fault::DelayAnswer(gate) => gate.pass().await,
                Fault::Fail(_) | Fault::LoseRequest | Fault::Delay(_) | Fault::Panic => {}
            }
        }
        answer
    }
}

impl Drop for Arrived {
    fn drop(&mut self) {
        let mut plan = lock(&self.plan);
        plan.under_way -= 1;
    }
}

fn lost(doing: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, doing)
        .with_source("a planned fault: the answer was lost")
}

through! {
    FaultyStore, StoreOperation {
        fn peek(&self, id: &RecordId) -> Option<Snapshot> {
            let peeks = self.peeks && lock(&self.plan).faults.is_empty();
            peeks.then(|| self.inner.peek(id)).flatten()
        }

        fn accepts(&self, on_crash: OnCrash) -> Result<(), StoreError> {
            self.inner.accepts(on_crash)
        }

        async fn for_heartbeats(&self) -> Result<Option<Arc<dyn Store>>, StoreError> {
            let connecting = self.inner.for_heartbeats();
            let own = self.through(StoreOperation::ForHeartbeats, connecting).await?;
            Ok(own.map(|inner| Arc::new(Self { inner, ..self.clone() }) as Arc<dyn Store>))
        }

        fn transactions(&self) -> Option<&dyn TransactionStore> {
            self.inner.transactions().map(|_| self as _)
        }
    }
}

transactions_through!(FaultyStore, StoreOperation);

#[cfg(test)]
mod tests;
