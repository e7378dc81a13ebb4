//! NATS JetStream.

use std::{env, time::Duration};

use async_nats::jetstream::{self, Context, stream::Config};
use consumer_examples::{network::between, publishers::nats::NatsPublisher};
use idempotent_runtime::{
    outbox::{Envelope, Message, PublishError, Publisher as _},
    testing::Disconnect,
};
use tokio::time::sleep;

use crate::envelopes::{
    BATCH, Results, assert_none_is_refused, batch, envelopes, is_refused, name, nowhere,
};

fn url() -> String {
    env::var("IDEMPOTENT_TEST_NATS_URL").expect("a server")
}

/// A stream that takes the topic which is its name.
async fn stream(name: &str, max_message_size: i32) -> Context {
    let client = async_nats::connect(url()).await.expect("a connection");
    let jetstream = jetstream::new(client);
    let config = Config {
        name: name.to_owned(),
        max_message_size,
        ..Config::default()
    };
    jetstream.create_stream(config).await.expect("a stream");
    jetstream
}

async fn publisher(url: &str) -> NatsPublisher {
    // It connects in the background.
    NatsPublisher::connect(url).await.expect("it is set up")
}

/// The results of a batch, once there is a connection.
async fn publish(publisher: &NatsPublisher, batch: &[Envelope]) -> Results {
    loop {
        let results = publisher.publish(batch).await;
        if results.first() != Some(&Err(PublishError::Outage)) {
            return results;
        }
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_batch_that_is_published_twice_arrives_once_with_its_ids() {
    let topic = name("nats-ids");
    let jetstream = stream(&topic, -1).await;
    let (publisher, batch) = (publisher(&url()).await, batch(&topic));
    for _ in 0..2 {
        assert_eq!(publish(&publisher, &batch).await, vec![Ok(()); BATCH]);
    }
    let mut stream = jetstream.get_stream(&topic).await.expect("a stream");
    let info = stream.info().await.expect("its state");
    assert_eq!(info.state.messages, BATCH as u64);
    for (sequence, envelope) in (1..).zip(&batch) {
        let message = stream.get_raw_message(sequence).await.expect("a message");
        let header = |name: &str| message.headers.get(name).map(ToString::to_string);
        assert_eq!(message.payload, envelope.payload);
        assert_eq!(header("Nats-Msg-Id").as_ref(), Some(&envelope.id));
        assert_eq!(header("Outbox-Key"), envelope.key);
        let number = envelope.number.map(|number| number.to_string());
        assert_eq!(header("Outbox-Number"), number);
        assert_eq!(header("Colour").as_ref(), Some(&envelope.headers[0].1));
    }
    jetstream.delete_stream(&topic).await.expect("it goes");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_server_that_is_away_is_an_outage() {
    let publisher = publisher(&format!("nats://{}", nowhere())).await;
    let results = publisher.publish(&batch("orders")).await;
    assert_eq!(results, vec![Err(PublishError::Outage); BATCH]);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_batch_whose_connection_is_cut_is_refused_nowhere_and_goes_out_again() {
    let topic = name("nats-cut");
    let jetstream = stream(&topic, -1).await;
    let (proxy, through) = between(&url()).await.expect("a proxy");
    let (publisher, batch) = (publisher(&through).await, batch(&topic));
    assert_eq!(publish(&publisher, &batch[..1]).await, [Ok(())]);
    proxy.cut_next(Disconnect::BeforeAnswer);
    assert_none_is_refused(&publisher.publish(&batch).await);
    assert_eq!(publish(&publisher, &batch).await, vec![Ok(()); BATCH]);
    let mut stream = jetstream.get_stream(&topic).await.expect("a stream");
    let info = stream.info().await.expect("its state");
    assert_eq!(info.state.messages, BATCH as u64);
    jetstream.delete_stream(&topic).await.expect("it goes");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_message_that_the_stream_does_not_take_is_refused_alone() {
    let topic = name("nats-size");
    let jetstream = stream(&topic, 1_024).await;
    let messages = ["a".to_owned(), "b".repeat(2_048), "c".to_owned()];
    let messages = messages.map(|payload| Message::raw(&topic, payload));
    let batch = envelopes(&messages);
    let publisher = publisher(&url()).await;
    let results = publish(&publisher, &batch).await;
    assert_eq!(results[0], Ok(()));
    assert!(is_refused(&results[1]), "{results:?}");
    assert_eq!(results[2], Ok(()));
    jetstream.delete_stream(&topic).await.expect("it goes");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_header_or_topic_that_the_server_cannot_read_is_refused() {
    let topic = name("nats-header");
    let jetstream = stream(&topic, -1).await;
    let messages = vec![
        Message::raw(&topic, "a").header("Colour", "blue\r\nNats-Rollup: all"),
        Message::raw(&topic, "b").key("two\nlines"),
        Message::raw("two words", "c"),
        Message::raw(&topic, "d"),
    ];
    let publisher = publisher(&url()).await;
    let results = publish(&publisher, &envelopes(&messages)).await;
    assert!(results[..3].iter().all(is_refused), "{results:?}");
    assert_eq!(results[3], Ok(()));
    jetstream.delete_stream(&topic).await.expect("it goes");
}

#[tokio::test]
#[ignore = "needs a server"]
async fn a_topic_without_a_stream_is_an_outage() {
    let topic = name("nats-none");
    let publisher = publisher(&url()).await;
    let one = envelopes(&[Message::raw(&topic, "a")]);
    let jetstream = stream(&name("nats-other"), -1).await;
    // There is a connection once this stream has a message.
    let other = envelopes(&[Message::raw(&name("nats-other"), "a")]);
    assert_eq!(publish(&publisher, &other).await, [Ok(())]);
    let results = publisher.publish(&one).await;
    assert_eq!(results, [Err(PublishError::Outage)]);
    let deleted = jetstream.delete_stream(&name("nats-other")).await;
    deleted.expect("it goes");
}
