//! Answers that do not tell what a call came to: they are told, and not remembered as what it came to.

use async_trait::async_trait;
use http::{Extensions, Method};
use idempotent_runtime::{
    client::{Call, IdempotencyKeys, Intent, Key, Limits, MemoryJournal, Origin, Profile},
    testing::ManualClock,
};
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next};

use crate::kit::{Answer, Pauses, Server, answer, json, outcome, patient, problem};

struct Process {
    client: ClientWithMiddleware,
    keys: IdempotencyKeys,
}

fn process(profile: Profile, limits: Limits) -> Process {
    let keys = IdempotencyKeys::builder(profile)
        .timer(Pauses::default())
        .limits(limits)
        .journal(MemoryJournal::new())
        .clock(ManualClock::new());
    let (http, keys) = keys.build(reqwest::Client::builder()).expect("a client");
    let client = ClientBuilder::new(http).with(keys.clone()).build();
    Process { client, keys }
}

impl Process {
    async fn open(&self) -> usize {
        self.keys.unfinished(9).await.expect("a list").len()
    }
}

fn wish() -> Call {
    Call::new().intent(Intent::new("orders.put", "42"))
}

/// What may come of it later, or came of it and is not told.
fn undecided() -> [Answer; 4] {
    [
        problem(409, "idempotency-request-in-progress"),
        problem(409, "idempotency-outcome-unknown"),
        json(
            409,
            r#"{"error":{"type":"invalid_request_error","code":"idempotency_key_in_use"}}"#,
        ),
        json(409, r#"{"retryable":true,"key_action":"keep"}"#),
    ]
}

/// The method may be repeated and was, for as long as it is allowed to: the last answer is all there is to tell.
#[tokio::test]
async fn c11_the_last_answer_of_a_call_that_gives_up_is_not_its_outcome() {
    for method in [Method::PUT, Method::DELETE] {
        for call in [wish(), Call::new().key(Key::new("1").expect("a key"))] {
            for last in undecided() {
                let server = Server::doing([last.clone()]).await;
                let process = process(Profile::undeclared(), patient().attempts(1));
                let ask = || {
                    let url = server.url("/order");
                    let request = process.client.request(method.clone(), url).body("order");
                    request.with_extension(call.clone()).send()
                };

                let first = ask().await.expect("the last answer");
                assert_eq!(first.status(), 409);
                assert_eq!(process.open().await, 1, "{last:?} leaves it open");

                let again = ask().await.expect("an answer");
                assert_eq!(again.status(), 200, "{last:?}");
                assert_eq!(outcome(&again).origin, Origin::Server, "{last:?}");
                assert_eq!(process.open().await, 0);
            }
        }
    }
}

/// Who was told that nothing happened may have done something else since.
#[tokio::test]
async fn c39_a_call_that_gives_up_and_did_nothing_is_neither_open_nor_over() {
    for last in [
        problem(400, "idempotency-body-unreadable"),
        problem(503, "idempotency-overloaded"),
    ] {
        let server = Server::doing([last.clone()]).await;
        let process = process(Profile::undeclared(), patient().attempts(1));
        let ask = || {
            let call = process.client.put(server.url("/order")).body("order");
            call.with_extension(wish()).send()
        };
        ask().await.expect("the last answer");
        assert_eq!(process.open().await, 0, "{last:?}");
        let again = ask().await.expect("an answer");
        assert_eq!(outcome(&again).origin, Origin::Server, "{last:?}");
    }
}

/// Asks a second time, whatever the answer was.
struct Twice;

#[async_trait]
impl Middleware for Twice {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        let again = request.try_clone().expect("its body is in memory");
        next.clone().run(request, extensions).await?;
        next.run(again, extensions).await
    }
}

#[tokio::test]
async fn c02_a_call_that_gave_up_keeps_its_key_for_who_retries_outside() {
    for (last, same) in [
        (problem(409, "idempotency-request-in-progress"), true),
        (answer(409), false),
    ] {
        let server = Server::doing([last]).await;
        let keys = IdempotencyKeys::builder(Profile::undeclared())
            .timer(Pauses::default())
            .limits(patient().attempts(1));
        let (http, keys) = keys.build(reqwest::Client::builder()).expect("a client");
        let client = ClientBuilder::new(http).with(Twice).with(keys).build();
        let call = client.put(server.url("/order")).body("order");
        let response = call.with_extension(Call::new().keyed()).send().await;
        assert_eq!(response.expect("an answer").status(), 200);
        let keys = server.keys();
        assert_eq!(keys[0] == keys[1], same, "what has an outcome is over");
    }
}
