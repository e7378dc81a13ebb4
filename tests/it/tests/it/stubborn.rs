//! Stores that never write, and say only that something stands there: a trigger drops the write,
//! for example.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use idempotent_runtime::{
    CallReport, Error, Idempotency, InFlight, OnCrash, OnOutage, StoreError, StoreErrorKind,
    clock::Timer,
    identity::RecordId,
    record::{Draft, Record, Version},
    store::{MemoryStore, Snapshot, Store, Swap},
    testing::{Gate, ManualClock},
};

use crate::harness::{in_time, while_time_goes_on};

#[derive(Debug)]
struct Stubborn {
    inner: MemoryStore,
    is_still_willing: AtomicBool,
}

#[async_trait]
impl Store for Stubborn {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        self.inner.load(id).await
    }

    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        match seen {
            None => self.inner.swap(id, None, next).await,
            Some(_) if self.is_still_willing.load(Ordering::SeqCst) => {
                self.inner.swap(id, seen, next).await
            }
            Some(_) => self.inner.load(id).await.map(Swap::Refused),
        }
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

impl Stubborn {
    fn over(clock: &ManualClock) -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryStore::with_clock(clock.clone()),
            is_still_willing: AtomicBool::new(false),
        })
    }
}

fn is_denied(error: &Error) -> bool {
    matches!(error, Error::Store(error) if error.kind() == StoreErrorKind::Denied)
}

#[tokio::test]
async fn what_is_never_written_over_keeps_nobody_waiting() {
    let clock = ManualClock::new();
    let store = Stubborn::over(&clock);
    let owner = || {
        Idempotency::builder(Arc::clone(&store))
            .on_crash(OnCrash::Rerun)
            .lease("30s")
            .timer(clock.clone())
            .build()
            .expect("the set-up is sound")
    };
    let charge = |owner: &Idempotency| {
        let call = owner.call("stubborn.charge").key("k");
        in_time(call.run_detailed(async |_| Ok::<_, Error>(1)))
    };
    let (one, other) = (owner(), owner());

    let (first, how) = charge(&one).await;
    assert_eq!(first, Ok(1), "its body has run");
    let unrecorded = matches!(
        how,
        CallReport::Executed {
            recorded: false,
            ..
        }
    );
    assert!(unrecorded, "{how:?}");

    clock.advance(Duration::from_secs(60));
    let (taken_over, _) = charge(&other).await;
    assert!(taken_over.is_err_and(|error| is_denied(&error)));
}

#[tokio::test]
async fn what_is_never_written_over_is_not_settled_either() {
    let store = Stubborn::over(&ManualClock::new());
    store.is_still_willing.store(true, Ordering::SeqCst);
    let idem = Idempotency::new(Arc::clone(&store));
    let call = idem.call("stubborn.charge").key("k");
    let left = call
        .uncertain_errors()
        .run(async |_| Err::<u32, _>(Error::AlreadyInstalled));
    assert!(left.await.is_err());
    store.is_still_willing.store(false, Ordering::SeqCst);

    let settled = idem.settle("stubborn.charge", None::<&str>, "k");
    let settled = settled.expect("a key");
    let settled = in_time(settled.as_done()).await;

    assert!(settled.is_err_and(|error| is_denied(&error)));
}

/// Refuses every write, and shows nothing in its way.
#[derive(Debug, Default)]
struct Hiding {
    inner: MemoryStore,
    refused: AtomicU32,
    /// The gate at which its first write is held.
    gate: Option<Gate>,
}

#[async_trait]
impl Store for Hiding {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        self.inner.load(id).await
    }

    async fn swap(
        &self,
        id: &RecordId,
        _seen: Option<Version>,
        _next: &Draft,
    ) -> Result<Swap, StoreError> {
        let refused = self.refused.fetch_add(1, Ordering::SeqCst);
        if let (0, Some(gate)) = (refused, &self.gate) {
            gate.pass().await;
        }
        assert!(refused < 1_000, "it asks without a pause");
        self.inner.load(id).await.map(Swap::Refused)
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

#[tokio::test]
async fn first_hour_20_a_store_that_refuses_and_shows_nothing_is_given_up_in_the_caller_s_patience()
{
    let store = Arc::new(Hiding::default());
    for (in_flight, at_most) in [
        (InFlight::Reject, 0),
        (InFlight::Wait(Duration::from_millis(300)), 300),
        (InFlight::Wait(Duration::from_secs(3_600)), 2_000),
    ] {
        store.refused.store(0, Ordering::SeqCst);
        let clock = ManualClock::new();
        let idem = Idempotency::builder(Arc::clone(&store))
            .timer(clock.clone())
            .in_flight(in_flight)
            .on_outage(OnOutage::Open)
            .build()
            .expect("the set-up is sound");
        let began = Timer::now(&clock);
        let charging = async move {
            let call = idem.call("stubborn.charge").key("k");
            call.run(async |_| Ok::<_, Error>(1)).await
        };

        let charged = in_time(while_time_goes_on(&clock, charging)).await;

        let error = charged.expect_err("nobody knows whether it may run");
        assert!(is_denied(&error), "{error:?}");
        let took = Timer::now(&clock) - began;
        assert!(took <= Duration::from_millis(at_most + 5), "{took:?}");
        assert!(store.refused.load(Ordering::SeqCst) < 30);
    }
}

#[tokio::test]
async fn first_hour_20_a_claim_that_is_dropped_at_such_a_store_is_given_up_with_pauses() {
    let (clock, gate) = (ManualClock::new(), Gate::new());
    let store = Arc::new(Hiding {
        gate: Some(gate.clone()),
        ..Hiding::default()
    });
    let idem = Idempotency::builder(Arc::clone(&store))
        .timer(clock.clone())
        .lease("3s")
        .build()
        .expect("the set-up is sound");
    let its = idem.clone();
    let charging = tokio::spawn(async move {
        let call = its.call("stubborn.charge").key("k");
        call.run(async |_| Ok::<_, Error>(1)).await
    });
    gate.arrived(1).await;
    charging.abort();
    assert!(charging.await.is_err_and(|error| error.is_cancelled()));

    let ended = async move { idem.shutdown(Duration::MAX).await };
    assert!(in_time(while_time_goes_on(&clock, ended)).await);

    let refused = store.refused.load(Ordering::SeqCst);
    assert!(refused < 500, "it asked {refused} times in a lease");
}
