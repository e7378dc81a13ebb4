//! The cost of the layer for a service, beside the same service of axum without it: 64 connections
//! over real sockets, bodies of 200 bytes, the memory store. Client and service share the machine.
//! `wrk` is asked, too, if it is installed.
//!
//! It also measures on Postgres if `IDEMPOTENT_TEST_POSTGRES_URL` says where that is. There the
//! layer stands beside a service whose handler makes the same call of the same store itself: two
//! round trips for a fresh key, and one for a replay.

mod wrk;

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
};

use axum::{Router, body::Bytes, extract::State, http::HeaderMap, routing::post};
use benches::Ratios;
use idempotent_runtime::{
    Error, Idempotency,
    http::{IdempotencyLayer, Rules},
    store::PostgresStore,
};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    task::{AbortHandle, JoinSet},
};

const CONNECTIONS: usize = 64;
const REQUESTS: u32 = 6_400;

async fn charge(body: Bytes) -> Bytes {
    body
}

fn bare() -> Router {
    Router::new().route("/charges", post(charge))
}

fn layered(idem: Idempotency) -> Router {
    let layer = IdempotencyLayer::builder(idem)
        .shared_by_all_callers()
        .rules(Rules::ietf());
    bare().layer(layer.build().expect("the settings are sound"))
}

/// The same, by a handler that makes the call itself.
async fn called(State(idem): State<Idempotency>, headers: HeaderMap, body: Bytes) -> Bytes {
    let key = headers["idempotency-key"].as_bytes();
    let call = idem.call("charges").key(key).arguments(&*body);
    let answer: Result<Vec<u8>, Error> = call
        .run(async |_| Ok(charge(body.clone()).await.into()))
        .await;
    answer.expect("an answer").into()
}

/// Serves for as long as the runtime runs, unless the task is ended.
async fn serve(app: Router) -> (SocketAddr, AbortHandle) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    (address, serving.abort_handle())
}

/// Connections that stay open.
struct Client(Vec<TcpStream>);

impl Client {
    async fn to(address: SocketAddr) -> Self {
        let mut streams = Vec::new();
        for _ in 0..CONNECTIONS {
            streams.push(connect(address).await);
        }
        Self(streams)
    }

    /// Sends so many requests, each over whatever connection has its answer, with the keys that
    /// come.
    async fn send(&mut self, times: u32, key: fn() -> u64) {
        let share = times as usize / CONNECTIONS;
        let mut running = JoinSet::new();
        for mut stream in self.0.drain(..) {
            running.spawn(async move {
                for _ in 0..share {
                    request(&mut stream, key()).await;
                }
                stream
            });
        }
        self.0 = running.join_all().await;
    }
}

async fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).expect("an option of TCP");
    stream
}

/// Sends one request, and reads its answer.
async fn request(stream: &mut TcpStream, key: u64) {
    let body = "x".repeat(200);
    let request = format!(
        "POST /charges HTTP/1.1\r\nhost: localhost\r\nidempotency-key: \"order-{key}\"\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream
        .write_all(request.as_bytes())
        .await
        .expect("it is sent");
    let mut answer = [0; 2_048];
    let mut read = 0;
    while !is_whole(&answer[..read]) {
        let more = stream.read(&mut answer[read..]).await.expect("an answer");
        assert_ne!(more, 0, "the service hung up");
        read += more;
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 "));
}

/// Whether an answer is there, with all of its body of 200 bytes.
fn is_whole(answer: &[u8]) -> bool {
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n");
    head.is_some_and(|head| answer.len() >= head + 4 + 200)
}

fn fresh() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn same() -> u64 {
    0
}

/// Adds replays and fresh keys to a table.
fn compare(runtime: &Runtime, ratios: &mut Ratios, ours: Router, theirs: Router, requests: u32) {
    let (mut ours, mut theirs) = runtime.block_on(async {
        let ((ours, _), (theirs, _)) = (serve(ours).await, serve(theirs).await);
        (Client::to(ours).await, Client::to(theirs).await)
    });
    // The key of the replays has its outcome before the first of them.
    for side in [&mut ours, &mut theirs] {
        runtime.block_on(request(&mut side.0[0], same()));
    }
    for (name, key) in [("replay", same as fn() -> u64), ("fresh key", fresh)] {
        ratios.time(
            name,
            requests,
            |times| runtime.block_on(ours.send(times, key)),
            |times| runtime.block_on(theirs.send(times, key)),
        );
    }
}

/// A handle over tables of its own.
async fn on_postgres(url: &str, prefix: &str) -> Idempotency {
    let mut side = PgConnection::connect(url).await.expect("a connection");
    let dropped = format!("DROP TABLE IF EXISTS {prefix}records, {prefix}schema");
    let dropped = sqlx::raw_sql(AssertSqlSafe(dropped))
        .execute(&mut side)
        .await;
    dropped.expect("no table is left");
    let store = PostgresStore::builder().table_prefix(prefix).connect(url);
    Idempotency::new(store.await.expect("the server answers"))
}

fn main() {
    if !benches::is_measuring() {
        return;
    }
    let runtime = Runtime::new().expect("a runtime");
    let mut ratios = Ratios::new("axum, 64 connections", "without the layer");
    let ours = layered(Idempotency::memory());
    compare(&runtime, &mut ratios, ours, bare(), REQUESTS);
    ratios.print();
    wrk::compare(&runtime);

    let Some(url) = benches::server("IDEMPOTENT_TEST_POSTGRES_URL") else {
        return;
    };
    let (ours, theirs) = runtime.block_on(async {
        let ours = layered(on_postgres(&url, "bench_layer_").await);
        let called = post(called).with_state(on_postgres(&url, "bench_call_").await);
        (ours, Router::new().route("/charges", called))
    });
    let mut ratios = Ratios::new("the same on Postgres", "the call without the layer");
    compare(&runtime, &mut ratios, ours, theirs, REQUESTS / 10);
    ratios.print();
}
