//! Servers keep the keys of each account apart, and the client keeps apart what it remembers.

use std::{
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use http::header::AUTHORIZATION;
use idempotent_client::{
    ClientCall, ClientError, ClientKey, MemoryJournal, Origin, Profile, Resend, SqliteJournal,
    StopReason,
};
use idempotent_runtime::testing::ManualClock;
use reqwest::Request;
use reqwest_middleware::{ClientBuilder, RequestBuilder};

use crate::kit::{
    Client, Ending, Frames, OnceMore, Passing, Pauses, Process, Server, Step, answer, builder,
    client, client_at, client_with, outcome, patient, unfinished, wish,
};

/// A program that asks once.
fn once() -> Process {
    Process::of(builder(&Pauses::default()).limits(patient().attempts(1)))
}

async fn text(call: RequestBuilder) -> (Origin, String) {
    let response = call.send().await.expect("an answer");
    let origin = outcome(&response).origin;
    (origin, response.text().await.expect("a body"))
}

fn from_server(text: &str) -> (Origin, String) {
    (Origin::Server, text.to_owned())
}

fn from_journal(text: &str) -> (Origin, String) {
    (Origin::Journal, text.to_owned())
}

#[tokio::test]
async fn cl47_an_answer_is_given_from_the_journal_only_to_whom_it_was_given_before() {
    type Ask = fn(&Client, &str, &str) -> RequestBuilder;
    let ways: [Ask; 4] = [
        |client, url, who| {
            let call = client.post(url).bearer_auth(who);
            call.header("idempotency-key", "\"1\"")
        },
        |client, url, who| client.post(url).bearer_auth(who).with_extension(wish()),
        |client, url, who| {
            let call = ClientCall::new().key(ClientKey::new("1").expect("a key"));
            client.post(url).header("cookie", who).with_extension(call)
        },
        |client, url, who| {
            let mut secret = http::HeaderValue::from_str(who).expect("a value");
            secret.set_sensitive(true);
            let call = client.post(url).header("x-of-our-own", secret);
            call.with_extension(wish())
        },
    ];
    for ask in ways {
        let server = Server::doing([answer(200).body("secret of A"), answer(200).body("of B")]);
        let server = server.await;
        let url = server.url("/pay");
        let client = client();
        assert_eq!(
            text(ask(&client, &url, "A")).await,
            from_server("secret of A")
        );
        assert_eq!(text(ask(&client, &url, "B")).await, from_server("of B"));
        assert_eq!(
            text(ask(&client, &url, "A")).await,
            from_journal("secret of A")
        );
        let keys = server.keys();
        assert_eq!(keys[0], keys[1], "the server tells the accounts apart");
    }
}

/// A token that was renewed is still the same account's. So a call that is refused with one token
/// was done nevertheless.
#[tokio::test]
async fn cl47_what_another_token_was_told_stays() {
    let server = Server::doing([answer(200).body("done"), answer(401)]).await;
    let client = client();
    let ask = |token: &str| client.charge(&server).bearer_auth(token);
    assert_eq!(text(ask("A")).await, from_server("done"));
    let _ = ask("B").send().await;
    assert_eq!(text(ask("A")).await, from_journal("done"));
}

/// The other one may be of another account, at which the server did something else, or nothing.
#[tokio::test]
async fn cl47_what_another_token_is_told_ends_no_open_call() {
    for told in [answer(201), answer(402)] {
        let server = Server::doing([Step::Cut, told.into(), answer(201).body("of A").into()]);
        let server = server.await;
        let process = once();
        let ask = |token: &str| process.charge(&server).bearer_auth(token);
        assert!(ask("A").send().await.is_err());

        ask("B").send().await.expect("an answer");

        let open = unfinished(&process.keys).await;
        assert_eq!(open.len(), 1, "of A it is not known what was done");
        // A caller that goes on with what is listed may have another token by now.
        let resumed = open[0].request(&process.client);
        let resumed = resumed.expect("it can be sent");
        let resumed = text(resumed.bearer_auth("renewed")).await;
        assert_eq!(resumed, from_server("of A"));
        assert_eq!(process.open().await, 0);
        assert_eq!(text(ask("renewed")).await, from_journal("of A"));
    }
}

#[tokio::test]
async fn cl47_who_retries_outside_ends_its_call_with_a_renewed_token() {
    let server = Server::doing([Step::Cut]).await;
    let keys = builder(&Pauses::default()).limits(patient().attempts(1));
    let (http, keys) = keys.build(reqwest::Client::builder()).expect("a client");
    let tokens = AtomicU32::new(0);
    let renews = Passing(move |request: &mut Request| {
        let token = format!("Bearer {}", tokens.fetch_add(1, Ordering::SeqCst));
        let token = token.parse().expect("a header");
        request.headers_mut().insert(AUTHORIZATION, token);
    });
    let client = ClientBuilder::new(http).with(OnceMore(Result::is_err));
    let client = client.with(renews).with(keys.clone()).build();

    let call = client.post(server.url("/pay")).body("pay");
    let answered = call.with_extension(wish()).send().await;

    answered.expect("an answer");
    assert_eq!(server.keys()[0], server.keys()[1]);
    assert!(unfinished(&keys).await.is_empty());
}

/// It is no key of the other token's to a server that takes keys as they stand.
#[tokio::test]
async fn cl47_a_key_that_the_caller_wrote_is_not_written_as_another_token_has_it() {
    let server = Server::doing([Step::Cut]).await;
    let process = once();
    let ask = |token: &str, key: &str| {
        let call = process.post(&server);
        let call = call.bearer_auth(token).header("idempotency-key", key);
        call.send()
    };
    assert!(ask("A", "order-42").await.is_err());

    ask("B", "\"order-42\"").await.expect("an answer");

    let written = server.keys()[1].clone();
    assert_eq!(written.as_deref(), Some("\"order-42\""));
}

#[tokio::test]
async fn cl47_a_server_without_keys_is_not_asked_again_by_another_token() {
    let server = Server::doing([answer(200), answer(200)]).await;
    let client = client_at(&server, Profile::undeclared());
    let ask = |token: &str| client.charge(&server).bearer_auth(token).send();
    ask("A").await.expect("an answer");
    let ended = ask("B").await;
    assert_eq!(ended.unknown().0, StopReason::Undeclared);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn cl47_an_account_has_keys_of_its_own_whatever_its_token() {
    let server = Server::doing([answer(200).body("of A"), answer(200).body("of B")]).await;
    let client = client_with(|keys| keys.account("A"));
    let ask = |call: ClientCall, token: &str| {
        let request = client.post(&server.url("/pay")).bearer_auth(token);
        request.with_extension(call)
    };
    let as_b = || wish().account("B");
    assert_eq!(text(ask(wish(), "1")).await, from_server("of A"));
    assert_eq!(text(ask(as_b(), "2")).await, from_server("of B"));
    assert_eq!(text(ask(wish(), "renewed")).await, from_journal("of A"));
    assert_eq!(text(ask(as_b(), "renewed")).await, from_journal("of B"));
    let keys = server.keys();
    assert_ne!(keys[0], keys[1]);
}

async fn restarted(file: &Path) -> Process {
    let journal = SqliteJournal::open(file).await.expect("a journal");
    let keys = builder(&Pauses::default()).limits(patient().attempts(1));
    Process::of(keys.journal(journal))
}

#[tokio::test]
async fn cl47_a_call_is_resumed_for_its_account_and_no_credentials_are_in_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("calls.db");
    let server = Server::doing([Step::Cut, answer(201).body("of A").into()]).await;
    let ask = |process: &Process, account: &str, token: &str| {
        let call = process.post(&server);
        let call = call.bearer_auth(token).header("x-api-key", "s3cr3t");
        call.with_extension(wish().account(account))
    };
    let process = restarted(&file).await;
    assert!(ask(&process, "A", "s3cr3t").send().await.is_err());

    let process = restarted(&file).await;
    let open = unfinished(&process.keys).await;
    assert_eq!(
        (open[0].account(), open[0].replay_plan()),
        ("A", Resend::Possible)
    );
    let call = open[0].request(&process.client).expect("it can be sent");
    assert_eq!(text(call.bearer_auth("new")).await, from_server("of A"));

    let process = restarted(&file).await;
    assert_eq!(process.open().await, 0);
    let again = text(ask(&process, "A", "newer")).await;
    assert_eq!(again, from_journal("of A"));
    let bytes = std::fs::read(&file).expect("the file");
    assert!(!bytes.windows(6).any(|piece| piece == b"s3cr3t"));
}

/// A key that the server may have forgotten does not become young because another token asks.
#[tokio::test]
async fn cl36_an_old_key_is_not_sent_again_with_another_token() {
    let clock = ManualClock::new();
    let server = Server::doing([answer(200)]).await;
    let client = client_with(|keys| keys.journal(MemoryJournal::new()).clock(clock.clone()));
    let ask = |token: &str| client.charge(&server).bearer_auth(token).send();
    ask("A").await.expect("an answer");
    clock.advance(Duration::from_secs(25 * 3_600));
    let ended = ask("B").await;
    assert_eq!(ended.unknown().0, StopReason::Age);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn cl11_a_stream_is_never_answered_by_the_journal() {
    let server = Server::doing([answer(200).body("one"), answer(200).body("two")]).await;
    let client = client();
    let ask = |text: &'static str| client.charge(&server).body(streamed(text));
    assert_eq!(text(ask("one")).await, from_server("one"));
    assert_eq!(text(ask("two")).await, from_server("two"));
    let keys = server.keys();
    assert_eq!(keys[0], keys[1], "the server compares the bytes");
}

/// Headers that make a request what it is make another one of it. The answer to one organisation is
/// not for the other.
#[tokio::test]
async fn cl10_a_request_with_other_headers_of_its_own_is_another_one() {
    let of_their_own = http::HeaderName::from_static("x-org");
    for name in ["x-org", "if-match", "prefer", "x-http-method-override"] {
        let server = Server::doing([answer(200).body("of a"), answer(200).body("of b")]).await;
        let profile = Profile::ietf().request_header(of_their_own.clone());
        let client = client_at(&server, profile);
        let ask = |value: &str| client.charge(&server).header(name, value);
        assert_eq!(text(ask("a")).await, from_server("of a"), "{name}");
        let other = ask("b").send().await;
        assert!(
            matches!(other.ending(), ClientError::KeyReusedLocally { .. }),
            "{name}: {other:?}"
        );
        assert_eq!(text(ask("a")).await, from_journal("of a"), "{name}");
        assert_eq!(server.seen().len(), 1, "{name}");
    }
}

/// The account tells who asks. Headers that change from one attempt to the next are no part of the
/// request.
#[tokio::test]
async fn cl10_credentials_and_passing_headers_make_no_other_request() {
    let server = Server::doing([answer(200).body("done")]).await;
    let profile = Profile::ietf().request_header(AUTHORIZATION);
    let url = server.url("/").parse().expect("a URL");
    let client = client_with(|keys| keys.server(&url, profile).account("A"));
    let ask = |token: &str| {
        let mut secret = http::HeaderValue::from_str(token).expect("a value");
        secret.set_sensitive(true);
        let call = client.charge(&server).bearer_auth(token);
        call.header("prefer", secret).header("traceparent", token)
    };
    assert_eq!(text(ask("1")).await, from_server("done"));
    assert_eq!(text(ask("2")).await, from_journal("done"));
}

fn streamed(text: &'static str) -> reqwest::Body {
    let frame = hyper::body::Frame::data(bytes::Bytes::from_static(text.as_bytes()));
    let frames = Frames::of([Ok::<_, std::io::Error>(frame)]);
    reqwest::Body::wrap(http_body_util::StreamBody::new(frames))
}

/// It is unknown whether the stream has the bytes of the call that is open.
#[tokio::test]
async fn cl11_what_a_stream_was_told_is_not_told_to_whom_sent_bytes() {
    let steps = [
        Step::Cut,
        answer(200).body("of two").into(),
        answer(200).body("of one").into(),
    ];
    let server = Server::doing(steps).await;
    let client = client_with(|keys| keys.limits(patient().attempts(1)));
    let ask = |body: reqwest::Body| client.charge(&server).body(body);
    assert!(ask("one".into()).send().await.is_err());
    assert_eq!(text(ask(streamed("two"))).await, from_server("of two"));
    assert_eq!(text(ask("one".into())).await, from_server("of one"));
    assert_eq!(text(ask("one".into())).await, from_journal("of one"));
}

/// Nothing is answered from an entry without a digest, so that a caller that makes its bytes again
/// may close it.
#[tokio::test]
async fn cl08_a_stream_that_is_open_is_closed_by_who_sends_it_again() {
    for again in [|| streamed("one"), || reqwest::Body::from("one")] {
        let server = Server::doing([Step::Cut]).await;
        let process = once();
        let ask = |body| process.charge(&server).body(body).send();
        assert!(ask(streamed("one")).await.is_err());
        assert_eq!(process.open().await, 1);
        let of_another = process.charge(&server).body(again());
        let answered = of_another.bearer_auth("another").send().await;
        answered.expect("an answer");
        assert_eq!(process.open().await, 1, "it is not theirs");
        ask(again()).await.expect("an answer");
        assert_eq!(process.open().await, 0);
        let third = ask(again()).await.expect("an answer");
        assert_eq!(outcome(&third).origin, Origin::Server);
    }
}
