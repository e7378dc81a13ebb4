//! The outbox: messages that are committed with the rows of a transaction.

mod bad_input;
mod batches;
pub(crate) mod broker;
mod faults;
mod ids;
mod meetings;
mod parked;
mod parts;
mod poison;
pub(crate) mod postgres;
mod purges;
mod rejected;
mod relays;
mod rotated;
mod sends;
mod told;
mod transactions;
mod waking;

use idempotent_runtime::outbox::{Message, Outbox, OutboxDatabase};
use sqlx::Database;

use crate::transactions::shop::Shop;

/// An outbox beside the shop's own tables.
pub(crate) async fn outbox<S: Shop<Database: OutboxDatabase>>(shop: &S) -> Outbox<S::Database> {
    let outbox = Outbox::new(shop.pool()).prefix(&prefix(shop));
    let outbox = outbox.expect("a prefix");
    outbox.migrate().await.expect("tables");
    outbox
}

pub(crate) fn prefix<S: Shop>(shop: &S) -> String {
    format!("o_{}", shop.prefix())
}

pub(crate) fn placed(order: i64) -> Message {
    Message::new("orders.placed", &order).expect("it is JSON")
}

/// How many messages stand.
async fn count<S: Shop>(shop: &S) -> i64 {
    let query = format!("SELECT count(*) FROM {}outbox_messages", prefix(shop));
    numbers(shop, query).await[0]
}

/// How many keys have a counter: one row more is the floor.
async fn counters<S: Shop>(shop: &S) -> i64 {
    let query = format!("SELECT count(*) FROM {}outbox_counters", prefix(shop));
    numbers(shop, query).await[0] - 1
}

/// The numbers of the messages of this key, in order.
async fn numbers_of<S: Shop>(shop: &S, key: &str) -> Vec<i64> {
    let key: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    let number = format!(
        "SELECT number FROM {}outbox_messages WHERE lower(hex(message_key)) = '6b{key}' ORDER BY number",
        prefix(shop)
    );
    let number = match <S::Database as Database>::NAME {
        "PostgreSQL" => number.replace("lower(hex(message_key))", "encode(message_key, 'hex')"),
        _ => number,
    };
    numbers(shop, number).await
}

async fn numbers<S: Shop>(shop: &S, query: String) -> Vec<i64> {
    let mut connection = shop.pool().acquire().await.expect("a connection");
    let numbers = S::numbers(&mut connection, query).await;
    numbers.expect("the messages are read")
}
