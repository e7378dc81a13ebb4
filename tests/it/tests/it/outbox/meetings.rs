//! Messages and relays that meet: late answers, topics that are down, and keys that wait.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    Error, Idempotency,
    outbox::{Envelope, Message, OnPoison, Outbox, OutboxDatabase, PublishError, Publisher},
};
use sqlx::postgres::PgPoolOptions;

use super::{
    broker::{Answer, Broker, drained, send, start},
    count, numbers, outbox, placed, prefix,
};
use crate::transactions::shop::{PostgresShop, Shop};

on_every_database![
    a_late_answer_leaves_a_new_message_of_the_same_id,
    a_late_answer_leaves_no_key_parked,
    a_failure_of_an_earlier_message_costs_no_attempt,
    nothing_of_a_topic_is_published_while_it_pauses,
    a_topic_is_served_behind_thousands_of_keys_that_wait,
    a_publisher_that_panics_before_its_future_loses_nothing,
    a_clone_in_a_body_is_the_same_message,
    claims_of_keys_without_messages_go,
    of_two_that_resume_a_key_one_is_told_so,
];

/// Longer than any test.
const HOURS: Duration = Duration::from_secs(10_000);

async fn nap() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

/// Blocks its thread with the first batch, so that no lease is prolonged.
#[derive(Clone)]
struct Blocking {
    broker: Broker,
    is_held: Arc<AtomicBool>,
    goes_on: Arc<AtomicBool>,
}

impl Blocking {
    fn new(broker: Broker) -> Self {
        Self {
            broker,
            is_held: Arc::default(),
            goes_on: Arc::default(),
        }
    }

    async fn holds(&self) {
        while !self.is_held.load(Ordering::SeqCst) {
            nap().await;
        }
    }

    fn go_on(&self) {
        self.goes_on.store(true, Ordering::SeqCst);
    }
}

impl Publisher for Blocking {
    async fn publish(&self, batch: &[Envelope]) -> Answer {
        self.is_held.store(true, Ordering::SeqCst);
        let answer = self.broker.publish(batch).await;
        tokio::task::block_in_place(|| {
            while !self.goes_on.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        answer
    }
}

fn refuses_all() -> Broker {
    let refused = || Err(PublishError::Rejected("it is unlucky".to_owned()));
    Broker::new(move |batch| batch.iter().map(|_| refused()).collect())
}

async fn a_late_answer_leaves_a_new_message_of_the_same_id<S: Shop<Database: OutboxDatabase>>(
    shop: S,
) {
    let (outbox, broker) = (outbox(&shop).await, Broker::willing());
    send(&shop, &outbox, [placed(1).key("k").id("one")]).await;
    let late = Blocking::new(broker.clone());
    let first = outbox.relay(late.clone()).lease("500ms").start().await;
    let first = first.expect("it starts");
    late.holds().await;
    let second = start(&outbox, &broker).await;
    drained(&shop).await;
    second.stop().await;
    send(&shop, &outbox, [placed(2).key("k").id("one")]).await;
    late.go_on();
    drained(&shop).await;
    first.stop().await;
    assert_eq!(broker.by_key()["k"], [1, 1, 2]);
}

async fn a_late_answer_leaves_no_key_parked<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let outbox = outbox(&shop).await;
    send(&shop, &outbox, [placed(1).key("k")]).await;
    let confirming = Blocking::new(Broker::willing());
    let first = outbox.relay(confirming.clone()).lease("500ms");
    let _first = first.start().await.expect("it starts");
    confirming.holds().await;
    let refusing = Blocking::new(refuses_all());
    let second = outbox.relay(refusing.clone()).budget(1).start().await;
    let second = second.expect("it starts");
    refusing.holds().await;
    confirming.go_on();
    drained(&shop).await;
    refusing.go_on();
    second.stop().await;
    assert_eq!(outbox.parked().await, Ok(Vec::new()));
    let broker = Broker::willing();
    let _third = start(&outbox, &broker).await;
    send(&shop, &outbox, [placed(2).key("k")]).await;
    drained(&shop).await;
}

async fn a_failure_of_an_earlier_message_costs_no_attempt<S: Shop<Database: OutboxDatabase>>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    let outages = AtomicU32::new(0);
    let broker = Broker::new(move |batch| {
        let answer = |it: &Envelope| match &it.payload[..] {
            b"1" => Err(PublishError::Rejected("it is unlucky".to_owned())),
            b"2" if outages.fetch_add(1, Ordering::SeqCst) == 0 => Err(PublishError::Outage),
            _ => Ok(()),
        };
        batch.iter().map(answer).collect()
    });
    let relay = outbox.relay(broker.clone()).budget(1);
    let relay = relay.on_poison(OnPoison::SetAside).start().await;
    let relay = relay.expect("it starts");
    for message in [
        placed(1).key("k"),
        placed(9).key("other"),
        placed(2).key("k"),
    ] {
        send(&shop, &outbox, [message]).await;
        relay.wake();
        drained(&shop).await;
    }
    let rejected = format!("SELECT count(*) FROM {}outbox_rejected", prefix(&shop));
    assert_eq!(numbers(&shop, rejected).await, [1]);
    assert_eq!(broker.by_key()["k"], [1, 2, 2]);
}

async fn nothing_of_a_topic_is_published_while_it_pauses<S: Shop<Database: OutboxDatabase>>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    let (calls, is_up) = (
        Arc::new(AtomicU32::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let broker = {
        let (calls, is_up) = (Arc::clone(&calls), Arc::clone(&is_up));
        Broker::new(move |batch| {
            calls.fetch_add(1, Ordering::SeqCst);
            let answer = match is_up.load(Ordering::SeqCst) {
                true => Ok(()),
                false => Err(PublishError::Outage),
            };
            vec![answer; batch.len()]
        })
    };
    let relay = start(&outbox, &broker).await;
    for order in 0..60 {
        send(&shop, &outbox, [placed(order).key(&order)]).await;
        relay.wake();
        nap().await;
    }
    let called = calls.load(Ordering::SeqCst);
    assert!((1..30).contains(&called), "60 keys, {called} calls");
    is_up.store(true, Ordering::SeqCst);
    drained(&shop).await;
}

async fn a_topic_is_served_behind_thousands_of_keys_that_wait<S: Shop<Database: OutboxDatabase>>(
    shop: S,
) {
    const WAITING: i64 = 2_500;
    let outbox = outbox(&shop).await;
    let broker = Broker::new(|batch| {
        let answer = |it: &Envelope| match &*it.topic {
            "down" => Err(PublishError::Outage),
            _ => Ok(()),
        };
        batch.iter().map(answer).collect()
    });
    let down = |order: i64| Message::raw("down", "1").key(&format!("a{order:05}"));
    send(&shop, &outbox, (0..WAITING).map(down)).await;
    send(&shop, &outbox, [placed(1).key("z")]).await;
    // It looks once, and then only when it is woken.
    let relay = outbox.relay(broker.clone()).pauses(HOURS, HOURS);
    let _relay = relay.start().await.expect("it starts");
    while count(&shop).await > WAITING {
        nap().await;
    }
}

/// Panics before it has a future, once.
struct Panics(Broker, AtomicBool);

impl Publisher for Panics {
    fn publish(&self, batch: &[Envelope]) -> impl Future<Output = Answer> + Send {
        assert!(self.1.swap(true, Ordering::SeqCst), "the first batch");
        self.0.publish(batch)
    }
}

async fn a_publisher_that_panics_before_its_future_loses_nothing<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let (outbox, broker) = (outbox(&shop).await, Broker::willing());
    send(&shop, &outbox, [placed(1).key("k")]).await;
    let panics = Panics(broker.clone(), AtomicBool::new(false));
    let _relay = outbox.relay(panics).start().await.expect("it starts");
    drained(&shop).await;
    assert_eq!(broker.by_key()["k"], [1]);
}

async fn a_clone_in_a_body_is_the_same_message<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let outbox = outbox(&shop).await;
    let (idem, ids) = (Idempotency::memory(), Mutex::new(Vec::new()));
    // The first run is rolled back once and tries again, and its outcome is not recorded.
    for tries in [2, 1] {
        let call = idem.call("orders.place").key("7").release_errors();
        let run: Result<(), Error> = call
            .run(async |_| {
                let message = placed(7).key("k");
                for left in (0..tries).rev() {
                    let mut tx = shop.begin().await.expect("a transaction");
                    let id = outbox.send(&mut tx, message.clone()).await?;
                    match left {
                        0 => tx.commit().await.expect("it commits"),
                        _ => tx.rollback().await.expect("it rolls back"),
                    }
                    ids.lock().expect("nobody panics").push(id);
                }
                Err(Error::InvalidPolicy("it is not recorded"))
            })
            .await;
        assert!(run.is_err());
    }
    let ids = ids.into_inner().expect("nobody panics");
    assert_eq!((ids.len(), count(&shop).await), (3, 1), "{ids:?}");
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

async fn claims_of_keys_without_messages_go<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let claims = format!("SELECT count(*) FROM {}outbox_claims", prefix(&shop));
    let outbox = outbox(&shop).await;
    let relay = outbox.relay(refuses_all()).budget(1);
    let relay = relay.on_poison(OnPoison::SetAside).start().await;
    let relay = relay.expect("it starts");
    send(
        &shop,
        &outbox,
        (0..50).map(|order| placed(order).key(&order)),
    )
    .await;
    relay.wake();
    drained(&shop).await;
    relay.stop().await;
    assert!(
        numbers(&shop, claims.clone()).await[0] > 0,
        "they are there"
    );
    outbox.purge().await.expect("it purges");
    assert_eq!(numbers(&shop, claims).await, [0]);
}

async fn of_two_that_resume_a_key_one_is_told_so<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let outbox = outbox(&shop).await;
    send(&shop, &outbox, [placed(1).key("k")]).await;
    let relay = outbox.relay(refuses_all()).budget(1).start().await;
    let relay = relay.expect("it starts");
    while outbox.parked().await.expect("it answers").is_empty() {
        nap().await;
    }
    relay.stop().await;
    let resume = || outbox.resume("k");
    let (one, other) = tokio::join!(resume(), resume());
    let told = [one.expect("it resumes"), other.expect("it resumes")];
    assert!(told.contains(&true) && told.contains(&false), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_relay_looks_once_more_before_it_sleeps() {
    let shop = PostgresShop::new().await;
    crate::harness::in_time(async {
        let (outbox, table) = (
            outbox(&shop).await,
            format!("{}outbox_relays", prefix(&shop)),
        );
        let mut lock = shop.begin().await.expect("a transaction");
        let text = format!("LOCK TABLE {table} IN EXCLUSIVE MODE");
        PostgresShop::run(&mut lock, text).await.expect("it locks");
        let relay = outbox.relay(Broker::willing()).pauses(HOURS, HOURS);
        let relay = relay.start().await.expect("it starts");
        let waits = format!(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = '{table}'::regclass"
        );
        // Hearing that notifications come through, it is about to say that it sleeps.
        while numbers(&shop, waits.clone()).await == [0] {
            relay.wake();
            // It has slept by then, so that no call of `wake` is left over.
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        send(&shop, &outbox, [placed(1).key("k")]).await;
        lock.commit().await.expect("it commits");
        drained(&shop).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_relay_that_cannot_see_the_tables_does_not_start() {
    let shop = PostgresShop::new().await;
    crate::harness::in_time(async {
        outbox(&shop).await;
        // A hook of the pool's, which the connections of a relay do not run.
        let pool = PgPoolOptions::new().after_connect(|connection, _| {
            Box::pin(async {
                let path = sqlx::query("SET search_path TO public");
                path.execute(connection).await.map(drop)
            })
        });
        let options = (*shop.pool().connect_options()).clone();
        let pool = pool.connect_with(options.options([("search_path", "nowhere")]));
        let hooked = Outbox::new(&pool.await.expect("it connects"));
        let hooked = hooked.prefix(&prefix(&shop)).expect("a prefix");
        hooked.check_schema().await.expect("the pool sees them");
        let started = hooked.relay(Broker::willing()).start().await;
        assert!(matches!(started, Err(Error::Store(_))), "{started:?}");
    })
    .await;
}
