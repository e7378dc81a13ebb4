//! Calls that are not polled for a while. A loop leaves calls so if it takes them from a buffered
//! stream, and makes another call before it asks for the next one.

use std::{
    task::{Context, Waker},
    time::Duration,
};

use idempotent_runtime::{Error, Idempotency};
use tokio::time::timeout;

use super::{Server, on_every_server};

/// More than a driver of a server holds in line for one connection, unless it is told otherwise.
const MANY: usize = 200;

on_every_server![calls_that_nobody_polls_keep_no_other_one_from_the_server];

async fn calls_that_nobody_polls_keep_no_other_one_from_the_server<S: Server>(server: S) {
    let idem = Idempotency::new(server.at(server.address(), 2).await);
    let call = |key: usize| {
        let call = idem.call("buffered").key(&key);
        Box::pin(call.run(move |_| async move { Ok::<_, Error>(key) }))
    };
    let mut buffered: Vec<_> = (0..MANY).map(|key| (key, call(key))).collect();
    let mut context = Context::from_waker(Waker::noop());
    // A call that is answered meanwhile, as on a busy machine, has nothing in hand any more.
    buffered.retain_mut(|(_, call)| call.as_mut().poll(&mut context).is_pending());

    for key in MANY..MANY + 2 {
        let beside = timeout(Duration::from_secs(10), call(key)).await;
        assert_eq!(beside.expect("in time"), Ok(key));
    }

    for (key, call) in buffered {
        assert_eq!(call.await, Ok(key));
    }
}
