//! The loop of a consumer, whatever it does with its messages.

use std::{
    future::Future,
    io::{Read as _, Write as _, stdin, stdout},
    process,
    sync::Arc,
    thread,
    time::Duration,
};

use idempotent_runtime::consumer::{DeadLetterReason, Disposition};
use serde::de::DeserializeOwned;
use tokio::{sync::Semaphore, task::JoinSet, time::sleep};

use crate::{
    Failure,
    broker::{Broker, Delivery},
};

/// How many messages one consumer handles at once.
const AT_ONCE: usize = 4;

/// Does something with each message.
pub trait Handler: Send + Sync + 'static {
    fn handle<D: Delivery>(&self, delivery: &D) -> impl Future<Output = Disposition> + Send;

    /// Does as the disposition says.
    fn settle<D: Delivery>(
        &self,
        delivery: D,
        disposition: Disposition,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        delivery.settle(disposition)
    }
}

/// Consumes for ever, and connects again where the connection is lost.
pub async fn consume<B: Broker, H: Handler>(
    url: &str,
    queue: &str,
    handler: H,
) -> Result<(), Failure> {
    let handler = Arc::new(handler);
    loop {
        let lost = match B::connect(url, queue).await {
            Ok(broker) => until_lost(broker, &handler).await,
            Err(error) => error,
        };
        eprintln!("connects again: {lost}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Handles what is delivered until the connection is lost, a handler panics or a message cannot be
/// settled. The broker then delivers the unsettled messages again: some brokers do so only when the
/// connection is closed.
async fn until_lost<B: Broker, H: Handler>(mut broker: B, handler: &Arc<H>) -> Failure {
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    let lost = loop {
        let permit = Arc::clone(&permits).acquire_owned().await;
        let delivery = tokio::select! {
            delivery = broker.next() => delivery,
            Some(ended) = tasks.join_next() => match ended {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => break error,
                Err(panic) => break panic.into(),
            },
        };
        let delivery = match delivery {
            Ok(delivery) => delivery,
            Err(error) => break error,
        };
        let handler = Arc::clone(handler);
        tasks.spawn(async move {
            let disposition = handler.handle(&delivery).await;
            // A message that waits for its next try keeps no other one from being handled.
            drop(permit);
            handler.settle(delivery, disposition).await
        });
    };
    // The tasks that run go on to their end.
    tasks.detach_all();
    lost
}

/// Reads the body of a message. A body that cannot be read makes it a dead letter.
pub fn read<T: DeserializeOwned>(delivery: &impl Delivery) -> Result<T, Disposition> {
    serde_json::from_slice(delivery.body()).map_err(|error| Disposition::DeadLetter {
        reason: DeadLetterReason::InvalidMessage,
        error: Some(error.into()),
    })
}

/// Ends this process when its standard input is closed: its parent is gone.
pub fn end_with_standard_input() {
    thread::spawn(|| {
        let _ = stdin().read(&mut [0]);
        process::exit(0);
    });
}

/// Tells the parent a word about a message.
pub fn say(word: &str, id: &str) {
    let mut output = stdout().lock();
    // The other end is gone only when this process is to end, too.
    let _ = writeln!(output, "{word} {id}").and_then(|()| output.flush());
}
