//! Callers on several runtimes, one of which ends or goes idle.

use std::thread;

use tokio::runtime::{Handle, Runtime};

use super::*;

/// A runtime that ends takes its tasks along, and one of them may be in the middle of what others
/// wait for.
#[test]
fn who_stands_in_line_behind_a_runtime_that_ends_is_told_that_nobody_knows() {
    let (ends, stays) = (threaded(), threaded());
    let held = stays.block_on(Held::patient());
    let claims = stays.block_on(held.claimed(2));
    let completions = completions(&claims, |_| vec![1]);
    let mut side = stays.block_on(held.side());
    let connection = stays.block_on(held.connection());
    let write = |number: usize, runtime: &Runtime| {
        let _runtime = runtime.enter();
        let (seen, next) = &completions[number];
        let writing = held.write(number, *seen, next);
        stays.block_on(held.are_queued(number + 1));
        settle(runtime.handle(), &stays);
        writing
    };
    write(0, &ends);
    let waiting = write(1, &stays);
    let locked = stays.block_on(side.execute("BEGIN IMMEDIATE"));
    locked.expect("it is free");

    drop(connection);
    stays.block_on(held.is_empty());
    // The one thread has sent the message by the time it does this.
    settle(ends.handle(), &stays);
    ends.shutdown_timeout(PATIENCE);
    let released = stays.block_on(side.execute("COMMIT"));
    released.expect("it has the lock");

    let answer = stays.block_on(waiting).expect("no panic");
    assert!(have_failed(&[answer], StoreErrorKind::Unavailable));
    let (seen, next) = &completions[1];
    let again = stays.block_on(held.store.swap(&id(1), *seen, next));
    assert!(are_applied(&[again]));
    let committed = "SELECT id FROM idempotent_records WHERE outcome IS NOT NULL";
    let committed = stays.block_on(side.fetch_all(committed));
    assert_eq!(committed.expect("it is read").len(), 1);
}

/// A thread with a runtime of its own drives that for as long as its own call lasts, and no longer.
#[test]
fn nobody_waits_for_a_runtime_whose_call_was_answered() {
    each_is_answered_behind_one_that(false);
}

#[test]
fn nobody_waits_for_a_runtime_whose_call_was_replayed() {
    each_is_answered_behind_one_that(true);
}

fn each_is_answered_behind_one_that(stands: bool) {
    let current = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().expect("a runtime")
    };
    let (idle, stays) = (current(), threaded());
    let held = stays.block_on(Held::new());
    if stands {
        stays.block_on(held.claimed(1));
    }
    let connection = stays.block_on(held.connection());
    let others = 2 * MOST_TOGETHER;
    let waiting: Vec<_> = thread::scope(|scope| {
        let first = scope.spawn(|| idle.block_on(held.store.swap(&id(0), None, &claim())));
        stays.block_on(held.are_queued(1));
        settle(idle.handle(), &stays);
        let mut waiting = Vec::new();
        for number in 1..=others {
            let _stays = stays.enter();
            waiting.push(held.write(number, None, &claim()));
            stays.block_on(held.are_queued(number + 1));
        }
        drop(connection);
        let answer = first.join().expect("no panic");
        assert_eq!(are_applied(&[answer]), !stands);
        waiting
    });

    for answer in waiting {
        let answer = stays.block_on(async { timeout(PATIENCE / 3, answer).await });
        let answer = answer.expect("nobody waits").expect("no panic");
        assert!(are_applied(&[answer]));
    }
    drop(idle);
}

/// Lets the one thread of a runtime come to an end with what it does, from another runtime.
fn settle(runtime: &Handle, other: &Runtime) {
    let settled = runtime.spawn(async {});
    other.block_on(settled).expect("no panic");
}

fn threaded() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let builder = builder.worker_threads(1).enable_all();
    builder.build().expect("a runtime")
}
