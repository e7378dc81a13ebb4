//! NATS JetStream.

use std::{collections::BTreeSet, future::Future, time::Duration};

use async_nats::{
    ConnectOptions, HeaderMap,
    header::NATS_MESSAGE_ID,
    jetstream::{
        self, AckKind, Context, Message,
        consumer::{
            AckPolicy,
            pull::{Config as ConsumerConfig, Stream},
        },
        stream::Config as StreamConfig,
    },
};
use idempotent_runtime::consumer::Disposition;
use tokio::time::timeout;
use tokio_stream::StreamExt as _;

use crate::{
    Failure,
    broker::{Broker, DeadLetter, Delivery},
};

/// The server could deduplicate by `Nats-Msg-Id`, for two minutes. These programs do without,
/// except for the publisher of an outbox.
const ID: &str = "Message-Id";
const REASON: &str = "Reason";

/// All workers are one consumer to the server.
const CONSUMER: &str = "consumer";

/// The effective ack wait: `backoff` would override it.
const ACK_WAIT: Duration = Duration::from_secs(1);

/// How many messages may be out at once, in all consumers.
const AT_ONCE: i64 = 1_000;

/// An answer that a lost connection took along never comes.
const PATIENCE: Duration = Duration::from_secs(5);

pub struct Nats {
    jetstream: Context,
    queue: String,
    messages: Stream,
}

pub struct NatsDelivery {
    message: Message,
    id: String,
    count: u32,
    dead_letters: String,
    jetstream: Context,
}

impl Nats {
    async fn open(url: &str, queue: &str, at_once: i64) -> Result<Self, Failure> {
        // A test stands between this client and the server, which would name its own address.
        let options = ConnectOptions::new().ignore_discovered_servers();
        let jetstream = jetstream::new(options.connect(url).await?);
        for name in [queue.to_owned(), dead_letters_of(queue)] {
            let stream = StreamConfig {
                subjects: vec![name.clone()],
                name,
                ..StreamConfig::default()
            };
            jetstream.get_or_create_stream(stream).await?;
        }
        let consumer = ConsumerConfig {
            durable_name: Some(CONSUMER.to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            // Without a limit: `max_deliveries` of our consumer is the first one.
            max_deliver: -1,
            max_ack_pending: at_once,
            ..ConsumerConfig::default()
        };
        let stream = jetstream.get_stream(queue).await?;
        let consumer = stream.get_or_create_consumer(CONSUMER, consumer).await?;
        // The wait begins when a message leaves the server, so that few may lie here.
        let messages = consumer.stream().max_messages_per_batch(1);
        Ok(Self {
            messages: messages.messages().await?,
            queue: queue.to_owned(),
            jetstream,
        })
    }
}

impl Broker for Nats {
    const NAME: &'static str = "nats";
    const VARIABLE: &'static str = "NATS_URL";
    const PROGRAM: &'static str = "nats-server";
    const ACK_WAIT: Option<Duration> = Some(ACK_WAIT);

    type Delivery = NatsDelivery;

    async fn connect(url: &str, queue: &str) -> Result<Self, Failure> {
        Self::open(url, queue, AT_ONCE).await
    }

    /// The server holds back all other messages while one is out, also while that one waits for its
    /// next try, or for the end of the ack wait after its consumer was killed.
    async fn connect_in_order(url: &str, queue: &str) -> Result<Self, Failure> {
        Self::open(url, queue, 1).await
    }

    async fn publish(&self, id: &str, body: &[u8]) -> Result<(), Failure> {
        let mut headers = HeaderMap::new();
        if !id.is_empty() {
            headers.insert(ID, id);
        }
        publish(&self.jetstream, &self.queue, headers, body).await
    }

    async fn next(&mut self) -> Result<NatsDelivery, Failure> {
        let message = self.messages.next().await.ok_or("the stream has ended")??;
        let headers = message.headers.as_ref();
        let id = headers.and_then(|headers| headers.get(ID).or(headers.get(NATS_MESSAGE_ID)));
        Ok(NatsDelivery {
            id: id.map(ToString::to_string).unwrap_or_default(),
            count: u32::try_from(message.info()?.delivered)?,
            message,
            dead_letters: dead_letters_of(&self.queue),
            jetstream: self.jetstream.clone(),
        })
    }

    async fn dead_letters(&self) -> Result<Vec<DeadLetter>, Failure> {
        let name = dead_letters_of(&self.queue);
        let mut stream = self.jetstream.get_stream(name).await?;
        let last = stream.info().await?.state.last_sequence;
        let mut letters = BTreeSet::new();
        for sequence in 1..=last {
            let message = stream.get_raw_message(sequence).await?;
            let header = |name| message.headers.get(name).map(ToString::to_string);
            letters.insert(DeadLetter {
                id: header(ID).unwrap_or_default(),
                reason: header(REASON).unwrap_or_default(),
            });
        }
        Ok(letters.into_iter().collect())
    }

    async fn is_drained(&self) -> Result<bool, Failure> {
        let stream = self.jetstream.get_stream(&self.queue).await?;
        let info = stream.consumer_info(CONSUMER).await?;
        Ok(info.num_pending == 0 && info.num_ack_pending == 0)
    }

    async fn delete(&self) -> Result<(), Failure> {
        self.jetstream.delete_stream(&self.queue).await?;
        let dead_letters = dead_letters_of(&self.queue);
        self.jetstream.delete_stream(dead_letters).await?;
        Ok(())
    }
}

impl Delivery for NatsDelivery {
    fn id(&self) -> &str {
        &self.id
    }

    fn body(&self) -> &[u8] {
        &self.message.payload
    }

    fn count(&self) -> u32 {
        self.count
    }

    async fn extend(&self) -> Result<(), Failure> {
        // Without an answer, it would only have reached this client's buffer.
        let heard = self.message.double_ack_with(AckKind::Progress);
        timeout(ACK_WAIT / 3, heard).await?
    }

    async fn settle(self, disposition: Disposition) -> Result<(), Failure> {
        match disposition {
            Disposition::Ack { .. } => in_time(self.message.double_ack()).await,
            Disposition::DeadLetter { reason, .. } => {
                let mut headers = HeaderMap::new();
                headers.insert(ID, self.id.as_str());
                headers.insert(REASON, reason.to_string());
                let body = &self.message.payload;
                publish(&self.jetstream, &self.dead_letters, headers, body).await?;
                in_time(self.message.double_ack()).await
            }
            Disposition::Retry { after, .. } => {
                self.message.ack_with(AckKind::Nak(Some(after))).await
            }
            // A disposition of a later version: the message comes again.
            _ => Ok(()),
        }
    }
}

fn dead_letters_of(queue: &str) -> String {
    format!("{queue}-dead")
}

async fn publish(
    jetstream: &Context,
    subject: &str,
    headers: HeaderMap,
    body: &[u8],
) -> Result<(), Failure> {
    let body = body.to_vec().into();
    let sent = jetstream.publish_with_headers(subject.to_owned(), headers, body);
    sent.await?.await?;
    Ok(())
}

async fn in_time(
    answer: impl Future<Output = Result<(), async_nats::Error>>,
) -> Result<(), Failure> {
    timeout(PATIENCE, answer).await?
}
