//! Brokers that are down, that never answer and that lose their connection, and relays that stand
//! still past their lease.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    Idempotency, Observer, OutboxEvent,
    outbox::{
        Envelope, OnPoison, Outbox, OutboxDatabase, PublishError, Publisher, Relay, RelayBuilder,
    },
    testing::Gate,
};
use tokio::sync::watch;

use super::{
    broker::{Answer, Broker, drained, first_arrivals, send, start},
    count, numbers, outbox, placed, prefix,
};
use crate::transactions::shop::Shop;

on_every_database![
    a_broker_that_is_down_beyond_the_budget_costs_no_attempt,
    a_publisher_that_never_answers_costs_no_attempt,
    a_message_that_breaks_the_connection_parks_its_key_alone,
    a_relay_that_wakes_past_its_lease_parks_nothing,
    mend_10_a_relay_that_wakes_past_its_lease_sets_nothing_aside,
];

const KEYS: [&str; 3] = ["a", "b", "c"];

/// One more than the attempts that the budget allows.
const FAILURES: u32 = 4;

/// The number of keys with a counted attempt.
async fn tried<S: Shop>(shop: &S) -> i64 {
    let query = format!(
        "SELECT count(*) FROM {}outbox_claims WHERE attempts > 0",
        prefix(shop)
    );
    numbers(shop, query).await[0]
}

/// Sends two messages to each key.
async fn send_two<S: Shop<Database: OutboxDatabase>>(shop: &S, outbox: &Outbox<S::Database>) {
    let messages = (0..2).flat_map(|order| KEYS.map(|key| placed(order).key(key)));
    send(shop, outbox, messages).await;
}

async fn a_broker_that_is_down_beyond_the_budget_costs_no_attempt<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    let (calls, is_up) = (watch::Sender::new(0), Arc::new(AtomicBool::new(false)));
    let (counted, up) = (calls.clone(), Arc::clone(&is_up));
    let broker = Broker::new(move |batch| {
        counted.send_modify(|calls| *calls += 1);
        match up.load(Ordering::SeqCst) {
            true => vec![Ok(()); batch.len()],
            false => vec![Err(PublishError::Outage); batch.len()],
        }
    });
    send_two(&shop, &outbox).await;
    let _relay = start(&outbox, &broker).await;
    at_least(&calls, FAILURES).await;
    assert_eq!(tried(&shop).await, 0);
    assert_eq!(outbox.parked().await, Ok(Vec::new()));
    assert_eq!(count(&shop).await, 6);
    is_up.store(true, Ordering::SeqCst);
    drained(&shop).await;
    assert_two_of_each(&broker);
    assert_eq!(tried(&shop).await, 0);
}

async fn at_least(calls: &watch::Sender<u32>, times: u32) {
    let mut calls = calls.subscribe();
    let counted = calls.wait_for(|calls| *calls >= times).await;
    drop(counted.expect("the sender lives"));
}

fn assert_two_of_each(broker: &Broker) {
    let by_key = broker.by_key();
    assert_eq!(by_key.len(), KEYS.len());
    for (key, arrived) in by_key {
        assert_eq!(first_arrivals(&arrived), [0, 1], "{key}");
    }
}

/// A publisher that does something before it answers as the broker does.
struct Slow<B> {
    broker: Broker,
    before: B,
}

impl<B: AsyncBefore> Publisher for Slow<B> {
    async fn publish(&self, batch: &[Envelope]) -> Answer {
        self.before.pass(batch).await;
        self.broker.publish(batch).await
    }
}

trait AsyncBefore: Send + Sync + 'static {
    fn pass(&self, batch: &[Envelope]) -> impl Future<Output = ()> + Send;
}

/// Does not answer the first `times` calls.
struct Silent {
    calls: watch::Sender<u32>,
    times: u32,
}

impl AsyncBefore for Silent {
    async fn pass(&self, _: &[Envelope]) {
        let mut number = 0;
        self.calls.send_modify(|calls| {
            *calls += 1;
            number = *calls;
        });
        if number <= self.times {
            std::future::pending::<()>().await;
        }
    }
}

async fn a_publisher_that_never_answers_costs_no_attempt<S: Shop<Database: OutboxDatabase>>(
    shop: S,
) {
    let (outbox, broker) = (outbox(&shop).await, Broker::willing());
    send_two(&shop, &outbox).await;
    let calls = watch::Sender::new(0);
    let before = Silent {
        calls: calls.clone(),
        times: FAILURES,
    };
    let silent = Slow {
        broker: broker.clone(),
        before,
    };
    let relay = outbox.relay(silent).lease("1s").budget(3);
    let _relay = relay.publish_timeout("300ms").start().await;
    // The last one of these is under way, and those before it are over.
    at_least(&calls, FAILURES).await;
    assert_eq!(tried(&shop).await, 0);
    assert_eq!(broker.arrived(), []);
    drained(&shop).await;
    assert_two_of_each(&broker);
    assert_eq!(outbox.parked().await, Ok(Vec::new()));
    assert_eq!(tried(&shop).await, 0);
}

/// A broker that drops its connection at a message of this payload: the results from there on are
/// missing.
fn breaks_at(poison: &'static [u8]) -> Broker {
    Broker::new(move |batch| {
        let sound = batch.iter().take_while(|it| it.payload != poison);
        sound.map(|_| Ok(())).collect()
    })
}

async fn a_message_that_breaks_the_connection_parks_its_key_alone<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let (outbox, broker) = (outbox(&shop).await, breaks_at(b"-1"));
    // A batch is in the order of the keys, so no other key is behind this one.
    let messages = [-2, -1, -3].map(|order| placed(order).key("z"));
    send(&shop, &outbox, messages).await;
    let relay = start(&outbox, &broker).await;
    let (mut parked, mut sent) = (Vec::new(), 0);
    while parked.is_empty() {
        // If nothing else came through, it would be an outage.
        send(&shop, &outbox, KEYS.map(|key| placed(sent).key(key))).await;
        sent += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
        parked = outbox.parked().await.expect("the database answers");
    }
    send(&shop, &outbox, KEYS.map(|key| placed(sent).key(key))).await;
    while count(&shop).await > 2 {
        relay.wake();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!((parked.len(), &*parked[0].key), (1, "z"));
    assert!(parked[0].reason.contains("it is unknown"), "{parked:?}");
    let mut by_key = broker.by_key();
    let poisoned = by_key.remove("z").expect("it was tried");
    // A try costs nothing if no other message was confirmed since the one before.
    let (sound, tries) = poisoned.split_first().expect("it was tried");
    let is_poison = |tried: &i64| *tried == -1;
    assert!(*sound == -2 && tries.len() >= 3, "{poisoned:?}");
    assert!(tries.iter().all(is_poison), "{poisoned:?}");
    for key in KEYS {
        assert_eq!(by_key[key], (0..=sent).collect::<Vec<_>>(), "{key}");
    }
}

/// Blocks the thread at the first batch, so that no lease is prolonged.
struct Blocking {
    is_held: Arc<AtomicBool>,
    goes_on: Arc<AtomicBool>,
}

impl AsyncBefore for Blocking {
    async fn pass(&self, _: &[Envelope]) {
        self.is_held.store(true, Ordering::SeqCst);
        tokio::task::block_in_place(|| {
            while !self.goes_on.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
    }
}

/// Waits at a gate with this order, and prolongs the lease meanwhile.
struct Waiting {
    order: &'static [u8],
    gate: Gate,
}

impl AsyncBefore for Waiting {
    async fn pass(&self, batch: &[Envelope]) {
        if batch.iter().any(|it| &it.payload[..] == self.order) {
            self.gate.pass().await;
        }
    }
}

/// A relay that stands still with its first batch until it `goes_on`. It then says that its
/// messages were rejected, except those of `"other"`: the first time would park a key.
async fn stands_still<DB: OutboxDatabase>(
    outbox: &Outbox<DB>,
    goes_on: &Arc<AtomicBool>,
    set_up: impl FnOnce(RelayBuilder<DB, Slow<Blocking>>) -> RelayBuilder<DB, Slow<Blocking>>,
) -> (Relay, Broker) {
    let broker = Broker::new(|batch| {
        let answer = |it: &Envelope| match it.key.as_deref() {
            Some("other") => Ok(()),
            _ => Err(PublishError::Rejected("it is late".to_owned())),
        };
        batch.iter().map(answer).collect()
    });
    let is_held = Arc::new(AtomicBool::new(false));
    let before = Blocking {
        is_held: Arc::clone(&is_held),
        goes_on: Arc::clone(goes_on),
    };
    let blocked = Slow {
        broker: broker.clone(),
        before,
    };
    let relay = outbox.relay(blocked).lease("500ms").budget(1);
    let relay = set_up(relay).start().await;
    while !is_held.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    (relay.expect("it starts"), broker)
}

async fn a_relay_that_wakes_past_its_lease_parks_nothing<S: Shop<Database: OutboxDatabase>>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    let messages = [0, 1, 2].map(|order| placed(order).key("k"));
    send(&shop, &outbox, messages).await;
    let goes_on = Arc::new(AtomicBool::new(false));
    let (first, late) = stands_still(&outbox, &goes_on, |it| it).await;
    let broker = Broker {
        arrived: late.arrived,
        ..Broker::willing()
    };
    let (gate, order) = (Gate::new(), b"1");
    let before = Waiting {
        order,
        gate: gate.clone(),
    };
    let second = outbox.relay(Slow {
        broker: broker.clone(),
        before,
    });
    let _second = second.lease("500ms").start().await.expect("it starts");
    gate.arrived(1).await;
    assert_eq!(broker.by_key()["k"], [0]);
    goes_on.store(true, Ordering::SeqCst);
    // The second one is busy: the first one sends this, when it is through with its old batch.
    send(&shop, &outbox, [placed(7).key("other")]).await;
    while count(&shop).await > 2 {
        first.wake();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(outbox.parked().await, Ok(Vec::new()));
    assert_eq!(tried(&shop).await, 0);
    assert_eq!(broker.by_key()["k"], [0, 0]);
    drop(first);
    gate.open();
    drained(&shop).await;
    assert_eq!(broker.by_key()["k"], [0, 0, 1, 2]);
}

/// Writes down which messages were told to be set aside.
#[derive(Clone, Default)]
struct SetAside(Arc<std::sync::Mutex<Vec<String>>>);

impl Observer for SetAside {
    fn outbox(&self, event: &OutboxEvent<'_>) {
        if let OutboxEvent::SetAside { id, .. } = event {
            self.0.lock().expect("nobody panics").push((*id).to_owned());
        }
    }
}

/// By default a message without a key is set aside, and by choice one with a key.
async fn mend_10_a_relay_that_wakes_past_its_lease_sets_nothing_aside<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let (outbox, told) = (outbox(&shop).await, SetAside::default());
    send(&shop, &outbox, [placed(0), placed(1).key("k")]).await;
    let goes_on = Arc::new(AtomicBool::new(false));
    let handle = Idempotency::builder(shop.store()).observer(told.clone());
    let handle = handle.build().expect("a handle");
    let (first, _late) = stands_still(&outbox, &goes_on, |relay| {
        relay.on_poison(OnPoison::SetAside).idempotency(&handle)
    })
    .await;
    let (gate, broker) = (Gate::new(), Broker::willing());
    let before = Waiting {
        order: b"1",
        gate: gate.clone(),
    };
    let second = outbox.relay(Slow {
        broker: broker.clone(),
        before,
    });
    let _second = second.lease("500ms").start().await.expect("it starts");
    gate.arrived(1).await;
    goes_on.store(true, Ordering::SeqCst);
    // The second one is busy: the first one sends this, when it is through with its old batch.
    send(&shop, &outbox, [placed(7).key("other")]).await;
    while count(&shop).await > 2 {
        first.wake();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let rejected = format!("SELECT count(*) FROM {}outbox_rejected", prefix(&shop));
    assert_eq!(numbers(&shop, rejected.clone()).await, [0]);
    gate.open();
    drained(&shop).await;
    assert_eq!(numbers(&shop, rejected).await, [0]);
    assert_eq!(broker.arrived().len(), 2);
    assert_eq!(*told.0.lock().expect("nobody panics"), [""; 0]);
}
