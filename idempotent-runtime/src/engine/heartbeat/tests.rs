//! How long a body waits that tells the store that it has answered.
#![cfg(feature = "testing")]

use super::*;
use crate::{
    Idempotency,
    call::RawEnding,
    clock::TokioTimer,
    record::RawOutcome,
    store::{MemoryStore, StoreErrorKind},
    testing::{Fault, FaultyStore, On, StoreOperation},
};

#[tokio::test(start_paused = true)]
async fn mend_41_pauses_grow_while_heartbeats_fail() {
    let store = FaultyStore::new(MemoryStore::new());
    for failing in 1..=4 {
        let fails = Fault::Fail(StoreErrorKind::Unavailable);
        store.fault(StoreOperation::Heartbeat, On::Call(failing), fails);
    }
    let built = Idempotency::builder(store.clone())
        .timer(TokioTimer::new())
        .build();
    let idem = built.expect("its settings are right");
    let begun = tokio::time::Instant::now();

    let call = idem.call("streams").key("k").run_raw(|attempt| {
        let idem = idem.clone();
        async move {
            idem.has_answered(&attempt).await;
            RawEnding::Record(RawOutcome::value("receipt"))
        }
    });
    call.await.expect("it is recorded");

    assert_eq!(store.calls(StoreOperation::Heartbeat), 5);
    let paused = Duration::from_millis(5 + 10 + 20 + 40);
    assert_eq!(begun.elapsed(), paused);
}
