//! Keys that are parked, and how operators have them go on.

use std::time::Duration;

use idempotent_runtime::outbox::{Envelope, Outbox, OutboxDatabase, Parked, PublishError, Relay};
use sqlx::Database;

use super::{
    broker::{Broker, send, start},
    count, numbers, outbox, placed, prefix,
};
use crate::{cancellation::polled, transactions::shop::Shop};

on_every_database![
    a_parked_key_is_listed_with_its_oldest_message,
    a_key_that_is_resumed_goes_on_with_its_oldest_message,
    a_message_that_is_discarded_lets_those_behind_it_go,
    only_the_message_that_was_seen_is_discarded,
    a_message_without_a_key_is_set_aside_and_its_lane_goes_on,
    mend_17_a_look_that_is_dropped_leaves_no_transaction_to_the_pool,
];

/// A broker that takes no message of this payload.
pub(super) fn takes_all_but(poison: &'static [u8]) -> Broker {
    Broker::new(move |batch| {
        let answer = |it: &Envelope| match &it.payload[..] == poison {
            true => Err(PublishError::Rejected("it is unlucky".to_owned())),
            false => Ok(()),
        };
        batch.iter().map(answer).collect()
    })
}

/// Wakes a relay until so many messages are left.
pub(super) async fn left<S: Shop>(shop: &S, relay: &Relay, left: i64) {
    while count(shop).await > left {
        relay.wake();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Sends 12, 13 and 14 under one key, and waits until 13 has parked it.
async fn park<S: Shop<Database: OutboxDatabase>>(
    shop: &S,
    outbox: &Outbox<S::Database>,
) -> (Broker, Relay, Parked) {
    let broker = takes_all_but(b"13");
    let messages = [12, 13, 14].map(|order| placed(order).key("k").id(&format!("order-{order}")));
    send(shop, outbox, messages).await;
    let relay = start(outbox, &broker).await;
    loop {
        relay.wake();
        let mut parked = outbox.parked().await.expect("the database answers");
        if let Some(key) = parked.pop() {
            assert_eq!(parked, [], "one key");
            return (broker, relay, key);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn a_parked_key_is_listed_with_its_oldest_message<S: Shop<Database: OutboxDatabase>>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    assert_eq!(outbox.parked().await, Ok(Vec::new()));
    let (_broker, _relay, parked) = park(&shop, &outbox).await;
    assert_eq!((&*parked.key, &*parked.topic), ("k", "orders.placed"));
    assert_eq!((&*parked.id, parked.messages), ("order-13", 2));
    assert!(parked.reason.contains("unlucky"), "{parked:?}");
    assert!(parked.since < Duration::from_secs(60));
}

async fn a_key_that_is_resumed_goes_on_with_its_oldest_message<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    let (broker, relay, _parked) = park(&shop, &outbox).await;
    drop(relay);
    assert_eq!(broker.by_key()["k"], [12, 13, 13, 13]);
    let resumed = async |key| {
        let resume = outbox.resume(key).by("anna");
        resume.because("the broker takes it now").await
    };
    assert_eq!(resumed("k").await, Ok(true));
    assert_eq!(
        resumed("k").await,
        Ok(false),
        "a second call changes nothing"
    );
    assert_eq!(resumed("unknown").await, Ok(false));
    let acts = acts_of_anna(&shop, "resumed", "the broker takes it now");
    assert_eq!(numbers(&shop, acts).await, [1]);
    let by = "n".repeat(257);
    assert!(outbox.resume("k").by(by).await.is_err(), "it is too long");
    let willing = Broker::willing();
    let relay = start(&outbox, &willing).await;
    left(&shop, &relay, 0).await;
    assert_eq!(willing.by_key()["k"], [13, 14]);
}

async fn a_message_that_is_discarded_lets_those_behind_it_go<S: Shop<Database: OutboxDatabase>>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    let (broker, relay, parked) = park(&shop, &outbox).await;
    assert_eq!(
        outbox
            .discard("k", &parked.id)
            .by("anna")
            .because("it is a test")
            .await,
        Ok(true)
    );
    assert_eq!(
        outbox
            .discard("k", &parked.id)
            .because("it is a test")
            .await,
        Ok(false)
    );
    left(&shop, &relay, 0).await;
    assert_eq!(broker.by_key()["k"], [12, 13, 13, 13, 14]);
    let rejected = format!("SELECT count(*) FROM {}outbox_rejected", prefix(&shop));
    assert_eq!(numbers(&shop, rejected).await, [1]);
    let acts = acts_of_anna(&shop, "discarded", "it is a test");
    assert_eq!(
        numbers(&shop, acts).await,
        [1],
        "the second one changed nothing"
    );
}

/// Counts these acts of one operator on the oldest message of the parked key.
fn acts_of_anna<S: Shop<Database: OutboxDatabase>>(shop: &S, act: &str, reason: &str) -> String {
    let prefix = prefix(shop);
    let bytes = |text: &str| {
        let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        match <S::Database as Database>::NAME {
            "PostgreSQL" => format!("decode('{digits}', 'hex')"),
            _ => format!("x'{digits}'"),
        }
    };
    format!(
        "SELECT count(*) FROM {prefix}outbox_acts
         WHERE act = {} AND id = {} AND person = {} AND reason = {} AND acted > 0",
        bytes(act),
        bytes("order-13"),
        bytes("anna"),
        bytes(reason)
    )
}

async fn only_the_message_that_was_seen_is_discarded<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let outbox = outbox(&shop).await;
    let (_broker, _relay, _parked) = park(&shop, &outbox).await;
    for (key, id) in [("k", "order-14"), ("k", "order-12"), ("other", "order-13")] {
        assert_eq!(
            outbox.discard(key, id).because("it is a test").await,
            Ok(false),
            "{key} {id}"
        );
    }
    assert_eq!(count(&shop).await, 2);
    assert_eq!(outbox.parked().await.map(|parked| parked.len()), Ok(1));
}

async fn a_message_without_a_key_is_set_aside_and_its_lane_goes_on<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    let broker = takes_all_but(b"13");
    // With more messages than lanes, some stand behind it.
    send(&shop, &outbox, (0..100).map(placed)).await;
    let relay = start(&outbox, &broker).await;
    left(&shop, &relay, 0).await;
    assert_eq!(outbox.parked().await, Ok(Vec::new()));
    let mut arrived = broker.by_key().remove("").expect("they have no key");
    arrived.sort_unstable();
    arrived.dedup();
    assert_eq!(arrived, (0..100).collect::<Vec<_>>());
    let rejected = format!("SELECT count(*) FROM {}outbox_rejected", prefix(&shop));
    assert_eq!(numbers(&shop, rejected).await, [1]);
}

async fn mend_17_a_look_that_is_dropped_leaves_no_transaction_to_the_pool<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let made = outbox(&shop).await;
    let options = shop.pool().options().clone().max_connections(1);
    let options = options.min_connections(0);
    let pool = options.connect_lazy_with((*shop.pool().connect_options()).clone());
    let outbox = Outbox::new(&pool).prefix(&prefix(&shop)).expect("a prefix");
    let mut polls = 1;
    loop {
        let mut look = Box::pin(outbox.parked().into_future());
        let answer = polled(&mut look, polls).await;
        drop(look);
        let mut connection = pool.acquire().await.expect("a connection");
        let order = i64::try_from(polls).expect("a few");
        shop.order(&mut connection, order).await.expect("a row");
        let orders = shop.orders().await;
        assert!(orders.contains(&order), "{polls}: it is in a transaction");
        polls += 1;
        if answer.is_some() {
            break;
        }
    }
    drop(made);
}
