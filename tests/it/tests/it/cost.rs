//! What a call costs, in round trips to the store: counted, not timed.

use idempotent_runtime::{
    Error, Idempotency,
    store::{MemoryStore, SqliteStore, Store},
    testing::FaultyStore,
};

async fn charge(idem: &Idempotency) -> Result<u64, Error> {
    let call = idem.call("cost.charge").key("o-1").arguments(&1_200);
    call.run(|_| async { Ok(7) }).await
}

async fn a_first_call_costs_two_and_a_replay_one(store: impl Store) {
    let counted = FaultyStore::new(store);
    let idem = Idempotency::new(counted.clone());

    assert_eq!(charge(&idem).await.expect("a first call"), 7);
    let first = counted.round_trips();
    assert_eq!(charge(&idem).await.expect("a replay"), 7);
    let replay = counted.round_trips() - first;

    assert_eq!((first, replay), (2, 1));
}

#[tokio::test]
async fn a_first_call_costs_two_round_trips_and_a_replay_one_in_memory() {
    a_first_call_costs_two_and_a_replay_one(MemoryStore::new()).await;
}

#[tokio::test]
async fn a_first_call_costs_two_round_trips_and_a_replay_one_on_sqlite() {
    let store = SqliteStore::in_memory().await.expect("a store");
    a_first_call_costs_two_and_a_replay_one(store).await;
}
