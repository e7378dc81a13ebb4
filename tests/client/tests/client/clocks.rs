//! How old a key is when clocks stand still or go wrong.

use std::{sync::Arc, time::Duration};

use idempotent_client::{
    ClientCall, ClientError, ClientJournal, IdempotencyKeys, MemoryJournal, Profile, Resend,
    StopReason,
};
use idempotent_runtime::{
    clock::Clock,
    testing::{Gate, ManualClock},
};

use crate::kit::{
    Ending, Pauses, Process, Server, Step, answer, builder, outcome, patient, unfinished, wish,
};

const HOUR: Duration = Duration::from_secs(3_600);

fn process(attempts: u32, pauses: &Pauses, clock: &ManualClock) -> Process {
    process_with(MemoryJournal::new(), attempts, pauses, clock)
}

fn process_with(
    journal: impl ClientJournal,
    attempts: u32,
    pauses: &Pauses,
    clock: &ManualClock,
) -> Process {
    let keys = builder(pauses)
        .limits(patient().attempts(attempts))
        .journal(journal)
        .clock(clock.clone());
    Process::of(keys)
}

#[track_caller]
fn is_too_old(ended: &reqwest_middleware::Result<reqwest::Response>) {
    assert_eq!(ended.unknown().0, StopReason::Age);
}

/// While a machine sleeps its timers stand still, and the server's time goes on.
#[tokio::test]
async fn cl36_a_key_that_gets_old_while_the_machine_sleeps_is_not_sent_again() {
    let clock = ManualClock::new();
    let (in_a_pause, in_an_attempt) = (Gate::new(), Gate::new());
    let waits = Step::AnswerBehind(in_an_attempt.clone(), answer(500));
    for (step, gate, pauses) in [
        (answer(500).into(), &in_a_pause, Pauses::behind(&in_a_pause)),
        (waits, &in_an_attempt, Pauses::default()),
    ] {
        let server = Server::doing([step]).await;
        let process = process(4, &pauses, &clock);
        let call = tokio::spawn(process.charge(&server).send());
        gate.arrived(1).await;

        clock.advance(24 * HOUR);
        gate.open();

        is_too_old(&call.await.expect("it ends"));
        assert_eq!(server.seen().len(), 1);
    }
}

/// The key is as old as when the process before this one made it. It does not matter how much of
/// that time this process has seen.
#[tokio::test]
async fn cl36_a_key_of_an_earlier_process_gets_old_while_the_machine_sleeps() {
    let (clock, gate) = (ManualClock::new(), Gate::new());
    let journal = Arc::new(MemoryJournal::new());
    let server = Server::doing([Step::Cut, answer(500).into()]).await;
    let first = process_with(Arc::clone(&journal), 1, &Pauses::default(), &clock);
    first.charge(&server).send().await.expect_err("it is cut");
    clock.advance(20 * HOUR);
    let second = process_with(journal, 4, &Pauses::behind(&gate), &clock);
    let call = tokio::spawn(second.charge(&server).send());
    gate.arrived(1).await;

    clock.advance(5 * HOUR);
    gate.open();

    is_too_old(&call.await.expect("it ends"));
    assert_eq!(server.seen().len(), 2);
}

/// The clock is set again and again, and time passes nevertheless.
#[tokio::test]
async fn cl36_a_key_gets_old_also_by_a_clock_that_stands_still() {
    let busy = answer(503).with("retry-after", "30");
    let server = Server::doing([busy.clone(), busy]).await;
    let profile = Profile::ietf().retention(Duration::from_secs(100));
    let keys = IdempotencyKeys::builder(profile)
        .limits(patient())
        .timer(Pauses::default())
        .clock(ManualClock::new());
    let client = keys.client(reqwest::Client::builder()).expect("a client");

    is_too_old(&client.post(server.url("/pay")).body("pay").send().await);

    assert_eq!(server.seen().len(), 2);
}

/// The clock was set back since the key was made, so the key's age cannot be known.
#[tokio::test]
async fn cl36_a_key_from_the_future_is_not_sent_again() {
    let clock = ManualClock::new();
    let start = Clock::now(&clock);
    let made = 2 * HOUR;
    clock.step(start.plus(made));
    let server = Server::doing([Step::Cut]).await;
    let process = process(1, &Pauses::default(), &clock);
    process.charge(&server).send().await.expect_err("it is cut");

    clock.step(start.plus(made - HOUR));
    let open = unfinished(&process.keys).await;
    assert_eq!(open[0].replay_plan(), Resend::TooOld);
    is_too_old(&process.charge(&server).send().await);
    assert_eq!(server.seen().len(), 1);

    // Clocks differ by so much.
    clock.step(start.plus(made - Duration::from_secs(300)));
    let open = unfinished(&process.keys).await;
    assert_eq!(open[0].replay_plan(), Resend::Possible);
    let response = process.charge(&server).send().await.expect("an answer");
    assert_eq!(outcome(&response).attempts, 1);
}

/// A caller that has no time left is better off with a call that was not done than with one whose
/// outcome is unknown.
#[tokio::test]
async fn cl29_nothing_is_sent_after_the_deadline() {
    let server = Server::doing([Step::Cut]).await;
    let process = process(1, &Pauses::default(), &ManualClock::new());
    let late = |call: ClientCall| {
        let post = process.post(&server);
        post.with_extension(call.deadline(Duration::ZERO)).send()
    };

    let ended = late(wish()).await;
    let why = StopReason::Deadline;
    assert!(
        matches!(ended.ending(), ClientError::Exhausted { why: told, .. } if *told == why),
        "{ended:?}"
    );
    let ended = late(ClientCall::new().without_key()).await;
    assert!(matches!(ended.ending(), ClientError::TimedOut), "{ended:?}");
    assert!(server.seen().is_empty());
    assert_eq!(process.open().await, 0);

    assert!(process.charge(&server).send().await.is_err(), "it was cut");
    let ended = late(wish()).await;
    assert_eq!(ended.unknown().0, why);
    assert_eq!(server.seen().len(), 1);
    assert_eq!(process.open().await, 1);
}
