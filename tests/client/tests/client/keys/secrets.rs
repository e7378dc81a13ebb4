//! The readers of a key: servers see it, and no log does.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use idempotent_client::{ClientCall, ClientError, ClientKey, Intent};
use reqwest::Request;

use crate::kit::{Passing, Pauses, Process, Server, answer, builder, lock, outcome, unfinished};

#[tokio::test]
async fn cl41_the_header_of_a_key_is_marked_as_sensitive_whoever_wrote_it() {
    let server = Server::doing([answer(201)]).await;
    // By this mark, clients and proxies know what they do not log.
    let is_sensitive = |request: &mut Request| {
        assert!(request.headers()["idempotency-key"].is_sensitive());
    };
    let process = Process::around(builder(&Pauses::default()), Passing(is_sensitive));
    let call = || process.post(&server);
    let given = ClientCall::new().key(ClientKey::new("given").expect("a key"));
    for call in [
        call(),
        call().with_extension(given),
        call().header("idempotency-key", "mine"),
    ] {
        call.send().await.expect("an answer");
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn cl41_neither_logs_nor_errors_show_the_key() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    // It is set for the whole process, since what is logged for one thread only depends on which
    // thread logged first.
    tracing::subscriber::set_global_default(subscriber).expect("nobody else logs");
    // A server may say the key again, in a header and in a body.
    let echo = |status| {
        let body = r#"{"key":"very-secret"}"#;
        answer(status)
            .with("idempotency-key", "\"very-secret\"")
            .body(body)
    };
    let server = Server::doing([echo(500), echo(500), echo(500), echo(500), echo(201)]).await;
    let process = Process::of(builder(&Pauses::default()));
    let key = ClientKey::new("very-secret").expect("a key");
    let send = || {
        let call = ClientCall::new().key(key.clone());
        process.post(&server).with_extension(call).send()
    };

    let error = send().await.expect_err("it ended");
    let open = unfinished(&process.keys).await;
    let response = send().await.expect("an answer");

    let logged = String::from_utf8(lock(&log.0).clone()).expect("text");
    assert!(logged.contains("same key"), "it logs at all: {logged}");
    assert_eq!(open.len(), 1);
    let response = format!("{response:?} {:?}", outcome(&response));
    for text in [
        logged,
        format!("{error:?} {error} {:?}", ClientError::from_error(&error)),
        format!("{open:?}"),
        response,
    ] {
        assert!(!text.contains("very-secret"), "{text}");
    }
    let intent = Intent::new("payments.charge", "jane@example.com");
    assert!(!format!("{intent:?}").contains("jane"));
}
