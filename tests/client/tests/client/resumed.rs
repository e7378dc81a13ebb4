//! Calls that no journal keeps. The process remembers one that may have been done, for a caller
//! that sends it again with its key.

use std::time::Duration;

use http::{Extensions, Method};
use idempotent_client::{ClientCall, ClientError, ClientKey, IdempotencyKeys, Profile, StopReason};
use idempotent_runtime::testing::ManualClock;

use crate::kit::{Ending, Pauses, Process, Server, Step, answer, patient, problem, unfinished};

fn process(profile: Profile) -> Process {
    trying(profile, 1, &ManualClock::new())
}

fn trying(profile: Profile, attempts: u32, clock: &ManualClock) -> Process {
    let keys = IdempotencyKeys::builder(profile)
        .timer(Pauses::default())
        .limits(patient().attempts(attempts))
        .clock(clock.clone());
    Process::of(keys)
}

type Answered = reqwest_middleware::Result<reqwest::Response>;

impl Process {
    async fn send(&self, server: &Server, call: ClientCall) -> Answered {
        self.post(server).with_extension(call).send().await
    }

    /// The key of a call whose answer is lost.
    async fn lost(&self, server: &Server) -> ClientKey {
        let ended = self.send(server, ClientCall::new()).await;
        why(&ended);
        let key = ended.ending().key();
        key.expect("it was sent with one").clone()
    }

    async fn resume_by(&self, server: &Server, key: &ClientKey) -> Answered {
        self.send(server, ClientCall::new().key(key.clone())).await
    }
}

#[track_caller]
fn why(ended: &Answered) -> StopReason {
    ended.unknown().0
}

/// A caller that is told that it did not happen may do it in another way.
#[tokio::test]
async fn cl39_who_resumes_a_call_by_its_key_is_not_told_that_it_was_not_done() {
    let refusals = [
        (problem(503, "idempotency-overloaded"), StopReason::Attempts),
        (answer(401), StopReason::Refused),
    ];
    for (refusal, told) in refusals {
        let server = Server::doing([Step::Cut, refusal.clone().into()]).await;
        let process = process(Profile::ietf());
        let key = process.lost(&server).await;

        let refused = process.resume_by(&server, &key).await;

        assert_eq!(why(&refused), told, "{refusal:?}");
        assert_eq!(unfinished(&process.keys).await.len(), 1, "{refusal:?}");
        let known = process.resume_by(&server, &key).await;
        assert_eq!(known.expect("an answer").status(), 200);
        server.requests_with_one_key();
    }
}

#[tokio::test]
async fn cl39_who_retries_outside_is_not_told_that_it_was_not_done() {
    let overloaded = problem(503, "idempotency-overloaded");
    let server = Server::doing([Step::Cut, overloaded.into()]).await;
    let process = process(Profile::ietf());
    let mut extensions = Extensions::new();
    for _ in 0..2 {
        let request = identical(&process, &server);
        let sent = process
            .client
            .execute_with_extensions(request, &mut extensions);
        why(&sent.await);
    }
    let keys = server.keys();
    assert_eq!(keys[0], keys[1]);
}

fn identical(process: &Process, server: &Server) -> reqwest::Request {
    let request = process.client.request(Method::POST, server.url("/pay"));
    request.body("pay").build().expect("a request")
}

#[tokio::test]
async fn cl36_a_key_grows_old_from_when_it_was_made() {
    let server = Server::doing([Step::Cut]).await;
    let clock = ManualClock::new();
    let process = trying(Profile::ietf(), 1, &clock);
    let key = process.lost(&server).await;
    clock.advance(Duration::from_secs(24 * 60 * 60));

    assert_eq!(
        why(&process.resume_by(&server, &key).await),
        StopReason::Age
    );

    assert_eq!(server.seen().len(), 1, "the server may have forgotten it");
    assert_eq!(
        why(&process.resume_by(&server, &key).await),
        StopReason::Age
    );
}

#[tokio::test]
async fn cl22_what_may_have_been_done_is_not_resumed_where_nobody_knows_of_keys() {
    let server = Server::doing([Step::Cut]).await;
    let process = process(Profile::undeclared());
    let key = process.lost(&server).await;
    for _ in 0..2 {
        assert_eq!(
            why(&process.resume_by(&server, &key).await),
            StopReason::Undeclared
        );
    }
    assert_eq!(server.seen().len(), 1, "it would be done twice");
}

/// A call whose end is known is over, and its key is a key like any other.
#[tokio::test]
async fn cl39_a_call_that_came_to_its_end_leaves_nothing_open() {
    for first in [
        answer(201),
        answer(401),
        problem(503, "idempotency-overloaded"),
    ] {
        let server = Server::doing([first.clone(), answer(401)]).await;
        let process = process(Profile::ietf());
        process.send(&server, ClientCall::new()).await.ok();
        let sent = server.keys()[0].clone().expect("it has a key");
        let key = ClientKey::new(sent.trim_matches('"')).expect("a key");

        let refused = process.resume_by(&server, &key).await;

        assert_eq!(refused.expect("an answer").status(), 401, "{first:?}");
    }
}

#[tokio::test]
async fn cl39_a_call_that_was_forgotten_is_not_known_any_more() {
    let server = Server::doing([Step::Cut, answer(401).into(), answer(401).into()]).await;
    let process = process(Profile::ietf());
    let key = process.lost(&server).await;
    assert_eq!(
        why(&process.resume_by(&server, &key).await),
        StopReason::Refused
    );
    let [open] = &unfinished(&process.keys).await[..] else {
        panic!("it is open")
    };

    process.keys.forget(open).await.expect("it is forgotten");

    let anew = process.resume_by(&server, &key).await;
    assert_eq!(anew.expect("an answer").status(), 401);
}

#[tokio::test]
async fn cl16_a_call_that_is_to_come_later_did_nothing() {
    let later = answer(429).with("retry-after", "3600");
    let server = Server::doing([later, answer(401)]).await;
    let process = trying(Profile::ietf(), 2, &ManualClock::new());
    let ended = process.send(&server, ClientCall::new()).await;
    let ClientError::RetryLater { call, .. } = ended.ending() else {
        panic!("{ended:?}")
    };

    let refused = process.resume_by(&server, &call.key).await;

    assert_eq!(refused.expect("an answer").status(), 401);
}

/// The attempt that is to come later is another one, and says nothing of the one whose answer was
/// lost.
#[tokio::test]
async fn cl16_a_call_that_is_to_come_later_and_may_have_been_done_is_still_known() {
    let later = answer(429).with("retry-after", "3600");
    let server = Server::doing([Step::Cut, later.into(), answer(401).into()]).await;
    let process = trying(Profile::ietf(), 3, &ManualClock::new());
    let ended = process.send(&server, ClientCall::new()).await;
    let ClientError::RetryLater { call, .. } = ended.ending() else {
        panic!("{ended:?}")
    };

    let refused = process.resume_by(&server, &call.key).await;

    assert_eq!(why(&refused), StopReason::Refused);
}
