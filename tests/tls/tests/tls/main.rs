//! The stores over TLS, on servers that let no client in without it: `cargo xtask test` starts
//! them, with a certificate of a private authority.

mod mariadb;
mod postgres;
mod redis;
mod redis_cluster;

use std::{env, error::Error as _, fmt, sync::Arc, time::Duration};

use idempotent_runtime::{
    Error, Idempotency, InFlight, Observer, RecordChange, RecordEvent, StoreError, StoreErrorKind,
    store::Store, testing::Gate,
};
use tokio::{process::Command, task::JoinHandle};

/// More than a loaded machine needs, and a failure instead of a test that hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Less than [`PATIENCE`], so that the store ends a connection that gets no answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// One process runs a call and another waits for it, until `meanwhile` has seen what it wanted,
/// after a heartbeat. Then both are answered, and so is a replay.
async fn works<S: Store + Clone>(holder: S, waiter: S, meanwhile: impl AsyncFnOnce()) {
    let all = async {
        let (inside, beat) = (Gate::new(), Beat::default());
        let begin = |store: S, outcome| {
            let idem = Idempotency::builder(store)
                .lease("3s")
                .in_flight(InFlight::Wait(PATIENCE))
                .observer(beat.clone())
                .build()
                .expect("the options can be used");
            charge(idem, inside.clone(), outcome)
        };
        let first = begin(holder, 1);
        inside.arrived(1).await;
        let second = begin(waiter.clone(), 2);
        beat.0.notified().await;
        meanwhile().await;
        inside.open();

        assert_eq!(first.await.expect("no panic"), Ok(1));
        assert_eq!(second.await.expect("no panic"), Ok(1));
        assert_eq!(begin(waiter, 3).await.expect("no panic"), Ok(1));
        assert_eq!(inside.arrivals(), 1, "one body ran");
    };
    in_time(all).await;
}

fn charge(idem: Idempotency, inside: Gate, outcome: u32) -> JoinHandle<Result<u32, Error>> {
    tokio::spawn(async move {
        let call = idem.call("charge").key("k");
        let answer = call.run(async |_| {
            inside.pass().await;
            Ok(outcome)
        });
        answer.await
    })
}

/// Is notified of the first heartbeat.
#[derive(Clone, Default)]
struct Beat(Arc<tokio::sync::Notify>);

impl Observer for Beat {
    fn transition(&self, transition: &RecordEvent<'_>) {
        if transition.change == RecordChange::Heartbeat {
            self.0.notify_one();
        }
    }
}

/// A call over connections that cannot be made is refused for that, and its body does not run.
async fn runs_nothing(store: impl Store) {
    let inside = Gate::new();
    let answer = in_time(charge(Idempotency::new(store), inside.clone(), 1)).await;
    let Err(Error::Store(error)) = answer.expect("no panic") else {
        panic!("it needs a store");
    };
    assert_eq!(error.kind(), StoreErrorKind::Configuration, "{error:?}");
    assert_eq!(inside.arrivals(), 0, "the body ran");
}

/// Checks that a store is refused for how it is set up, which trying again does not change, and for
/// this reason.
fn is_refused<T: fmt::Debug>(answer: Result<T, StoreError>, reason: &str) {
    let error = answer.expect_err("it is refused");
    assert_eq!(error.kind(), StoreErrorKind::Configuration, "{error:?}");
    let source = error.source().expect("the driver's error is kept");
    assert!(source.to_string().contains(reason), "{source}");
}

/// The authority whose certificates the encrypted servers show.
const AUTHORITY: &str = "IDEMPOTENT_TEST_AUTHORITY";

/// The file that the system's authorities are read from, if it is set.
const SYSTEM: &str = "SSL_CERT_FILE";

/// A URL of Redis names no authority. It goes by those of the system, which a test sets for a
/// process of its own: there, the test of this name runs again, and its scenario.
async fn where_the_authority_is_trusted(test: &str, scenario: impl AsyncFnOnce()) {
    let authority = variable(AUTHORITY);
    if env::var(SYSTEM).is_ok_and(|trusted| trusted == authority) {
        return scenario().await;
    }
    let this = env::current_exe().expect("this test has a file");
    let mut child = Command::new(this);
    child.args(["--exact", test, "--include-ignored"]);
    let child = child.env(SYSTEM, authority).kill_on_drop(true).output();
    let output = in_time(child).await.expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

/// Chooses the cryptography, as a program has to do before it connects to Redis by itself: rustls
/// chooses none here. A store does it, too.
fn choose_cryptography() {
    // It may have been done already.
    drop(rustls::crypto::ring::default_provider().install_default());
}

async fn in_time<F: Future>(scenario: F) -> F::Output {
    let ended = tokio::time::timeout(PATIENCE, scenario).await;
    ended.expect("the scenario waits for something that never happens")
}

/// The address of a server, or the authority that vouches for it.
///
/// # Panics
///
/// If it is not set: a store whose server is missing is a failure.
fn variable(name: &str) -> String {
    env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: `cargo xtask test` starts the servers"))
}

/// A URL with other options.
fn with_options(url: &str, options: &str) -> String {
    let (place, _) = url.split_once('?').unwrap_or((url, ""));
    format!("{place}?{options}")
}

/// Tables or keys of its own for each test.
fn prefix() -> String {
    format!("t{:016x}_", rand::random::<u64>())
}
