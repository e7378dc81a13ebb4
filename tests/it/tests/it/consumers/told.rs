//! Observers are told of every disposition, by a kind that they can count.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
};

use idempotent_runtime::{FrontEndEvent, Idempotency, Observer, store::MemoryStore};

use super::Refused;

#[derive(Clone, Default)]
struct Counters(Arc<Mutex<BTreeMap<String, u32>>>);

impl Observer for Counters {
    fn front_end(&self, event: &FrontEndEvent<'_>) {
        assert_eq!(event.front_end, "consumer");
        assert_eq!(event.operation, "inbox:billing");
        assert_eq!(event.record.is_some(), event.kind != "invalid_message");
        let mut counters = self.0.lock().expect("nobody panics");
        *counters.entry(event.kind.to_owned()).or_default() += 1;
    }
}

#[tokio::test]
async fn each_disposition_is_counted_by_its_kind() {
    let counters = Counters::default();
    let builder = Idempotency::builder(MemoryStore::new());
    let idem = builder.observer(counters.clone()).build();
    let idem = idem.expect("a handle");
    let consumer = idem.consumer("billing").broker_retention("1d");
    let consumer = consumer.max_deliveries(2).build().expect("a consumer");
    for delivery in 1..=2 {
        for id in ["one", "two", ""] {
            let message = consumer.message(id).without_payload().delivery(delivery);
            let _told = message.run(async |_| Ok::<_, io::Error>(())).await;
        }
        let message = consumer.message("down").without_payload();
        let message = message.delivery(delivery);
        let failed = async |_| Err::<(), _>(io::Error::other("the mail server is down"));
        let _told = message.run(failed).await;
        let message = consumer.message("refused").payload(&delivery);
        let message = message.record_errors();
        let _told = message.run(async |_| Err::<(), _>(Refused)).await;
    }
    let counted: Vec<(String, u32)> = counters
        .0
        .lock()
        .expect("nobody panics")
        .clone()
        .into_iter()
        .collect();
    let expected = [
        ("ack", 2),
        ("duplicate", 2),
        ("exhausted", 1),
        ("failed", 1),
        ("invalid_message", 2),
        ("key_reused", 1),
        ("retry", 1),
    ];
    assert_eq!(
        counted,
        expected.map(|(kind, count)| (kind.to_owned(), count))
    );
}
