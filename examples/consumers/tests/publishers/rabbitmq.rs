//! RabbitMQ.

use std::{env, time::Duration};

use consumer_examples::{network::between, publishers::rabbitmq::RabbitMqPublisher};
use idempotent_runtime::{
    outbox::{Envelope, Message, Outbox, PublishError, Publisher},
    testing::Disconnect,
};
use lapin::{
    Channel, Connection, ConnectionProperties,
    options::{BasicGetOptions, QueueDeclareOptions, QueueDeleteOptions},
    types::{AMQPValue, FieldTable},
};

use sqlx::{SqlitePool, sqlite::SqliteConnectOptions};
use tokio::time::sleep;

use crate::envelopes::{
    BATCH, assert_none_is_refused, batch, envelopes, is_refused, name, nowhere,
};

fn url() -> String {
    env::var("IDEMPOTENT_TEST_RABBITMQ_URL").expect("a server")
}

/// A queue, by a connection of the test's own.
struct Queue {
    name: String,
    _connection: Connection,
    channel: Channel,
}

impl Queue {
    async fn new(name: String, arguments: FieldTable) -> Self {
        let connection = Connection::connect(&url(), ConnectionProperties::default()).await;
        let connection = connection.expect("a connection");
        let channel = connection.create_channel().await.expect("a channel");
        let durable = QueueDeclareOptions::durable();
        let declared = channel.queue_declare(name.as_str().into(), durable, arguments);
        declared.await.expect("a queue");
        Self {
            name,
            _connection: connection,
            channel,
        }
    }

    async fn next(&self) -> Option<lapin::message::BasicGetMessage> {
        let options = BasicGetOptions { no_ack: true };
        let message = self.channel.basic_get(self.name.as_str().into(), options);
        message.await.expect("an answer")
    }

    async fn delete(self) {
        let options = QueueDeleteOptions::default();
        let deleted = self
            .channel
            .queue_delete(self.name.as_str().into(), options);
        deleted.await.expect("it goes");
    }
}

fn text(value: Option<&AMQPValue>) -> Option<String> {
    match value {
        Some(AMQPValue::LongString(text)) => Some(text.to_string()),
        _ => None,
    }
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_batch_arrives_with_its_ids_to_stay() {
    let queue = Queue::new(name("rabbitmq-ids"), FieldTable::default()).await;
    let publisher = RabbitMqPublisher::new(&url(), "");
    let batch = batch(&queue.name);
    assert_eq!(publisher.publish(&batch).await, vec![Ok(()); BATCH]);
    for envelope in &batch {
        let message = queue.next().await.expect("a message");
        let properties = &message.properties;
        assert_eq!(message.data, envelope.payload);
        let id = properties.message_id().as_ref().map(ToString::to_string);
        assert_eq!(id.as_ref(), Some(&envelope.id));
        assert_eq!(*properties.delivery_mode(), Some(2));
        let headers = properties.headers().as_ref().expect("headers").inner();
        assert_eq!(text(headers.get("outbox-key")), envelope.key);
        let number = envelope.number.map(|number| number.to_string());
        assert_eq!(text(headers.get("outbox-number")), number);
        assert_eq!(
            text(headers.get("Colour")).as_ref(),
            Some(&envelope.headers[0].1)
        );
    }
    assert!(queue.next().await.is_none());
    queue.delete().await;
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_message_that_no_queue_takes_is_refused_alone() {
    let queue = Queue::new(name("rabbitmq-unroutable"), FieldTable::default()).await;
    let publisher = RabbitMqPublisher::new(&url(), "");
    let messages = vec![
        Message::raw(&queue.name, "a"),
        Message::raw("publishers-no-queue", "b"),
        Message::raw(&queue.name, "c"),
    ];
    let results = publisher.publish(&envelopes(&messages)).await;
    assert_eq!(results[0], Ok(()));
    assert_eq!(
        results[1],
        Err(PublishError::Rejected(
            "no queue takes it: NO_ROUTE".to_owned()
        ))
    );
    assert_eq!(results[2], Ok(()));
    queue.delete().await;
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_message_that_a_full_queue_does_not_take_is_refused() {
    let mut full = FieldTable::default();
    full.insert("x-max-length".into(), AMQPValue::LongInt(1));
    let overflow = AMQPValue::LongString("reject-publish".into());
    full.insert("x-overflow".into(), overflow);
    let queue = Queue::new(name("rabbitmq-full"), full).await;
    let publisher = RabbitMqPublisher::new(&url(), "");
    let messages = ["a", "b"].map(|payload| Message::raw(&queue.name, payload));
    let batch = envelopes(&messages);
    assert_eq!(publisher.publish(&batch[..1]).await, [Ok(())]);
    let results = publisher.publish(&batch[1..]).await;
    assert!(is_refused(&results[0]), "{results:?}");
    queue.delete().await;
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_broker_that_is_away_is_an_outage() {
    let url = format!("amqp://guest:guest@{}/%2f", nowhere());
    let publisher = RabbitMqPublisher::new(&url, "");
    let results = publisher.publish(&batch("orders")).await;
    assert_eq!(results, vec![Err(PublishError::Outage); BATCH]);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_broker_that_falls_silent_leaves_unknown_what_was_not_confirmed() {
    let queue = Queue::new(name("rabbitmq-silent"), FieldTable::default()).await;
    let (proxy, through) = between(&url()).await.expect("a proxy");
    let publisher = RabbitMqPublisher::new(&through, "");
    let batch = batch(&queue.name);
    assert_eq!(publisher.publish(&batch[..1]).await, [Ok(())]);
    proxy.cut_next(Disconnect::Silence);
    let results = publisher.publish(&batch).await;
    assert_eq!(results, vec![Err(PublishError::Unknown); BATCH]);
    // The next batch has a new connection.
    assert_eq!(publisher.publish(&batch).await, vec![Ok(()); BATCH]);
    queue.delete().await;
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_batch_whose_connection_is_cut_is_refused_nowhere_and_goes_out_again() {
    let queue = Queue::new(name("rabbitmq-cut"), FieldTable::default()).await;
    let (proxy, through) = between(&url()).await.expect("a proxy");
    let publisher = RabbitMqPublisher::new(&through, "");
    let batch = batch(&queue.name);
    assert_eq!(publisher.publish(&batch[..1]).await, [Ok(())]);
    proxy.cut_next(Disconnect::BeforeAnswer);
    assert_none_is_refused(&publisher.publish(&batch).await);
    // The next batch has a new connection.
    assert_eq!(publisher.publish(&batch).await, vec![Ok(()); BATCH]);
    queue.delete().await;
}

/// One byte more than the broker takes unless it is set.
const TOO_LONG: usize = 128 * 1024 * 1024 + 1;

/// A publisher that knows of no limit.
fn unlimited() -> RabbitMqPublisher {
    RabbitMqPublisher::new(&url(), "").max_message(usize::MAX)
}

#[tokio::test]
#[ignore = "needs a server"]
async fn mend_11_a_message_beyond_the_known_limit_is_refused_alone() {
    let queue = Queue::new(name("rabbitmq-known"), FieldTable::default()).await;
    let publisher = RabbitMqPublisher::new(&url(), "").max_message(1_000);
    let messages = [1, 1_001, 1_000].map(|bytes| Message::raw(&queue.name, vec![b'a'; bytes]));
    let results = publisher.publish(&envelopes(&messages)).await;
    assert_eq!((&results[0], &results[2]), (&Ok(()), &Ok(())));
    assert!(is_refused(&results[1]), "{results:?}");
    queue.delete().await;
}

#[tokio::test]
#[ignore = "needs a server"]
async fn mend_11_a_message_that_closes_the_channel_is_refused_where_it_is_alone() {
    let queue = Queue::new(name("rabbitmq-long"), FieldTable::default()).await;
    let publisher = unlimited();
    let long = Message::raw(&queue.name, vec![b'a'; TOO_LONG]);
    let batch = envelopes(&[long, Message::raw(&queue.name, "b")]);
    let results = publisher.publish(&batch).await;
    assert!(!results.iter().any(is_refused), "{results:?}");
    let results = publisher.publish(&batch[..1]).await;
    assert!(is_refused(&results[0]), "{results:?}");
    assert_eq!(publisher.publish(&batch[1..]).await, [Ok(())]);
    queue.delete().await;
}

#[tokio::test]
#[ignore = "needs a server"]
async fn mend_11_an_exchange_that_is_not_there_is_an_outage() {
    let publisher = RabbitMqPublisher::new(&url(), "publishers-no-exchange");
    let one = envelopes(&[Message::raw("orders", "a")]);
    let results = publisher.publish(&one).await;
    assert_eq!(results, [Err(PublishError::Outage)]);
}

/// Makes the payload `long` too long on its way.
struct Lengthening(RabbitMqPublisher);

impl Publisher for Lengthening {
    async fn publish(&self, batch: &[Envelope]) -> Vec<Result<(), PublishError>> {
        let mut batch = batch.to_vec();
        for envelope in &mut batch {
            if envelope.payload == "long" {
                envelope.payload = vec![b'a'; TOO_LONG].into();
            }
        }
        self.0.publish(&batch).await
    }
}

async fn left(pool: &SqlitePool) -> i64 {
    let count = "SELECT count(*) FROM idempotent_outbox_messages";
    sqlx::query_scalar(count)
        .fetch_one(pool)
        .await
        .expect("a count")
}

#[tokio::test]
#[ignore = "needs a server"]
async fn mend_11_a_message_that_is_too_long_parks_its_key_beside_ten_sound_ones() {
    let queue = Queue::new(name("rabbitmq-poison"), FieldTable::default()).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = SqliteConnectOptions::new().filename(folder.path().join("shop.db"));
    let pool = SqlitePool::connect_with(file.create_if_missing(true)).await;
    let pool = pool.expect("a database");
    let outbox = Outbox::sqlite(pool.clone());
    outbox.migrate().await.expect("tables");
    let mut tx = pool.begin().await.expect("a transaction");
    for number in 0..11 {
        let payload = if number == 5 { "long" } else { "sound" };
        let message = Message::raw(&queue.name, payload).key(&format!("{number:02}"));
        outbox.send(&mut tx, message).await.expect("it is written");
    }
    tx.commit().await.expect("it commits");
    // One attempt too many would park any key.
    let relay = outbox.relay(Lengthening(unlimited())).budget(1);
    let relay = relay.start().await.expect("it starts");
    while left(&pool).await > 1 || outbox.parked().await.expect("an answer").is_empty() {
        relay.wake();
        sleep(Duration::from_millis(20)).await;
    }
    let parked = outbox.parked().await.expect("an answer");
    let keys: Vec<_> = parked.iter().map(|it| it.key.as_str()).collect();
    assert_eq!(keys, ["05"]);
    assert!(parked[0].reason.contains("larger than"), "{parked:?}");
    for _ in 0..10 {
        let message = queue.next().await.expect("a message");
        assert_eq!(message.data, b"sound");
    }
    let discarded = outbox
        .discard("05", &parked[0].id)
        .because("it is a test")
        .await;
    assert_eq!(discarded, Ok(true));
    relay.stop().await;
    queue.delete().await;
}
