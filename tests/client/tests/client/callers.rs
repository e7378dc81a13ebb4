//! Callers without a named account: every header tells them apart that may say who asks.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use http::HeaderName;
use idempotent_client::{ClientJournal, KeysBuilder, Origin, Profile, StopReason, journal};
use reqwest::Request;
use reqwest_middleware::{ClientBuilder, RequestBuilder};

use crate::{
    journal::journals,
    kit::{
        Ending, OnceMore, Passing, Pauses, Process, Server, Step, answer, builder, client_at,
        outcome, patient, unfinished,
    },
};

/// Headers by which servers tell accounts apart.
const NAMES: [&str; 27] = [
    "Authorization",
    "X-Api-Key",
    "Stripe-Account",
    "Stripe-Context",
    "apikey",
    "PRIVATE-TOKEN",
    "X-Shopify-Access-Token",
    "X-Access-Token",
    "X-Vault-Token",
    "DD-API-KEY",
    "OpenAI-Organization",
    "OpenAI-Project",
    "X-Goog-User-Project",
    "X-Tenant-Id",
    "X-Tenant",
    "X-Organization-Id",
    "X-User-Id",
    "X-Account-Id",
    "X-MS-Client-Principal-Id",
    "X-Forwarded-User",
    "PayPal-Auth-Assertion",
    "Xero-Tenant-Id",
    "Square-Version",
    "On-Behalf-Of",
    "X-On-Behalf-Of",
    "X-Amz-Security-Token",
    "Token",
];

/// A program that asks once, and keeps its calls in `journal`.
fn once(journal: &Arc<dyn ClientJournal>, profile: Profile, server: &Server) -> Process {
    Process::of(asking_once(journal, profile, server))
}

fn asking_once(journal: &Arc<dyn ClientJournal>, profile: Profile, server: &Server) -> KeysBuilder {
    let url = server.url("/").parse().expect("a URL");
    builder(&Pauses::default())
        .limits(patient().attempts(1))
        .server(&url, profile)
        .journal(Arc::clone(journal))
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
async fn mend_36_no_account_is_answered_with_what_another_one_was_told() {
    let mut wrong = Vec::new();
    for name in NAMES {
        let folder = tempfile::tempdir().expect("a folder");
        for journal in journals(&folder).await {
            let server = Server::doing([answer(200).body("of 1"), answer(200).body("of 2")]);
            let server = server.await;
            let process = once(&journal, Profile::stripe(), &server);
            let ask = |who: &str| {
                let call = process.charge(&server).header(name, who);
                let is_shared = !name.eq_ignore_ascii_case("authorization");
                if is_shared {
                    call.bearer_auth("org_key")
                } else {
                    call
                }
            };
            assert_eq!(text(ask("acct_1")).await, from_server("of 1"), "{name}");
            if text(ask("acct_2")).await != from_server("of 2") {
                wrong.push(name);
                continue;
            }
            assert_eq!(text(ask("acct_1")).await, from_journal("of 1"), "{name}");
            assert_eq!(server.requests_with_one_key(), 2, "{name}");
        }
    }
    assert!(
        wrong.is_empty(),
        "answered with another account's: {wrong:?}"
    );
}

/// It is unknown what was done for the first account.
#[tokio::test]
async fn mend_36_no_account_ends_the_open_call_of_another_one() {
    for name in NAMES {
        let folder = tempfile::tempdir().expect("a folder");
        for journal in journals(&folder).await {
            let server = Server::doing([Step::Cut, answer(201).into()]).await;
            let process = once(&journal, Profile::ietf(), &server);
            let ask = |who: &str| process.charge(&server).header(name, who).send();
            assert!(ask("acct_1").await.is_err(), "{name}");

            ask("acct_2").await.expect("an answer");
            assert_eq!(process.open().await, 1, "{name}");

            ask("acct_1").await.expect("an answer");
            assert_eq!(process.open().await, 0, "{name}");
        }
    }
}

#[tokio::test]
async fn mend_36_a_server_without_keys_is_not_asked_again_by_another_account() {
    for name in NAMES {
        let server = Server::doing([answer(200), answer(200)]).await;
        let client = client_at(&server, Profile::undeclared());
        let ask = |who: &str| client.charge(&server).header(name, who).send();
        ask("acct_1").await.expect("an answer");

        let ended = ask("acct_2").await;

        assert_eq!(ended.unknown().0, StopReason::Undeclared, "{name}");
        assert_eq!(server.seen().len(), 1, "{name}");
    }
}

#[tokio::test]
async fn mend_36_headers_that_say_nothing_of_who_asks_make_no_other_caller() {
    let server = Server::doing([answer(200).body("done")]).await;
    let client = client_at(&server, Profile::ietf());
    let ask = |value: &str| {
        let mut call = client.charge(&server).bearer_auth("A");
        for name in ["user-agent", "date", "accept-encoding", "cache-control"] {
            call = call.header(name, value);
        }
        for name in ["traceparent", "tracestate", "x-request-id", "b3"] {
            call = call.header(name, value);
        }
        call
    };
    assert_eq!(text(ask("1")).await, from_server("done"));
    assert_eq!(text(ask("2")).await, from_journal("done"));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn mend_36_a_header_that_is_left_out_makes_no_other_caller() {
    let signature = || HeaderName::from_static("signature");
    let profiles = [
        (Profile::ietf(), from_server("again")),
        (
            Profile::ietf().volatile_header(signature()),
            from_journal("done"),
        ),
    ];
    for (profile, answered) in profiles {
        let server = Server::doing([answer(200).body("done"), answer(200).body("again")]).await;
        let client = client_at(&server, profile);
        let ask = |who: &str, signed: &str| {
            let call = client.charge(&server).header("x-api-key", who);
            call.header("Signature", signed)
        };
        assert_eq!(text(ask("A", "1")).await, from_server("done"));
        assert_eq!(text(ask("A", "2")).await, answered);

        let (origin, _) = text(ask("B", "1")).await;
        assert_eq!(origin, Origin::Server, "another account asks");
        let signed = server.seen()[0].headers["signature"].clone();
        assert_eq!(signed, "1", "it is sent all the same");
    }
}

/// Makes another signature each time.
fn signer() -> Passing<impl Fn(&mut Request)> {
    let number = AtomicU32::new(0);
    Passing(move |request: &mut Request| {
        let signature = number.fetch_add(1, Ordering::SeqCst).into();
        request.headers_mut().insert("signature", signature);
    })
}

#[tokio::test]
async fn mend_36_a_retry_outside_that_signs_anew_ends_its_call() {
    let server = Server::doing([Step::Cut, answer(201).into()]).await;
    let keys = builder(&Pauses::default()).limits(patient().attempts(1));
    let (http, keys) = keys.build(reqwest::Client::builder()).expect("a client");
    let client = ClientBuilder::new(http).with(OnceMore(Result::is_err));
    let client = client.with(signer()).with(keys.clone()).build();

    let call = client.post(server.url("/pay")).body("pay");
    let answered = call.with_extension(crate::kit::wish()).send().await;

    answered.expect("an answer");
    assert_eq!(server.requests_with_one_key(), 2);
    assert!(unfinished(&keys).await.is_empty());
}

#[tokio::test]
async fn mend_36_a_signature_that_is_made_inside_makes_no_other_caller() {
    let server = Server::doing([answer(503), answer(201).body("done")]).await;
    let process = Process::around(builder(&Pauses::default()), signer());
    let ask = || process.charge(&server).bearer_auth("A");

    assert_eq!(text(ask()).await, from_server("done"));
    assert_eq!(text(ask()).await, from_journal("done"));

    let seen = server.seen();
    assert_ne!(seen[0].headers["signature"], seen[1].headers["signature"]);
    assert_eq!(server.requests_with_one_key(), 2);
}

/// Makes the one call that is open one that an earlier build wrote, whose digests of callers equal
/// none of today.
async fn written_earlier(journal: &dyn ClientJournal) -> journal::EntryId {
    let open = journal.unfinished(2).await.expect("a list");
    let mut entry = open[0].clone().expect("it can be read");
    journal.forget(&entry.id).await.expect("it is written");
    entry.caller = Some(EARLIER);
    let stood = journal.begin(&entry).await.expect("it is written");
    assert!(stood.is_none());
    entry.id
}

const EARLIER: [u8; 32] = [7; 32];

#[tokio::test]
async fn mend_36_an_open_call_of_an_earlier_build_is_sent_with_its_key_and_stays_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    for journal in journals(&folder).await {
        let steps = [Step::Cut, answer(201).into(), answer(201).into()];
        let server = Server::doing(steps).await;
        let process = once(&journal, Profile::ietf(), &server);
        assert!(process.charge(&server).send().await.is_err());
        written_earlier(&journal).await;

        process.charge(&server).send().await.expect("an answer");
        let open = unfinished(&process.keys).await;
        assert_eq!(open.len(), 1);

        let resumed = open[0].request(&process.client).expect("it can be sent");
        resumed.send().await.expect("an answer");
        assert_eq!(process.open().await, 0);
        assert_eq!(server.requests_with_one_key(), 3);
    }
}

#[tokio::test]
async fn mend_36_an_answer_of_an_earlier_build_is_given_to_nobody() {
    for profile in [Profile::ietf(), Profile::undeclared()] {
        let is_declared = profile.support() == idempotent_client::Support::Declared;
        let folder = tempfile::tempdir().expect("a folder");
        for journal in journals(&folder).await {
            let server = Server::doing([Step::Cut, answer(200).body("of A").into()]).await;
            let process = once(&journal, profile.clone(), &server);
            assert!(process.charge(&server).send().await.is_err());
            let id = written_earlier(&journal).await;
            let ending = journal::Ending::Answered {
                status: http::StatusCode::OK,
                headers: http::HeaderMap::new(),
                body: Some("of anybody".into()),
            };
            let ended = journal.finish(&id, &EARLIER, &ending).await;
            ended.expect("it is written");

            if is_declared {
                assert_eq!(text(process.charge(&server)).await, from_server("of A"));
                assert_eq!(server.requests_with_one_key(), 2);
            } else {
                let asked = process.charge(&server).send().await;
                assert_eq!(asked.unknown().0, StopReason::Undeclared);
                assert_eq!(server.seen().len(), 1);
            }
        }
    }
}
