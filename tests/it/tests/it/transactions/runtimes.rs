//! Several runtimes of one thread each that share a handle, as actix has them.

use std::time::Duration;

use idempotent_runtime::{Error, Idempotency, transaction::SqlDatabase};
use tokio::{
    runtime::{Builder, Runtime},
    sync::Notify,
    task::{JoinSet, yield_now},
    time::timeout,
};

use super::{PlaceError, shop::Shop};
use crate::cancellation::polled;

on_every_database![
    mend_17_a_runtime_that_rests_keeps_no_other_waiting,
    mend_17_a_call_that_a_resting_runtime_dropped_keeps_no_other_waiting,
    mend_17_a_transaction_that_a_resting_runtime_dropped_keeps_no_key,
];

/// No call takes so long, unless it waits for a runtime that rests.
const HANGS: Duration = Duration::from_secs(6);

fn of_one_thread() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime")
}

async fn call(idem: &Idempotency, key: u32) -> Result<u32, Error> {
    let call = idem.call("orders.place").key(&key);
    call.run(async |_| Ok::<_, Error>(key)).await
}

/// Makes four calls side by side, so that more connections are open than the one by which the
/// tables were made.
async fn calls(idem: &Idempotency, first: u32) {
    let mut calls = JoinSet::new();
    for key in first..first + 4 {
        let idem = idem.clone();
        calls.spawn(async move { (key, call(&idem, key).await) });
    }
    while let Some(ended) = calls.join_next().await {
        let (key, answer) = ended.expect("no panic");
        assert_eq!(answer, Ok(key));
    }
}

async fn mend_17_a_call_that_a_resting_runtime_dropped_keeps_no_other_waiting<S: Shop>(shop: S) {
    let idem = Idempotency::new(shop.store());
    let answers = tokio::task::spawn_blocking(move || {
        let (resting, other) = (of_one_thread(), of_one_thread());
        let answers: Vec<_> = (0..32)
            .map(|key| {
                resting.block_on(async {
                    let mut call = Box::pin(call(&idem, 100));
                    polled(&mut call, key / 4 + 1).await;
                    // The work that the call has begun goes on for a while.
                    for _ in 0..key % 4 {
                        yield_now().await;
                    }
                });
                let key = u32::try_from(key).expect("a few");
                other.block_on(async { timeout(HANGS, call(&idem, key)).await })
            })
            .collect();
        drop(resting);
        answers
    });
    for (key, answer) in (0..).zip(answers.await.expect("no panic")) {
        assert_eq!(answer.expect("it is not kept waiting"), Ok(key));
    }
}

async fn mend_17_a_transaction_that_a_resting_runtime_dropped_keeps_no_key<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let idem = Idempotency::new(shop.store());
    let call = || idem.call("orders.place").key("k").release_errors();
    let placed = std::thread::scope(|scope| {
        let placing = scope.spawn(|| {
            let (resting, other) = (of_one_thread(), of_one_thread());
            resting.block_on(async {
                let begun = Notify::new();
                let placing = call().transact(shop.pool(), async |tx| {
                    shop.order(tx, 7).await?;
                    begun.notify_one();
                    std::future::pending::<Result<(), PlaceError>>().await
                });
                tokio::select! {
                    _ = placing => panic!("it never ends"),
                    () = begun.notified() => {}
                }
            });
            let again = async {
                let again = call().transact(shop.pool(), async |tx| {
                    shop.order(tx, 8).await?;
                    Ok::<_, PlaceError>(())
                });
                timeout(HANGS, again).await
            };
            let placed = other.block_on(again);
            drop(resting);
            placed
        });
        placing.join().expect("no panic")
    });
    placed
        .expect("it is not kept waiting")
        .expect("it is placed");
    assert_eq!(shop.orders().await, [8]);
}

async fn mend_17_a_runtime_that_rests_keeps_no_other_waiting<S: Shop>(shop: S) {
    let idem = Idempotency::new(shop.store());
    let answered = tokio::task::spawn_blocking(move || {
        let (resting, other) = (of_one_thread(), of_one_thread());
        resting.block_on(calls(&idem, 0));
        let answered = other.block_on(async { timeout(HANGS, calls(&idem, 4)).await });
        drop(resting);
        answered
    });
    let answered = answered.await.expect("each is answered");
    answered.expect("it is not kept waiting");
}
