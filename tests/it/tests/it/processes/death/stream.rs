//! Processes that are killed at any moment, in the middle of a stream of calls.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::processes::log::Log;

everywhere![d28_killed_at_any_moment];

async fn d28_killed_at_any_moment(place: Place) {
    let found = Arc::new(Found::default());
    for mode in [Mode::Rerun, Mode::Uncertain] {
        let survivors = Survivors::open(place.clone()).await;
        let jobs = (0..20).map(|number| survivors.job(&format!("{mode:?}-stream-{number}"), mode));
        at_most(AT_ONCE, jobs, |job| {
            let (survivors, found) = (survivors.clone(), Arc::clone(&found));
            async move {
                let process = Process::stopped(&Role::Stream(job.clone())).await;
                // Waiting for an event would choose the moment, and the point is that the moment is
                // not chosen.
                let latest = if rand::random_ratio(1, 4) {
                    200_000
                } else {
                    40_000
                };
                let (id, moment) = (process.id(), rand::random_range(0..latest));
                tokio::time::sleep(Duration::from_micros(moment)).await;
                process.kill().await;
                survivors.assert_stream(&job, id, &found).await;
            }
        })
        .await;
    }
    let found = [&found.done, &found.unfinished].map(|calls| calls.load(Ordering::SeqCst));
    assert!(
        !found.contains(&0),
        "calls that were done, and unfinished: {found:?}"
    );
}

/// How many finished and how many unfinished calls the processes left behind.
#[derive(Default)]
struct Found {
    done: AtomicUsize,
    unfinished: AtomicUsize,
}

impl Survivors {
    /// Makes every call of a stream again, and one more that the stream did not come to.
    async fn assert_stream(&self, stream: &Job, dead: u32, found: &Found) {
        let [first, second] = &self.handles;
        let mut came_to_all = true;
        // It had at most one request under way that was not answered.
        let mut may_be_late = self.place != Place::File;
        for number in 0.. {
            let key = format!("{}-{number}", stream.key);
            let job = Job {
                key,
                ..stream.clone()
            };
            let left = job.record(self.store()).await;
            let log: Log = job.log();
            log.write(0, &Event::Killed { process: dead });
            let before = log.bodies();
            let stops = Stops::default();
            let answers = tokio::join!(job.call(first, &stops), job.call(second, &stops));
            assert_eq!(answers.0, answers.1, "{:?}", log.events());
            log.assert_one_body_at_a_time();

            let mut left = left.map(|record| record.state);
            if may_be_late && answers.0 != after(left, &job, dead, before).0 {
                may_be_late = false;
                left = Some(written_late(left));
            }
            let (came, bodies) = after(left, &job, dead, before);
            assert_eq!(answers.0, came, "{left:?} {:?}", log.events());
            assert_eq!(log.bodies(), bodies, "{left:?} {:?}", log.events());
            assert!(bodies <= 2 && (bodies <= 1 || stream.mode == Mode::Rerun));

            // Only the last call that it came to can be unfinished.
            assert!(came_to_all || left.is_none(), "{left:?}");
            came_to_all &= left == Some(State::Done);
            match left {
                None => return,
                Some(State::Done) => &found.done,
                Some(_) => &found.unfinished,
            }
            .fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// The result of the next calls if this is left of a call in a stream, and how many bodies were
/// polled by then.
fn after(left: Option<State>, job: &Job, dead: u32, before: usize) -> (Came, usize) {
    match (left, job.mode) {
        (None, _) => (Came::Value(job.value(process::id(), 1)), 1),
        (Some(State::Done), _) => (Came::Value(job.value(dead, 1)), 1),
        (Some(_), Mode::Rerun) => (Came::Value(job.value(process::id(), 2)), before + 1),
        (Some(_), _) => (Came::Uncertain, before),
    }
}

/// The state that is left if a server writes the process's last request only after the look.
fn written_late(left: Option<State>) -> State {
    match left {
        None => State::Running,
        Some(_) => State::Done,
    }
}
