//! Each disposition, on a broker that runs for real.

use std::{
    env, process,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use consumer_examples::consume::{Handler, consume};
use consumer_examples::{
    Failure,
    broker::{Broker, DeadLetter, Delivery},
    nats::Nats,
    network::between,
    rabbitmq::RabbitMq,
};
use idempotent_runtime::{
    Idempotency,
    consumer::{Consumer, Disposition},
    testing::Gate,
};
use tokio::{sync::Semaphore, time::timeout};

macro_rules! on_every_broker {
    ($($test:ident,)*) => {
        mod nats {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs a server"]
            async fn $test() {
                super::$test(super::Queue::<super::Nats>::new(stringify!($test)).await).await;
            })*
        }
        mod rabbitmq {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs a server"]
            async fn $test() {
                super::$test(super::Queue::<super::RabbitMq>::new(stringify!($test)).await).await;
            })*
        }
    };
}

on_every_broker![
    a_message_that_failed_comes_again_and_is_counted,
    a_dead_letter_is_put_aside_with_its_reason,
    a_message_whose_holder_runs_is_not_acknowledged,
    i07_a_lost_hold_has_one_effect_and_loses_no_message,
    a_late_acknowledgement_settles_no_other_delivery,
    a_handler_that_panics_stops_no_other_message,
];

/// More than a broker takes to deliver a message.
const PATIENCE: Duration = Duration::from_secs(20);

/// A queue of one test.
struct Queue<B> {
    url: String,
    name: String,
    broker: B,
}

impl<B: Broker> Queue<B> {
    async fn new(test: &str) -> Self {
        let variable = format!("IDEMPOTENT_TEST_{}_URL", B::NAME.to_uppercase());
        let url = env::var(variable).expect("a broker");
        let name = format!("{test}-{}", process::id());
        let broker = B::connect(&url, &name).await.expect("a connection");
        Self { url, name, broker }
    }

    async fn publish(&self, id: &str) {
        let sent = self.broker.publish(id, b"7").await;
        sent.expect("the broker takes it");
    }

    /// Another connection, as another process has.
    async fn connect(&self) -> B {
        let connection = B::connect(&self.url, &self.name).await;
        connection.expect("a connection")
    }

    async fn remove(mut self) {
        assert!(self.broker.is_drained().await.expect("an answer"));
        let more = timeout(Duration::from_millis(50), self.broker.next()).await;
        assert!(more.is_err(), "it has more");
        self.broker.delete().await.expect("the queues go");
    }
}

async fn next<B: Broker>(broker: &mut B) -> B::Delivery {
    let delivery = timeout(PATIENCE, broker.next()).await;
    delivery.expect("in time").expect("a delivery")
}

fn consumer() -> Consumer {
    let consumer = Idempotency::memory().consumer("billing");
    consumer.broker_retention("1d").build().expect("a consumer")
}

async fn handle(
    consumer: &Consumer,
    delivery: &impl Delivery,
    result: Result<(), Failure>,
) -> Disposition {
    let message = consumer.message(delivery.id());
    let message = message.payload_bytes(delivery.body());
    let message = message.delivery(delivery.count());
    message.run(async |_| result).await
}

async fn a_message_that_failed_comes_again_and_is_counted<B: Broker>(queue: Queue<B>) {
    let consumer = consumer();
    queue.publish("m").await;
    let mut broker = queue.connect().await;
    for count in 1..=3 {
        let delivery = next(&mut broker).await;
        assert_eq!((delivery.id(), delivery.body()), ("m", &b"7"[..]));
        assert_eq!(delivery.count(), count);
        let result = match count {
            1 | 2 => Err("the card reader is away".into()),
            _ => Ok(()),
        };
        let mut disposition = handle(&consumer, &delivery, result).await;
        match &mut disposition {
            Disposition::Retry { after, .. } if count < 3 => {
                assert!(*after <= Duration::from_secs(4), "{after:?}");
                *after = Duration::from_millis(50);
            }
            Disposition::Ack { replayed: false } if count == 3 => {}
            other => panic!("{other:?} at delivery {count}"),
        }
        delivery.settle(disposition).await.expect("it is settled");
    }
    drop(broker);
    queue.remove().await;
}

async fn a_dead_letter_is_put_aside_with_its_reason<B: Broker>(queue: Queue<B>) {
    let consumer = consumer();
    for id in ["", "m"] {
        queue.publish(id).await;
    }
    let mut broker = queue.connect().await;
    for _ in 0..2 {
        let delivery = next(&mut broker).await;
        let message = consumer.message(delivery.id()).without_payload();
        let failed = async |_| Err::<(), _>(Failed);
        let disposition = message.record_errors().run(failed).await;
        delivery.settle(disposition).await.expect("it is settled");
    }
    let letters = broker.dead_letters().await.expect("dead letters");
    let letter = |id: &str, reason: &str| DeadLetter {
        id: id.to_owned(),
        reason: reason.to_owned(),
    };
    assert_eq!(
        letters,
        [letter("", "invalid_message"), letter("m", "failed")]
    );
    drop(broker);
    queue.remove().await;
}

#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[error("the card is refused")]
struct Failed;

/// Two copies of one message, delivered to two consumers.
async fn a_message_whose_holder_runs_is_not_acknowledged<B: Broker>(queue: Queue<B>) {
    let consumer = consumer();
    for _ in 0..2 {
        queue.publish("m").await;
    }
    let mut broker = queue.connect().await;
    let (first, second) = (next(&mut broker).await, next(&mut broker).await);
    let held = Gate::new();
    let running = {
        let (consumer, held) = (consumer.clone(), held.clone());
        tokio::spawn(async move {
            let message = consumer.message(first.id()).payload_bytes(first.body());
            let handler = async |_| {
                held.pass().await;
                Ok::<_, Failure>(())
            };
            let disposition = message.run(handler).await;
            (first, disposition)
        })
    };
    held.arrived(1).await;
    let disposition = handle(&consumer, &second, Ok(())).await;
    assert!(
        matches!(disposition, Disposition::Retry { .. }),
        "{disposition:?}"
    );
    held.open();
    let (first, disposition) = running.await.expect("no panic");
    assert!(matches!(disposition, Disposition::Ack { replayed: false }));
    first.settle(disposition).await.expect("it is settled");
    let disposition = handle(&consumer, &second, Ok(())).await;
    assert!(matches!(disposition, Disposition::Ack { replayed: true }));
    second.settle(disposition).await.expect("it is settled");
    drop(broker);
    queue.remove().await;
}

/// The broker gives the message to another consumer while the handler runs.
async fn i07_a_lost_hold_has_one_effect_and_loses_no_message<B: Broker>(queue: Queue<B>) {
    let consumer = consumer();
    queue.publish("m").await;
    let (proxy, through) = between(&queue.url).await.expect("a proxy");
    let first_broker = B::connect(&through, &queue.name).await;
    let mut first_broker = first_broker.expect("a connection");
    let first = next(&mut first_broker).await;
    let effects = Arc::new(AtomicU32::new(0));
    let held = Gate::new();
    let running = {
        let (consumer, held, effects) = (consumer.clone(), held.clone(), Arc::clone(&effects));
        tokio::spawn(async move {
            let message = consumer.message(first.id()).payload_bytes(first.body());
            // The broker hears nothing of this consumer any more.
            let lost = || async { Err::<(), Failure>("the connection is lost".into()) };
            let message = message.keep_alive("300ms", lost);
            let handler = async |attempt: idempotent_runtime::Attempt| {
                attempt.lost().await;
                held.pass().await;
                effects.fetch_add(1, Ordering::SeqCst);
                Ok::<_, Failure>(())
            };
            (message.run(handler).await, first)
        })
    };
    held.arrived(1).await;
    proxy.cut_all();

    let mut broker = queue.connect().await;
    let second = next(&mut broker).await;
    let mut disposition = handle(&consumer, &second, Ok(())).await;
    match &mut disposition {
        Disposition::Retry { after, .. } => *after = Duration::from_millis(50),
        other => panic!("{other:?} while the holder runs"),
    }
    held.open();
    let (late, first) = running.await.expect("no panic");
    assert!(matches!(late, Disposition::Retry { .. }), "{late:?}");
    // It may reach the broker or not: the message comes again in both cases.
    let _late = timeout(Duration::from_secs(1), first.settle(late)).await;
    second.settle(disposition).await.expect("it is settled");

    let third = next(&mut broker).await;
    let disposition = handle(&consumer, &third, Err("it ran again".into())).await;
    assert!(
        matches!(disposition, Disposition::Ack { replayed: true }),
        "{disposition:?}"
    );
    third.settle(disposition).await.expect("it is settled");
    assert_eq!(effects.load(Ordering::SeqCst), 1);
    drop((broker, first_broker));
    queue.remove().await;
}

/// A consumer acknowledges one message on a connection that is gone, while another message has the
/// same place on the new one.
async fn a_late_acknowledgement_settles_no_other_delivery<B: Broker>(queue: Queue<B>) {
    queue.publish("one").await;
    let (proxy, through) = between(&queue.url).await.expect("a proxy");
    let broker = B::connect(&through, &queue.name).await;
    let mut broker = broker.expect("a connection");
    let late = next(&mut broker).await;
    assert_eq!(late.id(), "one");
    proxy.cut_all();
    drop(broker);

    // The first message of the new connection is another one.
    let mut broker = queue.connect().await;
    let again = next(&mut broker).await;
    assert_eq!((again.id(), again.count()), ("one", 2));
    let acknowledged = Disposition::Ack { replayed: false };
    again.settle(acknowledged).await.expect("it is settled");
    drop(broker);
    queue.publish("two").await;
    let broker = B::connect(&through, &queue.name).await;
    let mut broker = broker.expect("a connection");
    let other = next(&mut broker).await;
    assert_eq!(other.id(), "two");
    // A connection that is about to close may have had it before.
    let count = other.count();
    let acknowledged = Disposition::Ack { replayed: true };
    let _late = timeout(Duration::from_secs(1), late.settle(acknowledged)).await;

    // It is not settled, so that it comes again.
    drop((other, broker, proxy));
    let mut broker = queue.connect().await;
    let other = next(&mut broker).await;
    assert_eq!(other.id(), "two");
    assert!(other.count() > count);
    let acknowledged = Disposition::Ack { replayed: false };
    other.settle(acknowledged).await.expect("it is settled");
    drop(broker);
    queue.remove().await;
}

/// Panics at the first delivery of each message.
struct Panics(Arc<Semaphore>);

impl Handler for Panics {
    async fn handle<D: Delivery>(&self, delivery: &D) -> Disposition {
        assert!(delivery.count() > 1, "a planned panic");
        self.0.add_permits(1);
        Disposition::Ack { replayed: false }
    }
}

async fn a_handler_that_panics_stops_no_other_message<B: Broker>(queue: Queue<B>) {
    // More than a consumer of RabbitMQ may hold.
    const MESSAGES: u32 = 10;
    for number in 0..MESSAGES {
        queue.publish(&format!("m{number}")).await;
    }
    let handled = Arc::new(Semaphore::new(0));
    let consuming = {
        let (url, name, panics) = (
            queue.url.clone(),
            queue.name.clone(),
            Panics(Arc::clone(&handled)),
        );
        tokio::spawn(async move { consume::<B, _>(&url, &name, panics).await })
    };
    let all = timeout(PATIENCE, handled.acquire_many(MESSAGES)).await;
    drop(all.expect("all are handled").expect("it is open"));
    consuming.abort();
    let _aborted = consuming.await;
    queue.broker.delete().await.expect("the queues go");
}
