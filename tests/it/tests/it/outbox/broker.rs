//! A publisher as the tests need it, and how they send and wait.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use idempotent_runtime::outbox::{
    Envelope, Message, Outbox, OutboxDatabase, PublishError, Publisher, Relay,
};

use super::count;
use crate::transactions::shop::Shop;

pub(super) type Answer = Vec<Result<(), PublishError>>;
pub(super) type Decide = Box<dyn Fn(&[Envelope]) -> Answer + Send + Sync>;

/// A publisher that writes down what it is given, and answers as the test says.
#[derive(Clone)]
pub(crate) struct Broker {
    pub(super) arrived: Arc<Mutex<Vec<Envelope>>>,
    pub(super) decide: Arc<Decide>,
    pub(super) hangs: bool,
}

impl Broker {
    pub(crate) fn new(decide: impl Fn(&[Envelope]) -> Answer + Send + Sync + 'static) -> Self {
        Self {
            arrived: Arc::default(),
            decide: Arc::new(Box::new(decide)),
            hangs: false,
        }
    }

    pub(crate) fn willing() -> Self {
        Self::new(|batch| vec![Ok(()); batch.len()])
    }

    fn note(&self, batch: &[Envelope]) {
        let mut arrived = self.arrived.lock().expect("nobody panics");
        arrived.extend(batch.iter().cloned());
    }

    pub(crate) fn arrived(&self) -> Vec<Envelope> {
        self.arrived.lock().expect("nobody panics").clone()
    }

    /// The payloads that arrived under each key, in order.
    pub(crate) fn by_key(&self) -> BTreeMap<String, Vec<i64>> {
        let mut by_key: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for envelope in self.arrived() {
            let key = envelope.key.unwrap_or_default();
            let payload = serde_json::from_slice(&envelope.payload).expect("a number");
            by_key.entry(key).or_default().push(payload);
        }
        by_key
    }
}

impl Publisher for Broker {
    async fn publish(&self, batch: &[Envelope]) -> Answer {
        let keys: Vec<_> = batch.iter().filter_map(|it| it.key.as_ref()).collect();
        let distinct: HashSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len(), "no two of one key");
        self.note(batch);
        if self.hangs {
            std::future::pending::<()>().await;
        }
        (self.decide)(batch)
    }
}

/// The first arrivals, without the copies that came later.
pub(super) fn first_arrivals(numbers: &[i64]) -> Vec<i64> {
    let mut seen = HashSet::new();
    let first = numbers.iter().filter(|number| seen.insert(**number));
    first.copied().collect()
}

pub(super) async fn start<DB: OutboxDatabase>(outbox: &Outbox<DB>, broker: &Broker) -> Relay {
    let relay = outbox.relay(broker.clone()).lease("1s").budget(3);
    relay.start().await.expect("it starts")
}

pub(crate) async fn send<S: Shop<Database: OutboxDatabase>>(
    shop: &S,
    outbox: &Outbox<S::Database>,
    messages: impl IntoIterator<Item = Message>,
) {
    let messages: Vec<_> = messages.into_iter().collect();
    loop {
        let mut tx = shop.begin().await.expect("a transaction");
        match outbox.send_all(&mut tx, messages.clone()).await {
            Ok(_) => return tx.commit().await.expect("it commits"),
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
    }
}

pub(crate) async fn drained<S: Shop>(shop: &S) {
    while count(shop).await > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
