//! SIGKILL at every point of a call, in every mode, and what the next callers find.
//!
//! V1: never two live bodies. V2: one recorded outcome. V4: tokens grow. V10: an answer within one
//! lease, or *uncertain*.

mod stream;

use std::{
    future::Future,
    process,
    sync::Arc,
    time::{Duration, Instant},
};

use idempotent_runtime::{
    Error, Idempotency, Status,
    record::{Record, State},
    store::Store,
};
use tempfile::TempDir;
use tokio::{sync::Semaphore, task::JoinSet};

use super::{
    child::{Point, Role},
    job::{Came, Job, Knowledge, Mode, OPERATION, Stops},
    log::Event,
    place::Place,
    process::Process,
};

/// How many of them live at once: each waits for a lease most of the time.
const AT_ONCE: usize = 5;

const LEASE: Duration = Duration::from_millis(250);

/// The time that a busy machine may add to the lease before a call is answered. It is nothing
/// against the five minutes of the record.
const GRACE: Duration = Duration::from_secs(5);

/// Makes a test of each of these at each place, with so many kills.
macro_rules! kills {
    ($($name:ident: $mode:expr, $point:ident;)*) => {
        kills! { @at sqlite (20) [] [$([$name $mode, $point])*] }
        // Four at each of the 28 points and modes are over a hundred.
        kills! { @at postgres (4) [#[ignore = "needs a server: cargo xtask test"]] [$([$name $mode, $point])*] }
        kills! { @at mariadb (4) [#[ignore = "needs a server: cargo xtask test"]] [$([$name $mode, $point])*] }
        kills! { @at redis (4) [#[ignore = "needs a server: cargo xtask test"]] [$([$name $mode, $point])*] }
        kills! { @at redis_cluster (4) [#[ignore = "needs a server: cargo xtask test"]] [$([$name $mode, $point])*] }
    };
    (@at $place:ident $kills:tt $attributes:tt [$($test:tt)*]) => {
        mod $place {
            use super::*;
            kills! { @each $place $kills [$([$test $attributes])*] }
        }
    };
    (@each $place:ident ($kills:expr) [$([[$name:ident $mode:expr, $point:ident] [$($attribute:tt)*]])*]) => {
        $(
            $($attribute)*
            #[tokio::test(flavor = "current_thread")]
            async fn $name() {
                kill_at(Point::$point, $mode, Place::$place(), $kills).await;
            }
        )*
    };
}

mod at_each_point {
    use super::*;

    kills! {
        d28_rerun_before_claim: Mode::Rerun, BeforeClaim;
        d28_rerun_after_claim: Mode::Rerun, AfterClaim;
        d28_rerun_mid_body: Mode::Rerun, MidBody;
        d28_rerun_after_body: Mode::Rerun, AfterBody;
        d28_rerun_after_recording: Mode::Rerun, AfterRecording;

        d23_uncertain_before_claim: Mode::Uncertain, BeforeClaim;
        d23_uncertain_after_claim: Mode::Uncertain, AfterClaim;
        d23_uncertain_mid_body: Mode::Uncertain, MidBody;
        d23_uncertain_after_body: Mode::Uncertain, AfterBody;
        d23_uncertain_after_recording: Mode::Uncertain, AfterRecording;

        d22_unknown_before_claim: Mode::Reconcile(Knowledge::Unknown), BeforeClaim;
        d22_unknown_after_claim: Mode::Reconcile(Knowledge::Unknown), AfterClaim;
        d22_unknown_mid_body: Mode::Reconcile(Knowledge::Unknown), MidBody;
        d22_unknown_after_body: Mode::Reconcile(Knowledge::Unknown), AfterBody;
        d22_unknown_after_recording: Mode::Reconcile(Knowledge::Unknown), AfterRecording;

        d22_run_again_before_claim: Mode::Reconcile(Knowledge::RunAgain), BeforeClaim;
        d22_run_again_after_claim: Mode::Reconcile(Knowledge::RunAgain), AfterClaim;
        d22_run_again_mid_body: Mode::Reconcile(Knowledge::RunAgain), MidBody;
        d22_run_again_after_body: Mode::Reconcile(Knowledge::RunAgain), AfterBody;
        d22_run_again_after_recording: Mode::Reconcile(Knowledge::RunAgain), AfterRecording;

        d22_happened_before_claim: Mode::Reconcile(Knowledge::Happened), BeforeClaim;
        d22_happened_after_claim: Mode::Reconcile(Knowledge::Happened), AfterClaim;
        d22_happened_mid_body: Mode::Reconcile(Knowledge::Happened), MidBody;
        d22_happened_after_body: Mode::Reconcile(Knowledge::Happened), AfterBody;
        d22_happened_after_recording: Mode::Reconcile(Knowledge::Happened), AfterRecording;

        d22_unknown_mid_ask: Mode::Reconcile(Knowledge::Unknown), MidAsk;
        d22_run_again_mid_ask: Mode::Reconcile(Knowledge::RunAgain), MidAsk;
        d22_happened_mid_ask: Mode::Reconcile(Knowledge::Happened), MidAsk;
    }
}

/// Kills processes at `point`, each in a call of its own, and lets two callers come after each.
async fn kill_at(point: Point, mode: Mode, place: Place, kills: usize) {
    let survivors = Survivors::open(place).await;
    let jobs = (0..kills).map(|number| survivors.job(&format!("key-{number}"), mode));
    at_most(AT_ONCE, jobs, |job| {
        let survivors = survivors.clone();
        async move {
            let dead = die(&job, point).await;
            let left = job.record(survivors.store()).await;
            assert_left(point, left.as_deref());
            survivors
                .assert_next_calls(&job, point, dead, left.as_deref())
                .await;
        }
    })
    .await;
}

/// Lets a process make the call, and kills it at `point`. Returns its id.
async fn die(job: &Job, point: Point) -> u32 {
    if point == Point::MidAsk {
        // A holder must have vanished before the reconciling function is asked.
        Box::pin(die(job, Point::MidBody)).await;
    }
    let process = Process::stopped(&Role::Call(job.clone(), point)).await;
    let id = process.id();
    process.kill().await;
    job.log().write(0, &Event::Killed { process: id });
    id
}

/// Asserts that the kill hit the very point.
fn assert_left(point: Point, left: Option<&Record>) {
    let expected = match point {
        Point::BeforeClaim => None,
        Point::AfterClaim | Point::MidBody | Point::UntilLost | Point::AfterBody => {
            Some((State::Running, 1))
        }
        Point::MidAsk => Some((State::Running, 2)),
        Point::AfterRecording => Some((State::Done, 1)),
    };
    assert_eq!(
        left.map(|record| (record.state, record.attempt)),
        expected,
        "{point:?} {left:?}"
    );
}

/// The result that the first survivors must get, and how many bodies must be polled by then.
fn expected(job: &Job, point: Point, dead: u32) -> (Came, usize) {
    use {
        Knowledge::{Happened, RunAgain, Unknown},
        Mode::{Reconcile, Rerun, Uncertain},
    };

    let survivors = |attempt| Came::Value(job.value(process::id(), attempt));
    let begun = usize::from(point != Point::AfterClaim);
    let attempt = if point == Point::MidAsk { 3 } else { 2 };
    match (point, job.mode) {
        (Point::BeforeClaim, _) => (survivors(1), 1),
        (Point::AfterRecording, _) => (Came::Value(job.value(dead, 1)), 1),
        (_, Rerun | Reconcile(RunAgain)) => (survivors(attempt), begun + 1),
        (_, Uncertain | Reconcile(Unknown)) => (Came::Uncertain, begun),
        (_, Reconcile(Happened)) => (Came::Value(job.known()), begun),
    }
}

/// Two handles of the process that lives on, each with connections of its own.
#[derive(Clone)]
struct Survivors {
    folder: Arc<TempDir>,
    place: Place,
    handles: [Idempotency; 2],
}

impl Survivors {
    async fn open(place: Place) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let open = || async {
            Idempotency::builder(place.open(folder.path()).await)
                .max_takeovers(2)
                .build()
                .expect("a handle")
        };
        let handles = [open().await, open().await];
        Self {
            folder: Arc::new(folder),
            place,
            handles,
        }
    }

    fn job(&self, key: &str, mode: Mode) -> Job {
        Job {
            folder: self.folder.path().to_owned(),
            place: self.place.clone(),
            key: key.to_owned(),
            mode,
            lease: LEASE,
        }
    }

    fn store(&self) -> &dyn Store {
        self.handles[0].store()
    }

    /// Makes two calls at once, and one later.
    async fn assert_next_calls(&self, job: &Job, point: Point, dead: u32, left: Option<&Record>) {
        let log = job.log();
        let (came, bodies) = expected(job, point, dead);
        let [first, second] = &self.handles;
        let stops = Stops::default();

        let began = Instant::now();
        let answers = tokio::join!(job.call(first, &stops), job.call(second, &stops));
        let took = began.elapsed();

        assert_eq!(answers, (came.clone(), came.clone()), "{job:?}");
        assert!(
            took < LEASE + GRACE,
            "the answers took {took:?}, the lease is {LEASE:?}"
        );
        assert_eq!(log.bodies(), bodies, "{:?}", log.events());
        log.assert_one_body_at_a_time();

        if came == Came::Uncertain {
            self.settle(job).await;
        } else {
            assert_eq!(job.call(second, &stops).await, came);
        }
        assert_eq!(
            log.bodies(),
            bodies,
            "a later call ran a body again: {:?}",
            log.events()
        );
        let stands = job.record(self.store()).await.expect("a record");
        assert_eq!(stands.state, State::Done);
        assert_succession(left, &stands);
    }

    /// An uncertain call stays uncertain until an operator settles it. Then the settlement answers.
    async fn settle(&self, job: &Job) {
        let [first, second] = &self.handles;
        assert_eq!(job.call(first, &Stops::default()).await, Came::Uncertain);
        let status = first.lookup(OPERATION, None::<&str>, &job.key).await;
        assert!(matches!(status, Ok(Status::Uncertain)), "{status:?}");

        let settle = first.settle(OPERATION, None::<&str>, &job.key);
        let settled = settle.expect("a key").with_value(&"settled").await;
        assert!(settled.is_ok(), "{settled:?}");

        let came = job.call(second, &Stops::default()).await;
        assert_eq!(came, Came::Value("settled".to_owned()));
    }
}

/// V1 and V4 in the store: a takeover drew a higher token. It did not come before the lease had
/// ended by the store's clock, which a token tells in microseconds.
fn assert_succession(left: Option<&Record>, stands: &Record) {
    let Some(left) = left else { return };
    assert!(stands.token >= left.token, "{left:?} {stands:?}");
    if stands.token > left.token {
        let taken_over = i64::try_from(stands.token.as_u64()).expect("a time");
        assert!(
            taken_over >= left.lease_end.as_micros(),
            "{left:?} {stands:?}"
        );
    } else {
        assert!(stands.attempt <= left.attempt, "{left:?} {stands:?}");
    }
}

everywhere![d21_a_call_that_kills_each_process_is_parked,];

async fn d21_a_call_that_kills_each_process_is_parked(place: Place) {
    let survivors = Survivors::open(place).await;
    let jobs = (0..4).map(|number| survivors.job(&format!("key-{number}"), Mode::Rerun));
    at_most(AT_ONCE, jobs, |job| {
        let survivors = survivors.clone();
        async move {
            // Given a first attempt and as many takeovers as the survivors allow.
            for _ in 0..3 {
                die(&job, Point::MidBody).await;
            }
            // When one more call comes, nothing runs.
            let [first, _] = &survivors.handles;
            let came = job.call(first, &Stops::default()).await;
            assert!(
                matches!(&came, Came::Other(error) if error.contains("Parked")),
                "{came:?}"
            );
            assert_eq!(job.log().bodies(), 3);

            // Resumed, it runs with a fresh budget.
            let settle = first.settle(OPERATION, None::<&str>, &job.key);
            let resumed: Result<(), Error> = settle.expect("a key").resume().await;
            assert_eq!(resumed, Ok(()));
            let came = job.call(first, &Stops::default()).await;
            assert_eq!(came, Came::Value(job.value(process::id(), 2)));
            job.log().assert_one_body_at_a_time();
        }
    })
    .await;
}

/// Does `work` for each of `jobs`, so many at a time.
pub(super) async fn at_most<J, F: Future<Output = ()> + Send + 'static>(
    at_once: usize,
    jobs: impl Iterator<Item = J>,
    work: impl Fn(J) -> F,
) {
    let room = Arc::new(Semaphore::new(at_once));
    let mut tasks = JoinSet::new();
    for job in jobs {
        let (room, work) = (Arc::clone(&room), work(job));
        tasks.spawn(async move {
            let _place = room.acquire().await.expect("the semaphore is not closed");
            work.await;
        });
    }
    while let Some(task) = tasks.join_next().await {
        if let Err(error) = task {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}
