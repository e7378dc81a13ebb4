//! Many callers at once, on few connections.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    Error, Idempotency, InFlight,
    store::Store,
    testing::{Fault, FaultyStore, Gate, On, Proxy, StoreOperation},
};
use tokio::task::JoinSet;

use super::{Server, on_every_server};

on_every_server![
    two_hundred_duplicates_on_five_connections_are_all_answered,
    sixty_four_callers_meet_on_one_key_and_on_many,
    a_hundred_waiters_look_far_fewer_than_a_hundred_times_a_second,
];

#[derive(Clone)]
pub(super) struct Callers {
    idem: Idempotency,
    runs: Arc<AtomicU64>,
    pub(super) gate: Gate,
}

impl Callers {
    pub(super) fn over(idem: Idempotency) -> Self {
        Self {
            idem,
            runs: Arc::default(),
            gate: Gate::new(),
        }
    }

    pub(super) async fn call(self, key: String) -> Result<u64, Error> {
        self.idem
            .call("charge")
            .key(&key)
            .in_flight(InFlight::Wait(Duration::from_secs(50)))
            .run(|_| async move {
                self.gate.pass().await;
                Ok(self.runs.fetch_add(1, Ordering::SeqCst) + 1)
            })
            .await
    }

    pub(super) fn runs(&self) -> u64 {
        self.runs.load(Ordering::SeqCst)
    }
}

pub(super) async fn all_are_answered_by_the_first(running: JoinSet<Result<u64, Error>>) {
    for answer in running.join_all().await {
        assert_eq!(answer, Ok(1));
    }
}

async fn two_hundred_duplicates_on_five_connections_are_all_answered<S: Server>(server: S) {
    let store = FaultyStore::new(server.at(server.address(), 5).await);
    // An open gate holds no call, and counts those that come by.
    let waiting = Gate::new();
    waiting.open();
    let counted = Fault::Delay(waiting.clone());
    store.fault(StoreOperation::Wait, On::Every, counted);
    let callers = Callers::over(Idempotency::new(store));
    let mut running = JoinSet::new();
    for _ in 0..200 {
        running.spawn(callers.clone().call("k".into()));
    }
    callers.gate.arrived(1).await;
    waiting.arrived(199).await;
    callers.gate.open();

    all_are_answered_by_the_first(running).await;
    assert_eq!(callers.runs(), 1);
}

async fn sixty_four_callers_meet_on_one_key_and_on_many<S: Server>(server: S) {
    let mut stores = Vec::new();
    for _ in 0..4 {
        stores.push(server.at(server.address(), 16).await);
    }
    sixty_four_callers_meet(stores).await;
}

/// Sixty-four callers, of as many processes as there are stores, call with one key and with 250.
/// Each body runs once, and no caller gets an error.
pub(super) async fn sixty_four_callers_meet(stores: Vec<Arc<dyn Store>>) {
    const KEYS: usize = 250;
    // Enough for all callers together to come by every key, and by most of them nine times.
    const TURNS: usize = 40;
    let processes: Vec<_> = stores
        .into_iter()
        .map(|store| Callers::over(Idempotency::new(store)))
        .collect();
    for callers in &processes {
        callers.gate.open();
    }
    let mut running = JoinSet::new();
    for caller in 0..64 {
        let callers = processes[caller % processes.len()].clone();
        running.spawn(async move {
            for turn in 0..TURNS {
                let key = (turn * 7 + caller * 13) % KEYS;
                callers
                    .clone()
                    .call(format!("k{key}"))
                    .await
                    .expect("an answer");
                callers.clone().call("one".into()).await.expect("an answer");
            }
        });
    }
    running.join_all().await;
    let runs: u64 = processes.iter().map(Callers::runs).sum();
    assert_eq!(runs, KEYS as u64 + 1);
}

pub(super) async fn a_hundred_waiters_look_far_fewer_than_a_hundred_times_a_second<S: Server>(
    server: S,
) {
    let (holder, proxy) = (
        Callers::over(Idempotency::new(server.at(server.address(), 2).await)),
        Proxy::to(server.address()).await.expect("a proxy"),
    );
    let waiters = Callers::over(Idempotency::new(server.at(proxy.address(), 5).await));
    let mut running = JoinSet::new();
    running.spawn(holder.clone().call("k".into()));
    holder.gate.arrived(1).await;
    for _ in 0..100 {
        running.spawn(waiters.clone().call("k".into()));
    }
    looks_are_few(async || proxy.round_trips()).await;
    holder.gate.open();

    all_are_answered_by_the_first(running).await;
    assert_eq!(waiters.runs(), 0);
}

/// The promise is a rate, so the looks that were `made` so far are counted over real time.
pub(super) async fn looks_are_few(made: impl AsyncFn() -> u64) {
    // Each waiter claims, looks and says that it waits. This takes a busy machine a while. Then
    // they all wait.
    let mut looks = Vec::new();
    while looks.len() < 10 && looks.last().is_none_or(|looks| *looks >= 30) {
        let before = made().await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        looks.push(made().await - before);
    }
    let last = looks.last();
    assert!(last < Some(&30), "looks in three seconds: {looks:?}");
}
