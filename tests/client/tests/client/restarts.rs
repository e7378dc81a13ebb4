//! Calls that are open at a restart, at a server that may or may not honour keys.

use std::sync::Arc;

use http::{
    HeaderValue, Method,
    header::{AUTHORIZATION, HeaderName},
};
use idempotent_client::{
    ClientCall, ClientError, ClientJournal, ClientKey, IdempotencyKeys, MemoryJournal, Profile,
    Resend, SqliteJournal, StopReason, journal::EntryId,
};
use idempotent_runtime::testing::ManualClock;
use reqwest::{Request, Response};

use crate::kit::{
    Ending, Passing, Pauses, Process, Server, Step, answer, builder, patient, unfinished, wish,
};

fn life(profile: Profile, journal: impl ClientJournal) -> Process {
    let keys = IdempotencyKeys::builder(profile)
        .timer(Pauses::default())
        .limits(patient().attempts(2))
        .journal(journal)
        .clock(ManualClock::new());
    Process::of(keys)
}

impl Process {
    async fn resend(&self) -> Resend {
        let open = unfinished(&self.keys).await;
        open[0].replay_plan()
    }

    /// Sends the call that is open as it stands in the journal.
    async fn resume(&self) -> Response {
        let open = unfinished(&self.keys).await;
        let call = open[0].request(&self.client).expect("it can be sent");
        call.send().await.expect("an answer")
    }
}

#[track_caller]
fn is_undeclared(ended: &reqwest_middleware::Result<Response>) {
    assert_eq!(ended.unknown().0, StopReason::Undeclared);
}

/// A request without them would be another one: with other conditions, or for another version.
#[tokio::test]
async fn cl08_the_headers_that_make_a_request_what_it_is_are_sent_again() {
    let server = Server::doing([Step::Cut, Step::Cut]).await;
    let journal = Arc::new(MemoryJournal::new());
    let profile = || {
        let profile = Profile::stripe().request_header(HeaderName::from_static("x-schema"));
        profile.request_header(AUTHORIZATION)
    };
    let same = [
        ("content-type", "text/plain"),
        ("content-language", "en"),
        ("content-md5", "Gbd3zGZvFB1yY5GwB1GlFw=="),
        ("digest", "md5=Gbd3zGZvFB1yY5GwB1GlFw=="),
        ("if-match", "\"7\""),
        ("if-none-match", "\"8\""),
        ("prefer", "return=minimal"),
        ("stripe-version", "2026-01-01"),
        ("x-schema", "2"),
        ("x-http-method", "PATCH"),
        ("x-http-method-override", "PATCH"),
        ("x-method-override", "PATCH"),
    ];
    let mut secret = HeaderValue::from_static("s3cr3t");
    secret.set_sensitive(true);
    let first = life(profile(), Arc::clone(&journal));
    let mut call = first.charge(&server);
    for (name, value) in same {
        call = call.header(name, value);
    }
    let call = call.header("accept-language", secret);
    let call = call.bearer_auth("s3cr3t").header("traceparent", "00-1");
    assert!(call.send().await.is_err());

    let second = life(profile(), journal);
    assert_eq!(second.resume().await.status(), 200);

    let [first, .., again] = &server.seen()[..] else {
        panic!("it was sent twice")
    };
    assert_eq!(first.keys(), again.keys());
    for (name, value) in same {
        assert_eq!(again.headers[name], value, "{name}");
    }
    for (name, value) in &again.headers {
        let is_ours = same.iter().any(|(same, _)| *same == name.as_str());
        let is_made = ["accept", "content-length", "host", "idempotency-key"];
        let is_made = is_made.contains(&name.as_str());
        assert!(is_ours || is_made, "{name}: {value:?}");
    }
}

/// With another key it would be another call, and be done twice.
#[tokio::test]
async fn cl08_a_call_has_the_same_key_after_a_restart_whatever_its_header_is_named_by_then() {
    let named = HeaderName::from_static("x-idempotency-key");
    let calls = [wish(), ClientCall::new()];
    for call in calls {
        let server = Server::doing([Step::Cut, Step::Cut]).await;
        let journal = Arc::new(MemoryJournal::new());
        let first = life(Profile::ietf(), Arc::clone(&journal));
        let sent = first.post(&server);
        assert!(sent.with_extension(call).send().await.is_err());

        let second = life(Profile::ietf().header(named.clone()), journal);
        assert_eq!(second.resume().await.status(), 200);

        let [first, .., again] = &server.seen()[..] else {
            panic!("it was sent again")
        };
        assert_eq!(again.headers[&named], first.keys()[0]);
        assert_eq!(second.open().await, 0);
    }
}

/// The client does not send a user and a password, either, that stand in the address of a request.
/// If it makes the request of an address itself, it takes them out of that. So an entry with them
/// in its address would be another request.
#[tokio::test]
async fn cl08_who_is_asking_is_not_written_down_with_the_address() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("calls.db");
    let server = Server::doing([Step::Cut, Step::Cut]).await;
    let url = server.url("/pay").replace("//", "//jane:s3cr3t@");
    let mut request = Request::new(Method::POST, url.parse().expect("a URL"));
    *request.body_mut() = Some("pay".into());
    let journal = || SqliteJournal::open(&file);
    let first = life(Profile::ietf(), journal().await.expect("a journal"));
    assert!(first.client.execute(request).await.is_err());

    let bytes = std::fs::read_dir(folder.path()).expect("a folder");
    let bytes = bytes.map(|file| std::fs::read(file.expect("a file").path()).expect("it is read"));
    for bytes in bytes {
        let tells = |word: &[u8]| bytes.windows(word.len()).any(|piece| piece == word);
        assert!(!tells(b"s3cr3t") && !tells(b"jane"));
    }
    drop(first);
    let second = life(Profile::ietf(), journal().await.expect("a journal"));
    second.resume().await;
    assert_eq!(server.requests_with_one_key(), 3);
}

/// It may be for a middleware inside to say who is asking.
#[tokio::test]
async fn cl08_the_address_of_a_call_without_a_key_is_left_as_it_is() {
    let server = Server::doing([answer(200)]).await;
    let url = server.url("/pay").replace("//", "//jane:s3cr3t@");
    let sees_user = |request: &mut Request| assert_eq!(request.url().username(), "jane");
    let process = Process::around(builder(&Pauses::default()), Passing(sees_user));

    let request = Request::new(Method::GET, url.parse().expect("a URL"));
    process.client.execute(request).await.expect("an answer");
}

/// Written in another way, it may be another key to a server that takes keys as they stand.
#[tokio::test]
async fn cl03_a_key_that_the_caller_wrote_is_written_so_after_a_restart_too() {
    for written in ["order-42", "\"order-42\""] {
        for profile in [Profile::ietf(), Profile::stripe()] {
            let server = Server::doing([Step::Cut, Step::Cut]).await;
            let journal = Arc::new(MemoryJournal::new());
            let first = life(profile.clone(), Arc::clone(&journal));
            let call = first.post(&server);
            let call = call.header("idempotency-key", written);
            assert!(call.send().await.is_err());

            let second = life(profile, journal);
            second.resume().await;

            let keys = server.keys();
            let is_same = |sent: &Option<String>| sent.as_deref() == Some(written);
            assert!(keys.iter().all(is_same), "{keys:?}");
        }
    }
}

/// The first of them may have been done under the key as it was written then.
#[tokio::test]
async fn cl03_a_key_that_stands_open_is_not_written_in_another_way() {
    for (written, otherwise) in [("order-42", "\"order-42\""), ("\"order-42\"", "order-42")] {
        let server = Server::doing([Step::Cut, Step::Cut]).await;
        let process = life(Profile::ietf(), MemoryJournal::new());
        let ask = |written: &str| {
            let call = process.post(&server);
            call.header("idempotency-key", written).send()
        };
        assert!(ask(written).await.is_err());

        ask(otherwise).await.expect("an answer");

        let keys = server.keys();
        let is_same = |sent: &Option<String>| sent.as_deref() == Some(written);
        assert!(keys.iter().all(is_same), "{keys:?}");
        assert_eq!(process.open().await, 0);
    }
}

/// It may have been done before the restart, and a server that may not know keys would do it again.
#[tokio::test]
async fn cl22_what_is_open_at_a_restart_is_not_sent_again_where_nobody_knows_of_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("calls.db");
    let server = Server::doing([Step::Cut]).await;
    let journal = async || SqliteJournal::open(&file).await.expect("a journal");
    let first = life(Profile::undeclared(), journal().await);
    is_undeclared(&first.charge(&server).send().await);
    drop(first);

    let second = life(Profile::undeclared(), journal().await);
    assert_eq!(second.resend().await, Resend::Undeclared);
    let open = unfinished(&second.keys).await;
    assert!(open[0].request(&second.client).is_none());
    is_undeclared(&second.charge(&server).send().await);
    assert_eq!(server.seen().len(), 1, "nothing was sent");
    drop(second);

    // An operator read the documentation.
    let third = life(Profile::ietf(), journal().await);
    assert_eq!(third.resend().await, Resend::Possible);
    let response = third.charge(&server).send().await.expect("an answer");
    assert_eq!(response.status(), 200);
    let keys = server.keys();
    assert_eq!(keys[0], keys[1]);
}

#[tokio::test]
async fn cl22_what_its_method_allows_is_sent_again_after_a_restart() {
    let server = Server::doing([Step::Cut, Step::Cut]).await;
    let journal = Arc::new(MemoryJournal::new());
    let first = life(Profile::undeclared(), Arc::clone(&journal));
    let call = first.client.put(server.url("/order")).body("order");
    assert!(call.with_extension(wish()).send().await.is_err());

    let second = life(Profile::undeclared(), journal);
    assert_eq!(second.resend().await, Resend::Possible);
    assert_eq!(second.resume().await.status(), 200);
}

/// The server said so itself, and was declared otherwise.
#[tokio::test]
async fn cl44_what_is_open_at_a_server_that_ignores_keys_is_not_sent_again() {
    let ignores = answer(500).with("idempotency-status", "ignored");
    let server = Server::doing([ignores]).await;
    let process = life(Profile::ietf(), MemoryJournal::new());
    drop(process.charge(&server).send().await);
    assert_eq!(process.resend().await, Resend::Undeclared);
    is_undeclared(&process.charge(&server).send().await);
    assert_eq!(server.seen().len(), 1);
}

/// A caller that asks again is not told that this is what came of it.
#[tokio::test]
async fn cl22_what_may_have_been_done_is_handed_on_and_open_where_nobody_knows_of_keys() {
    for status in [408, 500, 503, 599] {
        let server = Server::doing([answer(status)]).await;
        let process = life(Profile::undeclared(), MemoryJournal::new());
        let response = process.charge(&server).send().await.expect("an answer");
        assert_eq!(response.status(), status);
        assert_eq!(process.resend().await, Resend::Undeclared);
        is_undeclared(&process.charge(&server).send().await);
        assert_eq!(server.seen().len(), 1);
    }
}

/// A server that wants to be asked later did nothing, so that asking later is no repetition.
#[tokio::test]
async fn cl22_what_did_not_happen_is_not_left_open_where_nobody_knows_of_keys() {
    let server = Server::doing([answer(429).with("retry-after", "3000")]).await;
    let process = life(Profile::undeclared(), MemoryJournal::new());
    let ended = process.charge(&server).send().await;
    assert!(matches!(ended.ending(), ClientError::RetryLater { .. }));
    let response = process.charge(&server).send().await.expect("an answer");
    assert_eq!(response.status(), 200);
}

/// An operator found out that nothing had happened.
#[tokio::test]
async fn cl22_a_call_that_is_forgotten_is_new() {
    let server = Server::doing([Step::Cut]).await;
    let journal = Arc::new(MemoryJournal::new());
    let process = life(Profile::undeclared(), Arc::clone(&journal));
    let key = ClientKey::new("1").expect("a key");
    let ask = async || {
        let call = process.post(&server);
        let call = call.with_extension(ClientCall::new().key(key.clone()));
        call.send().await
    };
    is_undeclared(&ask().await);
    is_undeclared(&ask().await);
    assert_eq!(server.seen().len(), 1);
    let id = EntryId {
        origin: server.url(""),
        account: String::new(),
        key: key.clone(),
    };

    journal.forget(&id).await.expect("it is forgotten");

    assert_eq!(ask().await.expect("an answer").status(), 200);
}
