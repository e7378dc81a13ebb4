//! Attempts: the keys that they hand downstream, and the task in which they run.

use super::*;
use crate::record::AttemptId;

const HANDLE: u64 = 1;

fn attempt(id: RecordId) -> Attempt {
    let token = Some(FencingToken::from_u64(1));
    let attempt = Attempt::new(id, "order".into(), 1, token, Stage::Body);
    attempt.holding(HANDLE, AttemptId::random(), false)
}

/// As a body does that leaves the next call behind in a task.
#[test]
fn attempts_that_follow_one_another_keep_none_of_those_before() {
    let id = RecordId::from_bytes([0; 32]);
    let mut last = attempt(id);
    let first = Arc::downgrade(&last.0);
    let mut kept = Vec::new();
    for _ in 0..200_000 {
        let next = last.make(|| attempt(id));
        last.end();
        let before = std::mem::replace(&mut last, next);
        if kept.len() < 10 {
            kept.push(before);
        }
        assert!(last.0.around.len() <= 1);
    }

    drop(kept);
    assert!(first.upgrade().is_none());
}

#[test]
fn who_runs_inside_knows_all_who_hold_a_record_around() {
    let ids = [1, 2, 3].map(|byte| RecordId::from_bytes([byte; 32]));
    let [outer, middle, _] = ids;
    let outer = attempt(outer);
    let middle = outer.make(|| attempt(middle));
    middle.make(|| {
        let held = |handle| ids.map(|id| is_held(handle, &id));
        assert_eq!(held(HANDLE), [true, true, false]);
        assert_eq!(held(HANDLE + 1), [false; 3], "its store may be another one");
        outer.end();
        assert_eq!(held(HANDLE), [false, true, false]);
    });
}
