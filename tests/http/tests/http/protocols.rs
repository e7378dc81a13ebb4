//! A9: one service, asked by HTTP/1.0, HTTP/1.1 and HTTP/2.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Version,
    header::{CONNECTION, CONTENT_LENGTH, DATE},
};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use idempotent_runtime::http::{KeyEcho, Rules};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::harness::{Answer, Shop, respond};

const VERSIONS: [Version; 3] = [Version::HTTP_10, Version::HTTP_11, Version::HTTP_2];

/// The header fields of one connection of HTTP/1: those that the handler sets, and others.
const OF_ONE_CONNECTION: [&str; 6] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
    "x-hop",
];

/// Its handler speaks of its connection, as one does that passes on what another server answered.
fn shop() -> Shop {
    Shop::with(
        Rules::ietf().echo(KeyEcho::Key),
        |run, request| async move {
            let version = request.version();
            let mut response = respond(StatusCode::CREATED, format!("receipt {run}"));
            let headers = response.headers_mut();
            headers.insert("location", HeaderValue::from_static("/receipts/1"));
            if version != Version::HTTP_2 {
                headers.insert("connection", HeaderValue::from_static("x-hop"));
                headers.insert("keep-alive", HeaderValue::from_static("timeout=5"));
                headers.insert("x-hop", HeaderValue::from_static("1"));
            }
            response
        },
    )
}

async fn served(shop: &Shop) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = shop.router.clone();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Asks on a connection of its own.
async fn ask(address: SocketAddr, version: Version, key: Option<&str>, body: &str) -> Answer {
    let socket = TcpStream::connect(address).await.expect("it listens");
    match version {
        Version::HTTP_2 => ask_by_frames(socket, address, key, body).await,
        _ => ask_in_text(socket, version, key, body).await,
    }
}

async fn ask_in_text(
    mut socket: TcpStream,
    version: Version,
    key: Option<&str>,
    body: &str,
) -> Answer {
    let key = key.map(|key| format!("IDEMPOTENCY-KEY: {key}\r\n"));
    let request = format!(
        "POST /charges {version:?}\r\nhost: shop\r\n{}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        key.unwrap_or_default(),
        body.len()
    );
    socket
        .write_all(request.as_bytes())
        .await
        .expect("it is sent");
    let mut text = String::new();
    socket.read_to_string(&mut text).await.expect("it answers");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    let mut lines = head.lines();
    let mut words = lines.next().expect("a status line").split(' ');
    assert_eq!(words.next(), Some(&*format!("{version:?}")));
    let status = words.next().and_then(|status| status.parse().ok());
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(": ").expect("a header field");
        let name: HeaderName = name.parse().expect("a name");
        headers.append(name, value.parse().expect("a value"));
    }
    Answer {
        status: status.expect("a status"),
        headers,
        body: Bytes::copy_from_slice(body.as_bytes()),
        trailers: None,
    }
}

async fn ask_by_frames(
    socket: TcpStream,
    address: SocketAddr,
    key: Option<&str>,
    body: &str,
) -> Answer {
    let socket = TokioIo::new(socket);
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), socket);
    let (mut client, connection) = handshake.await.expect("both speak HTTP/2");
    tokio::spawn(connection);
    let mut request = Request::post(format!("http://{address}/charges"));
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
    let response = client.send_request(request.body(body).expect("a request"));
    let (head, body) = response.await.expect("it is answered").into_parts();
    Answer {
        status: head.status,
        headers: head.headers,
        body: body.collect().await.expect("it is whole").to_bytes(),
        trailers: None,
    }
}

/// The fields that a server adds to a response on its own connection are no part of what is
/// replayed.
fn without_the_servers(mut answer: Answer) -> Answer {
    answer.headers.remove(DATE);
    let length = answer.headers.remove(CONTENT_LENGTH);
    assert_eq!(length, Some(HeaderValue::from(answer.body.len())));
    if answer
        .headers
        .get(CONNECTION)
        .is_some_and(|value| value == "close")
    {
        answer.headers.remove(CONNECTION);
    }
    answer
}

#[tokio::test]
async fn s_114_a_replay_is_the_same_in_every_version_of_http() {
    for first_by in VERSIONS {
        let shop = shop();
        let address = served(&shop).await;
        let first = ask(address, first_by, Some("\"k\""), "amount=12").await;
        first.is_fresh();
        assert_eq!(first.status, 201);

        let mut replays = Vec::new();
        for version in VERSIONS {
            let replay = ask(address, version, Some("k"), "amount=12").await;
            let anew = [
                "connection",
                "keep-alive",
                "x-hop",
                "idempotency-key",
                "date",
            ];
            replay.replays_but_for(&anew, &first);
            assert_eq!(replay.headers["location"], "/receipts/1");
            let mut replay = without_the_servers(replay);
            // The key as it was written, by each client in its own way.
            assert_eq!(
                replay
                    .headers
                    .remove("idempotency-key")
                    .expect("it is repeated"),
                "k"
            );
            for name in OF_ONE_CONNECTION {
                assert!(!replay.headers.contains_key(name), "{version:?}: {name}");
            }
            replays.push(replay);
        }
        assert_eq!(replays[0], replays[1], "after {first_by:?}");
        assert_eq!(replays[1], replays[2], "after {first_by:?}");
        assert_eq!(shop.runs(), 1);
    }
}

#[tokio::test]
async fn s_114_a_refusal_is_the_same_in_every_version_of_http() {
    let shop = shop();
    let address = served(&shop).await;
    ask(address, Version::HTTP_11, Some("k"), "amount=12")
        .await
        .is_fresh();
    for (key, body, status, code) in [
        (None, "amount=12", 400, "key_missing"),
        (Some("\"k"), "amount=12", 400, "key_invalid"),
        (Some("k"), "amount=13", 422, "key_reused"),
    ] {
        let mut refusals = Vec::new();
        for version in VERSIONS {
            let refused = ask(address, version, key, body).await;
            refused.is_problem(status, code);
            refusals.push(without_the_servers(refused));
        }
        assert_eq!(refusals[0], refusals[1]);
        assert_eq!(refusals[1], refusals[2]);
    }
    assert_eq!(shop.runs(), 1);
}
