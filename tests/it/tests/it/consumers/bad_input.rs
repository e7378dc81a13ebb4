//! Messages and set-ups that cannot be right.

use std::{collections::HashSet, io};

use idempotent_runtime::{
    Error, Idempotency,
    consumer::{ConsumerBuilder, DeadLetterReason, MessageCall},
};
use serde::{Serialize, Serializer, ser};

use super::{assert_ack, assert_dead, consumer};
use crate::harness::World;

on_every_store![a_message_without_a_usable_id_is_a_dead_letter];

/// A payload that cannot be encoded.
struct Broken;

impl Serialize for Broken {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(ser::Error::custom("a planned failure"))
    }
}

async fn a_message_without_a_usable_id_is_a_dead_letter(world: World) {
    let consumer = consumer(&world.owner().await);
    let long = "m".repeat(1 << 20);
    let none: Option<&str> = None;
    let messages: [fn(MessageCall) -> _; 2] = [MessageCall::without_payload, |it| it.payload(&7)];
    for message in [
        consumer.message(""),
        consumer.message(&long),
        consumer.message(&none),
    ] {
        let invalid = messages[0](message).run(async |_| Ok::<_, io::Error>(()));
        let error = assert_dead(invalid.await, DeadLetterReason::InvalidMessage);
        let error = error.expect("it says why").to_string();
        assert!(!error.contains("mmm"), "no id in an error: {error}");
    }
    let broken = consumer.message("m").payload(&Broken);
    let broken = broken.run(async |_| Ok::<_, io::Error>(())).await;
    assert_dead(broken, DeadLetterReason::InvalidMessage);
    assert_eq!(world.records().await.len(), 0, "nothing was written");

    let fine = messages[1](consumer.message("m"));
    assert_ack(fine.run(async |_| Ok::<_, io::Error>(())).await, false);
}

/// The texts of what `build` refuses.
#[test]
fn i15_a_set_up_that_cannot_be_right_is_refused() {
    let idem = Idempotency::memory();
    let consumer = || idem.consumer("billing");
    let cases: [(ConsumerBuilder, &str); 8] = [
        (consumer(), "how long the broker keeps"),
        (consumer().broker_retention("8d"), "longer than the ttl"),
        (
            consumer().ttl("1d").broker_retention("3d"),
            "longer than the ttl",
        ),
        (consumer().broker_retention_unlimited(), "without a limit"),
        (consumer().broker_retention("soon"), "duration"),
        (
            idem.consumer(" ").broker_retention("3d"),
            "name of the consumer",
        ),
        (
            consumer().broker_retention("3d").scope(""),
            "no usable scope",
        ),
        (
            consumer()
                .broker_retention("3d")
                .on_crash(idempotent_runtime::OnCrash::Reconcile),
            "no function to ask",
        ),
    ];
    for (builder, expected) in cases {
        let refused = builder.build().map(drop).expect_err(expected);
        assert!(refused.to_string().contains(expected), "{refused}");
        assert!(matches!(
            refused,
            Error::InvalidPolicy(_) | Error::InvalidKey { .. }
        ));
    }
}

/// A payload whose copies would differ at random.
#[derive(Serialize)]
struct Tags {
    order: u64,
    tags: Option<Vec<HashSet<u32>>>,
}

#[tokio::test]
async fn mend_25_a_payload_with_a_set_in_random_order_is_refused_at_once() {
    let idem = Idempotency::memory();
    let consumer = idem.consumer("billing").broker_retention("1d");
    let consumer = consumer.build().expect("a consumer");
    let set: HashSet<u32> = [1].into();
    let handled = async |_| Ok::<_, io::Error>(());
    let whole = consumer.message("whole").payload(&set);
    let nested = consumer.message("nested").payload(&vec![Tags {
        order: 42,
        tags: Some(vec![set]),
    }]);
    for message in [whole, nested] {
        let told = message.run(handled).await;
        let error = assert_dead(told, DeadLetterReason::InvalidMessage);
        let error = error.expect("it says why");
        let why = error.source().expect("the cause").to_string();
        assert!(
            why.contains("`payload`") && why.contains("BTreeSet"),
            "{why}"
        );
    }
    let without = consumer.message("none").payload(&Tags {
        order: 42,
        tags: None,
    });
    assert_ack(without.run(handled).await, false);
}

#[tokio::test]
async fn mend_34_a_payload_that_differs_is_called_payload() {
    let idem = Idempotency::memory();
    let consumer = idem.consumer("billing").broker_retention("1d");
    let consumer = consumer.build().expect("a consumer");
    let tags = |order| Tags { order, tags: None };
    let handled = async |_| Ok::<_, io::Error>(());
    let first = consumer.message("m").payload(&tags(1)).run(handled).await;
    assert_ack(first, false);
    let other = consumer.message("m").payload(&tags(2)).run(handled).await;
    let error = assert_dead(other, DeadLetterReason::KeyReused).expect("it says why");
    let error = error.to_string();
    assert!(error.contains("(`payload.order`)"), "{error}");
}
