//! The costs of a purge, if keys are in no order.

use std::{sync::Arc, time::Duration};

use idempotent_runtime::{
    Idempotency, identity::RecordId, store::Store, testing::conformance::StoreUnderTest as _,
};
use tokio::task::JoinSet;

use super::{RedisCluster, private::Private};
use crate::harness::{abandoned, claim};

const RECORDS: u32 = 6_000;

/// Every second record is expired, and the others are held. A record that stands already stays.
async fn mixed(store: &Arc<dyn Store>) {
    let mut claiming = JoinSet::new();
    for tenth in 0..10 {
        let store = Arc::clone(store);
        claiming.spawn(async move {
            for number in (0..RECORDS).filter(|number| number % 10 == tenth) {
                let mut id = [0xa5; 32];
                id[28..].copy_from_slice(&number.to_be_bytes());
                let claim = if number % 2 == 0 {
                    abandoned()
                } else {
                    claim()
                };
                let swap = store.swap(&RecordId::from_bytes(id), None, &claim).await;
                swap.expect("a claim is answered");
            }
        });
    }
    claiming.join_all().await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_purge_of_many_batches_goes_on_where_the_last_one_stopped() {
    let server = Private::new().await;
    let store: Arc<dyn Store> = Arc::new(server.store().await);
    mixed(&store).await;
    let idem = Idempotency::new(store);
    let before = server.ran("evalsha").await;

    assert_eq!(idem.purge().await, Ok(u64::from(RECORDS / 2)));

    let looks = server.ran("evalsha").await - before;
    // It looks once to find what is expired, and then on to the end and over everything to find no
    // more. A batch begins with the step in which the one before it was full.
    assert!(looks < 3 * u64::from(RECORDS), "{looks} looks");
    assert_eq!(idem.purge().await, Ok(0));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_purge_that_goes_on_comes_by_what_expired_behind_it() {
    let server = Private::new().await;
    comes_by_what_expired_behind_it(Arc::new(server.store().await)).await;
    comes_by_what_expired_behind_it(RedisCluster::new().store().await).await;
}

async fn comes_by_what_expired_behind_it(store: Arc<dyn Store>) {
    mixed(&store).await;
    let some = store.purge(RECORDS / 4, Duration::ZERO).await;
    assert_eq!(some, Ok(u64::from(RECORDS / 4)));
    mixed(&store).await;

    let rest = store.purge(RECORDS, Duration::ZERO).await;

    assert_eq!(rest, Ok(u64::from(RECORDS / 2)));
}
