//! Answers from a journal, and answers that do not count when a caller asks again.

use idempotent_client::{ClientError, KeyStatus, MemoryJournal, Origin, StopReason};
use idempotent_runtime::testing::ManualClock;

use crate::{
    journal::{process, process_with},
    kit::{Ending, Server, Step, answer, client, client_with, outcome, problem},
};

#[tokio::test]
async fn cl11_what_is_done_is_answered_by_the_journal() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("calls.db");
    let clock = ManualClock::new();
    let done = answer(201)
        .with("content-type", "text/plain")
        .with("set-cookie", "s=1")
        .body("receipt");
    let server = Server::doing([done]).await;
    for origin in [Origin::Server, Origin::Journal, Origin::Journal] {
        let process = process(&file, &clock).await;
        let response = process.charge(&server).send().await;
        let response = response.expect("an answer");
        assert_eq!(response.status(), 201);
        assert_eq!(outcome(&response).origin, origin);
        assert_eq!(outcome(&response).replayed, origin == Origin::Journal);
        assert_eq!(response.headers()["content-type"], "text/plain");
        assert_eq!(
            response.headers().contains_key("set-cookie"),
            origin == Origin::Server
        );
        assert_eq!(response.text().await.expect("a body"), "receipt");
    }
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn cl11_what_is_needed_to_read_a_body_comes_with_it() {
    let fields = [
        ("content-type", "application/json"),
        ("content-encoding", "gzip"),
        (
            "content-disposition",
            "attachment; filename=\"receipt.json\"",
        ),
        ("content-location", "/receipts/99"),
        (
            "content-digest",
            "sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:",
        ),
        (
            "repr-digest",
            "sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:",
        ),
    ];
    let done = answer(201).body("what a compressor made");
    let done = fields
        .iter()
        .fold(done, |done, (name, value)| done.with(name, *value));
    let server = Server::doing([done]).await;
    let client = client();
    for origin in [Origin::Server, Origin::Journal] {
        let response = client.charge(&server).send().await;
        let response = response.expect("an answer");
        assert_eq!(outcome(&response).origin, origin);
        for (name, value) in fields {
            let told = response
                .headers()
                .get(name)
                .map(http::HeaderValue::as_bytes);
            assert_eq!(told, Some(value.as_bytes()), "{name}, {origin:?}");
        }
    }
}

#[tokio::test]
async fn cl11_a_response_that_is_not_kept_is_not_asked_for_again() {
    let server = Server::doing([answer(201).body("a long receipt")]).await;
    let client = client_with(|keys| keys.max_journaled_body(4));
    let call = || client.charge(&server).send();
    call().await.expect("an answer");
    assert!(matches!(
        call().await.ending(),
        ClientError::ResultGone { .. }
    ));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn cl37_what_is_gone_is_remembered() {
    let server = Server::doing([problem(409, "idempotency-result-expired")]).await;
    let process = process_with(MemoryJournal::new(), &ManualClock::new());
    for _ in 0..2 {
        let ended = process.charge(&server).send().await;
        assert!(matches!(ended.ending(), ClientError::ResultGone { .. }));
    }
    assert_eq!(server.seen().len(), 1);
}

/// The server has nothing to replay, so the journal has nothing to answer with.
#[tokio::test]
async fn cl11_an_answer_after_which_the_key_is_free_is_no_outcome() {
    let free = |status| answer(status).with("idempotency-status", "released");
    let process = process_with(MemoryJournal::new(), &ManualClock::new());
    for status in [404, 409, 422] {
        let sold_out = free(status).body("sold out");
        let server = Server::doing([sold_out, answer(201).body("yours")]).await;
        let ask = |body: &'static str| process.charge(&server).body(body).send();

        let refused = ask("7").await.expect("an answer");
        assert_eq!(refused.status(), status);
        assert_eq!(outcome(&refused).key_status, KeyStatus::Released);
        assert_eq!(refused.text().await.expect("a body"), "sold out");
        assert_eq!(process.open().await, 0);

        for origin in [Origin::Server, Origin::Journal] {
            let put_right = ask("3").await.expect("an answer");
            assert_eq!(outcome(&put_right).origin, origin);
            assert_eq!(put_right.text().await.expect("a body"), "yours");
        }
        assert_eq!(server.requests_with_one_key(), 2);
    }
}

#[tokio::test]
async fn cl11_an_attempt_after_which_the_key_is_free_leaves_nothing_open() {
    let free = |status| answer(status).with("idempotency-status", "released");
    let yours = answer(201).body("yours");
    let server = Server::doing([free(503), free(422), yours]).await;
    let process = process_with(MemoryJournal::new(), &ManualClock::new());
    let ask = |body: &'static str| process.charge(&server).body(body).send();

    // The first attempt found no capacity. The second one found an amount that cannot be.
    let refused = match ask("7").await {
        Ok(answered) if answered.status() == 422 => answered,
        _ => ask("7").await.expect("an answer"),
    };
    assert_eq!(refused.status(), 422);
    assert_eq!(process.open().await, 0);

    let put_right = ask("3").await.expect("an answer");
    assert_eq!(put_right.text().await.expect("a body"), "yours");
}

#[tokio::test]
async fn cl11_an_attempt_that_may_still_arrive_is_open_though_the_key_is_free() {
    let free = answer(422).with("idempotency-status", "released");
    let server = Server::doing([Step::Cut, free.into()]).await;
    let process = process_with(MemoryJournal::new(), &ManualClock::new());
    let ask = |body: &'static str| process.charge(&server).body(body).send();
    assert!(ask("7").await.is_err());
    assert_eq!(ask("7").await.expect("an answer").status(), 422);
    assert_eq!(process.open().await, 1);
    let other = ask("3").await;
    other.is_another_request();
}

/// A handler before this one may have acted, and a caller that asks again may be told of that.
#[tokio::test]
async fn cl11_an_answer_that_leaves_its_call_open_is_no_outcome() {
    let process = process_with(MemoryJournal::new(), &ManualClock::new());
    let bare = [401, 404, 409, 422, 501].map(|status| (status, answer(status)));
    let of_a_call_inside = (422, problem(422, "idempotency-key-reused"));
    for (status, alone) in bare.into_iter().chain([of_a_call_inside]) {
        let alone = alone.with("idempotency-status", "open");
        let server = Server::doing([alone, answer(201).body("yours")]).await;
        let ask = || process.charge(&server).send();

        let refused = ask().await;
        let (why, call) = refused.unknown();
        assert_eq!(why, StopReason::Refused);
        let answer = call.answer.as_ref().expect("what was answered");
        assert_eq!(answer.status, status);
        assert_eq!(process.open().await, 1);

        let yours = ask().await.expect("an answer");
        assert_eq!(yours.text().await.expect("a body"), "yours");
        let keys = server.keys();
        assert_eq!(keys[0], keys[1]);
    }
}

/// A service that has no room for a takeover did nothing; the handler before may have.
#[tokio::test]
async fn cl11_a_service_that_has_no_room_for_a_takeover_leaves_its_call_open() {
    let full = problem(503, "idempotency-overloaded").with("idempotency-status", "open");
    let server = Server::doing(vec![full; 4]).await;
    let process = process_with(MemoryJournal::new(), &ManualClock::new());

    let refused = process.charge(&server).send().await;

    refused.unknown();
    assert_eq!(process.open().await, 1);
}

#[tokio::test]
async fn cl11_a_replay_is_the_outcome_whatever_it_says_of_its_key() {
    let replay = answer(409).with("idempotent-replayed", "true");
    let replay = replay.with("idempotency-status", "released");
    let server = Server::doing([replay]).await;
    let process = process_with(MemoryJournal::new(), &ManualClock::new());
    for origin in [Origin::Server, Origin::Journal] {
        let answered = process.charge(&server).send().await;
        let answered = answered.expect("an answer");
        assert_eq!(answered.status(), 409);
        assert_eq!(outcome(&answered).origin, origin);
        assert_eq!(outcome(&answered).key_status, KeyStatus::Unsaid);
    }
}
