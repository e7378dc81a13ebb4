//! Processes whose wall clocks are ten minutes off, in both directions, with leases and times to
//! live that are shorter than that.
//!
//! D19: the server's clock decides. A holder's own measurements of time are monotonic.

use std::time::{Duration, SystemTime};

use idempotent_runtime::{Idempotency, testing::Gate};

use super::{
    child::{Point, Role},
    job::{Came, Job, Mode, Stops},
    place::Place,
    process::Process,
};
use crate::harness::library;

const MINUTES: i64 = 60;
const OFF_BY: [i64; 2] = [-10 * MINUTES, 10 * MINUTES];

/// Makes the tests at each server. The clock of a file is that of the process that opens it.
macro_rules! with_clocks_off {
    ($($name:ident: $place:ident;)*) => {
        $(
            #[tokio::test(flavor = "current_thread")]
            #[ignore = "needs a server: cargo xtask test"]
            async fn $name() {
                is_not_asked(Place::$place()).await;
            }
        )*
    };
}

with_clocks_off! {
    d19_the_clock_of_a_client_does_not_count_on_postgres: postgres;
    d19_the_clock_of_a_client_does_not_count_on_mariadb: mariadb;
    d19_the_clock_of_a_client_does_not_count_on_redis: redis;
    d19_the_clock_of_a_client_does_not_count_on_redis_cluster: redis_cluster;
}

async fn is_not_asked(place: Place) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let clock = library(folder.path(), "processes/clock.c");
    for (number, off_by) in OFF_BY.into_iter().enumerate() {
        let job = |key: &str| Job {
            folder: folder.path().to_owned(),
            place: place.clone(),
            key: format!("{key}-{number}"),
            mode: Mode::Uncertain,
            lease: Duration::from_secs(30),
        };
        let off = |role: &Role| Process::with_clock(role, &clock, off_by);
        let here = Idempotency::new(place.open(folder.path()).await);
        let call = async |job: &Job| job.call_at_once(&here, &Stops::default()).await;

        // An outcome that one of them recorded is not expired for the other.
        let (theirs, ours) = (job("theirs"), job("ours"));
        let first = visit(off(&Role::Visit(theirs.clone())), off_by).await;
        assert!(matches!(first, Came::Value(_)), "{first:?}");
        assert_eq!(call(&theirs).await, first);
        let first = call(&ours).await;
        assert_eq!(visit(off(&Role::Visit(ours)), off_by).await, first);

        // A lease that one of them holds is not over for the other.
        let held = job("held by them");
        let mut holder = off(&Role::Call(held.clone(), Point::MidBody));
        assert_eq!(holder.hear::<String>().await, "stopped");
        assert_is_held(&call(&held).await);
        holder.go_on().await;
        assert_eq!(holder.hear::<Came>().await, call(&held).await);

        let (held, gate) = (job("held by us"), Gate::new());
        let stops = Stops {
            in_body: Some(gate.clone()),
            ..Stops::default()
        };
        let visited = async {
            gate.arrived(1).await;
            let came = visit(off(&Role::Visit(held.clone())), off_by).await;
            gate.open();
            came
        };
        let (ours, theirs) = tokio::join!(held.call(&here, &stops), visited);
        assert_is_held(&theirs);
        assert_eq!(call(&held).await, ours);
        for key in ["theirs", "ours", "held by them", "held by us"] {
            assert_eq!(job(key).log().bodies(), 1, "{key}, off by {off_by} s");
        }
    }
}

/// The result of a call of a process whose clock is seen to be off.
async fn visit(mut process: Process, off_by: i64) -> Came {
    let (came, clock): (Came, SystemTime) = process.hear().await;
    let seconds = |time: SystemTime| {
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        since
            .expect("it is later than 1970")
            .as_secs()
            .cast_signed()
    };
    let found = seconds(clock) - seconds(SystemTime::now());
    assert!((found - off_by).abs() < 5 * MINUTES, "off by {found} s");
    came
}

/// Asserts that the call is under way, for a lease at most.
fn assert_is_held(came: &Came) {
    let Came::InProgress(left) = came else {
        panic!("{came:?}")
    };
    assert!(*left <= Duration::from_secs(30), "{left:?}");
}
