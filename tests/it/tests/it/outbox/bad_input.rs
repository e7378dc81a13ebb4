//! Messages that cannot be sent: a typed error, and the transaction goes on.

use idempotent_runtime::{
    Error,
    outbox::{Message, MessageError, Outbox, OutboxDatabase},
};

use super::{count, outbox, placed};
use crate::transactions::shop::Shop;

on_every_database![
    a_message_that_cannot_be_sent_is_refused_and_the_transaction_goes_on,
    a_message_is_only_sent_in_a_transaction,
    keys_and_payloads_hold_any_bytes,
    mend_33_a_message_is_as_long_as_a_packet_takes,
];

#[tokio::test]
async fn a_prefix_that_cannot_begin_a_table_s_name_is_refused() {
    let pool = sqlx::SqlitePool::connect("sqlite::memory:").await;
    let pool = pool.expect("a pool");
    for bad in ["", "1x", "a-b", "a;b", &"x".repeat(41)] {
        let refused = Outbox::sqlite(pool.clone()).prefix(bad);
        assert!(matches!(refused, Err(Error::Store(_))), "{bad}");
    }
}

async fn a_message_that_cannot_be_sent_is_refused_and_the_transaction_goes_on<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let outbox = outbox(&shop).await.max_payload(1_000);
    let (longest, long) = ("k".repeat(255), "k".repeat(256));
    let length = |part, bytes| move |reason: &MessageError| matches!(reason, MessageError::Length { part: its, bytes: long, .. } if *its == part && *long == bytes);
    type Expected<'a> = Box<dyn Fn(&MessageError) -> bool + 'a>;
    let is_header = |reason: &MessageError| matches!(reason, MessageError::Header { place: 1, .. });
    let bad: Vec<(Message, Expected<'_>)> = vec![
        (Message::raw("", "x"), Box::new(length("topic", 0))),
        (Message::raw(&long, "x"), Box::new(length("topic", 256))),
        (placed(7).key(""), Box::new(length("key", 0))),
        (placed(7).key(&long), Box::new(length("key", 256))),
        (placed(7).id(""), Box::new(length("id", 0))),
        (placed(7).id(&long), Box::new(length("id", 256))),
        (
            placed(7).header("a", "b").header("", "b"),
            Box::new(is_header),
        ),
        (
            placed(7).header("a", "b").header("a b", "b"),
            Box::new(is_header),
        ),
        (
            placed(7).header("a", "b").header("ä", "b"),
            Box::new(is_header),
        ),
        (
            placed(7).header("a", "b").header("a", "b\0c"),
            Box::new(is_header),
        ),
        (
            placed(7).header("a", "b").header("a", "b\r\nc"),
            Box::new(is_header),
        ),
        (
            placed(7).header("a", "b").header("a:b", "c"),
            Box::new(is_header),
        ),
        (
            placed(7).header("a", &"b".repeat(8 * 1024)),
            Box::new(|reason| matches!(reason, MessageError::Headers { bytes: 8_193, .. })),
        ),
        (
            Message::raw("t", vec![0; 999]).header("a", "b"),
            Box::new(|reason| {
                matches!(
                    reason,
                    MessageError::Payload {
                        bytes: 1_001,
                        max: 1_000,
                        ..
                    }
                )
            }),
        ),
    ];
    let mut tx = shop.begin().await.expect("a transaction");
    for (message, is_expected) in bad {
        let refused = outbox.send(&mut tx, message.clone()).await;
        let Err(Error::InvalidMessage { reason, .. }) = refused else {
            panic!("{refused:?}")
        };
        assert!(is_expected(&reason), "{reason:?}");
        let all = outbox.send_all(&mut tx, [placed(1), message]).await;
        assert!(matches!(all, Err(Error::InvalidMessage { .. })), "{all:?}");
    }
    let fits = Message::raw(&longest, vec![0; 998]).header("a", "b");
    let fits = fits.key(&longest).id(&longest);
    outbox.send(&mut tx, fits).await.expect("it is the longest");
    tx.commit().await.expect("the transaction goes on");
    assert_eq!(count(&shop).await, 1);
}

async fn a_message_is_only_sent_in_a_transaction<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let outbox = outbox(&shop).await;
    let mut connection = shop.pool().acquire().await.expect("a connection");
    let refused = outbox.send(&mut connection, placed(7)).await;
    assert!(
        matches!(refused, Err(Error::InvalidPolicy(_))),
        "{refused:?}"
    );
    drop(connection);
    assert_eq!(count(&shop).await, 0);
}

async fn keys_and_payloads_hold_any_bytes<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let outbox = outbox(&shop).await;
    let keys = [
        "'",
        "\\",
        "\"; DROP TABLE x; --",
        "ä",
        "\u{0}",
        "A",
        "a",
        "a ",
    ];
    let mut tx = shop.begin().await.expect("a transaction");
    for key in keys {
        let payload: Vec<u8> = (0..=255).collect();
        let message = Message::raw("'t\\", payload).key(key).header("h", "'\\\"");
        let twice = message.id(key);
        for _ in 0..2 {
            outbox
                .send(&mut tx, twice.clone())
                .await
                .expect("it is written");
        }
    }
    outbox
        .send(&mut tx, Message::raw("t", ""))
        .await
        .expect("an empty one");
    tx.commit().await.expect("it commits");
    assert_eq!(count(&shop).await, 9, "keys are compared byte by byte");
}

/// MariaDB for the tests takes packets of 64 MiB, and hexadecimal text is twice as long. Elsewhere
/// there is no such limit.
async fn mend_33_a_message_is_as_long_as_a_packet_takes<S: Shop<Database: OutboxDatabase>>(
    shop: S,
) {
    const MIB: usize = 1024 * 1024;
    let long = match <S::Database as sqlx::Database>::NAME {
        "MySQL" => 33 * MIB,
        _ => MIB,
    };
    let outbox = outbox(&shop).await.max_payload(long);
    let message = |last: u8| {
        let mut payload = vec![0xa7; long];
        payload[long - 1] = last;
        Message::raw("orders.placed", payload)
    };
    let keyed = |last| message(last).id("long").key("customer-7");
    for (first, other) in [
        (keyed(1), keyed(2)),
        (message(1).id("alone"), message(2).id("alone")),
    ] {
        for _ in 0..2 {
            let mut tx = shop.begin().await.expect("a transaction");
            let sent = outbox.send(&mut tx, first.clone()).await;
            sent.expect("it is written, or stands");
            tx.commit().await.expect("it commits");
        }
        let mut tx = shop.begin().await.expect("a transaction");
        let changed = outbox.send(&mut tx, other).await;
        assert!(
            matches!(changed, Err(Error::MessageChanged { .. })),
            "{changed:?}"
        );
        tx.rollback().await.expect("it rolls back");
    }
    assert_eq!(count(&shop).await, 2);
}
