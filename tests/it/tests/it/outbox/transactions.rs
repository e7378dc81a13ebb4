//! Savepoints, transactions that are tried again, and handlers of a consumer: messages go out with
//! the commit, and only with it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use idempotent_runtime::{
    Error, Idempotency,
    consumer::{Consumer, Disposition},
    outbox::{Outbox, OutboxDatabase},
    testing::Gate,
    transaction::{Isolation, Transact},
};
use tokio::sync::Barrier;

use super::{
    broker::{Broker, drained, first_arrivals, send, start},
    count, numbers_of, outbox, placed,
};
use crate::transactions::{
    PlaceError,
    shop::{MariaDbShop, PostgresShop, Shop},
};

on_every_database![
    another_message_of_an_id_is_refused_whatever_was_seen_before,
    a_message_behind_a_savepoint_that_was_gone_back_to_is_gone,
    g15_what_a_transaction_sent_goes_out_in_order_with_its_commit_alone,
    g15_a_relay_that_dies_between_two_messages_is_followed_by_another,
    i03_what_a_handler_sent_goes_out_once_with_its_commit,
    i03_what_a_staged_message_sent_goes_out_once_with_its_commit,
];

async fn a_message_behind_a_savepoint_that_was_gone_back_to_is_gone<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let (outbox, broker) = (outbox(&shop).await, Broker::willing());
    let gone = placed(2).key("k");
    let mut tx = shop.begin().await.expect("a transaction");
    let send = async |tx: &mut _, message| {
        let sent = outbox.send(tx, message).await;
        sent.expect("it is written");
    };
    send(&mut *tx, placed(1).key("k")).await;
    S::run(&mut tx, "SAVEPOINT here".to_owned())
        .await
        .expect("a savepoint");
    send(&mut *tx, gone.clone()).await;
    send(&mut *tx, placed(2).key("new")).await;
    let back = "ROLLBACK TO SAVEPOINT here".to_owned();
    S::run(&mut tx, back).await.expect("it goes back");
    send(&mut *tx, placed(3).key("k")).await;
    // Nothing of the send that was rolled back is left in its way.
    send(&mut *tx, gone).await;
    tx.commit().await.expect("it commits");
    assert_eq!(count(&shop).await, 3);
    let _relay = start(&outbox, &broker).await;
    drained(&shop).await;
    let by_key = broker.by_key();
    assert_eq!((by_key.len(), &by_key["k"][..]), (1, &[1, 3, 2][..]));
}

/// Time for a relay to look. If it does not look, the test shows less, and nothing wrong.
async fn looks() {
    tokio::time::sleep(Duration::from_millis(150)).await;
}

async fn g15_what_a_transaction_sent_goes_out_in_order_with_its_commit_alone<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let (outbox, broker) = (outbox(&shop).await, Broker::willing());
    let idem = Idempotency::new(shop.store());
    let relay = outbox.relay(broker.clone()).idempotency(&idem);
    let _relay = relay.start().await.expect("it starts");
    for commits in [false, true] {
        let call = idem.call("orders.place").key("order-1").arguments(&1);
        let placed: Result<i64, PlaceError> = call
            .release_errors()
            .transact(shop.pool(), async |tx| {
                shop.order(tx, 1).await?;
                for order in 1..=3 {
                    outbox.send(tx, placed(order).key("customer-7")).await?;
                }
                looks().await;
                assert_eq!(broker.arrived(), [], "before the commit");
                match commits {
                    true => Ok(1),
                    false => Err(PlaceError::SoldOut),
                }
            })
            .await;
        assert_eq!(placed.is_ok(), commits, "{placed:?}");
        drained(&shop).await;
        let expected: &[i64] = if commits { &[1, 2, 3] } else { &[] };
        let by_key = broker.by_key();
        let arrived = by_key.get("customer-7").map_or(&[][..], Vec::as_slice);
        assert_eq!(arrived, expected);
        assert_eq!(shop.orders().await.len(), usize::from(commits));
    }
}

async fn g15_a_relay_that_dies_between_two_messages_is_followed_by_another<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    let broker = Broker::willing();
    send(&shop, &outbox, (0..3).map(|order| placed(order).key("k"))).await;
    let breaks = Broker {
        decide: Arc::new(Box::new(|batch| match &batch[0].payload[..] {
            b"0" => vec![Ok(()); batch.len()],
            // The second message has arrived, and the relay does not learn it.
            _ => Vec::new(),
        })),
        ..broker.clone()
    };
    let dies = start(&outbox, &breaks).await;
    while broker.arrived().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(dies);
    let _follows = start(&outbox, &broker).await;
    drained(&shop).await;
    let arrived = &broker.by_key()["k"];
    assert_eq!(first_arrivals(arrived), [0, 1, 2]);
    assert!(arrived.len() > 3, "{arrived:?}");
}

fn consumer<S: Shop>(shop: &S) -> Consumer {
    let idem = Idempotency::new(shop.store());
    let consumer = idem.consumer("orders").broker_retention("3d");
    consumer.build().expect("a consumer")
}

#[track_caller]
fn assert_handled(disposition: &Disposition, succeeds: bool, has_before: bool) {
    match (disposition, succeeds) {
        (Disposition::Ack { replayed }, true) => assert_eq!(*replayed, has_before),
        (Disposition::Retry { .. }, false) => {}
        other => panic!("{other:?}"),
    }
}

/// Whether the handler succeeds at each delivery; the last one is a copy.
const DELIVERIES: [bool; 3] = [false, true, true];

async fn handle<S: Shop<Database: OutboxDatabase>>(
    shop: &S,
    outbox: &Outbox<S::Database>,
    tx: &mut <S::Database as sqlx::Database>::Connection,
    succeeds: bool,
) -> Result<(), PlaceError> {
    shop.order(tx, 7).await?;
    for order in [7, 8] {
        outbox.send(tx, placed(order).key("customer-7")).await?;
    }
    match succeeds {
        true => Ok(()),
        false => Err(PlaceError::SoldOut),
    }
}

/// Asserts that both messages go out once. The relay starts only now: the handler's process has
/// died after the commit and before the acknowledgement, and its message was delivered once more.
async fn assert_went_out_once<S: Shop<Database: OutboxDatabase>>(
    shop: &S,
    outbox: &Outbox<S::Database>,
) {
    assert_eq!((count(shop).await, shop.orders().await), (2, vec![7]));
    let broker = Broker::willing();
    let _relay = start(outbox, &broker).await;
    drained(shop).await;
    assert_eq!(broker.by_key()["customer-7"], [7, 8]);
}

async fn i03_what_a_handler_sent_goes_out_once_with_its_commit<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    for (number, succeeds) in (1..).zip(DELIVERIES) {
        let consumer = consumer(&shop);
        let message = consumer.message("m").without_payload().delivery(number);
        let disposition = message
            .transact(shop.pool(), async |tx| {
                handle(&shop, &outbox, tx, succeeds).await
            })
            .await;
        assert_handled(&disposition, succeeds, number > 2);
        assert_eq!(count(&shop).await, if succeeds { 2 } else { 0 });
    }
    assert_went_out_once(&shop, &outbox).await;
}

async fn i03_what_a_staged_message_sent_goes_out_once_with_its_commit<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    for (number, succeeds) in (1..).zip(DELIVERIES) {
        let consumer = consumer(&shop);
        let message = consumer.message("m").without_payload().delivery(number);
        let mut tx = shop.begin().await.expect("a transaction");
        let staged = message.run_in(&mut *tx, async |tx| {
            handle(&shop, &outbox, tx, succeeds).await
        });
        let staged = staged.await;
        let before = if number > 2 { 2 } else { 0 };
        assert_eq!(count(&shop).await, before, "before the commit");
        assert_handled(&staged.commit(tx).await, succeeds, number > 2);
        assert_eq!(count(&shop).await, if succeeds { 2 } else { 0 });
    }
    assert_went_out_once(&shop, &outbox).await;
}

/// Two calls send to two keys in opposite order, and wait for each other in their first tries.
/// Returns the ids of each try of each call.
async fn tries_of_two_calls<S: Shop<Database: OutboxDatabase>>(
    shop: &Arc<S>,
    outbox: &Outbox<S::Database>,
) -> Vec<Vec<Vec<String>>> {
    let barrier = Arc::new(Barrier::new(2));
    let calls = [["a", "b"], ["b", "a"]].map(|keys| {
        let (shop, outbox, barrier) = (Arc::clone(shop), outbox.clone(), Arc::clone(&barrier));
        tokio::spawn(async move {
            let (idem, tries) = (Idempotency::new(shop.store()), Mutex::new(Vec::new()));
            let note = |id| {
                let mut tries = tries.lock().expect("nobody panics");
                let last: &mut Vec<String> = tries.last_mut().expect("a try");
                last.push(id);
            };
            let call = idem.call("orders.place").key(keys[0]).arguments(&1);
            let placed: Result<(), Error> = call
                .transact(shop.pool(), async |tx| {
                    let number = {
                        let mut tries = tries.lock().expect("nobody panics");
                        tries.push(Vec::new());
                        tries.len()
                    };
                    note(outbox.send(tx, placed(1).key(keys[0])).await?);
                    if number == 1 {
                        barrier.wait().await;
                    }
                    note(outbox.send(tx, placed(2).key(keys[1])).await?);
                    Ok(())
                })
                .await;
            placed.expect("it is tried again");
            tries.into_inner().expect("nobody panics")
        })
    });
    let mut tries = Vec::new();
    for call in calls {
        tries.push(call.await.expect("no panic"));
    }
    tries
}

async fn a_transaction_after_a_deadlock_sends_once<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let (outbox, broker) = (outbox(&shop).await, Broker::willing());
    let shop = Arc::new(shop);
    let calls = tries_of_two_calls(&shop, &outbox).await;
    let tries: usize = calls.iter().map(Vec::len).sum();
    assert!(tries > 2, "there was a deadlock");
    for tries in &calls {
        let last = tries.last().expect("a try");
        assert_eq!(last.len(), 2);
        for ids in tries {
            assert_eq!(ids[..], last[..ids.len()], "the same in every try");
        }
    }
    assert_eq!(count(&*shop).await, 4);
    let _relay = start(&outbox, &broker).await;
    drained(&*shop).await;
    let mut arrived: Vec<_> = broker.arrived().into_iter().map(|it| it.id).collect();
    let mut sent: Vec<_> = calls
        .iter()
        .filter_map(|tries| tries.last())
        .flatten()
        .collect();
    arrived.sort();
    sent.sort();
    assert_eq!(arrived.iter().collect::<Vec<_>>(), sent);
}

/// Looks around in REPEATABLE READ, passes the first gate, sends this order, and passes the second
/// one. Returns how often it ran.
async fn send_by_snapshot<S: Shop<Database: OutboxDatabase>>(
    shop: Arc<S>,
    outbox: Outbox<S::Database>,
    order: i64,
    [looked, sent]: [Gate; 2],
) -> u32 {
    let (idem, runs) = (Idempotency::new(shop.store()), Mutex::new(0));
    let how = Transact::new(shop.pool()).isolation(Isolation::RepeatableRead);
    let call = idem.call("orders.place").key(&order).arguments(&order);
    let placed: Result<i64, PlaceError> = call
        .transact(how, async |tx| {
            *runs.lock().expect("nobody panics") += 1;
            let looking = format!("SELECT item FROM {}orders", shop.prefix());
            S::numbers(tx, looking).await?;
            looked.pass().await;
            outbox.send(tx, placed(order).key("k")).await?;
            sent.pass().await;
            Ok(order)
        })
        .await;
    assert_eq!(placed.ok(), Some(order));
    runs.into_inner().expect("nobody panics")
}

/// The key changes behind the snapshot of the second transaction. Returns how often that one ran.
async fn two_snapshots_of_one_key<S: Shop<Database: OutboxDatabase>>(shop: S) -> u32 {
    let (outbox, broker) = (outbox(&shop).await, Broker::willing());
    let (shop, [sent, looked, open]) = (Arc::new(shop), [(); 3].map(|()| Gate::new()));
    open.open();
    let call = |order, gates| {
        let (shop, outbox) = (Arc::clone(&shop), outbox.clone());
        tokio::spawn(send_by_snapshot(shop, outbox, order, gates))
    };
    let first = call(1, [open.clone(), sent.clone()]);
    sent.arrived(1).await;
    let second = call(2, [looked.clone(), open]);
    looked.arrived(1).await;
    sent.open();
    assert_eq!(first.await.expect("no panic"), 1);
    looked.open();
    let runs = second.await.expect("no panic");
    assert_eq!(numbers_of(&*shop, "k").await.len(), 2);
    let _relay = start(&outbox, &broker).await;
    drained(&*shop).await;
    assert_eq!(broker.by_key()["k"], [1, 2]);
    runs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_transaction_after_a_deadlock_sends_once_on_postgres() {
    let shop = PostgresShop::new().await;
    crate::harness::in_time(a_transaction_after_a_deadlock_sends_once(shop)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_transaction_after_a_deadlock_sends_once_on_mariadb() {
    let shop = MariaDbShop::new().await;
    crate::harness::in_time(a_transaction_after_a_deadlock_sends_once(shop)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_transaction_with_an_old_snapshot_of_its_key_runs_again_on_postgres() {
    let shop = PostgresShop::new().await;
    let runs = crate::harness::in_time(two_snapshots_of_one_key(shop)).await;
    assert_eq!(runs, 2);
}

/// On MariaDB, a transaction may lock rows that it does not see.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_transaction_with_an_old_snapshot_of_its_key_keeps_the_order_on_mariadb() {
    let shop = MariaDbShop::new().await;
    let runs = crate::harness::in_time(two_snapshots_of_one_key(shop)).await;
    assert!([1, 2].contains(&runs), "{runs}");
}

async fn another_message_of_an_id_is_refused_whatever_was_seen_before<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    if S::BEGIN.is_some() {
        // Only one writer at a time has the database.
        return;
    }
    let outbox = outbox(&shop).await;
    let mut late = shop.begin().await.expect("a transaction");
    let seen = format!(
        "SELECT count(*) FROM {}outbox_messages",
        super::prefix(&shop)
    );
    S::numbers(&mut late, seen).await.expect("it reads");
    send(&shop, &outbox, [placed(1).key("a").id("one")]).await;
    let refused = outbox.send(&mut late, placed(2).key("a").id("one")).await;
    assert!(
        matches!(refused, Err(Error::MessageChanged { .. })),
        "{refused:?}"
    );
}
