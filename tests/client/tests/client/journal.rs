//! Keys and outcomes that outlive a call, a task and a process.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use idempotent_client::{
    ClientCall, ClientError, ClientJournal, IdempotencyKeys, Intent, MemoryJournal, Origin,
    Profile, Resend, SqliteJournal, StopReason,
};
use idempotent_runtime::{
    clock::Clock,
    testing::{Gate, ManualClock},
};
use tempfile::TempDir;

use crate::kit::{
    Ending, Pauses, Process, Server, Step, answer, builder, nobody, outcome, patient, problem,
    unfinished, wish,
};

const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) async fn process(file: &Path, clock: &ManualClock) -> Process {
    let journal = SqliteJournal::open(file).await.expect("a journal");
    process_with(journal, clock)
}

pub(crate) fn process_with(journal: impl ClientJournal, clock: &ManualClock) -> Process {
    let keys = builder(&Pauses::default())
        .limits(patient().attempts(1))
        .journal(journal)
        .clock(clock.clone());
    Process::of(keys)
}

/// A journal of each kind.
pub(crate) async fn journals(folder: &TempDir) -> [Arc<dyn ClientJournal>; 2] {
    let file = SqliteJournal::open(folder.path().join("calls.db")).await;
    [
        Arc::new(MemoryJournal::new()),
        Arc::new(file.expect("a journal")),
    ]
}

#[tokio::test]
async fn cl08_a_restart_sends_the_same_bytes_with_the_same_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("calls.db");
    let clock = ManualClock::new();
    let server = Server::doing([Step::Cut, answer(201).into()]).await;

    let first = process(&file, &clock).await;
    let call = first.client.post(server.url("/pay?now")).body("pay");
    let call = call
        .header("content-type", "text/plain")
        .bearer_auth("secret");
    assert!(call.send().await.is_err());
    drop(first);

    let second = process(&file, &clock).await;
    let open = unfinished(&second.keys).await;
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].replay_plan(), Resend::Possible);
    let call = open[0].request(&second.client).expect("it can be sent");
    let response = call.send().await.expect("an answer");

    assert_eq!(response.status(), 201);
    let seen = server.seen();
    assert_eq!(seen[0].keys(), seen[1].keys());
    assert_eq!(seen[0].body, seen[1].body);
    assert_eq!(
        (&seen[0].method, &seen[0].path),
        (&seen[1].method, &seen[1].path)
    );
    assert_eq!(seen[1].headers["content-type"], "text/plain");
    assert!(
        !seen[1].headers.contains_key("authorization"),
        "it was never written down"
    );
    let bytes = std::fs::read(&file).expect("the file");
    assert!(!bytes.windows(6).any(|piece| piece == b"secret"));
    assert_eq!(second.open().await, 0);
}

#[tokio::test]
async fn cl09_the_journal_is_written_before_the_first_byte_leaves() {
    let clock = ManualClock::new();
    let server = Server::doing([Step::Hang]).await;
    let journal = Arc::new(MemoryJournal::new());
    let process = process_with(Arc::clone(&journal), &clock);
    let call = tokio::spawn(process.post(&server).send());
    server.await_requests(1).await;
    let begun = journal.unfinished(1).await.expect("a list");
    call.abort();

    let entry = begun[0].as_ref().expect("it can be read");
    let sent = server.keys()[0].clone().expect("a key");
    assert_eq!(sent, format!("\"{}\"", entry.id.key.as_str()));
    assert_eq!(entry.method, "POST");
    assert_eq!(entry.url.as_str(), server.url("/pay"));
    assert_eq!(entry.body.as_deref(), Some(&b"pay"[..]));
    assert!(entry.digest.is_some());
    assert_eq!(entry.created, Clock::now(&clock));
    assert_eq!(entry.deadline.since(entry.created), HOUR);
}

#[tokio::test]
async fn cl10_another_body_under_the_same_intent_is_refused_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("calls.db");
    let clock = ManualClock::new();
    for first in [Step::Cut, answer(201).into()] {
        let server = Server::doing([first]).await;
        let one = process(&file, &clock).await;
        let _ = one.charge(&server).send().await;
        let two = process(&file, &clock).await;
        let ended = two.charge(&server).body("other").send().await;
        ended.is_another_request();
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn cl33_a_dropped_call_sends_nothing_more_and_stays_in_the_journal() {
    let clock = ManualClock::new();
    let gate = Gate::new();
    let server = Server::doing([Step::Cut]).await;
    let keys = builder(&Pauses::behind(&gate))
        .journal(MemoryJournal::new())
        .clock(clock.clone());
    let process = Process::of(keys);
    let call = tokio::spawn(process.post(&server).send());
    gate.arrived(1).await;
    assert_eq!(process.open().await, 0, "it is being made");

    call.abort();
    assert!(call.await.is_err());
    gate.open();

    let open = unfinished(&process.keys).await;
    assert_eq!(open.len(), 1);
    let sent = server.keys()[0].clone().expect("a key");
    assert_eq!(sent, format!("\"{}\"", open[0].key().as_str()));
    // The next request of this client is the next that the server sees.
    let again = open[0].request(&process.client).expect("it can be sent");
    again.send().await.expect("an answer");
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn cl36_an_old_key_is_never_sent_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("calls.db");
    let clock = ManualClock::new();
    let server = Server::doing([Step::Cut]).await;
    let process = process(&file, &clock).await;
    let call = || process.charge(&server).send();
    assert!(call().await.is_err());

    clock.advance(24 * HOUR - Duration::from_secs(300));
    let open = unfinished(&process.keys).await;
    assert_eq!(open[0].replay_plan(), Resend::TooOld);
    assert!(open[0].request(&process.client).is_none());
    let ended = call().await;
    assert_eq!(ended.unknown().0, StopReason::Age);
    assert_eq!(server.seen().len(), 1);
}

/// A key that gets old between two attempts is noticed.
#[tokio::test]
async fn cl36_a_key_that_gets_old_on_the_way_is_not_sent_again() {
    let server = Server::doing([answer(500), answer(500)]).await;
    let profile = Profile::ietf().retention(Duration::from_millis(1_400));
    let keys = IdempotencyKeys::builder(profile)
        .limits(patient())
        .timer(Pauses::default());
    let ended = Process::of(keys).post(&server).send().await;
    let (why, call) = ended.unknown();
    assert_eq!(why, StopReason::Age);
    assert_eq!(call.attempts, 2);
}

#[tokio::test]
async fn cl36_an_intent_that_no_journal_saw_is_as_old_as_it_says() {
    let server = Server::doing([answer(201)]).await;
    let clock = ManualClock::new();
    let process = process_with(MemoryJournal::new(), &clock);
    let now = Clock::now(&clock).as_micros().unsigned_abs();
    let began = UNIX_EPOCH + Duration::from_micros(now) - 25 * HOUR;
    let old = Intent::new("payments.charge", "order-42").begun(began);
    let call = process.post(&server);
    let call = call.with_extension(ClientCall::new().intent(old));
    let ended = call.send().await;
    assert_eq!(ended.unknown().0, StopReason::Age);
    assert!(server.seen().is_empty());
    assert_eq!(process.open().await, 0, "it was not sent");
    assert!(SystemTime::now() > began);
}

#[tokio::test]
async fn cl40_one_intent_is_sent_by_one_task_at_a_time() {
    let gate = Gate::new();
    let server = Server::doing([Step::Behind(gate.clone())]).await;
    let process = process_with(MemoryJournal::new(), &ManualClock::new());
    let call = || process.charge(&server).send();
    let first = tokio::spawn(call());
    gate.arrived(1).await;

    let second = call().await;
    assert!(matches!(second.ending(), ClientError::InFlight { .. }));
    gate.open();
    let first = first.await.expect("it ends").expect("an answer");
    assert_eq!(first.status(), 200);
    let again = call().await.expect("an answer");
    assert_eq!(outcome(&again).origin, Origin::Journal);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn cl20_what_was_never_sent_is_not_left_open() {
    let process = process_with(MemoryJournal::new(), &ManualClock::new());
    let call = process.client.post("ftp://api.example.com/pay").body("pay");
    assert!(call.send().await.is_err());
    assert_eq!(process.open().await, 0);
}

#[tokio::test]
async fn cl20_a_call_that_reached_nobody_is_not_left_open_where_its_method_protects_it() {
    let keys = IdempotencyKeys::builder(Profile::undeclared())
        .timer(Pauses::default())
        .limits(patient().attempts(2));
    let process = Process::of(keys);

    let url = format!("http://{}/order", nobody().await);
    let call = process.client.put(url).body("order");
    let ended = call.with_extension(wish()).send().await;

    assert!(ended.is_err(), "{ended:?}");
    assert_eq!(process.open().await, 0);
}

/// No caller can name it again, so the journal would only grow by it.
#[tokio::test]
async fn cl11_of_a_call_with_a_random_key_the_journal_keeps_nothing_once_it_is_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = ManualClock::new();
    let later = Clock::now(&clock).plus(HOUR);
    for journal in journals(&folder).await {
        let reused = problem(422, "idempotency-key-reused");
        let server = Server::doing([answer(201), reused]).await;
        let process = process_with(Arc::clone(&journal), &clock);
        for _ in 0..2 {
            drop(process.post(&server).send().await);
        }
        assert_eq!(process.open().await, 0);
        assert_eq!(journal.purge(later, 9).await, Ok(0));

        let named = process.charge(&server).send().await;
        named.expect("an answer");
        assert_eq!(journal.purge(later, 9).await, Ok(1));
    }
}

/// A caller that was told that nothing happened may have done something else since.
#[tokio::test]
async fn cl39_what_was_reported_as_not_done_is_not_sent_later() {
    let server = Server::doing([problem(503, "idempotency-overloaded")]).await;
    let process = process_with(MemoryJournal::new(), &ManualClock::new());
    let ended = process.post(&server).send().await;
    assert!(matches!(ended.ending(), ClientError::Exhausted { .. }));
    assert_eq!(process.open().await, 0);
}

/// A thousand other calls do not make the server forget less, or this client more.
#[tokio::test]
async fn cl36_a_key_that_many_calls_came_after_is_not_sent_again() {
    let clock = ManualClock::new();
    let server = Server::doing([answer(201)]).await;
    let keys = builder(&Pauses::default()).clock(clock.clone());
    let client = keys.client(reqwest::Client::builder()).expect("a client");
    let ask = |id: String, path: &str| {
        let wish = ClientCall::new().intent(Intent::new("payments.charge", &id));
        let call = client.post(server.url(path)).body("pay");
        call.with_extension(wish).send()
    };
    ask("order-42".into(), "/pay").await.expect("an answer");
    clock.advance(Duration::from_secs(1));
    for number in 0..1_001 {
        ask(number.to_string(), "/other").await.expect("an answer");
    }
    clock.advance(25 * HOUR);
    let again = ask("order-42".into(), "/pay").await.expect("an answer");
    assert_eq!(outcome(&again).origin, Origin::Journal);
    let seen = server.seen();
    assert_eq!(seen.iter().filter(|seen| seen.path == "/pay").count(), 1);
}

/// An attempt of an earlier process may have done the call. That is not forgotten because this one
/// did nothing.
#[tokio::test]
async fn cl08_what_an_earlier_process_may_have_done_stays_unknown() {
    let clock = ManualClock::new();
    let server = Server::doing([Step::Cut, answer(401).into()]).await;
    let process = process_with(MemoryJournal::new(), &clock);
    let call = || process.charge(&server).send();
    assert!(call().await.is_err());
    let ended = call().await;
    let (why, told) = ended.unknown();
    assert_eq!(why, StopReason::Refused);
    assert_eq!(told.answer.as_ref().expect("the refusal").status, 401);
    assert_eq!(process.open().await, 1);
}
