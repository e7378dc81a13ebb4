//! A publisher for RabbitMQ.
//!
//! The topic of a message is its routing key. At the default exchange, whose name is empty, this is
//! the name of a queue.

use std::time::Duration;

use idempotent_runtime::outbox::{Envelope, PublishError, Publisher};
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, ErrorKind,
    PublisherConfirm,
    options::{BasicPublishOptions, ConfirmSelectOptions},
    protocol::{AMQPErrorKind, AMQPSoftError},
    types::{AMQPValue, FieldTable},
};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout, timeout_at},
};

const KEY: &str = "outbox-key";
const NUMBER: &str = "outbox-number";

/// How long the broker may take for a connection, and again for the confirmations of a batch. Both
/// are shorter than the relay's own time for a batch, so that what was confirmed counts.
const PATIENCE: Duration = Duration::from_secs(5);

/// As RabbitMQ 4 has it unless it is set. Earlier versions take more.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// Publishes to one exchange.
pub struct RabbitMqPublisher {
    url: String,
    exchange: String,
    max_message: usize,
    /// None until the first batch, and again after a failure.
    line: Mutex<Option<Line>>,
}

/// A connection, and a channel that lives for as long as the connection does.
struct Line {
    _connection: Connection,
    channel: Channel,
}

impl RabbitMqPublisher {
    /// It connects when it has a batch to publish.
    pub fn new(url: &str, exchange: &str) -> Self {
        Self {
            url: url.to_owned(),
            exchange: exchange.to_owned(),
            max_message: MAX_MESSAGE,
            line: Mutex::new(None),
        }
    }

    /// Sets how many bytes the broker takes, its `max_message_size`.
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self
    }

    async fn connect(&self) -> Result<Line, lapin::Error> {
        let connection = Connection::connect(&self.url, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        // The broker confirms each message when its queues have stored it.
        let confirms = channel.confirm_select(ConfirmSelectOptions::default());
        confirms.await?;
        Ok(Line {
            _connection: connection,
            channel,
        })
    }

    async fn send(
        &self,
        channel: &Channel,
        envelope: &Envelope,
    ) -> Result<PublisherConfirm, PublishError> {
        // The broker would close the channel, and fail the whole batch.
        let headers = envelope.headers.iter();
        let headers = headers.map(|(name, value)| name.len() + value.len());
        if headers.sum::<usize>() + envelope.payload.len() > self.max_message {
            return Err(rejected("it is longer than the broker takes"));
        }
        // A message that no queue takes comes back.
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let (exchange, topic) = (self.exchange.as_str(), envelope.topic.as_str());
        let properties = properties(envelope)?;
        let payload = &envelope.payload;
        let sent =
            channel.basic_publish(exchange.into(), topic.into(), options, payload, properties);
        sent.await.map_err(|error| unsent(&error))
    }

    async fn publish_on(
        &self,
        channel: &Channel,
        batch: &[Envelope],
    ) -> Vec<Result<(), PublishError>> {
        // All are sent before the first confirmation is waited for.
        let mut sent = Vec::new();
        for envelope in batch {
            sent.push(self.send(channel, envelope).await);
        }
        let ends = Instant::now() + PATIENCE;
        let mut results = Vec::new();
        for sent in sent {
            results.push(match sent {
                Ok(confirmed) => match timeout_at(ends, confirmed).await {
                    Ok(Ok(confirmation)) => settled(confirmation),
                    Ok(Err(error)) => Err(unconfirmed(&error, batch.len() == 1)),
                    // The broker is silent.
                    Err(_) => Err(PublishError::Unknown),
                },
                Err(error) => Err(error),
            });
        }
        results
    }
}

impl Publisher for RabbitMqPublisher {
    async fn publish(&self, batch: &[Envelope]) -> Vec<Result<(), PublishError>> {
        let mut line = self.line.lock().await;
        if line.as_ref().is_none_or(|line| !line.is_open()) {
            *line = match timeout(PATIENCE, self.connect()).await {
                Ok(Ok(connected)) => Some(connected),
                Ok(Err(_)) | Err(_) => None,
            };
        }
        let Some(connected) = &*line else {
            return vec![Err(PublishError::Outage); batch.len()];
        };
        let results = self.publish_on(&connected.channel, batch).await;
        let is_broken =
            |result| matches!(result, &Err(PublishError::Unknown | PublishError::Outage));
        if results.iter().any(is_broken) || !connected.is_open() {
            // The next batch has a new connection.
            *line = None;
        }
        results
    }

    fn max_payload(&self) -> usize {
        self.max_message
    }
}

impl Line {
    fn is_open(&self) -> bool {
        self.channel.status().connected()
    }
}

fn properties(envelope: &Envelope) -> Result<BasicProperties, PublishError> {
    let number = envelope.number.map(|number| number.to_string());
    let own = [(KEY, &envelope.key), (NUMBER, &number)];
    let own = own
        .iter()
        .filter_map(|(name, value)| Some((*name, value.as_deref()?)));
    let theirs = envelope.headers.iter();
    let theirs = theirs.map(|(name, value)| (name.as_str(), value.as_str()));
    let mut headers = FieldTable::default();
    for (name, value) in theirs.chain(own) {
        if name.len() > usize::from(u8::MAX) {
            return Err(rejected("the name of a header is longer than 255 bytes"));
        }
        headers.insert(name.into(), AMQPValue::LongString(value.into()));
    }
    Ok(BasicProperties::default()
        .with_headers(headers)
        .with_message_id(envelope.id.as_str().into())
        // It survives a restart of the broker, in a durable queue.
        .with_delivery_mode(2))
}

fn rejected(reason: &str) -> PublishError {
    PublishError::Rejected(reason.to_owned())
}

fn settled(confirmation: Confirmation) -> Result<(), PublishError> {
    match confirmation {
        Confirmation::Ack(None) => Ok(()),
        Confirmation::Ack(Some(returned)) => {
            let reason = returned.reply_text;
            Err(rejected(&format!("no queue takes it: {reason}")))
        }
        Confirmation::Nack(_) => Err(rejected("a queue did not take it")),
        Confirmation::NotRequested => Err(PublishError::Unknown),
    }
}

/// The connection or the channel was closed before the message was confirmed. A channel that is
/// closed names no message: only one that was alone in it is known to be refused.
fn unconfirmed(error: &lapin::Error, is_alone: bool) -> PublishError {
    let ErrorKind::ProtocolError(closed) = error.kind() else {
        return PublishError::Unknown;
    };
    match closed.kind() {
        AMQPErrorKind::Soft(AMQPSoftError::PRECONDITIONFAILED) if is_alone => {
            rejected(closed.get_message().as_str())
        }
        // The user may not write, or the exchange is not there: no message is to blame.
        AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED | AMQPSoftError::NOTFOUND) => {
            PublishError::Outage
        }
        _ => PublishError::Unknown,
    }
}

fn unsent(error: &lapin::Error) -> PublishError {
    match error.kind() {
        ErrorKind::InvalidChannelState(..)
        | ErrorKind::InvalidChannel(_)
        | ErrorKind::InvalidConnectionState(_)
        // The channel was closed at a message before.
        | ErrorKind::ProtocolError(_) => PublishError::Outage,
        // A part of it may have left.
        _ => PublishError::Unknown,
    }
}
