//! RabbitMQ, with quorum queues.

use std::{collections::BTreeSet, time::Duration};

use idempotent_runtime::consumer::Disposition;
use lapin::{
    Acker, BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer,
    message::Delivery as Received,
    options::{
        BasicAckOptions, BasicConsumeOptions, BasicGetOptions, BasicNackOptions,
        BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions, QueueDeclareOptions,
        QueueDeleteOptions,
    },
    types::{AMQPValue, FieldTable},
};
use tokio::time::sleep;
use tokio_stream::StreamExt as _;

use crate::{
    Failure,
    broker::{Broker, DeadLetter, Delivery},
};

const REASON: &str = "reason";

/// How many messages a consumer holds; those that wait for their next try count. Each lost
/// connection counts as a delivery of all of them, so a small number is better.
const PREFETCH: u16 = 8;

pub struct RabbitMq {
    /// Its channels live for as long as it does.
    connection: Connection,
    channel: Channel,
    queue: String,
    consumer: Option<Consumer>,
}

pub struct RabbitMqDelivery {
    id: String,
    count: u32,
    body: Vec<u8>,
    /// Belongs to the channel that the message came on, and settles nothing once that is closed.
    acker: Acker,
    channel: Channel,
    dead_letters: String,
}

impl RabbitMq {
    async fn open(
        url: &str,
        queue: &str,
        prefetch: u16,
        mut arguments: FieldTable,
    ) -> Result<Self, Failure> {
        let connection = Connection::connect(url, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await?;
        // The queue has no `x-delivery-limit`: `max_deliveries` of our consumer is the first limit.
        let quorum = AMQPValue::LongString("quorum".into());
        arguments.insert("x-queue-type".into(), quorum);
        for name in [queue.to_owned(), dead_letters_of(queue)] {
            let declared = channel.queue_declare(
                name.into(),
                QueueDeclareOptions::durable(),
                arguments.clone(),
            );
            declared.await?;
        }
        let limit = channel.basic_qos(prefetch, BasicQosOptions::default());
        limit.await?;
        Ok(Self {
            connection,
            channel,
            queue: queue.to_owned(),
            consumer: None,
        })
    }
}

impl Broker for RabbitMq {
    const NAME: &'static str = "rabbitmq";
    const VARIABLE: &'static str = "RABBITMQ_URL";
    const PROGRAM: &'static str = "rabbitmq-server";
    const ACK_WAIT: Option<Duration> = None;

    type Delivery = RabbitMqDelivery;

    async fn connect(url: &str, queue: &str) -> Result<Self, Failure> {
        Self::open(url, queue, PREFETCH, FieldTable::default()).await
    }

    /// One consumer is active, and it holds one message. Another one becomes active when that one
    /// is gone and its message is back at the head of the queue.
    async fn connect_in_order(url: &str, queue: &str) -> Result<Self, Failure> {
        let mut arguments = FieldTable::default();
        let single = AMQPValue::Boolean(true);
        arguments.insert("x-single-active-consumer".into(), single);
        Self::open(url, queue, 1, arguments).await
    }

    async fn publish(&self, id: &str, body: &[u8]) -> Result<(), Failure> {
        let properties = match id {
            "" => BasicProperties::default(),
            id => BasicProperties::default().with_message_id(id.into()),
        };
        publish(&self.channel, &self.queue, properties, body).await
    }

    async fn next(&mut self) -> Result<RabbitMqDelivery, Failure> {
        let consumer = match &mut self.consumer {
            Some(consumer) => consumer,
            none => none.insert(consume(&self.channel, &self.queue).await?),
        };
        let message = consumer.next().await.ok_or("the channel is closed")??;
        Ok(RabbitMqDelivery {
            id: id_of(&message.properties),
            count: count_of(&message),
            body: message.data,
            acker: message.acker,
            channel: self.channel.clone(),
            dead_letters: dead_letters_of(&self.queue),
        })
    }

    async fn dead_letters(&self) -> Result<Vec<DeadLetter>, Failure> {
        let channel = self.connection.create_channel().await?;
        let mut letters = BTreeSet::new();
        let name = dead_letters_of(&self.queue);
        let get = || channel.basic_get(name.as_str().into(), BasicGetOptions::default());
        while let Some(message) = get().await? {
            let headers = message.properties.headers().as_ref();
            let reason = headers.and_then(|headers| headers.inner().get(REASON));
            letters.insert(DeadLetter {
                id: id_of(&message.properties),
                reason: reason.map(text_of).unwrap_or_default(),
            });
        }
        // Nothing was acknowledged, so that all of them stay.
        channel.close(200, "read".into()).await?;
        Ok(letters.into_iter().collect())
    }

    async fn is_drained(&self) -> Result<bool, Failure> {
        let passive = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        loop {
            let name = self.queue.as_str().into();
            let declared = self
                .channel
                .queue_declare(name, passive, FieldTable::default());
            let queue = declared.await?;
            // A message that a consumer holds does not count as one of the queue.
            if queue.consumer_count() == 0 {
                return Ok(queue.message_count() == 0);
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn delete(&self) -> Result<(), Failure> {
        for name in [self.queue.clone(), dead_letters_of(&self.queue)] {
            let deleted = self
                .channel
                .queue_delete(name.into(), QueueDeleteOptions::default());
            deleted.await?;
        }
        Ok(())
    }
}

impl Delivery for RabbitMqDelivery {
    fn id(&self) -> &str {
        &self.id
    }

    fn body(&self) -> &[u8] {
        &self.body
    }

    fn count(&self) -> u32 {
        self.count
    }

    /// A quorum queue holds a message for as long as the channel is open.
    async fn extend(&self) -> Result<(), Failure> {
        if self.acker.usable() {
            Ok(())
        } else {
            Err("the channel is closed".into())
        }
    }

    async fn settle(self, disposition: Disposition) -> Result<(), Failure> {
        let settled = match disposition {
            Disposition::Ack { .. } => self.acker.ack(BasicAckOptions::default()).await?,
            Disposition::DeadLetter { reason, .. } => {
                let mut headers = FieldTable::default();
                let reason = AMQPValue::LongString(reason.to_string().into());
                headers.insert(REASON.into(), reason);
                let properties = BasicProperties::default().with_headers(headers);
                let properties = properties.with_message_id(self.id.as_str().into());
                publish(&self.channel, &self.dead_letters, properties, &self.body).await?;
                self.acker.ack(BasicAckOptions::default()).await?
            }
            Disposition::Retry { after, .. } => {
                // The queue delivers it at once. So the message is kept for that time.
                sleep(after).await;
                let again = BasicNackOptions {
                    requeue: true,
                    ..BasicNackOptions::default()
                };
                self.acker.nack(again).await?
            }
            // A disposition of a later version: the message comes again with the next channel.
            _ => false,
        };
        if settled {
            Ok(())
        } else {
            Err("the channel is closed".into())
        }
    }
}

async fn consume(channel: &Channel, queue: &str) -> Result<Consumer, Failure> {
    let options = BasicConsumeOptions::default();
    let consumer = channel.basic_consume(queue.into(), "".into(), options, FieldTable::default());
    Ok(consumer.await?)
}

/// Waits for the broker's confirmation. A message that no queue takes comes back, and is an error.
async fn publish(
    channel: &Channel,
    queue: &str,
    properties: BasicProperties,
    body: &[u8],
) -> Result<(), Failure> {
    let options = BasicPublishOptions {
        mandatory: true,
        ..BasicPublishOptions::default()
    };
    let properties = properties.with_delivery_mode(2);
    let sent = channel.basic_publish("".into(), queue.into(), options, body, properties);
    match sent.await?.await? {
        Confirmation::Ack(None) => Ok(()),
        other => Err(format!("the broker did not take the message: {other:?}").into()),
    }
}

fn dead_letters_of(queue: &str) -> String {
    format!("{queue}-dead")
}

fn id_of(properties: &BasicProperties) -> String {
    let id = properties.message_id().as_ref();
    id.map(ToString::to_string).unwrap_or_default()
}

/// A quorum queue counts the deliveries before this one.
fn count_of(message: &Received) -> u32 {
    let headers = message.properties.headers().as_ref();
    let earlier = headers.and_then(|headers| headers.inner().get("x-delivery-count"));
    let earlier = match earlier {
        Some(AMQPValue::LongLongInt(count)) => u32::try_from(*count).unwrap_or(u32::MAX),
        _ => 0,
    };
    earlier.saturating_add(1)
}

fn text_of(value: &AMQPValue) -> String {
    match value {
        AMQPValue::LongString(text) => text.to_string(),
        other => format!("{other:?}"),
    }
}
