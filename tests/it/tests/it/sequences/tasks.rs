//! Four tasks on one handle in memory, of which some are stopped in a body.

use std::sync::Arc;

use idempotent_runtime::{Idempotency, OnCrash, testing::EffectLog};
use tokio::{sync::mpsc, task::JoinSet};

use super::plan::{KILLS, Worker, assert_in_order};

async fn numbers_from_four_tasks(on_crash: OnCrash) {
    let (idem, effects) = (Idempotency::memory(), Arc::new(EffectLog::new()));
    let (held, mut hears) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    let mut seed = 0;
    let mut start = |tasks: &mut JoinSet<Vec<u64>>| {
        seed += 1;
        let worker = Worker {
            idem: idem.clone(),
            effects: Arc::clone(&effects),
            seed,
            on_crash,
        };
        let held = held.clone();
        let handle = Arc::new(std::sync::OnceLock::new());
        let its = Arc::clone(&handle);
        let delivering = tasks.spawn(async move {
            let hold = |_| held.send(Arc::clone(&its)).expect("the test listens");
            worker.deliver(&hold).await
        });
        handle.set(delivering).expect("it is set once");
    };
    for _ in 0..4 {
        start(&mut tasks);
    }
    for _ in KILLS {
        let stopped = hears.recv().await.expect("a body stops");
        stopped.wait().abort();
        start(&mut tasks);
    }
    let mut applied = Vec::new();
    let mut stopped = 0;
    while let Some(ended) = tasks.join_next().await {
        match ended {
            Ok(its) => applied.push(its),
            Err(error) => {
                assert!(error.is_cancelled(), "{error}");
                stopped += 1;
            }
        }
    }
    assert_eq!(stopped, KILLS.len());
    assert_in_order(&effects, &applied, on_crash);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_from_four_tasks_are_applied_in_order() {
    crate::harness::in_time(numbers_from_four_tasks(OnCrash::Rerun)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uncertain_numbers_from_four_tasks_are_settled_and_applied_once() {
    crate::harness::in_time(numbers_from_four_tasks(OnCrash::Uncertain)).await;
}
