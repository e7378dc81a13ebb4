//! The metrics of an outbox.

use idempotent_runtime::{
    Idempotency,
    outbox::{Envelope, OutboxDatabase, PublishError},
};

use super::{Scrape, sampled::until};
use crate::{
    outbox::{
        broker::{Broker, drained, send},
        outbox, placed,
    },
    transactions::shop::Shop,
};

on_every_database![an_outbox_is_shown_by_topic];

async fn an_outbox_is_shown_by_topic<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let (outbox, (observer, scrape)) = (outbox(&shop).await, Scrape::new());
    let builder = Idempotency::builder(shop.store()).observer(observer);
    let idem = builder.build().expect("a handle");
    let broker = Broker::new(|batch| {
        let answer = |it: &Envelope| match &it.payload[..] {
            b"1" => Err(PublishError::Rejected("it is unlucky".to_owned())),
            _ => Ok(()),
        };
        batch.iter().map(answer).collect()
    });
    send(&shop, &outbox, [1, 2].map(|it| placed(it).key("a"))).await;
    send(&shop, &outbox, [placed(3).key("b")]).await;
    let sampler = || idem.sampler().outbox(&outbox).every("300ms").start();
    let reading = sampler().expect("it starts");
    let of = |metric: &str| format!(r#"idempotent_outbox_{metric}{{topic="orders.placed"}}"#);
    until(&scrape, &of("pending"), |it| it == Some(3.0)).await;
    scrape.assert(&of("blocked_keys"), 0.0);
    scrape.assert(&of("pending_is_capped"), 0.0);
    until(&scrape, &of("oldest_age_seconds"), |it| it > Some(0.0)).await;

    let relay = outbox.relay(broker).budget(1).idempotency(&idem);
    let relay = relay.start().await.expect("it starts");
    until(&scrape, &of("blocked_keys"), |it| it == Some(1.0)).await;
    until(&scrape, &of("pending"), |it| it == Some(2.0)).await;
    until(&scrape, &of("oldest_age_seconds"), |it| it == Some(0.0)).await;
    scrape.assert(&of("published_total"), 1.0);
    scrape.assert(&of("publish_duration_seconds_count"), 1.0);

    // A relay that runs would hand the event to the same broker once more.
    relay.stop().await;
    outbox.resume("a").await.expect("it goes on");
    let relay = outbox.relay(Broker::willing()).idempotency(&idem);
    let relay = relay.start().await.expect("it starts");
    drained(&shop).await;
    until(&scrape, &of("pending"), |it| it == Some(0.0)).await;
    scrape.assert(&of("blocked_keys"), 0.0);
    relay.stop().await;
    reading.stop().await;
}
