//! SIGSTOP past the lease, then SIGCONT: the holder that comes back has lost, and learns it.

use std::{process, sync::Arc, time::Duration};

use idempotent_runtime::{Idempotency, record::State, store::Store, testing::Gate};
use tempfile::TempDir;

use super::{
    child::{Point, Role},
    job::{Came, Job, Mode, Stops},
    place::Place,
    process::Process,
};

const LEASE: Duration = Duration::from_millis(250);

/// How often each is done: the thread of heartbeats and the body wake in either order.
const TIMES: usize = 5;

everywhere![
    d04_a_holder_that_wakes_after_the_takeover_completed_overwrites_nothing,
    d06_a_holder_that_wakes_while_the_next_one_runs_prolongs_nothing,
    d04_a_holder_that_wakes_to_an_uncertain_record_may_still_complete,
    d06_a_holder_that_wakes_is_told_that_its_lease_is_lost,
];

struct Scene {
    _folder: TempDir,
    idempotency: Idempotency,
    job: Job,
}

impl Scene {
    /// The call of a process that lives.
    async fn call(&self) -> Came {
        self.job.call(&self.idempotency, &Stops::default()).await
    }

    async fn open(place: &Place, mode: Mode) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let job = Job {
            folder: folder.path().to_owned(),
            place: place.clone(),
            // A server keeps what the scene before this one left.
            key: format!("key-{:016x}", rand::random::<u64>()),
            mode,
            lease: LEASE,
        };
        Self {
            _folder: folder,
            idempotency: Idempotency::new(job.open().await),
            job,
        }
    }

    fn store(&self) -> &dyn Store {
        self.idempotency.store()
    }

    /// A process that holds the record, stopped in the middle of its body.
    async fn frozen_at(&self, point: Point) -> Process {
        let holder = Process::stopped(&Role::Call(self.job.clone(), point)).await;
        holder.freeze();
        // If it were stopped while its heartbeat is being written, it would keep the file of SQLite
        // locked until it wakes.
        while self.store().purge(0, Duration::ZERO).await.is_err() {
            holder.wake();
            holder.freeze();
        }
        holder
    }
}

async fn d04_a_holder_that_wakes_after_the_takeover_completed_overwrites_nothing(place: Place) {
    for _ in 0..TIMES {
        // Given a holder that is stopped, and another process that took over and completed.
        let scene = Scene::open(&place, Mode::Rerun).await;
        let mut holder = scene.frozen_at(Point::MidBody).await;
        let came = scene.call().await;
        assert_eq!(came, Came::Value(scene.job.value(process::id(), 2)));
        let stands = scene.job.record(scene.store()).await;

        // When the holder wakes and its body ends.
        holder.go_on().await;
        holder.wake();

        // Then its caller gets the recorded outcome, and the record is as it was, lease and version
        // included.
        assert_eq!(holder.hear::<Came>().await, came);
        assert_eq!(scene.job.record(scene.store()).await, stands);
        assert_eq!(scene.call().await, came);
    }
}

async fn d06_a_holder_that_wakes_while_the_next_one_runs_prolongs_nothing(place: Place) {
    for _ in 0..TIMES {
        // Given a holder that is stopped, and another process that took over and is in its body.
        let scene = Arc::new(Scene::open(&place, Mode::Rerun).await);
        let mut holder = scene.frozen_at(Point::MidBody).await;
        let gate = Gate::new();
        let next = tokio::spawn({
            let (scene, in_body) = (Arc::clone(&scene), Some(gate.clone()));
            let stops = Stops {
                in_body,
                ..Stops::default()
            };
            async move { scene.job.call(&scene.idempotency, &stops).await }
        });
        gate.arrived(1).await;
        let taken_over = scene.job.record(scene.store()).await.expect("a record");

        // When the holder wakes and its body ends.
        holder.go_on().await;
        holder.wake();

        // Then its caller learns that the lease was lost, and the new holder holds it still.
        assert_eq!(holder.hear::<Came>().await, Came::LeaseLost);
        let stands = scene.job.record(scene.store()).await.expect("a record");
        assert_eq!(
            (stands.state, stands.attempt_id, stands.token),
            (State::Running, taken_over.attempt_id, taken_over.token)
        );
        gate.open();
        let came = next.await.expect("the call ends");
        assert_eq!(came, Came::Value(scene.job.value(process::id(), 2)));
        assert_eq!(scene.call().await, came);
    }
}

async fn d04_a_holder_that_wakes_to_an_uncertain_record_may_still_complete(place: Place) {
    for _ in 0..TIMES {
        // Given a holder that is stopped, and a call that found its lease over: the record is
        // uncertain.
        let scene = Scene::open(&place, Mode::Uncertain).await;
        let mut holder = scene.frozen_at(Point::MidBody).await;
        let came = scene.call().await;
        assert_eq!(came, Came::Uncertain);

        // When the holder wakes and its body ends.
        holder.go_on().await;
        holder.wake();

        // Then the value is known to every caller, and one body ran.
        let came = Came::Value(scene.job.value(holder.id(), 1));
        assert_eq!(holder.hear::<Came>().await, came);
        assert_eq!(scene.call().await, came);
        assert_eq!(scene.job.log().bodies(), 1);
    }
}

async fn d06_a_holder_that_wakes_is_told_that_its_lease_is_lost(place: Place) {
    for _ in 0..TIMES {
        // Given a holder that is stopped, whose body ends only when it is told.
        let scene = Scene::open(&place, Mode::Rerun).await;
        let mut holder = scene.frozen_at(Point::UntilLost).await;
        let came = scene.call().await;
        assert_eq!(came, Came::Value(scene.job.value(process::id(), 2)));

        // When the holder wakes.
        holder.go_on().await;
        holder.wake();

        // Then its next heartbeat finds that the lease is lost.
        assert_eq!(holder.hear::<Came>().await, came);
    }
}
