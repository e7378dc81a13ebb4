//! Several runtimes of one thread each that share a handle, as actix has them.

use std::time::Duration;

use idempotent_runtime::{Error, Idempotency};
use tokio::{
    runtime::{Builder, Runtime},
    task::yield_now,
    time::timeout,
};

use super::shop::Shop;
use crate::cancellation::polled;

on_every_database![
    mend_17_a_runtime_that_rests_keeps_no_other_waiting,
    mend_17_a_call_that_a_resting_runtime_dropped_keeps_no_other_waiting,
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

async fn mend_17_a_runtime_that_rests_keeps_no_other_waiting<S: Shop>(shop: S) {
    let idem = Idempotency::new(shop.store());
    let answers = tokio::task::spawn_blocking(move || {
        let (resting, other) = (of_one_thread(), of_one_thread());
        for key in 0..3 {
            assert_eq!(resting.block_on(call(&idem, key)), Ok(key));
        }
        let answers: Vec<_> = (3..6)
            .map(|key| other.block_on(async { timeout(HANGS, call(&idem, key)).await }))
            .collect();
        drop(resting);
        answers
    });
    for (key, answer) in (3..).zip(answers.await.expect("no panic")) {
        assert_eq!(answer.expect("it is not kept waiting"), Ok(key));
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
                    // What the call has begun goes on for a while.
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
