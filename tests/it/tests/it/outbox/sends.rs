//! Messages commit and roll back with rows, and count up within a key.

use std::sync::Arc;

use idempotent_runtime::outbox::{Outbox, OutboxDatabase};

use super::{count, counters, numbers, numbers_of, outbox, placed, prefix};
use crate::transactions::shop::Shop;

on_every_database![
    a_message_stands_with_the_rows_of_its_transaction,
    the_messages_of_a_key_count_up_in_the_order_of_their_commits,
    writers_at_once_get_numbers_of_their_own,
    transactions_that_send_to_the_same_keys_in_opposite_order_come_through,
    a_message_without_a_key_takes_no_counter,
    the_tables_are_made_once_by_several_processes,
    two_outboxes_stand_beside_each_other,
];

async fn a_message_stands_with_the_rows_of_its_transaction<S: Shop<Database: OutboxDatabase>>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    for commits in [false, true] {
        let mut tx = shop.begin().await.expect("a transaction");
        shop.order(&mut tx, 7).await.expect("a row");
        let sent = outbox.send(&mut tx, placed(7).key("customer-7")).await;
        sent.expect("it is written");
        assert_eq!(count(&shop).await, 0, "nobody sees it before the commit");
        match commits {
            true => tx.commit().await.expect("it commits"),
            false => tx.rollback().await.expect("it rolls back"),
        }
        let stand = i64::from(commits);
        assert_eq!(count(&shop).await, stand);
        assert_eq!(shop.orders().await.len(), usize::from(commits));
    }
}

async fn the_messages_of_a_key_count_up_in_the_order_of_their_commits<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    let mut last = 0;
    for round in 0..6 {
        let mut tx = shop.begin().await.expect("a transaction");
        for order in [round, round + 100] {
            let message = placed(order).key("customer-7");
            outbox.send(&mut tx, message).await.expect("it is written");
        }
        if round % 3 == 1 {
            tx.rollback().await.expect("it rolls back");
            continue;
        }
        tx.commit().await.expect("it commits");
        let numbers = numbers_of(&shop, "customer-7").await;
        let new: Vec<_> = numbers
            .into_iter()
            .filter(|number| *number > last)
            .collect();
        assert_eq!(new.len(), 2, "both are above all that were there");
        last = new[1];
    }
    assert_eq!(numbers_of(&shop, "customer-7").await.len(), 8);
    assert_eq!(numbers_of(&shop, "customer").await, [0_i64; 0]);
}

async fn writers_at_once_get_numbers_of_their_own<S: Shop<Database: OutboxDatabase>>(shop: S) {
    const EACH: i64 = 10;
    let outbox = outbox(&shop).await;
    let shop = Arc::new(shop);
    let writers = (0..4_i64).map(|writer| {
        let (shop, outbox) = (Arc::clone(&shop), outbox.clone());
        tokio::spawn(async move {
            for order in 0..EACH {
                let order = writer * EACH + order;
                send_in_a_transaction(&*shop, &outbox, order, "customer-7").await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("no panic");
    }
    let mut numbers = numbers_of(&*shop, "customer-7").await;
    assert_eq!(numbers.len(), 40);
    numbers.dedup();
    assert_eq!(numbers.len(), 40, "no two have one number");
}

async fn send_in_a_transaction<S: Shop<Database: OutboxDatabase>>(
    shop: &S,
    outbox: &Outbox<S::Database>,
    order: i64,
    key: &str,
) {
    loop {
        let mut tx = shop.begin().await.expect("a transaction");
        match outbox.send(&mut tx, placed(order).key(key)).await {
            Ok(_) => return tx.commit().await.expect("it commits"),
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
    }
}

async fn transactions_that_send_to_the_same_keys_in_opposite_order_come_through<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    let shop = Arc::new(shop);
    let senders = [["a", "b", "c"], ["c", "b", "a"]].map(|keys| {
        let (shop, outbox) = (Arc::clone(&shop), outbox.clone());
        tokio::spawn(async move {
            let mut order = 0;
            while order < 10 {
                let mut tx = shop.begin().await.expect("a transaction");
                let messages = keys.map(|key| placed(order).key(key));
                let ids = match outbox.send_all(&mut tx, messages.clone()).await {
                    Ok(ids) => ids,
                    // InnoDB may see a deadlock where both make the counter of a key.
                    Err(error) => {
                        assert!(error.is_retryable(), "{error:?}");
                        continue;
                    }
                };
                let again = outbox.send_all(&mut tx, messages).await;
                assert_eq!(
                    again.expect("they are there"),
                    ids,
                    "in the order of the messages"
                );
                tx.commit().await.expect("it commits");
                order += 1;
            }
        })
    });
    for sender in senders {
        sender.await.expect("no panic");
    }
    for key in ["a", "b", "c"] {
        assert_eq!(numbers_of(&*shop, key).await.len(), 20);
    }
}

async fn a_message_without_a_key_takes_no_counter<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let outbox = outbox(&shop).await;
    let mut tx = shop.begin().await.expect("a transaction");
    for order in 0..5 {
        outbox
            .send(&mut tx, placed(order))
            .await
            .expect("it is written");
    }
    tx.commit().await.expect("it commits");
    assert_eq!(count(&shop).await, 5);
    assert_eq!(counters(&shop).await, 0);
}

async fn the_tables_are_made_once_by_several_processes<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let new = || {
        Outbox::new(shop.pool())
            .prefix(&prefix(&shop))
            .expect("a prefix")
    };
    let missing = new().check_schema().await;
    assert!(missing.is_err(), "they are not there yet");
    let processes = (0..4).map(|_| {
        let outbox = new();
        tokio::spawn(async move { outbox.migrate().await })
    });
    for process in processes.collect::<Vec<_>>() {
        process
            .await
            .expect("no panic")
            .expect("it is safe at every start");
    }
    new().check_schema().await.expect("they are there");
}

async fn two_outboxes_stand_beside_each_other<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let outbox = outbox(&shop).await;
    let other = format!("{}b_", prefix(&shop));
    let beside = outbox.clone().prefix(&other).expect("a prefix");
    beside.migrate().await.expect("tables");
    let mut tx = shop.begin().await.expect("a transaction");
    let message = placed(7).key("customer-7");
    for outbox in [&outbox, &beside] {
        outbox
            .send(&mut tx, message.clone())
            .await
            .expect("it is written");
    }
    tx.commit().await.expect("it commits");
    assert_eq!(count(&shop).await, 1);
    let other = format!("SELECT count(*) FROM {other}outbox_messages");
    assert_eq!(numbers(&shop, other).await, [1]);
}
