//! Servers that ignore keys, or do not support them, and say so.

use idempotent_client::{ClientCall, ClientError, KeyStatus, StopReason};

use crate::kit::{Ending, Server, Step, answer, client, outcome, problem};

#[tokio::test]
async fn cl44_a_server_that_ignores_keys_is_not_relied_on_again() {
    let ignores = answer(201).with("idempotency-status", "ignored");
    let server = Server::doing([ignores.into(), Step::Cut]).await;
    let client = client();

    let response = client.pay(&server).await;
    assert_eq!(outcome(&response).key_status, KeyStatus::Ignored);

    let ended = client.post(&server.url("/pay")).send().await;
    assert_eq!(ended.unknown().0, StopReason::Undeclared);
    assert_eq!(server.seen().len(), 2);
}

/// The way to call a server of which only some routes honour keys.
#[tokio::test]
async fn cl44_a_route_that_ignores_keys_speaks_for_no_other_to_a_call_without_one() {
    let ignores = || answer(200).with("idempotency-status", "ignored");
    let server = Server::doing([
        ignores().into(),
        Step::Cut,
        answer(201).into(),
        ignores().into(),
        Step::Cut,
    ]);
    let server = server.await;
    let first = client();
    let search = async |call: ClientCall| {
        let search = first.post(&server.url("/search")).with_extension(call);
        search.send().await.expect("an answer")
    };
    search(ClientCall::new().without_key()).await;
    let paid = first.post(&server.url("/pay")).send().await;
    assert_eq!(outcome(&paid.expect("an answer")).attempts, 2);

    search(ClientCall::new()).await;
    let another = client().post(&server.url("/pay")).send().await;
    assert_eq!(outcome(&another.expect("an answer")).attempts, 2);
}

#[tokio::test]
async fn cl44_a_server_that_does_not_support_keys_says_so() {
    // The problem speaks for the server; a bare 501 may be about something else.
    let rows = [
        (problem(501, "idempotency-not-supported"), 2),
        (answer(501), 3),
    ];
    for (unsupported, requests) in rows {
        let server = Server::doing([unsupported.into(), Step::Cut]).await;
        let client = client();
        let ended = client.post(&server.url("/pay")).send().await;
        assert!(matches!(ended.ending(), ClientError::Unsupported { .. }));

        let after = client.post(&server.url("/pay")).send().await;
        assert_eq!(after.is_ok(), requests == 3);
        assert_eq!(server.seen().len(), requests);
    }
}
