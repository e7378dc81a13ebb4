//! Several processes with one journal: the answer to one does not tell what another one did.

use std::{sync::Arc, time::Duration};

use idempotent_client::{
    ClientCall, ClientError, ClientJournal, IdempotencyKeys, KeyStatus, MemoryJournal, Origin,
    PendingCall, Profile, StopReason,
};
use idempotent_runtime::testing::{Gate, ManualClock};
use tokio::task::JoinHandle;

use crate::{
    journal::{journals, process_with},
    kit::{Answer, Ending, Process, Server, Step, answer, outcome, problem, unfinished, wish},
};

fn process(journal: &Arc<dyn ClientJournal>, clock: &ManualClock) -> Process {
    process_with(Arc::clone(journal), clock)
}

/// One of them sends, and is told only later that nothing came of it. The other one takes the call
/// up meanwhile, and loses its answer.
#[tokio::test]
async fn cl33_what_another_process_took_up_is_not_forgotten_by_who_was_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for journal in journals(&folder).await {
        for refusal in [answer(401), problem(503, "idempotency-overloaded")] {
            let clock = ManualClock::new();
            let gate = Gate::new();
            let refused = Step::AnswerBehind(gate.clone(), refusal);
            let server = Server::doing([refused, Step::Cut]).await;
            let first = process(&journal, &clock);
            let second = process(&journal, &clock);
            let call = tokio::spawn(first.charge(&server).send());
            gate.arrived(1).await;
            let ended = second.charge(&server).send().await;
            ended.unknown();

            gate.open();
            let _ = call.await.expect("it ends");

            assert_eq!(second.open().await, 1, "it may have been carried out");
            let other = first.charge(&server).body("other").send().await;
            other.is_another_request();
            let resumed = second.charge(&server).send().await;
            assert_eq!(resumed.expect("an answer").status(), 200);
            assert_eq!(second.open().await, 0);
        }
    }
}

/// One of them is told that nothing came of its call, and is not to see it sent after that. The
/// other one sent nothing meanwhile, because it wanted something else, or had no time left. It has
/// nothing to do with the call.
#[tokio::test]
async fn cl33_what_another_process_was_refused_is_forgotten_by_who_began_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let late = wish().deadline(Duration::ZERO);
    for journal in journals(&folder).await {
        for (body, wish) in [("other", wish()), ("pay", late.clone())] {
            let clock = ManualClock::new();
            let gate = Gate::new();
            let refused = Step::AnswerBehind(gate.clone(), problem(503, "idempotency-overloaded"));
            let server = Server::doing([refused]).await;
            let first = process(&journal, &clock);
            let second = process(&journal, &clock);
            let call = tokio::spawn(first.charge(&server).send());
            gate.arrived(1).await;
            let unsent = second
                .post(&server)
                .body(body)
                .with_extension(wish)
                .send()
                .await;
            assert!(
                matches!(
                    unsent.ending(),
                    ClientError::KeyReusedLocally { .. }
                        // A file does not answer before a deadline that is over.
                        | ClientError::Journal { .. }
                        | ClientError::Unknown {
                            why: StopReason::Deadline,
                            ..
                        }
                ),
                "{unsent:?}"
            );

            gate.open();
            let ended = call.await.expect("it ends");

            assert!(
                matches!(ended.ending(), ClientError::Exhausted { .. }),
                "{ended:?}"
            );
            assert_eq!(server.seen().len(), 1);
            assert_eq!(first.open().await, 0, "it is not sent any more");
        }
    }
}

/// Answers by which a caller would know that nothing happened.
pub(crate) fn refusals() -> [Answer; 2] {
    [problem(503, "idempotency-overloaded"), answer(403)]
}

/// A call that one process is making, and another one has found in their journal.
struct Listed {
    server: Server,
    /// Holds the answer back.
    gate: Gate,
    one: Process,
    other: Process,
    asked: JoinHandle<reqwest_middleware::Result<reqwest::Response>>,
    open: PendingCall,
}

impl Listed {
    /// The server will answer so, and every later request is cut off.
    async fn behind(answer: Answer, call: ClientCall) -> Self {
        let gate = Gate::new();
        let first = Step::AnswerBehind(gate.clone(), answer);
        let server = Server::doing([first, Step::Cut]).await;
        let journal: Arc<dyn ClientJournal> = Arc::new(MemoryJournal::new());
        let one = process(&journal, &ManualClock::new());
        let other = process(&journal, &ManualClock::new());
        let asked = tokio::spawn(one.post(&server).with_extension(call).send());
        server.await_requests(1).await;
        let open = unfinished(&other.keys).await.remove(0);
        Self {
            server,
            gate,
            one,
            other,
            asked,
            open,
        }
    }

    /// The other process takes up the call, too, and hears nothing.
    async fn is_lost_by_the_other(&self) {
        let resumed = self.open.request(&self.other.client);
        let lost = resumed.expect("it can be sent").send().await;
        lost.unknown();
    }
}

/// Another process took up the call, and this process does not know what the other one does.
#[tokio::test]
async fn cl39_nobody_is_told_that_a_call_did_nothing_that_another_process_took_up() {
    for refusal in refusals() {
        let listed = Listed::behind(refusal.clone(), wish()).await;
        listed.is_lost_by_the_other().await;
        let Listed {
            server: _server,
            gate,
            one,
            asked,
            ..
        } = listed;

        gate.open();
        let ended = asked.await.expect("no panic");

        let (why, call) = ended.unknown();
        assert_eq!(why, StopReason::Journal, "{refusal:?}");
        assert!(call.answer.is_some(), "{refusal:?}");
        assert_eq!(one.open().await, 1, "it can be resumed");
    }
}

/// A caller that was told that nothing happened may have done something else since.
#[tokio::test]
async fn cl39_what_was_withdrawn_since_it_was_listed_is_not_sent() {
    for refusal in refusals() {
        let listed = Listed::behind(refusal, ClientCall::new()).await;
        let Listed {
            server,
            gate,
            one,
            other,
            asked,
            open,
        } = listed;
        gate.open();
        let told = asked.await.expect("no panic");
        match &told {
            Ok(answer) => assert_eq!(outcome(answer).key_status, KeyStatus::Unsaid),
            Err(_) => assert!(matches!(told.ending(), ClientError::Exhausted { .. })),
        }

        let resumed = open.request(&other.client).expect("it was open");
        let resumed = resumed.send().await;

        let ended = resumed.ending();
        assert!(matches!(ended, ClientError::Withdrawn { .. }), "{ended:?}");
        assert_eq!(ended.key(), Some(open.key()));
        assert_eq!(server.keys().len(), 1);
        assert_eq!(one.open().await, 0);
    }
}

/// Its key is random, so that only the process that took it up would ask for it again. That process
/// was told nothing.
#[tokio::test]
async fn cl08_what_was_answered_is_not_open_though_another_process_took_it_up() {
    let listed = Listed::behind(answer(201), ClientCall::new()).await;
    listed.is_lost_by_the_other().await;
    let Listed {
        server,
        gate,
        one,
        other,
        asked,
        open,
    } = listed;

    gate.open();
    asked.await.expect("no panic").expect("an answer");

    assert_eq!(one.open().await, 0);
    let again = open.request(&other.client).expect("it was open");
    let again = again.send().await.expect("an answer");
    assert_eq!(outcome(&again).origin, Origin::Journal);
    assert_eq!(server.keys().len(), 2);
}

/// A call that ended since it was listed is answered from the journal.
#[tokio::test]
async fn cl08_what_ended_since_it_was_listed_is_not_sent() {
    let listed = Listed::behind(answer(201), wish()).await;
    let Listed {
        server,
        gate,
        other,
        asked,
        open,
        ..
    } = listed;
    gate.open();
    asked.await.expect("no panic").expect("an answer");

    let resumed = open.request(&other.client).expect("it was open");
    let resumed = resumed.send().await.expect("an answer");

    assert_eq!(outcome(&resumed).origin, Origin::Journal);
    assert_eq!(server.keys().len(), 1);
}

/// The first caller may have changed the same thing again since. A method that may be repeated
/// would take that back.
#[tokio::test]
async fn cl08_what_ended_since_it_was_listed_is_not_sent_by_another_token_because_of_its_method() {
    let gate = Gate::new();
    let first = Step::AnswerBehind(gate.clone(), answer(200));
    let server = Server::doing([first]).await;
    let journal: Arc<dyn ClientJournal> = Arc::new(MemoryJournal::new());
    let [one, other] = [(); 2].map(|()| {
        let keys = IdempotencyKeys::builder(Profile::undeclared());
        Process::of(keys.journal(Arc::clone(&journal)))
    });
    let asked = one.client.put(server.url("/order")).body("order");
    let asked = tokio::spawn(asked.bearer_auth("one").with_extension(wish()).send());
    server.await_requests(1).await;
    let open = unfinished(&other.keys).await;
    gate.open();
    asked.await.expect("no panic").expect("an answer");

    let resumed = open[0].request(&other.client).expect("it was open");
    let resumed = resumed.bearer_auth("other").send().await;

    let ended = resumed.ending();
    assert!(matches!(ended, ClientError::Withdrawn { .. }), "{ended:?}");
    assert_eq!(server.keys().len(), 1);
}
