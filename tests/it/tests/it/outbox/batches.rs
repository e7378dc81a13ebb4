//! How much a relay reads for a batch.

use std::sync::{Arc, Mutex};

use idempotent_runtime::outbox::{Message, OutboxDatabase};

use super::{
    broker::{Broker, drained, send},
    outbox, placed,
};
use crate::transactions::shop::Shop;

on_every_database![mend_22_a_batch_behind_long_messages_is_short];

/// As many as the bytes of a batch would take if they were as long as those before. So the database
/// reads no payload that finds no room.
async fn mend_22_a_batch_behind_long_messages_is_short<S: Shop<Database: OutboxDatabase>>(shop: S) {
    const LONG: usize = 8 * 1024 * 1024;
    const SHORT: usize = 40;
    let outbox = outbox(&shop).await.max_payload(LONG);
    let lengths: Arc<Mutex<Vec<usize>>> = Arc::default();
    let noted = Arc::clone(&lengths);
    let broker = Broker::new(move |batch| {
        noted.lock().expect("nobody panics").push(batch.len());
        vec![Ok(()); batch.len()]
    });
    for key in ["a", "b"] {
        let long = Message::raw("orders.placed", vec![0xa7; LONG]);
        send(&shop, &outbox, [long.key(key)]).await;
    }
    let short = (0..SHORT).map(|key| placed(7).key(&format!("c{key:02}")));
    send(&shop, &outbox, short).await;

    // No claim ends while so much is read.
    let relay = outbox.relay(broker).lease("1m").start().await;
    let relay = relay.expect("it starts");
    drained(&shop).await;
    relay.stop().await;

    let lengths = lengths.lock().expect("nobody panics");
    assert_eq!(*lengths, [2, 3, SHORT - 3]);
}
