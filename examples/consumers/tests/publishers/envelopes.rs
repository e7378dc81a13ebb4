//! Envelopes, and the questions of the tests to every publisher.

use std::{net::TcpListener, process};

use idempotent_runtime::outbox::{Envelope, Message, PublishError};

/// How many messages a batch has.
pub(crate) const BATCH: usize = 20;

/// The results of a batch.
pub(crate) type Results = Vec<Result<(), PublishError>>;

/// The envelopes of messages. An outbox would refuse some of these, and a publisher has to, too.
pub(crate) fn envelopes(messages: &[Message]) -> Vec<Envelope> {
    let numbered = messages.iter().zip(1..);
    let made = numbered.map(|(message, number)| Envelope::of(message, number));
    made.collect()
}

/// A batch of one topic, each message with a key and a header of its own.
pub(crate) fn batch(topic: &str) -> Vec<Envelope> {
    let messages = (0..BATCH).map(|number| {
        let message = Message::raw(topic, format!("{number:02}"));
        let message = message.key(&format!("customer-{number:02}"));
        message.header("Colour", &format!("blue-{number:02}"))
    });
    envelopes(&messages.collect::<Vec<_>>())
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
