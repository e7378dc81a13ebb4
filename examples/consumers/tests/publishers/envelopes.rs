//! Envelopes as a relay makes them, and what the tests ask of every publisher.

use std::{net::TcpListener, process};

use idempotent_runtime::outbox::{Envelope, Message, Outbox, PublishError, Publisher};
use sqlx::{SqlitePool, sqlite::SqliteConnectOptions};
use tokio::sync::mpsc;

/// How many messages a batch has.
pub(crate) const BATCH: usize = 20;

/// The results of a batch.
pub(crate) type Results = Vec<Result<(), PublishError>>;

/// A publisher that hands on what the relay gives it.
struct HandsOn(mpsc::UnboundedSender<Envelope>);

impl Publisher for HandsOn {
    async fn publish(&self, batch: &[Envelope]) -> Results {
        for envelope in batch {
            self.0.send(envelope.clone()).expect("the test listens");
        }
        vec![Ok(()); batch.len()]
    }
}

/// Sends the messages through an outbox, and takes them from its relay.
pub(crate) async fn envelopes(messages: Vec<Message>) -> Vec<Envelope> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("outbox.db");
    let options = SqliteConnectOptions::new().filename(file);
    let options = options.create_if_missing(true);
    let pool = SqlitePool::connect_with(options).await.expect("a database");
    let outbox = Outbox::sqlite(pool.clone());
    outbox.migrate().await.expect("tables");
    let count = messages.len();
    let mut tx = pool.begin().await.expect("a transaction");
    outbox
        .send_all(&mut tx, messages)
        .await
        .expect("they are written");
    tx.commit().await.expect("it commits");
    let (hand_on, mut handed) = mpsc::unbounded_channel();
    let relay = outbox.relay(HandsOn(hand_on)).start().await;
    let mut envelopes = Vec::new();
    while envelopes.len() < count {
        envelopes.push(handed.recv().await.expect("the relay runs"));
    }
    relay.expect("it starts").stop().await;
    envelopes.sort_by(|one, other| one.payload.cmp(&other.payload));
    envelopes
}

/// A batch of one topic, each message with a key and a header of its own.
pub(crate) async fn batch(topic: &str) -> Vec<Envelope> {
    let messages = (0..BATCH).map(|number| {
        let message = Message::raw(topic, format!("{number:02}"));
        let message = message.key(&format!("customer-{number:02}"));
        message.header("Colour", &format!("blue-{number:02}"))
    });
    envelopes(messages.collect()).await
}

/// A name of this test in this process.
pub(crate) fn name(test: &str) -> String {
    format!("publishers-{test}-{}", process::id())
}

/// An address without a listener.
pub(crate) fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

/// A connection that is cut costs no message an attempt. The first confirmation is always lost.
pub(crate) fn assert_none_is_refused(results: &Results) {
    assert_eq!(results.len(), BATCH);
    assert_eq!(results[0], Err(PublishError::Unknown));
    assert!(!results.iter().any(is_refused), "{results:?}");
}

pub(crate) fn is_refused(result: &Result<(), PublishError>) -> bool {
    matches!(result, Err(PublishError::Rejected(_)))
}
