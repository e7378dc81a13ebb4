//! Many messages at once, each with a disposition of its own.

use std::{
    collections::{HashMap, hash_map::Entry},
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use super::{
    Consumer,
    disposition::{DeadLetterReason, Disposition},
    message::Delivery,
};
use crate::{
    error::{BoxError, Error},
    identity::RecordId,
    outcome::OnError,
    race::survive,
    record::Subject,
};

/// An item of a batch, as far as it is known what becomes of it.
enum Item<'a, P, N, I> {
    Runs(Box<Delivery<'a, P, N>>, I),
    /// It is a copy of the item at this place.
    Copy(usize),
    Ended(Disposition),
}

impl Consumer {
    /// Processes the messages of a batch, some [at a time](super::ConsumerBuilder::concurrency), in
    /// no promised order, and tells what to do with each, in the order of the items.
    ///
    /// `describe` says what identifies an item and what it holds, and `handler` processes it.
    ///
    /// * A later copy of an item gets what the first one got, an acknowledgement as *replayed*.
    ///   With another payload it is a dead letter.
    /// * A panic of the handler makes a retry of its item.
    /// * After an outage of the store the items that are left are retries, and are not tried.
    ///
    /// An ordered log, such as a partition of Kafka, is committed up to the first item that is not
    /// settled.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{BoxError, Idempotency, consumer::Disposition};
    /// # struct Message { id: String, order: u64, delivery: u32 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// # let consumer = Idempotency::memory().consumer("billing").broker_retention("3d").build()?;
    /// # let messages = vec![Message { id: "m".into(), order: 42, delivery: 1 }];
    /// let dispositions = consumer
    ///     .batch(
    ///         messages,
    ///         |consumer, it| consumer.message(&it.id).payload(&it.order).delivery(it.delivery),
    ///         |it| async move { Ok::<_, BoxError>(println!("invoice for {}", it.order)) },
    ///     )
    ///     .await;
    /// assert!(matches!(dispositions[0], Disposition::Ack { replayed: false }));
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// The handlers that run stop, and `on_crash` applies to their messages. Messages that have
    /// ended stand.
    pub async fn batch<'a, I, P, N, T, E, B>(
        &self,
        items: impl IntoIterator<Item = I>,
        describe: impl Fn(&Self, &I) -> Delivery<'a, P, N>,
        handler: impl Fn(I) -> B,
    ) -> Vec<Disposition>
    where
        P: OnError<E>,
        E: Into<BoxError>,
        B: Future<Output = Result<T, E>>,
    {
        let mut first = HashMap::new();
        let items = items.into_iter().enumerate().map(|(place, item)| {
            let delivery = describe(self, &item).prepared();
            match once(&mut first, place, &delivery) {
                None => Item::Runs(Box::new(delivery), item),
                Some(instead) => instead,
            }
        });
        let items: Vec<_> = items.collect();
        let mut ended: Vec<Option<Disposition>> = Vec::new();
        let mut copies = Vec::new();
        let mut waiting = Vec::new();
        for (place, item) in items.into_iter().enumerate() {
            ended.push(None);
            match item {
                Item::Runs(delivery, item) => waiting.push((place, delivery, item)),
                Item::Copy(first) => copies.push((place, first)),
                Item::Ended(disposition) => ended[place] = Some(disposition),
            }
        }
        let handler = &handler;
        let run = |(place, delivery, item): (_, Box<Delivery<'a, P, N>>, I)| async move {
            let disposition = survive(delivery.run(move |_| handler(item))).await;
            (place, disposition.unwrap_or_else(later))
        };
        for (place, disposition) in some_at_a_time(self.0.concurrency, waiting, run).await {
            ended[place] = Some(disposition);
        }
        for (place, first) in copies {
            ended[place] = ended[first].as_ref().map(Disposition::of_copy);
        }
        let ended = ended.into_iter();
        ended.map(|ended| ended.unwrap_or_else(later)).collect()
    }
}

/// An item that was not tried, or whose handler panicked.
fn later() -> Disposition {
    Disposition::Retry {
        after: Duration::from_secs(1),
        error: None,
    }
}

/// Tells what becomes of an item whose message was met before in the batch.
fn once<'a, P, N, I>(
    first: &mut HashMap<RecordId, (usize, Arc<Subject>)>,
    place: usize,
    delivery: &Delivery<'a, P, N>,
) -> Option<Item<'a, P, N, I>> {
    let (id, subject) = delivery.identity()?;
    match first.entry(id) {
        Entry::Vacant(free) => {
            free.insert((place, subject));
            None
        }
        Entry::Occupied(met) if met.get().1.fingerprint == subject.fingerprint => {
            Some(Item::Copy(met.get().0))
        }
        Entry::Occupied(_) => Some(Item::Ended(delivery.refused(
            DeadLetterReason::KeyReused,
            "another message of the batch has this id, and another payload".into(),
        ))),
    }
}

/// Runs so many at once, until the store is out of reach. Tells what has ended.
async fn some_at_a_time<W, F>(
    at_once: usize,
    waiting: Vec<W>,
    run: impl Fn(W) -> F,
) -> Vec<(usize, Disposition)>
where
    F: Future<Output = (usize, Disposition)>,
{
    let mut waiting = waiting.into_iter();
    let mut running: Vec<Pin<Box<F>>> = Vec::new();
    let mut ended: Vec<(usize, Disposition)> = Vec::new();
    let mut is_out = false;
    poll_fn(|cx| {
        loop {
            while running.len() < at_once && !is_out {
                let Some(next) = waiting.next() else { break };
                running.push(Box::pin(run(next)));
            }
            let before = ended.len();
            running.retain_mut(|work| match work.as_mut().poll(cx) {
                Poll::Ready(end) => {
                    is_out |= end.1.tells_of_an_outage();
                    ended.push(end);
                    false
                }
                Poll::Pending => true,
            });
            if running.is_empty() && (is_out || waiting.len() == 0) {
                return Poll::Ready(());
            }
            if ended.len() == before {
                return Poll::Pending;
            }
        }
    })
    .await;
    ended
}

impl Disposition {
    fn tells_of_an_outage(&self) -> bool {
        let Self::Retry {
            error: Some(error), ..
        } = self
        else {
            return false;
        };
        matches!(error.downcast_ref(), Some(Error::Store(error)) if error.is_transient())
    }

    /// The same for a copy of the message in the batch.
    fn of_copy(&self) -> Self {
        let told = |error: &Option<BoxError>| error.as_ref().map(|error| error.to_string().into());
        match self {
            Self::Ack { .. } => Self::Ack { replayed: true },
            Self::Retry { after, error } => Self::Retry {
                after: *after,
                error: told(error),
            },
            Self::DeadLetter { reason, error } => Self::DeadLetter {
                reason: *reason,
                error: told(error),
            },
        }
    }
}
