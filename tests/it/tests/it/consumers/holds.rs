//! The broker's hold on a message, beside the lease.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    BoxError,
    consumer::Disposition,
    testing::{Gate, On, StoreOperation},
};

use super::{assert_ack, assert_retry, consumer, deliver};
use crate::harness::{World, while_time_goes_on};

on_every_store![
    i07_the_hold_is_extended_while_the_handler_runs,
    i07_a_lost_hold_tells_the_handler_and_keeps_the_lease,
    i07_a_hold_lost_before_the_handler_begins_is_told,
];

async fn i07_the_hold_is_extended_while_the_handler_runs(world: World) {
    let owner = world.owner().await;
    let consumer = consumer(&owner);
    let extended = Arc::new(AtomicU32::new(0));
    let (its, timer) = (Arc::clone(&extended), owner.timer.clone());
    let handled = async move {
        let counted = Arc::clone(&its);
        let message = consumer.message("m").without_payload();
        let message = message.keep_alive("30ms", move || {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, BoxError>(()) }
        });
        message
            .run(async |attempt| {
                while its.load(Ordering::SeqCst) < 10 {
                    tokio::task::yield_now().await;
                }
                assert!(!attempt.is_lost());
                Ok::<_, io::Error>(())
            })
            .await
    };
    let disposition = while_time_goes_on(&timer, handled).await;
    assert_ack(disposition, false);
    assert!(extended.load(Ordering::SeqCst) >= 10);
}

async fn i07_a_lost_hold_tells_the_handler_and_keeps_the_lease(world: World) {
    let owner = world.owner().await;
    let consumer = consumer(&owner);
    let told = Arc::new(AtomicBool::new(false));
    let (its, timer, message) = (Arc::clone(&told), owner.timer.clone(), consumer.clone());
    let world_ = world.clone();
    let handled = async move {
        let message = message.message("m").payload("an order");
        let message =
            message.keep_alive("30ms", || async { Err::<(), BoxError>("no answer".into()) });
        message
            .run(async |attempt| {
                attempt.lost().await;
                its.store(true, Ordering::SeqCst);
                world_.happened("m");
                Ok::<_, io::Error>(())
            })
            .await
    };
    let lost: Disposition = while_time_goes_on(&timer, handled).await;
    assert!(assert_retry(lost).is_none());
    assert!(told.load(Ordering::SeqCst));
    assert_ack(deliver(&world, &consumer, "m", 2).await, true);
    assert_eq!(world.runs("m"), 1, "one live handler");
}

async fn i07_a_hold_lost_before_the_handler_begins_is_told(world: World) {
    let owner = world.owner().await;
    let consumer = consumer(&owner);
    let claiming = owner.delays_answer(StoreOperation::Claim, On::Next);
    let (lost, asked) = (Arc::new(AtomicBool::new(false)), Gate::new());
    asked.open();
    let (its, told, asks) = (consumer.clone(), Arc::clone(&lost), asked.clone());
    let handled = tokio::spawn(async move {
        let message = its.message("m").without_payload();
        let message = message.keep_alive("30ms", || async {
            asks.pass().await;
            Err::<(), BoxError>("no answer".into())
        });
        let handler = message.run(async |attempt| {
            told.store(attempt.is_lost(), Ordering::SeqCst);
            Ok::<_, io::Error>(())
        });
        handler.await
    });
    claiming.arrived(1).await;
    owner.timer.advance(Duration::from_millis(40));
    asked.arrived(1).await;
    claiming.open();
    let disposition = handled.await.expect("no panic");
    assert!(assert_retry(disposition).is_none());
    assert!(lost.load(Ordering::SeqCst), "the attempt says so at once");
}
