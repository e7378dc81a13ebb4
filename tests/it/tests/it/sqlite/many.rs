//! Many bodies at once, and callers who leave in crowds: no lease is lost for their number.

use super::*;
use crate::{
    harness::in_time,
    servers::distance::{Process, no_lease_is_lost, no_lease_is_lost_beside_a_crowd},
};

/// How many bodies run at once, and how long their leases are.
fn bodies() -> (usize, Duration) {
    match std::env::var("IDEMPOTENT_TEST_ROUNDS").as_deref() {
        Ok("full") => (5_000, Duration::from_secs(30)),
        _ => (600, Duration::from_secs(3)),
    }
}

async fn process(folder: &TempDir) -> Process {
    let (_, store) = opened(folder).await;
    Process::new(Arc::new(store))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mend_16_no_lease_is_lost_by_the_number_of_bodies() {
    let folder = folder();
    let process = process(&folder).await;
    in_time(no_lease_is_lost(&process, bodies(), |_| {})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mend_16_no_lease_is_lost_beside_a_crowd_that_leaves() {
    let folder = folder();
    let process = process(&folder).await;
    in_time(no_lease_is_lost_beside_a_crowd(&process, |_| {})).await;
}
