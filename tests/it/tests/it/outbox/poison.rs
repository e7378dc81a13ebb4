//! One message that fails a whole batch: it is found, and pays alone.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    Idempotency, Observer, OutboxEvent,
    outbox::{Envelope, Message, Outbox, OutboxDatabase, PublishError, Relay},
};

use super::{
    broker::{Answer, Broker, drained, first_arrivals, send},
    count, numbers, outbox, placed, prefix,
};
use crate::transactions::shop::Shop;

on_every_database![
    mend_11_a_message_that_fails_its_batch_is_parked_alone,
    mend_11_the_keys_behind_a_message_that_closes_the_channel_pay_nothing,
    mend_11_two_messages_that_fail_their_batch_are_parked_alone,
    mend_11_a_message_without_a_key_that_fails_its_batch_is_set_aside_alone,
    mend_11_a_poisoned_key_keeps_no_other_message_of_its_topic_waiting,
    mend_11_an_outage_that_answers_nothing_costs_no_attempt,
    mend_11_a_topic_pauses_for_as_long_as_its_receiver_asks,
];

/// The payload that no broker here takes.
const POISON: i64 = -1;

fn is_poison(envelope: &Envelope) -> bool {
    envelope.payload == "-1"
}

/// Answers for a batch as a whole.
fn all_or_nothing(batch: &[Envelope]) -> Answer {
    match batch.iter().any(is_poison) {
        true => vec![Err(PublishError::Unknown); batch.len()],
        false => vec![Ok(()); batch.len()],
    }
}

/// Closes the channel at a message: those behind it do not leave.
fn closes_the_channel(batch: &[Envelope]) -> Answer {
    let answer = |place| match batch.iter().position(is_poison) {
        Some(poison) if place == poison => Err(PublishError::Unknown),
        Some(poison) if place > poison => Err(PublishError::Outage),
        _ => Ok(()),
    };
    (0..batch.len()).map(answer).collect()
}

/// A relay for which one attempt is too much.
async fn strict<DB: OutboxDatabase>(outbox: &Outbox<DB>, broker: &Broker) -> Relay {
    let relay = outbox.relay(broker.clone()).lease("10s").budget(1);
    relay.start().await.expect("it starts")
}

fn key(number: usize) -> String {
    format!("key-{number:02}")
}

/// The number of keys beside those that are poisoned.
const SOUND: usize = 10;

/// Sends a message to each key, where those of `poisoned` get the poison. Then sends to the sound
/// keys until the poisoned ones are parked, and asserts that no other one is.
async fn assert_parked_alone<S: Shop<Database: OutboxDatabase>>(
    shop: S,
    decide: fn(&[Envelope]) -> Answer,
    poisoned: &[usize],
) {
    let (outbox, broker) = (outbox(&shop).await, Broker::new(decide));
    let keys = SOUND + poisoned.len();
    let is_sound = |key: &usize| !poisoned.contains(key);
    let first = (0..keys).map(|number| match is_sound(&number) {
        true => placed(0).key(&key(number)),
        false => placed(POISON).key(&key(number)),
    });
    send(&shop, &outbox, first).await;
    let relay = strict(&outbox, &broker).await;
    let (mut parked, mut sent) = (Vec::new(), 0);
    while parked.len() < poisoned.len() {
        // If nothing else came through, it would be an outage.
        sent += 1;
        let sound = (0..keys).filter(is_sound);
        send(&shop, &outbox, sound.map(|it| placed(sent).key(&key(it)))).await;
        relay.wake();
        tokio::time::sleep(Duration::from_millis(20)).await;
        parked = outbox.parked().await.expect("the database answers");
    }
    while count(&shop).await > i64::try_from(poisoned.len()).expect("a few") {
        relay.wake();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let parked: Vec<_> = parked.into_iter().map(|it| it.key).collect();
    let expected: Vec<_> = poisoned.iter().map(|it| key(*it)).collect();
    assert_eq!(parked, expected);
    let by_key = broker.by_key();
    for number in (0..keys).filter(is_sound) {
        let arrived = first_arrivals(&by_key[&key(number)]);
        assert_eq!(arrived, (0..=sent).collect::<Vec<_>>(), "{number}");
    }
}

async fn mend_11_a_message_that_fails_its_batch_is_parked_alone<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    assert_parked_alone(shop, all_or_nothing, &[5]).await;
}

async fn mend_11_the_keys_behind_a_message_that_closes_the_channel_pay_nothing<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    assert_parked_alone(shop, closes_the_channel, &[3]).await;
}

async fn mend_11_two_messages_that_fail_their_batch_are_parked_alone<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    assert_parked_alone(shop, all_or_nothing, &[0, 7]).await;
}

async fn mend_11_a_message_without_a_key_that_fails_its_batch_is_set_aside_alone<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let (outbox, broker) = (outbox(&shop).await, Broker::new(all_or_nothing));
    let messages = (0..SOUND).map(|order| placed(i64::try_from(order).expect("a few")));
    send(&shop, &outbox, messages.chain([placed(POISON)])).await;
    let relay = strict(&outbox, &broker).await;
    let rejected = format!("SELECT count(*) FROM {}outbox_rejected", prefix(&shop));
    let mut sent = 100;
    while numbers(&shop, rejected.clone()).await == [0] {
        send(&shop, &outbox, [placed(sent).key("sound")]).await;
        sent += 1;
        relay.wake();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drained(&shop).await;
    assert_eq!(numbers(&shop, rejected).await, [1]);
    assert_eq!(outbox.parked().await, Ok(Vec::new()));
    let sound: HashSet<_> = broker.by_key()[""].iter().copied().collect();
    assert_eq!(sound.len(), SOUND + 1);
}

/// The poison stays in its key here, because the budget is large.
async fn mend_11_a_poisoned_key_keeps_no_other_message_of_its_topic_waiting<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let (outbox, broker) = (outbox(&shop).await, Broker::new(all_or_nothing));
    let keys = (0..SOUND).map(|number| placed(0).key(&key(number)));
    send(&shop, &outbox, keys.chain([placed(POISON).key("poisoned")])).await;
    let relay = outbox.relay(broker.clone()).lease("10s").budget(1_000);
    let relay = relay.start().await.expect("it starts");
    for order in 1..=5 {
        while count(&shop).await > 1 {
            relay.wake();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        send(&shop, &outbox, [placed(order).key("sound")]).await;
    }
    let by_key = broker.by_key();
    assert!(by_key["poisoned"].len() > 1);
    assert_eq!(first_arrivals(&by_key["sound"])[..4], [1, 2, 3, 4]);
}

async fn mend_11_an_outage_that_answers_nothing_costs_no_attempt<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    // As many as halve the batches three times.
    const FAILURES: u32 = 4;
    let outbox = outbox(&shop).await;
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let broker =
        Broker::new(
            move |batch| match counted.fetch_add(1, Ordering::SeqCst) < FAILURES {
                true => Vec::new(),
                false => vec![Ok(()); batch.len()],
            },
        );
    let keys = 0..2 * SOUND;
    send(&shop, &outbox, keys.map(|it| placed(0).key(&key(it)))).await;
    let relay = strict(&outbox, &broker).await;
    while count(&shop).await > 0 {
        relay.wake();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(outbox.parked().await, Ok(Vec::new()));
    // The batches grow again: one a key would be 20 calls more.
    let calls = calls.load(Ordering::SeqCst);
    assert!(calls < FAILURES + 12, "{calls}");
}

/// Writes down the pauses of outages.
#[derive(Clone, Default)]
struct Pauses(Arc<Mutex<Vec<Duration>>>);

impl Observer for Pauses {
    fn outbox(&self, event: &OutboxEvent<'_>) {
        if let OutboxEvent::Outage { pause, .. } = event {
            self.0.lock().expect("nobody panics").push(*pause);
        }
    }
}

async fn mend_11_a_topic_pauses_for_as_long_as_its_receiver_asks<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    const ASKED: Duration = Duration::from_secs(300);
    let (outbox, pauses) = (outbox(&shop).await, Pauses::default());
    let handle = Idempotency::builder(shop.store()).observer(pauses.clone());
    let handle = handle.build().expect("a handle");
    let broker = Broker::new(|batch| {
        let answer = |it: &Envelope| match &*it.topic {
            "busy" => Err(PublishError::RetryAfter(ASKED)),
            _ => Ok(()),
        };
        batch.iter().map(answer).collect()
    });
    let busy = |order: i64, key: &str| Message::raw("busy", order.to_string()).key(key);
    send(&shop, &outbox, [busy(1, "a"), busy(2, "b")]).await;
    let relay = outbox.relay(broker.clone()).budget(1).idempotency(&handle);
    let relay = relay.start().await.expect("it starts");
    while pauses.0.lock().expect("nobody panics").is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // A new message waits, too, and another topic does not.
    send(&shop, &outbox, [busy(3, "c"), placed(4).key("d")]).await;
    while count(&shop).await > 3 {
        relay.wake();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    relay.stop().await;
    assert_eq!(*pauses.0.lock().expect("nobody panics"), [ASKED]);
    let arrived: Vec<_> = broker.arrived().into_iter().map(|it| it.payload).collect();
    assert_eq!(arrived, ["1", "2", "4"]);
    assert_eq!(outbox.parked().await, Ok(Vec::new()));
}
