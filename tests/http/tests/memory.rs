//! How much memory a service takes whose clients send bodies of the greatest length. This test has
//! its own process, so that nothing else counts.

#![cfg(target_os = "linux")]

use std::net::SocketAddr;

use axum::{Router, body::Bytes, routing::post};
use idempotent_runtime::{
    Idempotency,
    http::{IdempotencyLayer, Rules},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

const CLIENTS: usize = 64;
/// How often all clients send, each once.
const ROUNDS: usize = 12;
/// How long a body may be.
const LIMIT: usize = 1 << 20;

async fn serve() -> SocketAddr {
    let length = async |body: Bytes| body.len().to_string();
    let layer = IdempotencyLayer::builder(Idempotency::memory())
        .shared_by_all_callers()
        .rules(Rules::ietf().max_request(LIMIT))
        .build()
        .expect("the settings are sound");
    let app = Router::new()
        .route("/charges", post(length))
        .layer(axum::extract::DefaultBodyLimit::disable())
        .layer(layer);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// Sends a body, which all clients share, and gives the status.
async fn send(address: SocketAddr, key: String, body: Bytes, chunked: bool) -> String {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let framing = if chunked {
        "transfer-encoding: chunked".to_owned()
    } else {
        format!("content-length: {}", body.len())
    };
    let head = format!(
        "POST /charges HTTP/1.1\r\nhost: localhost\r\nidempotency-key: \"{key}\"\r\nconnection: close\r\n{framing}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("it is sent");
    for chunk in body.chunks(64 << 10) {
        let size = format!("{:x}\r\n", chunk.len());
        let (before, after): (&[u8], &[u8]) = if chunked {
            (size.as_bytes(), b"\r\n")
        } else {
            (b"", b"")
        };
        for part in [before, chunk, after] {
            // A service that has refused it may have hung up.
            if stream.write_all(part).await.is_err() {
                break;
            }
        }
    }
    if chunked {
        let _ = stream.write_all(b"0\r\n\r\n").await;
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let line = answer.split(|byte| *byte == b' ').nth(1);
    String::from_utf8_lossy(line.unwrap_or_default()).into_owned()
}

/// The most memory that this process ever had, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.expect("Linux tells").trim().trim_end_matches(" kB");
    kilobytes.parse::<usize>().expect("a number") * 1_024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s_84_s_85_the_longest_bodies_take_memory_for_as_long_as_they_are_read() {
    let address = serve().await;
    let longest = Bytes::from(vec![b'x'; LIMIT]);
    let too_long = Bytes::from(vec![b'x'; LIMIT + 1]);
    let before = peak();
    let mut peaks = Vec::new();
    for round in 0..ROUNDS {
        let mut sending = JoinSet::new();
        for client in 0..CLIENTS {
            let is_too_long = client % 4 == 3;
            let body = if is_too_long { &too_long } else { &longest }.clone();
            let key = format!("order-{round}-{client}");
            sending.spawn(async move {
                let status = send(address, key, body, client % 2 == 1).await;
                (status, is_too_long)
            });
        }
        for (status, is_too_long) in sending.join_all().await {
            // If the service hangs up on a body that is too long, its answer may be lost with what
            // it did not read.
            let refused = is_too_long && ["413", ""].contains(&&*status);
            assert!(refused || status == "200", "{status}");
            assert_eq!(refused, is_too_long);
        }
        peaks.push(peak() - before);
    }

    let of_all_clients = CLIENTS * LIMIT;
    assert!(peaks[ROUNDS - 1] < 5 * of_all_clients, "{peaks:?}");
    let (early, late) = (peaks[ROUNDS / 3], peaks[ROUNDS - 1]);
    assert!(late - early < of_all_clients, "{peaks:?}");
}
