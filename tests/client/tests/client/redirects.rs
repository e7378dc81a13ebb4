//! Redirects: the client beneath takes every header along. So a limit on what it may follow keeps a
//! key at its origin.

use idempotent_client::{
    ClientCall, ClientError, IdempotencyKeys, Intent, Origin, Profile, StopReason,
};

use crate::kit::{
    Ending, Process, Server, Step, answer, client, client_with, outcome, patient, unfinished, wish,
};

#[tokio::test]
async fn cl34_a_repetition_at_the_same_origin_keeps_the_key() {
    for status in [307, 308] {
        let moved = answer(status).with("location", "/v2/pay");
        let server = Server::doing([moved, answer(201)]).await;
        let response = client().pay(&server).await;
        assert_eq!(response.status(), 201);
        assert_eq!(response.url().path(), "/v2/pay");
        assert_eq!(outcome(&response).attempts, 1);
        let keys = server.keys();
        assert!(keys[0].is_some());
        assert_eq!(keys[0], keys[1]);
        let second = &server.seen()[1];
        assert_eq!(
            (second.method.as_str(), second.path.as_str()),
            ("POST", "/v2/pay")
        );
        assert_eq!(second.body.as_deref(), Some(&b"pay"[..]));
    }
}

#[tokio::test]
async fn cl34_another_origin_never_sees_the_key() {
    for status in [301, 302, 303, 307, 308] {
        let elsewhere = Server::doing([answer(201)]).await;
        let moved = answer(status).with("location", elsewhere.url("/pay"));
        let server = Server::doing([moved]).await;
        let ended = client().post(&server.url("/pay")).send().await;
        let (told, headers) = match &ended {
            Ok(response) => (response.status(), response.headers()),
            Err(_) => {
                let call = ended.ending().call().expect("it was sent");
                let answer = call.answer.as_ref().expect("the last one");
                (answer.status, &answer.headers)
            }
        };
        assert_eq!(told, status);
        assert_eq!(headers["location"], elsewhere.url("/pay").as_str());
        assert_eq!(ended.is_err(), matches!(status, 301 | 302), "{status}");
        assert!(elsewhere.seen().is_empty());
    }
}

#[tokio::test]
async fn cl34_another_origin_is_not_reached_by_detours() {
    let elsewhere = Server::doing([answer(201)]).await;
    let away = answer(307).with("location", elsewhere.url("/pay"));
    let server = Server::doing([answer(307).with("location", "/detour"), away]).await;
    let response = client().pay(&server).await;
    assert_eq!(response.status(), 307);
    assert_eq!(server.seen().len(), 2);
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn cl34_what_becomes_a_get_has_no_key_and_no_body() {
    for status in [301, 302, 303] {
        let done = answer(status)
            .with("location", "/receipts/1")
            .with("idempotent-replayed", "true");
        let server = Server::doing([done, answer(200).body("receipt")]).await;
        let call = client()
            .post(&server.url("/pay"))
            .header("content-type", "text/plain");
        let response = call.bearer_auth("token").send().await.expect("an answer");
        assert_eq!(response.text().await.expect("a body"), "receipt");
        let seen = server.seen();
        assert_eq!(
            (seen[1].method.as_str(), seen[1].path.as_str()),
            ("GET", "/receipts/1")
        );
        assert_eq!(seen[1].keys(), [""; 0]);
        assert_eq!(seen[1].body.as_deref(), Some(&b""[..]));
        assert!(!seen[1].headers.contains_key("content-type"));
        assert_eq!(seen[1].headers["authorization"], "Bearer token");
    }
}

/// A slash is missing, say: the address that the server names lists payments, and none was made.
#[tokio::test]
async fn cl34_what_a_get_finds_elsewhere_is_not_the_outcome_of_a_call() {
    for status in [301, 302] {
        let moved = answer(status).with("location", "/payments/");
        let list = answer(200).body("[]");
        let server = Server::doing([moved, answer(201).body("receipt"), list]).await;
        let client = client();
        let ask = || {
            let request = client.post(&server.url("/payments"));
            request.with_extension(wish()).send()
        };

        let ended = ask().await;

        let (why, call) = ended.unknown();
        assert_eq!(why, StopReason::Moved);
        let told = call.answer.as_ref().expect("the redirect");
        assert_eq!(told.headers["location"], "/payments/");
        assert_eq!(server.seen().len(), 1, "nobody was asked for a list");
        // The journal holds it open, so that a caller that asks again asks the server.
        let response = ask().await.expect("an answer");
        assert_eq!(response.text().await.expect("a body"), "receipt");
        let keys = server.keys();
        assert!(keys[0].is_some() && keys[0] == keys[1]);
    }
}

/// A resource that moved stays moved. A caller that puts the address right asks for another request
/// under the same key. Only the application can say that nothing was done, also if no other process
/// has the journal.
#[tokio::test]
async fn cl34_a_call_that_moved_and_was_not_done_can_be_made_anew() {
    let moved = || answer(301).with("location", "/payments/");
    let server = Server::doing([moved(), moved(), answer(201)]).await;
    let keys = IdempotencyKeys::builder(Profile::ietf());
    let Process { client, keys } = Process::of(keys);
    let ask = |path: &str| {
        let request = client.post(server.url(path)).body("pay");
        request.with_extension(wish()).send()
    };
    for _ in 0..2 {
        let ended = ask("/payments").await;
        assert_eq!(ended.unknown().0, StopReason::Moved);
    }
    ask("/payments/").await.is_another_request();

    let open = unfinished(&keys).await;
    assert_eq!(keys.forget(&open[0]).await, Ok(true));

    let response = ask("/payments/").await.expect("an answer");
    assert_eq!(response.status(), 201);
    assert_eq!(keys.forget(&open[0]).await, Ok(false), "nothing is open");
    let again = ask("/payments/").await.expect("an answer");
    assert_eq!(outcome(&again).origin, Origin::Journal, "what ended stays");
}

/// The method decides: a method other than POST does not become a GET by itself.
#[tokio::test]
async fn cl34_only_a_post_becomes_a_get_where_its_target_is_elsewhere() {
    for status in [301, 302] {
        let moved = || answer(status).with("location", "/orders/1/");
        let recorded = moved().with("idempotent-replayed", "true");
        let server = Server::doing([moved(), recorded]).await;
        let client = client();
        let put = || client.http.put(server.url("/orders/1")).body("order");
        let unkeyed = put().with_extension(ClientCall::new().without_key());
        assert_eq!(unkeyed.send().await.expect("an answer").status(), status);
        let keyed = put().with_extension(ClientCall::new().intent(Intent::new("orders.put", "1")));
        assert_eq!(keyed.send().await.expect("an answer").status(), status);
        assert_eq!(server.seen().len(), 2);
    }
}

#[tokio::test]
async fn cl34_a_target_that_is_elsewhere_is_no_outcome_where_the_method_protects() {
    let moved = || answer(301).with("location", "/orders/1/");
    let server = Server::doing([moved(), moved()]).await;
    let undeclared = IdempotencyKeys::builder(Profile::undeclared());
    let client = undeclared.client(reqwest::Client::builder());
    let client = client.expect("a client");
    for _ in 0..2 {
        let call = ClientCall::new().intent(Intent::new("orders.put", "1"));
        let put = client.put(server.url("/orders/1")).body("order");
        let response = put.with_extension(call).send().await.expect("an answer");
        assert_eq!(response.status(), 301);
        assert_eq!(outcome(&response).origin, Origin::Server);
    }
}

#[tokio::test]
async fn cl34_a_call_without_a_key_is_led_on_as_by_every_client() {
    for status in [301, 302, 303] {
        let moved = answer(status).with("location", "/receipts/1");
        let server = Server::doing([moved, answer(200).body("receipt")]).await;
        let call = client().post(&server.url("/pay"));
        let call = call.with_extension(ClientCall::new().without_key());
        let response = call.send().await.expect("an answer");
        assert_eq!(response.text().await.expect("a body"), "receipt");
        assert_eq!(server.seen()[1].method, http::Method::GET);
    }
}

#[tokio::test]
async fn cl34_what_a_call_was_led_on_to_may_lead_on() {
    let see = answer(303).with("location", "/receipts/1");
    let moved = answer(301).with("location", "/receipts/one");
    let server = Server::doing([see, moved, answer(200).body("receipt")]).await;
    let response = client().post(&server.url("/pay")).send().await;
    let text = response.expect("an answer").text().await.expect("a body");
    assert_eq!(text, "receipt");

    let elsewhere = answer(302).with("location", "https://receipts.example/1");
    let see = answer(303).with("location", "/receipts/1");
    let server = Server::doing([see, elsewhere]).await;
    let response = client().post(&server.url("/pay")).send().await;
    assert_eq!(response.expect("the last answer").status(), 302);
}

#[tokio::test]
async fn cl34_a_replayed_redirect_is_told_as_replayed() {
    let done = answer(303)
        .with("location", "/receipts/1")
        .with("idempotent-replayed", "true");
    let server = Server::doing([done, answer(200)]).await;
    let response = client().pay(&server).await;
    assert!(outcome(&response).replayed);
}

/// A caller that puts the middleware on a client of another kind is told, though too late for this
/// key.
#[tokio::test]
async fn cl34_a_client_that_follows_everything_is_found_out() {
    let elsewhere = Server::doing([answer(201)]).await;
    let server = Server::doing([answer(308).with("location", elsewhere.url("/pay"))]).await;
    let keys = IdempotencyKeys::builder(Profile::ietf());
    let (_, keys) = keys.build(reqwest::Client::builder()).expect("a client");
    let careless = reqwest_middleware::ClientBuilder::new(reqwest::Client::new());
    let client = careless.with(keys).build();

    let ended = client.post(server.url("/pay")).body("pay").send().await;

    assert!(
        matches!(ended.ending(), ClientError::LeftOrigin { .. }),
        "{ended:?}"
    );
}

/// The server did it and told where to read of it, so a reading that fails is not the call's
/// failure.
#[tokio::test]
async fn cl34_a_call_that_was_led_on_is_not_taken_for_not_done() {
    let afterwards = [
        answer(403).into(),
        answer(429).with("retry-after", "0").into(),
        answer(501).into(),
        answer(404).into(),
        answer(409).into(),
        answer(410).into(),
        Step::Cut,
        Step::CutBody,
    ];
    for fails in afterwards {
        let see = answer(303).with("location", "/receipts/1").into();
        let server = Server::doing([see, fails.clone()]).await;
        let client = client_with(|keys| keys.limits(patient().attempts(1)));
        let ask = |body: &'static str| client.charge(&server).body(body).send();
        let ended = ask("pay").await;
        assert!(
            matches!(ended.ending(), ClientError::Unknown { .. }),
            "{fails:?}: {ended:?}"
        );
        assert_eq!(server.seen().len(), 2);

        let other = ask("other").await;
        assert!(
            matches!(other.ending(), ClientError::KeyReusedLocally { .. }),
            "{fails:?} is remembered: {other:?}"
        );
    }
}

/// A document that is not to be found yet is there later. The call is led on again, and does
/// nothing twice because of its key.
#[tokio::test]
async fn cl34_a_failure_that_a_call_was_led_on_to_is_not_its_outcome() {
    let see = || answer(303).with("location", "/receipts/1");
    let found = answer(200).body("receipt");
    let server = Server::doing([see(), answer(404), see(), found]).await;
    let client = client();
    let ask = || client.charge(&server).send();
    let ended = ask().await;
    let (_, call) = ended.unknown();
    assert_eq!(call.answer.as_ref().expect("the last one").status, 404);

    let response = ask().await.expect("an answer");
    assert_eq!(response.text().await.expect("a body"), "receipt");
    let again = ask().await.expect("an answer");
    assert_eq!(outcome(&again).origin, Origin::Journal, "it is known now");
    let keys = server.keys();
    assert_eq!(keys[0], keys[2]);
    assert_eq!(keys.len(), 4);
}

#[tokio::test]
async fn cl34_what_has_no_key_is_told_what_it_was_led_on_to() {
    let see = answer(303).with("location", "/receipts/1");
    let server = Server::doing([see, answer(404)]).await;
    let call = client().http.get(server.url("/receipts")).send().await;
    assert_eq!(call.expect("the last answer").status(), 404);
}

#[tokio::test]
async fn cl34_a_call_without_a_key_that_was_led_on_is_not_sent_again() {
    let see = answer(303).with("location", "/receipts/1");
    let limited = answer(429).with("retry-after", "0");
    let server = Server::doing([see, limited]).await;
    let call = client().post(&server.url("/pay"));
    let call = call.with_extension(ClientCall::new().without_key());
    assert_eq!(call.send().await.expect("the last answer").status(), 429);
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn cl20_redirects_without_an_end_leave_the_call_and_its_key_known() {
    let see = answer(303).with("location", "/receipts/1");
    let server = Server::doing(vec![see; 12]).await;
    let ended = client().post(&server.url("/pay")).send().await;
    let (_, call) = ended.unknown();
    let key = format!("\"{}\"", call.key.as_str());
    assert_eq!(server.keys()[0].as_deref(), Some(key.as_str()));
}
