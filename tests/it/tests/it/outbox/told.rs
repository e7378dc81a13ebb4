//! Observers of relays, and relays that set poison aside.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use idempotent_runtime::{
    Idempotency, Observer, OutboxEvent,
    outbox::{Envelope, OnPoison, OutboxDatabase, PublishError},
};

use super::{
    broker::{Broker, drained, send, start},
    numbers, outbox, placed, prefix,
};
use crate::transactions::shop::Shop;

on_every_database![
    poison_that_is_set_aside_lets_its_key_go_on,
    observers_are_told_of_what_a_relay_does,
    an_envelope_knows_the_trace_of_its_sender,
];

/// Writes down what it is told.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Observer for Notes {
    fn outbox(&self, event: &OutboxEvent<'_>) {
        let told = match event {
            OutboxEvent::Sent {
                topic, messages, ..
            } => format!("sent {topic} {messages}"),
            OutboxEvent::Outage {
                topic,
                messages,
                pause,
                ..
            } => format!("outage {topic} {messages} {}", !pause.is_zero()),
            OutboxEvent::Failed {
                topic,
                id,
                attempts,
                ..
            } => format!("failed {topic} {id} {attempts}"),
            OutboxEvent::Parked { topic, id, .. } => format!("parked {topic} {id}"),
            OutboxEvent::SetAside { topic, id, .. } => format!("set aside {topic} {id}"),
            OutboxEvent::Oldest { topic, age, .. } => {
                assert!(*age < Duration::from_secs(60), "{age:?}");
                format!("oldest {topic} {}", !age.is_zero())
            }
            other => format!("{other:?}"),
        };
        self.0.lock().expect("nobody panics").push(told);
    }
}

impl Notes {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("nobody panics"))
    }

    /// Waits for this note, and tells all up to then.
    async fn until(&self, note: &str) -> Vec<String> {
        let mut all = Vec::new();
        while !all.iter().any(|it| it == note) {
            tokio::time::sleep(Duration::from_millis(10)).await;
            all.extend(self.take());
        }
        all
    }
}

async fn poison_that_is_set_aside_lets_its_key_go_on<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let outbox = outbox(&shop).await;
    let broker = Broker::new(|batch| {
        let answer = |it: &Envelope| match &it.payload[..] {
            b"2" => Err(PublishError::Rejected("it is unlucky".to_owned())),
            _ => Ok(()),
        };
        batch.iter().map(answer).collect()
    });
    send(&shop, &outbox, [1, 2, 3].map(|it| placed(it).key("a"))).await;
    let relay = outbox.relay(broker.clone()).budget(2);
    let relay = relay.on_poison(OnPoison::SetAside).start().await;
    let _relay = relay.expect("it starts");
    drained(&shop).await;
    assert_eq!(broker.by_key()["a"], [1, 2, 2, 3]);
    let rejected = format!("SELECT count(*) FROM {}outbox_rejected", prefix(&shop));
    assert_eq!(numbers(&shop, rejected).await, [1]);
    assert_eq!(outbox.parked().await, Ok(Vec::new()));
}

async fn observers_are_told_of_what_a_relay_does<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let (outbox, notes) = (outbox(&shop).await, Notes::default());
    let handle = Idempotency::builder(shop.store()).observer(notes.clone());
    let handle = handle.build().expect("a handle");
    let calls = std::sync::atomic::AtomicU32::new(0);
    let broker = Broker::new(move |batch| {
        let call = calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let answer = |it: &Envelope| match &it.payload[..] {
            b"1" if call == 0 => Err(PublishError::Outage),
            b"2" => Err(PublishError::Rejected("it is unlucky".to_owned())),
            _ => Ok(()),
        };
        batch.iter().map(answer).collect()
    });
    send(&shop, &outbox, [placed(1).key("a")]).await;
    let relay = outbox.relay(broker).budget(2).idempotency(&handle);
    let relay = relay.start().await.expect("it starts");
    let told = notes.until("sent orders.placed 1").await;
    let expected = [
        "oldest orders.placed true",
        "outage orders.placed 1 true",
        "sent orders.placed 1",
    ];
    assert_eq!(told, expected);
    send(&shop, &outbox, [placed(2).key("b").id("two")]).await;
    relay.wake();
    let told = notes.until("parked orders.placed two").await;
    let expected = [
        "failed orders.placed two 1",
        "failed orders.placed two 2",
        "parked orders.placed two",
    ];
    assert_eq!(told, expected);
    relay.stop().await;
    assert_eq!(notes.take(), [""; 0]);
    // The next relay tells of it again.
    let relay = outbox.relay(Broker::willing()).idempotency(&handle);
    let relay = relay.start().await.expect("it starts");
    assert_eq!(notes.take(), ["parked orders.placed two"]);
    relay.stop().await;
}

async fn an_envelope_knows_the_trace_of_its_sender<S: Shop<Database: OutboxDatabase>>(shop: S) {
    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let (outbox, broker) = (outbox(&shop).await, Broker::willing());
    let traced = outbox.clone().trace_parent(|| Some(TRACE.to_owned()));
    send(&shop, &traced, [placed(1).key("a")]).await;
    send(&shop, &outbox, [placed(2).key("a")]).await;
    let _relay = start(&outbox, &broker).await;
    drained(&shop).await;
    let traces: Vec<_> = broker
        .arrived()
        .into_iter()
        .map(|it| it.traceparent)
        .collect();
    assert_eq!(traces, [Some(TRACE.to_owned()), None]);
}
