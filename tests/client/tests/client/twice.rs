//! The same middleware twice in one client.

use idempotent_client::{ClientCall, ClientError, ClientKey, MemoryJournal};
use reqwest_middleware::ClientBuilder;

use crate::kit::{OnceMore, Pauses, Server, answer, builder};

/// A call with a random key, and one with a key that can be named again.
fn calls() -> [ClientCall; 2] {
    let key = ClientKey::new("mine").expect("a key");
    [ClientCall::new(), ClientCall::new().key(key)]
}

#[tokio::test]
async fn mend_39_the_same_middleware_twice_says_so_at_once_and_leaves_nothing_open() {
    for call in calls() {
        let server = Server::doing([answer(201)]).await;
        let pauses = Pauses::default();
        let keys = builder(&pauses).journal(MemoryJournal::new());
        let (http, keys) = keys.build(reqwest::Client::builder()).expect("a client");
        let twice = ClientBuilder::new(http.clone())
            .with(keys.clone())
            .with(keys.clone())
            .build();
        let ask = twice.post(server.url("/pay")).with_extension(call.clone());

        let error = ask.send().await.expect_err("it is refused");

        let told = ClientError::from_error(&error);
        assert!(matches!(told, Some(ClientError::Twice)), "{error:?}");
        assert!(server.seen().is_empty());
        assert_eq!(keys.unfinished(10).await.expect("a list").len(), 0);

        let once = ClientBuilder::new(http).with(keys).build();
        let ask = once.post(server.url("/pay")).with_extension(call);
        assert_eq!(ask.send().await.expect("an answer").status(), 201);
    }
}

#[tokio::test]
async fn mend_39_the_same_middleware_around_another_one_says_so_and_leaves_nothing_open() {
    for call in calls() {
        let server = Server::doing([answer(201)]).await;
        let pauses = Pauses::default();
        let [(http, outer), (_, other)] = [(); 2].map(|()| {
            let keys = builder(&pauses).journal(MemoryJournal::new());
            keys.build(reqwest::Client::builder()).expect("a client")
        });
        let around = [&outer, &other, &outer].into_iter();
        let around = around.fold(ClientBuilder::new(http), |client, keys| {
            client.with(keys.clone())
        });
        let ask = around.build().post(server.url("/pay"));

        let error = ask.with_extension(call).send().await;

        let error = error.expect_err("it is refused");
        let told = ClientError::from_error(&error);
        assert!(matches!(told, Some(ClientError::Twice)), "{error:?}");
        assert!(server.seen().is_empty());
        for keys in [outer, other] {
            assert_eq!(keys.unfinished(10).await.expect("a list").len(), 0);
        }
    }
}

/// One pass after the other is no mistake.
#[tokio::test]
async fn mend_39_a_retry_outside_passes_the_same_middleware_again() {
    let server = Server::doing([answer(409), answer(201)]).await;
    let (http, keys) = builder(&Pauses::default())
        .build(reqwest::Client::builder())
        .expect("a client");
    let client = ClientBuilder::new(http)
        .with(OnceMore(|answered| {
            answered.as_ref().is_ok_and(|answer| answer.status() == 409)
        }))
        .with(keys)
        .build();

    let answered = client.post(server.url("/pay")).send().await;

    assert_eq!(answered.expect("an answer").status(), 201);
}
