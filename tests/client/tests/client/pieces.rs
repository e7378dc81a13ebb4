//! Answers that come piece by piece, or are long.

use idempotent_client::{ClientCall, Intent, MemoryJournal, Origin};

use crate::kit::{Server, Step, answer, client, client_with, outcome};

#[tokio::test]
async fn cl21_events_are_handed_on_as_they_come() {
    let server = Server::doing([Step::Events]).await;
    let mut response = client()
        .post(&server.url("/ask"))
        .send()
        .await
        .expect("an answer");
    let first = response
        .chunk()
        .await
        .expect("it is there")
        .expect("a piece");
    assert_eq!(first, "data: 1\n\n");
}

#[tokio::test]
async fn cl21_a_long_response_comes_whole() {
    for announced in [Step::Answer, Step::Chunked] {
        let long = "x".repeat(3 << 20);
        let json = answer(200)
            .with("content-type", "application/json")
            .body(&long);
        let server = Server::doing([announced(json)]).await;
        let response = client()
            .post(&server.url("/ask"))
            .send()
            .await
            .expect("an answer");
        assert_eq!(outcome(&response).attempts, 1);
        assert_eq!(response.text().await.expect("a body"), long);
    }
}

/// As an answer that is read piece by piece, and that is larger than the memory.
#[tokio::test]
async fn cl21_of_a_long_document_no_more_than_a_beginning_is_read() {
    let json = answer(200)
        .with("content-type", "application/json")
        .body(&"x".repeat(3 << 20));
    let server = Server::doing([Step::CutChunked(json)]).await;
    let response = client().post(&server.url("/ask")).send().await;
    let response = response.expect("its beginning came");
    assert_eq!(outcome(&response).attempts, 1);
    assert!(response.bytes().await.is_err(), "its end did not");
}

/// Half a document is as good as none, and a server does not always say how long one is.
#[tokio::test]
async fn cl21_half_a_document_of_unknown_length_is_asked_for_again() {
    let journal = MemoryJournal::new();
    let client = client_with(|keys| keys.journal(journal));
    for (number, content_type) in [
        "application/json",
        "application/problem+JSON",
        "text/xml; charset=utf-8",
        "Application/XML",
        "application/soap+xml",
        "application/x-www-form-urlencoded",
    ]
    .into_iter()
    .enumerate()
    {
        let document = |body| answer(201).with("content-type", content_type).body(body);
        let server = Server::doing([
            Step::CutChunked(document("half")),
            Step::Chunked(document("whole")),
        ])
        .await;
        let ask = || {
            let intent = Intent::new("pay", &number.to_string());
            let call = client.post(&server.url("/pay")).body("pay");
            call.with_extension(ClientCall::new().intent(intent)).send()
        };
        let response = ask().await.expect("an answer");
        assert_eq!(outcome(&response).attempts, 2, "{content_type}");
        assert_eq!(response.text().await.expect("a body"), "whole");
        let again = ask().await.expect("it is in the journal");
        assert_eq!(outcome(&again).origin, Origin::Journal, "{content_type}");
        assert_eq!(again.text().await.expect("a body"), "whole");
    }
}
