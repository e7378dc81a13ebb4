//! Lists of what a relay could not send: many keys that are parked, and messages that were set
//! aside. Operators have them go on, send them again, or discard them.

use std::time::Duration;

use idempotent_runtime::outbox::{
    Envelope, Message, OnPoison, Outbox, OutboxDatabase, PublishError,
};

use tokio::task::JoinSet;

use super::{
    broker::{Broker, send, start},
    count, numbers, numbers_of, outbox,
    parked::{left, takes_all_but},
    placed, prefix,
};
use crate::transactions::shop::Shop;

on_every_database![
    parked_keys_are_listed_by_pages_and_by_what_they_have_in_common,
    parked_keys_of_one_topic_go_on_together,
    parked_keys_of_one_reason_go_on_together,
    a_message_that_was_set_aside_is_sent_again_behind_what_its_key_has,
    messages_that_were_set_aside_are_listed_by_pages,
    a_message_that_was_set_aside_is_discarded_once,
    a_message_whose_copy_waits_is_not_sent_again,
    operators_who_act_in_one_moment_have_a_row_each,
];

/// Rejects everything, with the topic as the reason.
fn refuses() -> Broker {
    let answer = |it: &Envelope| Err(PublishError::Rejected(format!("{} is refused", it.topic)));
    Broker::new(move |batch| batch.iter().map(answer).collect())
}

fn topic_of(order: i64) -> &'static str {
    ["even", "odd"][usize::from(order % 2 == 1)]
}

/// Parks seven keys: four of one topic, three of another.
async fn park<S: Shop<Database: OutboxDatabase>>(shop: &S) -> Outbox<S::Database> {
    let outbox = outbox(shop).await;
    let message = |order| {
        let message = Message::new(topic_of(order), &order).expect("it is JSON");
        message.key(&format!("key-{order}"))
    };
    send(shop, &outbox, (1..=7).map(message)).await;
    let relay = start(&outbox, &refuses()).await;
    while outbox.parked().await.expect("it answers").len() < 7 {
        relay.wake();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    outbox
}

async fn parked_keys_are_listed_by_pages_and_by_what_they_have_in_common<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let outbox = park(&shop).await;
    let (mut keys, mut after) = (Vec::new(), None);
    loop {
        let page = outbox.parked().limit(3).after(after).await;
        let page = page.expect("the database answers");
        assert!(page.len() <= 3);
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        keys.extend(page.into_iter().map(|parked| parked.key));
    }
    let all: Vec<_> = (1..=7).map(|order| format!("key-{order}")).collect();
    assert_eq!(keys, all);
    for (topic, keys) in [("odd", 4), ("even", 3), ("od", 0)] {
        let of_topic = outbox.parked().topic(topic).await;
        assert_eq!(of_topic.map(|it| it.len()), Ok(keys), "{topic}");
    }
    for (reason, keys) in [("odd is", 4), ("is refused", 7), ("%", 0), ("Odd", 0)] {
        let of_reason = outbox.parked().reason(reason).await;
        assert_eq!(of_reason.map(|it| it.len()), Ok(keys), "{reason}");
    }
    let both = outbox.parked().topic("odd").reason("even").await;
    assert_eq!(both, Ok(Vec::new()));
}

/// How many acts of this person there are.
async fn acts<S: Shop<Database: OutboxDatabase>>(shop: &S) -> i64 {
    let all = format!(
        "SELECT count(*) FROM {}outbox_acts WHERE person IS NOT NULL AND id IS NOT NULL",
        prefix(shop)
    );
    numbers(shop, all).await[0]
}

async fn parked_keys_of_one_topic_go_on_together<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let outbox = park(&shop).await;
    let resume = || outbox.parked().topic("odd").resume().by("anna");
    assert_eq!(resume().because("it is set up now").await, Ok(4));
    assert_eq!(acts(&shop).await, 4);
    assert_eq!(resume().await, Ok(0), "a second call changes nothing");
    assert_eq!(acts(&shop).await, 4);
    let parked = outbox.parked().await.expect("the database answers");
    assert!(parked.iter().all(|key| key.topic == "even") && parked.len() == 3);
    let relay = start(&outbox, &Broker::willing()).await;
    left(&shop, &relay, 3).await;
    let too_long = resume().by("n".repeat(257)).await;
    assert!(too_long.is_err());
}

async fn parked_keys_of_one_reason_go_on_together<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let outbox = park(&shop).await;
    let even = || outbox.parked().reason("even is refused");
    assert_eq!(even().limit(2).resume().await, Ok(2), "a few of them");
    assert_eq!(even().resume().await, Ok(1));
    let odd = outbox.parked().await.expect("it answers").remove(0);
    let resume = || outbox.resume(&odd.key);
    assert_eq!(resume().at_message("another").await, Ok(false));
    assert_eq!(resume().at_message(&odd.id).await, Ok(true));
    assert_eq!(outbox.parked().resume().await, Ok(3));
    let relay = start(&outbox, &Broker::willing()).await;
    left(&shop, &relay, 0).await;
}

/// Sends these with one key, and waits until 13 was set aside and the others have arrived.
async fn set_aside<S: Shop<Database: OutboxDatabase>>(
    shop: &S,
    orders: &[i64],
) -> Outbox<S::Database> {
    let outbox = outbox(shop).await;
    let message = |order: &i64| {
        let message = placed(*order).key("k").id(&format!("order-{order}"));
        message.header("Trace", "x-1")
    };
    send(shop, &outbox, orders.iter().map(message)).await;
    let relay = outbox.relay(takes_all_but(b"13")).lease("1s").budget(2);
    let relay = relay.on_poison(OnPoison::SetAside).start().await;
    let relay = relay.expect("it starts");
    left(shop, &relay, 0).await;
    outbox
}

async fn a_message_that_was_set_aside_is_sent_again_behind_what_its_key_has<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let outbox = set_aside(&shop, &[12, 13, 14]).await;
    let rejected = outbox.rejected().await.expect("the database answers");
    let [message] = &rejected[..] else {
        panic!("one: {rejected:?}")
    };
    assert_eq!(
        (&*message.id, message.key.as_deref()),
        ("order-13", Some("k"))
    );
    assert_eq!((&*message.topic, message.bytes), ("orders.placed", 2));
    assert!(message.reason.contains("unlucky"), "{message:?}");
    assert!(message.number > 0, "{message:?}");
    send(&shop, &outbox, [placed(15).key("k")]).await;

    let again = || outbox.send_again(message).by("anna");
    assert_eq!(again().because("it is lucky now").await, Ok(true));
    assert_eq!(again().await, Ok(false), "a second call changes nothing");
    assert_eq!(acts(&shop).await, 1);
    assert_eq!(outbox.rejected().await, Ok(Vec::new()));
    assert_eq!(numbers_of(&shop, "k").await.len(), 2);

    let willing = Broker::willing();
    let relay = start(&outbox, &willing).await;
    left(&shop, &relay, 0).await;
    assert_eq!(willing.by_key()["k"], [15, 13]);
    let arrived = willing.arrived();
    let again = arrived.last().expect("it arrived");
    assert_eq!(again.id, "order-13");
    assert_eq!(again.headers, [("Trace".to_owned(), "x-1".to_owned())]);
}

async fn messages_that_were_set_aside_are_listed_by_pages<S: Shop<Database: OutboxDatabase>>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    let message = |order| {
        let message = Message::new(topic_of(order), &order).expect("it is JSON");
        message.id(&format!("order-{order}"))
    };
    send(&shop, &outbox, (1..=7).map(message)).await;
    let relay = start(&outbox, &refuses()).await;
    left(&shop, &relay, 0).await;
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let list = outbox.rejected().limit(3);
        let list = match &after {
            Some(last) => list.after(last),
            None => list,
        };
        let page = list.await.expect("the database answers");
        assert!(page.iter().all(|message| message.key.is_none()));
        ids.extend(page.iter().map(|message| message.id.clone()));
        match page.into_iter().next_back() {
            Some(last) => after = Some(last),
            None => break,
        }
    }
    let all: Vec<_> = (1..=7).map(|order| format!("order-{order}")).collect();
    assert_eq!(ids, all);
    let odd = outbox.rejected().topic("odd").await;
    assert_eq!(odd.map(|it| it.len()), Ok(4));
    let one = outbox.rejected().id("order-3").await;
    let one = one.expect("the database answers");
    assert_eq!(one.len(), 1);
    // All of them are sent again in one moment, many in one lane: each act has a row.
    for message in outbox.rejected().await.expect("the database answers") {
        assert_eq!(outbox.send_again(&message).by("anna").await, Ok(true));
    }
    assert_eq!((acts(&shop).await, count(&shop).await), (7, 7));
}

async fn a_message_that_was_set_aside_is_discarded_once<S: Shop<Database: OutboxDatabase>>(
    shop: S,
) {
    let outbox = set_aside(&shop, &[13]).await;
    let message = outbox.rejected().await.expect("it answers").remove(0);
    let discard = || outbox.discard_rejected(&message).by("anna");
    assert_eq!(discard().because("it was cancelled").await, Ok(true));
    assert_eq!(discard().await, Ok(false));
    assert_eq!(outbox.send_again(&message).await, Ok(false));
    assert_eq!((acts(&shop).await, count(&shop).await), (1, 0));
}

async fn a_message_whose_copy_waits_is_not_sent_again<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let outbox = set_aside(&shop, &[13]).await;
    let message = outbox.rejected().await.expect("it answers").remove(0);
    send(&shop, &outbox, [placed(13).key("k").id("order-13")]).await;
    assert_eq!(outbox.send_again(&message).await, Ok(false));
    assert_eq!(outbox.rejected().await, Ok(vec![message]));
    assert_eq!(count(&shop).await, 1);
}

/// The moment of the last act lies ahead, so that all of them take the next one.
async fn operators_who_act_in_one_moment_have_a_row_each<S: Shop<Database: OutboxDatabase>>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    let message = |copy| placed(13).key("k").id(&format!("copy-{copy}"));
    send(&shop, &outbox, (0..5).map(message)).await;
    let relay = outbox.relay(takes_all_but(b"13")).lease("1s").budget(0);
    let relay = relay.on_poison(OnPoison::SetAside).start().await;
    left(&shop, &relay.expect("it starts"), 0).await;
    let mut rejected = outbox.rejected().await.expect("the database answers");
    assert_eq!(rejected.len(), 5);
    let first = rejected.remove(0);
    assert_eq!(outbox.discard_rejected(&first).by("anna").await, Ok(true));
    let ahead = format!(
        "UPDATE {}outbox_acts SET acted = acted + 3600000000",
        prefix(&shop)
    );
    let mut connection = shop.pool().acquire().await.expect("a connection");
    S::run(&mut connection, ahead).await.expect("it is ahead");
    drop(connection);

    let mut acting = JoinSet::new();
    for message in rejected {
        let outbox = outbox.clone();
        acting.spawn(async move { outbox.discard_rejected(&message).by("anna").await });
    }
    assert_eq!(acting.join_all().await, [const { Ok(true) }; 4]);
    assert_eq!(acts(&shop).await, 5);
}
