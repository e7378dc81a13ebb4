//! Calls whose bytes the journal did not keep. A caller that can make them again sends them again.

use std::{sync::Arc, time::Duration};

use idempotent_client::{
    ClientCall, ClientError, ClientJournal, IdempotencyKeys, KeysBuilder, MemoryJournal,
    PendingCall, Profile, Resend,
};
use idempotent_runtime::testing::ManualClock;
use reqwest::{Body, Method, multipart};
use reqwest_middleware::RequestBuilder;

use crate::kit::{Ending, Pauses, Process, Server, Step, builder, patient, unfinished, wish};

/// A journal that keeps no bodies, and a call of which it does not know how it ended.
struct Lost {
    server: Server,
    clock: ManualClock,
    journal: Arc<MemoryJournal>,
    process: Process,
}

impl Lost {
    async fn new() -> Self {
        Self::making(|call| call.header("content-type", "text/plain").body("pay")).await
    }

    async fn making(body: impl FnOnce(RequestBuilder) -> RequestBuilder) -> Self {
        let server = Server::doing([Step::Cut]).await;
        let (clock, journal) = (ManualClock::new(), Arc::new(MemoryJournal::new()));
        let keys = builder(&Pauses::default()).journal(Arc::clone(&journal));
        let process = process(keys, &clock);
        let lost = Self {
            server,
            clock,
            journal,
            process,
        };
        let call = lost.process.client.post(lost.server.url("/pay"));
        let call = call.bearer_auth("one").with_extension(wish());
        assert!(body(call).send().await.is_err());
        lost
    }

    fn call(&self) -> RequestBuilder {
        let call = self.process.charge(&self.server);
        call.header("content-type", "text/plain").bearer_auth("one")
    }

    async fn listed(&self) -> PendingCall {
        let mut open = unfinished(&self.process.keys).await;
        assert_eq!(open.len(), 1);
        open.remove(0)
    }
}

fn process(keys: KeysBuilder, clock: &ManualClock) -> Process {
    let keys = keys
        .limits(patient().attempts(1))
        .clock(clock.clone())
        .max_journaled_body(2);
    Process::of(keys)
}

#[tokio::test]
async fn cl08_a_body_that_is_not_kept_is_reported_and_an_intent_resumes_it() {
    let lost = Lost::new().await;

    let open = lost.listed().await;
    assert_eq!(open.replay_plan(), Resend::BodyNotKept);
    assert!(open.request(&lost.process.client).is_none());

    lost.call().send().await.expect("an answer");
    let keys = lost.server.keys();
    assert_eq!(keys[0], keys[1]);
}

#[tokio::test]
async fn cl08_a_call_is_sent_again_with_a_body_that_was_made_again() {
    let made = ClientCall::new().body_from(|| Body::from("pay"));
    for (body, made) in [("pay", None), ("", Some(made))] {
        let lost = Lost::new().await;
        let open = lost.listed().await;

        let again = open.request_with_body(&lost.process.client, body);
        let mut again = again.expect("it can be sent").bearer_auth("another");
        if let Some(made) = made {
            again = again.with_extension(made.account(open.account()).key(open.key().clone()));
        }
        let answer = again.send().await.expect("an answer");

        assert_eq!(answer.status(), 200);
        let seen = lost.server.seen();
        assert_eq!(seen[0].keys(), seen[1].keys());
        assert_eq!(
            (&seen[0].method, &seen[1].method),
            (&Method::POST, &Method::POST)
        );
        assert_eq!(
            (&seen[0].path, &seen[0].body),
            (&seen[1].path, &seen[1].body)
        );
        assert_eq!(seen[1].headers["content-type"], "text/plain");
        assert_eq!(lost.process.open().await, 0);
    }
}

/// A form takes another boundary each time it is made, and names it in the type of its body.
#[tokio::test]
async fn cl08_c32_a_form_is_sent_again_that_was_made_again() {
    let form = || multipart::Form::new().text("amount", "7");
    let lost = Lost::making(|call| call.multipart(form())).await;
    let open = lost.listed().await;

    let again = open.request_with_body(&lost.process.client, "");
    let again = again.expect("it can be sent").multipart(form());
    let answer = again.bearer_auth("another").send().await;

    assert_eq!(answer.expect("an answer").status(), 200);
    let seen = lost.server.seen();
    assert_eq!(seen[0].body, seen[1].body);
    let types = |number: usize| Vec::from_iter(seen[number].headers.get_all("content-type"));
    assert_eq!(types(0), types(1));
    assert_eq!(seen[0].keys(), seen[1].keys());
    assert_eq!(lost.process.open().await, 0);
}

/// An operator who found out that nothing happened may have done something else since.
#[tokio::test]
async fn cl39_what_was_withdrawn_since_it_was_listed_is_not_sent_with_a_body_made_again() {
    let lost = Lost::new().await;
    let open = lost.listed().await;
    assert_eq!(lost.process.keys.forget(&open).await, Ok(true));

    let again = open.request_with_body(&lost.process.client, "pay");
    let again = again.expect("it was open").send().await;

    let ended = again.ending();
    assert!(matches!(ended, ClientError::Withdrawn { .. }), "{ended:?}");
    assert_eq!(lost.server.seen().len(), 1);
    assert_eq!(lost.process.open().await, 0);
}

#[tokio::test]
async fn cl10_a_call_is_not_sent_again_with_another_body() {
    let lost = Lost::new().await;
    let open = lost.listed().await;

    for token in ["one", "another"] {
        let again = open.request_with_body(&lost.process.client, "other");
        let again = again.expect("it can be sent").bearer_auth(token);
        let again = again.send().await;

        again.is_another_request();
    }
    assert_eq!(lost.server.seen().len(), 1);
    assert_eq!(lost.process.open().await, 1);
}

#[tokio::test]
async fn cl08_a_body_that_was_made_again_makes_nothing_younger_or_safer() {
    let lost = Lost::new().await;
    let journal: Arc<dyn ClientJournal> = Arc::clone(&lost.journal) as _;
    let unknown = IdempotencyKeys::builder(Profile::undeclared()).journal(journal);
    let elsewhere = process(unknown, &lost.clock);
    let undeclared = unfinished(&elsewhere.keys).await.remove(0);
    lost.clock.advance(Duration::from_secs(2 * 24 * 60 * 60));
    let old = lost.listed().await;

    for (open, resend) in [(undeclared, Resend::Undeclared), (old, Resend::TooOld)] {
        assert_eq!(open.replay_plan(), resend);
        assert!(
            open.request_with_body(&lost.process.client, "pay")
                .is_none()
        );
    }
}
