//! A call ends at its deadline, whether its journal answers or not.

use std::{future::pending, sync::Arc, time::Duration};

use async_trait::async_trait;
use idempotent_client::{
    ClientCall, ClientError, ClientJournal, IdempotencyKeys, MemoryJournal, Origin, Profile,
    StopReason,
    journal::{CorruptEntry, Ending as CallSummary, Entry, EntryId},
};
use idempotent_runtime::{StoreError, StoreErrorKind, record::Time, testing::Gate};
use reqwest_middleware::{Middleware, Next};
use tokio::{task::JoinHandle, time::Instant};

use crate::{
    kit::{
        Answer, Ending, Process, Server, Step, Timeout, answer, nobody, outcome, patient, problem,
        unfinished, wish,
    },
    sharing::refusals,
};

mod sqlite;

const DEADLINE: Duration = Duration::from_secs(10);

type Answered = reqwest_middleware::Result<reqwest::Response>;

/// A journal that holds back one kind of work, until the test lets it pass.
#[derive(Debug)]
struct Slow {
    journal: MemoryJournal,
    held: Held,
    gate: Gate,
    /// Whatever was written has arrived here.
    written: Gate,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Held {
    Begin,
    Find,
    TakeUp,
    Finish,
    Withdraw,
}

impl Slow {
    fn new(held: Held) -> Arc<Self> {
        let written = Gate::new();
        written.open();
        Arc::new(Self {
            journal: MemoryJournal::new(),
            held,
            gate: Gate::new(),
            written,
        })
    }

    async fn before(&self, work: Held) {
        if work == self.held {
            self.gate.pass().await;
        }
    }
}

#[async_trait]
impl ClientJournal for Slow {
    async fn begin(&self, entry: &Entry) -> Result<Option<Entry>, StoreError> {
        self.before(Held::Begin).await;
        let standing = self.journal.begin(entry).await;
        self.written.pass().await;
        standing
    }

    async fn find(&self, id: &EntryId) -> Result<Option<Entry>, StoreError> {
        self.before(Held::Find).await;
        self.journal.find(id).await
    }

    async fn take_up(
        &self,
        id: &EntryId,
        seen: Option<&[u8; 16]>,
        begun: &[u8; 16],
    ) -> Result<bool, StoreError> {
        self.before(Held::TakeUp).await;
        self.journal.take_up(id, seen, begun).await
    }

    async fn finish(
        &self,
        id: &EntryId,
        caller: &[u8; 32],
        ending: &CallSummary,
    ) -> Result<(), StoreError> {
        self.before(Held::Finish).await;
        let finished = self.journal.finish(id, caller, ending).await;
        self.written.pass().await;
        finished
    }

    async fn withdraw(&self, id: &EntryId, begun: Option<&[u8; 16]>) -> Result<bool, StoreError> {
        self.before(Held::Withdraw).await;
        let withdrawn = self.journal.withdraw(id, begun).await;
        self.written.pass().await;
        withdrawn
    }

    async fn forget(&self, id: &EntryId) -> Result<(), StoreError> {
        self.journal.forget(id).await
    }

    async fn unfinished(&self, limit: u32) -> Result<Vec<Result<Entry, CorruptEntry>>, StoreError> {
        self.journal.unfinished(limit).await
    }

    async fn purge(&self, before: Time, limit: u32) -> Result<u64, StoreError> {
        self.journal.purge(before, limit).await
    }
}

/// A client whose `which`-th wait for its deadline is over when the test says so.
struct Late {
    process: Process,
    deadline: Gate,
}

impl Late {
    fn of(journal: impl ClientJournal, which: usize) -> Self {
        let deadline = Gate::new();
        let keys = IdempotencyKeys::builder(Profile::ietf())
            .limits(patient().attempts(1).deadline(DEADLINE))
            .timer(Timeout::of(DEADLINE, which, &deadline))
            .journal(journal);
        Self {
            process: Process::of(keys),
            deadline,
        }
    }

    fn ask(&self, server: &Server, call: ClientCall) -> JoinHandle<Answered> {
        tokio::spawn(self.process.post(server).with_extension(call).send())
    }

    /// The end of a call whose deadline is over once it waits for the journal.
    async fn ends(&self, call: JoinHandle<Answered>) -> Answered {
        self.deadline.arrived(1).await;
        self.deadline.open();
        let ended = tokio::time::timeout(Duration::from_secs(20), call).await;
        ended.expect("it ends at its deadline").expect("no panic")
    }
}

#[tokio::test]
async fn mend_38_a_call_is_not_sent_if_the_journal_does_not_take_it_by_the_deadline() {
    for call in [wish(), ClientCall::new()] {
        let server = Server::doing([answer(201)]).await;
        let journal = Slow::new(Held::Begin);
        let late = Late::of(Arc::clone(&journal), 1);

        let ended = late.ends(late.ask(&server, call)).await;

        let ClientError::Journal { source, .. } = ended.ending() else {
            panic!("{ended:?}")
        };
        assert_eq!(source.kind(), StoreErrorKind::Unavailable);
        assert!(server.seen().is_empty());
        // Its caller was told that it was not sent.
        journal.gate.open();
        journal.written.arrived(2).await;
        assert_eq!(late.process.open().await, 0);
    }
}

#[tokio::test]
async fn mend_38_a_call_of_another_process_stays_if_it_is_found_after_the_deadline() {
    let server = Server::doing([Step::Hang]).await;
    let journal = Slow::new(Held::Begin);
    journal.gate.open();
    let other = Late::of(Arc::clone(&journal), 9);
    let making = other.ask(&server, wish());
    server.await_requests(1).await;
    journal.gate.close();
    let late = Late::of(Arc::clone(&journal), 1);

    let ended = late.ends(late.ask(&server, wish())).await;

    assert!(matches!(ended.ending(), ClientError::Journal { .. }));
    journal.gate.open();
    journal.written.arrived(2).await;
    assert_eq!(late.process.open().await, 1);
    making.abort();
}

#[tokio::test]
async fn mend_38_an_open_call_is_unknown_if_it_is_not_taken_up_by_the_deadline() {
    let server = Server::doing([Step::Cut]).await;
    let late = Late::of(Slow::new(Held::TakeUp), 2);
    let lost = late.ask(&server, wish()).await.expect("no panic");
    lost.unknown();

    let ended = late.ends(late.ask(&server, wish())).await;

    assert_eq!(ended.unknown().0, StopReason::Deadline);
    assert_eq!(server.seen().len(), 1);
    assert_eq!(late.process.open().await, 1);
}

#[tokio::test]
async fn mend_38_a_listed_call_is_not_sent_if_it_is_not_found_by_the_deadline() {
    let server = Server::doing([Step::Cut]).await;
    let late = Late::of(Slow::new(Held::Find), 2);
    let lost = late.ask(&server, wish()).await.expect("no panic");
    lost.unknown();
    let open = unfinished(&late.process.keys).await.remove(0);

    let again = open.request(&late.process.client).expect("it can be sent");
    let ended = late.ends(tokio::spawn(again.send())).await;

    assert!(matches!(ended.ending(), ClientError::Journal { .. }));
    assert_eq!(server.seen().len(), 1);
    assert_eq!(late.process.open().await, 1);
}

/// The server's answer is in hand, so it is handed on. It is recorded when the journal answers.
#[tokio::test]
async fn mend_38_an_answer_that_is_not_recorded_by_the_deadline_is_handed_on_with_a_note() {
    let server = Server::doing([answer(201)]).await;
    let journal = Slow::new(Held::Finish);
    let late = Late::of(Arc::clone(&journal), 2);

    let ended = late.ends(late.ask(&server, wish())).await;

    let response = ended.expect("an answer");
    assert_eq!(response.status(), 201);
    assert!(outcome(&response).unrecorded);
    let meanwhile = late.ask(&server, wish()).await.expect("no panic");
    assert!(matches!(meanwhile.ending(), ClientError::InFlight { .. }));
    journal.gate.open();
    journal.written.arrived(2).await;
    let again = late.ask(&server, wish()).await.expect("no panic");
    let again = again.expect("an answer");
    assert_eq!(outcome(&again).origin, Origin::Journal);
    assert!(!outcome(&again).unrecorded);
    assert_eq!(server.seen().len(), 1);
}

/// The journal keeps nothing of a random key once its call is over.
#[tokio::test]
async fn mend_38_an_answer_to_a_random_key_is_handed_on_with_a_note() {
    let server = Server::doing([answer(201)]).await;
    let journal = Slow::new(Held::Withdraw);
    let late = Late::of(Arc::clone(&journal), 2);

    let ended = late.ends(late.ask(&server, ClientCall::new())).await;

    assert!(outcome(&ended.expect("an answer")).unrecorded);
    journal.gate.open();
    journal.written.arrived(2).await;
    assert_eq!(late.process.open().await, 0);
}

#[tokio::test]
async fn mend_38_an_ending_without_an_answer_has_the_note_too() {
    for told in [
        problem(422, "idempotency-key-reused"),
        problem(409, "idempotency-result-expired"),
    ] {
        let server = Server::doing([told]).await;
        let late = Late::of(Slow::new(Held::Finish), 2);

        let ended = late.ends(late.ask(&server, wish())).await;

        assert!(matches!(
            ended.ending(),
            ClientError::KeyReused { .. } | ClientError::ResultGone { .. }
        ));
        let call = ended.ending().call().expect("how it went");
        assert!(call.unrecorded, "{ended:?}");
        assert!(call.answer.is_some(), "{ended:?}");
    }
}

/// It may stay in the journal, so it may be sent from there.
#[tokio::test]
async fn mend_38_a_call_that_did_nothing_is_unknown_if_it_is_not_withdrawn_by_the_deadline() {
    let overloaded: Answer = problem(503, "idempotency-overloaded");
    for refusal in refusals().into_iter().chain([overloaded]) {
        let server = Server::doing([refusal]).await;
        let journal = Slow::new(Held::Withdraw);
        let late = Late::of(Arc::clone(&journal), 2);

        let ended = late.ends(late.ask(&server, wish())).await;

        let (why, call) = ended.unknown();
        assert_eq!(why, StopReason::Journal);
        assert!(call.answer.is_some(), "the server's answer is in hand");
        journal.gate.open();
        journal.written.arrived(2).await;
        assert_eq!(late.process.open().await, 0);
    }
    let late = Late::of(Slow::new(Held::Withdraw), 2);
    let unheard = late
        .process
        .client
        .post(format!("http://{}/pay", nobody().await));
    let ended = late.ends(tokio::spawn(unheard.body("pay").send())).await;
    let (why, call) = ended.unknown();
    assert_eq!(why, StopReason::Journal);
    assert!(call.failure.is_some());
}

/// Answers without a socket, so that tokio's own clock stands still while nothing else happens.
struct Answers;

#[async_trait]
impl Middleware for Answers {
    async fn handle(
        &self,
        _: reqwest::Request,
        _: &mut http::Extensions,
        _: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        let response = http::Response::builder().status(201).body("");
        Ok(response.expect("a response").into())
    }
}

/// A journal that hangs for ever keeps no call in memory for ever.
#[tokio::test(start_paused = true)]
async fn mend_38_late_work_is_given_up_after_a_minute() {
    for held in [Held::Begin, Held::Finish] {
        let journal = Slow::new(held);
        let keys = IdempotencyKeys::builder(Profile::ietf()).journal(Arc::clone(&journal));
        let process = Process::around(keys, Answers);
        let before = Instant::now();
        let call = process.client.post("http://api.example.com/pay");
        let call = call.with_extension(wish().deadline(DEADLINE));

        drop(call.body("pay").send().await);

        assert_eq!(before.elapsed(), DEADLINE);
        drop(process);
        assert!(Arc::strong_count(&journal) > 1, "it goes on");
        let minute = Duration::from_secs(61);
        drop(tokio::time::timeout(minute, pending::<()>()).await);
        assert_eq!(Arc::strong_count(&journal), 1, "{held:?}");
    }
}

#[test]
fn mend_38_late_work_keeps_no_runtime_from_its_end() {
    for held in [Held::Begin, Held::Finish] {
        let journal = Slow::new(held);
        let runtime = sqlite::runtime();
        runtime.block_on(async {
            let server = Server::doing([answer(201)]).await;
            let late = Late::of(Arc::clone(&journal), 1 + usize::from(held == Held::Finish));
            drop(late.ends(late.ask(&server, wish())).await);
        });

        drop(runtime);

        assert_eq!(Arc::strong_count(&journal), 1, "{held:?}");
    }
}
