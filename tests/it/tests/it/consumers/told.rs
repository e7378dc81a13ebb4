//! Observers are told of every disposition, by a kind that they can count.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    sync::{Arc, Mutex},
};

use idempotent_runtime::{
    Error, FrontEndEvent, Idempotency, Observer, identity::RecordId, key::Key, store::MemoryStore,
};

use super::Refused;
use crate::harness::said_during;

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

/// The digest is that of `printf %s order-4242 | sha256sum`.
#[tokio::test]
async fn mend_28_a_dead_letter_is_logged_with_consumer_message_and_record() {
    let consumer = Idempotency::memory().consumer("billing");
    let consumer = consumer.broker_retention("1d").build().expect("a consumer");
    let key = Key::from_part("order-4242").expect("a key");
    let record = RecordId::new("inbox:billing", None, key.framed()).to_hex();
    let mails = || vec![1, 2];
    let refused = async |_| Err::<(), _>(Refused);

    let (_, alone) = said_during(async {
        let message = consumer.message("order-4242").payload(&1).record_errors();
        message.run(refused).await
    })
    .await;
    let (_, in_a_batch) = said_during(consumer.batch(
        mails(),
        |consumer, it| consumer.message("order-4242").payload(it).record_errors(),
        async |_| Err::<(), _>(Refused),
    ))
    .await;

    for (said, letters) in [(alone, 1), (in_a_batch, 2)] {
        let is_one = |line: &&str| line.contains("WARN") && line.contains("dead letter");
        let lines: Vec<_> = said.lines().filter(is_one).collect();
        assert_eq!(lines.len(), letters, "{said}");
        for line in lines {
            for part in [
                "consumer=\"billing\"",
                "message_id=\"6d7da0824c852731\"",
                &format!("record=\"{record}\""),
            ] {
                assert!(line.contains(part), "{part} in {line}");
            }
            assert!(!line.contains("order-4242"), "no id in {line}");
        }
    }
}

#[tokio::test]
async fn mend_28_a_call_that_is_to_be_settled_is_logged_with_its_whole_id() {
    let idem = Idempotency::memory();
    let call = || idem.call("told.doubtful").key("k").uncertain_errors();
    let fails = |_| async { Err::<(), _>(Error::InvalidPolicy("the gateway is silent")) };

    let (_, said) = said_during(call().run(fails)).await;

    let refused = call().run(fails).await;
    let Err(Error::Uncertain { id, .. }) = refused else {
        panic!("{refused:?}")
    };
    let mut warnings = said.lines().filter(|line| line.contains("WARN"));
    assert!(warnings.any(|line| line.contains(&id.to_hex())), "{said}");
}

/// Somebody may have to settle a call that has no outcome, too.
#[tokio::test]
async fn mend_28_a_call_whose_outcome_is_lost_is_logged_with_its_whole_id() {
    type Unkept = HashMap<(u8, u8), u8>;
    let idem = Idempotency::memory();
    let id = |operation| {
        let key = Key::from_part("k").expect("a key");
        RecordId::new(operation, None, key.framed()).to_hex()
    };
    let unkept = async |_| Ok::<_, Error>(Unkept::from([((1, 2), 3)]));

    let (_, of_a_value) = said_during(idem.call("told.unkept").key("k").run(unkept)).await;
    let ((), of_a_drop) = said_during(async {
        let call = idem.call("told.dropped").key("k");
        let call = call.run(async |_| std::future::pending::<Result<(), Error>>().await);
        tokio::select! {
            biased;
            ended = call => panic!("{ended:?}"),
            () = std::future::ready(()) => {}
        }
    })
    .await;

    for (said, operation) in [(of_a_value, "told.unkept"), (of_a_drop, "told.dropped")] {
        let mut warnings = said.lines().filter(|line| line.contains("WARN"));
        assert!(
            warnings.any(|line| line.contains(&id(operation))),
            "{operation}: {said}"
        );
    }
}
