//! Ten processes, a hundred callers in each, one key.

use std::{collections::HashSet, time::Duration};

use super::{
    child::Role,
    job::{Came, Job, Mode},
    place::Place,
    process::Process,
};

const PROCESSES: usize = 10;
const CALLERS: usize = 100;

everywhere![c14_a_thousand_duplicates_from_ten_processes_run_once];

async fn c14_a_thousand_duplicates_from_ten_processes_run_once(place: Place) {
    // Given ten processes that are ready.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let job = Job {
        folder: folder.path().to_owned(),
        place,
        key: "key".to_owned(),
        mode: Mode::Rerun,
        lease: Duration::from_secs(10),
    };
    let mut processes = Vec::new();
    for _ in 0..PROCESSES {
        processes.push(Process::stopped(&Role::Crowd(job.clone(), CALLERS)).await);
    }

    // When all of them call at once.
    for process in &mut processes {
        process.go_on().await;
    }
    let mut answers = Vec::new();
    for process in &mut processes {
        answers.extend(process.hear::<Vec<Came>>().await);
    }

    // Then one body ran, and every answer is what it returned.
    assert_eq!(answers.len(), PROCESSES * CALLERS);
    let distinct: HashSet<Came> = answers.into_iter().collect();
    assert_eq!(distinct.len(), 1, "{distinct:?}");
    assert!(
        distinct.iter().all(|came| matches!(came, Came::Value(_))),
        "{distinct:?}"
    );
    assert_eq!(job.log().bodies(), 1);
    job.log().assert_one_body_at_a_time();
}
