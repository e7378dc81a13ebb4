//! The process that is started, and what it does: makes a call, and stops at a point of it.

use std::{
    env,
    io::{self, Write},
    process::exit,
    time::SystemTime,
};

use idempotent_runtime::{
    Idempotency, Observer, RecordChange, RecordEvent,
    testing::{Fault, FaultyStore, Gate, On, StoreOperation},
};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::mpsc,
    task::{JoinSet, spawn},
};

#[cfg(target_os = "linux")]
use super::backlog::Backlog;
use super::{
    job::{Job, Stops},
    numbers::Numbers,
    outbox::Staff,
    sagas::Saga,
    transfers::Transfer,
};
use crate::harness::runtime_here;

/// The environment variable that holds a process's [`Role`].
pub(super) const ROLE: &str = "IDEMPOTENT_TEST_PROCESS";

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Role {
    /// Makes a call, stops at this point and says so. Told to go on, it reports the result.
    Call(Job, Point),
    /// Gets ready and says so. Told to go on, it makes so many equal calls at once and reports the
    /// results.
    Crowd(Job, usize),
    /// Makes a call that does not wait for another one. Reports the result and the time.
    Visit(Job),
    /// Says so and makes one call after the other, each with a key of its own, until it is killed.
    Stream(Job),
    /// Makes a call in a transaction, stops in it and says so.
    Transfer(Transfer),
    /// Makes a call with steps, stops in it and says so. Told to go on, it reports the result.
    Saga(Saga),
    /// Delivers the numbers of a stream, until it is killed or through.
    Numbers(Numbers),
    /// Delivers messages, and says how much memory that took.
    #[cfg(target_os = "linux")]
    Backlog(Backlog),
    /// Writes messages, or relays them, until it is killed or told that it is enough.
    Outbox(Staff),
}

/// The point at which a call stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Point {
    /// Its claim is about to be sent.
    BeforeClaim,
    /// Its claim stands; its body was not polled.
    AfterClaim,
    /// Its body has begun.
    MidBody,
    /// The same; told to go on, it ends only when it learns that its lease is lost.
    UntilLost,
    /// Its body has ended; the outcome is about to be sent.
    AfterBody,
    /// The outcome stands; the caller has not heard of it.
    AfterRecording,
    /// The reconciling function was asked, and has not answered.
    MidAsk,
}

/// No test by itself: the entrance of the processes that the tests start, which name their role in
/// the environment.
#[test]
fn child() {
    let Ok(role) = env::var(ROLE) else { return };
    let role = serde_json::from_str(&role).expect("a role");
    runtime_here().block_on(play(role));
    exit(0);
}

async fn play(role: Role) {
    let mut parent = listen();
    match role {
        Role::Call(job, point) => call(job, point, &mut parent).await,
        Role::Crowd(job, callers) => crowd(job, callers, &mut parent).await,
        Role::Visit(job) => visit(job).await,
        Role::Stream(job) => stream(job).await,
        Role::Transfer(transfer) => transfer.stop().await,
        Role::Saga(saga) => saga.stop(&mut parent).await,
        Role::Numbers(numbers) => numbers.deliver().await,
        #[cfg(target_os = "linux")]
        Role::Backlog(backlog) => backlog.deliver().await,
        Role::Outbox(staff) => staff.work().await,
    }
}

async fn call(job: Job, point: Point, parent: &mut mpsc::UnboundedReceiver<String>) {
    let gate = Gate::new();
    let store = FaultyStore::new(job.open().await);
    let mut stops = Stops::default();
    let stop = |operation, fault: fn(Gate) -> Fault| {
        store.fault(operation, On::Call(1), fault(gate.clone()));
    };
    match point {
        Point::BeforeClaim => stop(StoreOperation::Claim, Fault::Delay),
        Point::AfterClaim => stop(StoreOperation::Claim, Fault::DelayAnswer),
        Point::MidBody => stops.in_body = Some(gate.clone()),
        Point::UntilLost => {
            stops.in_body = Some(gate.clone());
            stops.until_lost = true;
        }
        Point::AfterBody => stop(StoreOperation::Ending, Fault::Delay),
        // A swap that comes after a heartbeat is refused and sent again, so the store cannot tell
        // which one will stand.
        Point::AfterRecording => {}
        Point::MidAsk => stops.in_ask = Some(gate.clone()),
    }
    let idempotency = match point {
        Point::AfterRecording => Idempotency::builder(store)
            .observer(StopWhenRecorded)
            .build(),
        _ => Idempotency::builder(store).build(),
    };
    let idempotency = idempotency.expect("a handle");
    let call = spawn(async move { job.call(&idempotency, &stops).await });
    gate.arrived(1).await;
    say(&"stopped");
    parent.recv().await;
    gate.open();
    say(&call.await.expect("the call ends"));
}

/// Holds the call, with its whole thread, between the store's answer and the answer to the caller.
pub(super) struct StopWhenRecorded;

impl Observer for StopWhenRecorded {
    fn transition(&self, transition: &RecordEvent<'_>) {
        if transition.change == RecordChange::Recorded {
            say(&"stopped");
            loop {
                std::thread::park();
            }
        }
    }
}

async fn crowd(job: Job, callers: usize, parent: &mut mpsc::UnboundedReceiver<String>) {
    let idempotency = Idempotency::new(job.open().await);
    say(&"stopped");
    parent.recv().await;
    let mut calls = JoinSet::new();
    for _ in 0..callers {
        let (job, idempotency) = (job.clone(), idempotency.clone());
        calls.spawn(async move { job.call(&idempotency, &Stops::default()).await });
    }
    say(&calls.join_all().await);
}

async fn visit(job: Job) {
    let idempotency = Idempotency::new(job.open().await);
    let came = job.call_at_once(&idempotency, &Stops::default()).await;
    say(&(came, SystemTime::now()));
}

async fn stream(job: Job) {
    let idempotency = Idempotency::new(job.open().await);
    say(&"stopped");
    for number in 0.. {
        let job = Job {
            key: format!("{}-{number}", job.key),
            ..job.clone()
        };
        job.call(&idempotency, &Stops::default()).await;
    }
}

/// Tells the parent something. The test harness writes to standard output as well, hence the mark.
pub(super) fn say(what: &impl Serialize) {
    let what = serde_json::to_string(what).expect("JSON");
    let mut output = io::stdout().lock();
    writeln!(output, "\n@{what}")
        .and_then(|()| output.flush())
        .expect("the parent listens");
}

/// The words of the parent, line by line. When the parent is gone, this process ends as well.
fn listen() -> mpsc::UnboundedReceiver<String> {
    let (heard, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            let _ = heard.send(line);
        }
        exit(1);
    });
    lines
}
