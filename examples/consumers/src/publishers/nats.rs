//! A publisher for NATS JetStream.
//!
//! The topic of a message is its subject, which a stream must take.

use std::{error::Error as _, str::FromStr as _, time::Duration};

use async_nats::{
    Client, ConnectOptions, HeaderMap, HeaderName, HeaderValue,
    connection::State,
    header::NATS_MESSAGE_ID,
    jetstream::{
        self, Context,
        context::{PublishAckFuture, PublishError as NatsError, PublishErrorKind},
    },
    subject::SubjectError,
};
use idempotent_runtime::outbox::{Envelope, PublishError, Publisher};
use tokio::time::{Instant, timeout_at};

use crate::Failure;

const KEY: &str = "Outbox-Key";
const NUMBER: &str = "Outbox-Number";

/// How long the server may take to confirm a batch. It is shorter than the relay's own time for
/// one, so that what was confirmed counts.
const PATIENCE: Duration = Duration::from_secs(5);

/// Publishes to the streams of one server or cluster.
pub struct NatsPublisher {
    client: Client,
    jetstream: Context,
}

impl NatsPublisher {
    /// Connects, now or as soon as the server is there: until then each message is an outage.
    pub async fn connect(url: &str) -> Result<Self, Failure> {
        let options = ConnectOptions::new().retry_on_initial_connect();
        Ok(Self::new(options.connect(url).await?))
    }

    pub fn new(client: Client) -> Self {
        Self {
            jetstream: jetstream::new(client.clone()),
            client,
        }
    }

    async fn send(&self, envelope: &Envelope) -> Result<PublishAckFuture, PublishError> {
        let headers = headers(envelope)?;
        let payload = envelope.payload.clone();
        let sent = self
            .jetstream
            .publish_with_headers(envelope.topic.clone(), headers, payload);
        sent.await.map_err(|error| unsent(&error))
    }
}

impl Publisher for NatsPublisher {
    async fn publish(&self, batch: &[Envelope]) -> Vec<Result<(), PublishError>> {
        // Without a connection, the client would keep the messages in memory and send them late.
        if self.client.connection_state() != State::Connected {
            return vec![Err(PublishError::Outage); batch.len()];
        }
        // All are sent before the first confirmation is waited for.
        let mut sent = Vec::new();
        for envelope in batch {
            sent.push(self.send(envelope).await);
        }
        let ends = Instant::now() + PATIENCE;
        let mut results = Vec::new();
        for sent in sent {
            results.push(match sent {
                Ok(confirmed) => match timeout_at(ends, confirmed.into_future()).await {
                    Ok(Ok(_)) => Ok(()),
                    Ok(Err(error)) => Err(unconfirmed(&error)),
                    Err(_) => Err(PublishError::Unknown),
                },
                Err(error) => Err(error),
            });
        }
        results
    }

    /// As the server says, or as servers do unless they are told otherwise, before it was reached.
    fn max_payload(&self) -> usize {
        // The id, the key and the number go into headers, too.
        self.client.max_payload().saturating_sub(1024)
    }
}

/// The server drops a second message with the same id within the stream's `duplicate_window`, two
/// minutes unless it is set. The inbox of the receiver drops those that come later.
fn headers(envelope: &Envelope) -> Result<HeaderMap, PublishError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &envelope.headers {
        let name = HeaderName::from_str(name).map_err(rejected)?;
        headers.append(name, HeaderValue::from_str(value).map_err(rejected)?);
    }
    if let Some(key) = &envelope.key {
        headers.insert(KEY, HeaderValue::from_str(key).map_err(rejected)?);
    }
    if let Some(number) = envelope.number {
        headers.insert(NUMBER, number.to_string());
    }
    let id = HeaderValue::from_str(&envelope.id).map_err(rejected)?;
    headers.insert(NATS_MESSAGE_ID, id);
    Ok(headers)
}

fn rejected(reason: impl ToString) -> PublishError {
    PublishError::Rejected(reason.to_string())
}

/// The message has not left this client.
fn unsent(error: &NatsError) -> PublishError {
    let is_invalid = error
        .source()
        .and_then(|it| it.downcast_ref::<SubjectError>())
        .is_some();
    match error.kind() {
        PublishErrorKind::MaxPayloadExceeded => rejected(error),
        PublishErrorKind::Other if is_invalid => rejected(error),
        _ => PublishError::Outage,
    }
}

/// The message has left this client, and was not confirmed.
fn unconfirmed(error: &NatsError) -> PublishError {
    let source = error.source().and_then(|it| it.downcast_ref());
    match (error.kind(), source) {
        // No stream takes the subject: it is not there, or not yet after a restart.
        (PublishErrorKind::StreamNotFound, _) => PublishError::Outage,
        // The server answers: 503 is a stream without a leader, or without room.
        (_, Some(answer)) if is_passing(answer) => PublishError::Outage,
        (_, Some(answer)) => rejected(answer),
        _ => PublishError::Unknown,
    }
}

fn is_passing(answer: &jetstream::Error) -> bool {
    answer.code() == 503
}
