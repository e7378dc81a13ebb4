//! Streams that a server of HTTP/2 says it did not begin: the client beneath sends them again.

use http::{Response, StatusCode};
use reqwest_middleware::ClientWithMiddleware;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::kit::{Ending, Pauses, builder, outcome};

fn client() -> ClientWithMiddleware {
    let http = reqwest::Client::builder().http2_prior_knowledge();
    builder(&Pauses::default()).client(http).expect("a client")
}

/// A stream that the server refuses is not counted as an attempt, because the client beneath sends
/// it again by itself.
#[tokio::test]
async fn cl35_a_refused_stream_is_sent_again_with_the_key() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        let mut connection = h2::server::handshake(stream).await.expect("HTTP/2");
        let mut keys = Vec::new();
        while let Some(request) = connection.accept().await {
            let (request, mut respond) = request.expect("a request");
            keys.push(request.headers()["idempotency-key"].clone());
            if keys.len() == 1 {
                respond.send_reset(h2::Reason::REFUSED_STREAM);
                continue;
            }
            let response = Response::builder().status(201).body(());
            let sent = respond.send_response(response.expect("a response"), true);
            sent.expect("it is sent");
            if keys.len() == 2 {
                connection.graceful_shutdown();
            }
        }
        keys
    });
    let client = client();

    let call = client.post(format!("http://{address}/pay")).body("pay");
    let response = call.send().await.expect("an answer");

    assert_eq!(response.status(), 201);
    assert_eq!(outcome(&response).attempts, 1);
    drop((response, client));
    let keys = serving.await.expect("it ends");
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
}

/// A server that goes away says which streams it did not begin: all of them.
#[tokio::test]
async fn cl35_a_call_that_a_server_goes_away_from_is_sent_again_with_the_key() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        go_away_from_the_first_request(stream).await;
        let (stream, _) = listener.accept().await.expect("another connection");
        let mut connection = h2::server::handshake(stream).await.expect("HTTP/2");
        let request = connection.accept().await.expect("a request");
        let (request, mut respond) = request.expect("a request");
        let response = Response::builder().status(201).body(());
        let sent = respond.send_response(response.expect("a response"), true);
        sent.expect("it is sent");
        connection.graceful_shutdown();
        while connection.accept().await.is_some() {}
        request.headers()["idempotency-key"].clone()
    });
    let client = client();

    let call = client.post(format!("http://{address}/pay")).body("pay");
    let response = call.send().await.expect("an answer");

    assert_eq!(response.status(), 201);
    let outcome = outcome(&response).clone();
    assert_eq!(outcome.attempts, 1);
    drop((response, client));
    let sent = serving.await.expect("it ends");
    let key = outcome.key.expect("a key");
    assert_eq!(sent, format!("\"{}\"", key.as_str()));
}

/// A failed connection tells that nothing was sent, except if an attempt may send several times.
#[tokio::test]
async fn cl35_nothing_else_is_sent_again_by_the_client_beneath() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        drop(listener);
        let read = stream.read(&mut [0; 4096]).await;
        assert_ne!(read.expect("a request"), 0);
        let answer =
            b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        stream.write_all(answer).await.expect("it is sent");
    });
    let unavailable = Some(StatusCode::SERVICE_UNAVAILABLE);
    let retries = reqwest::retry::for_host("127.0.0.1").classify_fn(move |attempt| {
        if attempt.status() == unavailable {
            attempt.retryable()
        } else {
            attempt.success()
        }
    });
    let http = reqwest::Client::builder().retry(retries);
    let client = builder(&Pauses::default()).client(http).expect("a client");

    let call = client.post(format!("http://{address}/pay")).body("pay");
    let told = call.send().await;

    serving.await.expect("it ends");
    told.unknown();
}

/// Reads a whole request, and tells that no stream was begun (RFC 9113, section 6.8). The frames
/// are written by hand, because a library says of what it has read that it was begun.
async fn go_away_from_the_first_request(mut stream: TcpStream) {
    const DATA: u8 = 0;
    const END_STREAM: u8 = 1;
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    // The last stream is none, and there is no error.
    const GO_AWAY: [u8; 17] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await.expect("HTTP/2");
    stream.write_all(&SETTINGS).await.expect("it is sent");
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.expect("a frame");
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut rest = vec![0; length as usize];
        stream.read_exact(&mut rest).await.expect("a frame");
        if head[3] == DATA && head[4] & END_STREAM != 0 {
            break;
        }
    }
    stream.write_all(&GO_AWAY).await.expect("it is sent");
    // The client's last words are read, so that closing does not take back what it was told.
    let _ = stream.read_to_end(&mut Vec::new()).await;
}
