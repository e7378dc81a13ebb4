//! A store with a record of each kind.

use std::time::Duration;

use idempotent_runtime::{
    BoxError, Error, Idempotency, MemoryStore, StoreErrorKind, Verdict,
    clock::Clock,
    identity::RecordId,
    step,
    testing::{FaultyStore, Gate, ManualClock},
};

/// A store in memory, whose clock only tests move.
#[derive(Debug)]
pub struct Records {
    store: MemoryStore,
    clock: ManualClock,
    /// The handle of the page. Its store fails where a test wants it to.
    pub idem: Idempotency,
    /// The store of that handle.
    pub faulty: FaultyStore,
}

impl Default for Records {
    fn default() -> Self {
        Self::new(|builder| builder)
    }
}

/// An error of a call.
#[derive(Debug, serde::Serialize, serde::Deserialize, thiserror::Error)]
pub enum Failed {
    /// It is final.
    #[error("it is sold out")]
    SoldOut,
    /// Nobody knows what happened.
    #[error(transparent)]
    Silent(#[from] Error),
}

fn verdict(error: &Failed) -> Verdict {
    match error {
        Failed::SoldOut => Verdict::Replay,
        Failed::Silent(_) => Verdict::Uncertain,
    }
}

async fn silent<T>() -> Result<T, Failed> {
    let why = Error::InvalidPolicy("the other side is silent");
    Err(Failed::Silent(why))
}

impl Records {
    /// Makes an empty store. The handle is set up by this.
    pub fn new(
        set_up: impl FnOnce(idempotent_runtime::Builder) -> idempotent_runtime::Builder,
    ) -> Self {
        let clock = ManualClock::new();
        let now = idempotent_runtime::clock::SystemClock.now();
        clock.step(now);
        let store = MemoryStore::with_clock(clock.clone());
        let faulty = FaultyStore::new(store.clone());
        let idem = set_up(Idempotency::builder(faulty.clone()));
        let idem = idem.build().expect("a handle");
        Self {
            store,
            clock,
            idem,
            faulty,
        }
    }

    /// Has some time pass.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// A handle of another process, whose calls are parked where their process died.
    fn other(&self, store: &FaultyStore) -> Idempotency {
        let other = Idempotency::builder(store.clone()).timer(self.clock.clone());
        other.max_takeovers(0).build().expect("a handle")
    }

    /// A call whose process died, and that is not tried again.
    pub async fn parked(&self, operation: &'static str, key: &'static str) -> RecordId {
        let store = FaultyStore::new(self.store.clone());
        let (dead, gate) = (self.other(&store), Gate::new());
        let held = gate.clone();
        let body = async move |_| {
            held.pass().await;
            Ok::<_, Error>(())
        };
        let task = tokio::spawn(dead.call(operation).key(key).run(body));
        self.dies(&store, &gate, task).await;
        let next = self.other(&FaultyStore::new(self.store.clone()));
        let refused = next.call(operation).key(key);
        let refused = refused.run(async |_| Ok::<_, Error>(())).await;
        refused.expect_err("it is parked");
        find(&self.idem, operation, key).await
    }

    /// A stream that stops at the first number, which is parked.
    pub async fn parked_number(&self, operation: &'static str, key: &'static str) -> RecordId {
        let store = FaultyStore::new(self.store.clone());
        let (dead, gate) = (self.other(&store), Gate::new());
        let held = gate.clone();
        let body = async move |_| {
            held.pass().await;
            Ok::<_, Error>(1_u64)
        };
        let stream = dead.sequence(operation, key).first(1).max_takeovers(0);
        let task = tokio::spawn(stream.number(1).run(body));
        self.dies(&store, &gate, task).await;
        let next = self.other(&FaultyStore::new(self.store.clone()));
        let stream = next.sequence(operation, key).first(1).max_takeovers(0);
        let refused = stream.number(1).run(async |_| Ok::<_, Error>(1_u64));
        refused.await.expect_err("it is parked");
        let records = self.idem.records();
        let records = records.operation(&format!("sequence:{operation}"));
        records.page(1).await.expect("a page").rows[0].id
    }

    async fn dies<T>(&self, store: &FaultyStore, gate: &Gate, task: tokio::task::JoinHandle<T>) {
        gate.arrived(1).await;
        store.outage(StoreErrorKind::Unavailable);
        task.abort();
        assert!(task.await.is_err(), "it dies in its body");
        self.clock.advance(Duration::from_secs(31));
    }
}

async fn find(idem: &Idempotency, operation: &str, key: &str) -> RecordId {
    let records = idem.records().operation(operation).key(key);
    records.page(1).await.expect("a page").rows[0].id
}

/// A call of which nobody knows whether it happened.
pub async fn uncertain(idem: &Idempotency, operation: &str, key: &str) -> RecordId {
    let call = idem.call(operation).key(key).uncertain_errors();
    let answer = call.run(async |_| silent::<()>().await).await;
    answer.expect_err("it is silent");
    find(idem, operation, key).await
}

/// A call of whose last step nobody knows whether it happened.
pub async fn in_doubt(idem: &Idempotency, operation: &str, key: &str) -> RecordId {
    let answer = trip(idem, operation, key, silent).await;
    answer.expect_err("the hotel is silent");
    find(idem, operation, key).await
}

/// A call of two steps, the first one with an undo.
pub async fn trip<F: Future<Output = Result<String, Failed>> + Send>(
    idem: &Idempotency,
    operation: &str,
    key: &str,
    hotel: impl Fn() -> F + Send + Sync,
) -> Result<String, Failed> {
    let call = idem.call(operation).key(key).classify_errors(verdict);
    let body = async |_| {
        let flight = step("flight", async |_| Ok::<_, Failed>("AB 123".to_owned()));
        let flight = flight.undo(|_| async { Ok::<_, BoxError>(()) });
        flight.run().await?;
        let hotel = step("hotel", async |_| hotel().await);
        hotel.on_error(verdict).run().await
    };
    call.run(body).await
}
