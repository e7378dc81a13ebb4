//! A8 and around it: clients that go away, that are many, and that are slow.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{body::Body, middleware, middleware::Next};
use http::{Method, Request};
use http_body_util::Full;
use hyper_util::rt::{TokioExecutor, TokioIo};
use idempotent_runtime::{
    http::{LayerBuilder, Rules, Scope},
    testing::{Gate, assert_idempotent},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
};
use tower::{ServiceBuilder, ServiceExt};

use crate::harness::{
    Ask, Shop, charge, first_held_at, held, held_at, live, on_a_clock, post, silent, vanished,
    waiting,
};

/// Says when it is dropped.
struct Dropped(Option<oneshot::Sender<()>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        if let Some(told) = self.0.take() {
            let _nobody_asks = told.send(());
        }
    }
}

/// Serves the shop on a socket; the second tells when the server has dropped the first request.
async fn served(shop: &Shop) -> (SocketAddr, oneshot::Receiver<()>) {
    let (told, dropped) = oneshot::channel();
    let told = Arc::new(Mutex::new(Some(told)));
    let router = shop
        .router
        .clone()
        .layer(middleware::from_fn(move |request, next: Next| {
            let told = Dropped(told.lock().expect("nobody panics").take());
            async move {
                let response = next.run(request).await;
                drop(told);
                response
            }
        }));
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("there is a port");
    let address = listener.local_addr().expect("it has an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, dropped)
}

#[tokio::test]
async fn s_98_a_client_that_hangs_up_changes_nothing() {
    let (shop, gate) = waiting(Rules::ietf());
    let (address, dropped) = served(&shop).await;
    let mut client = TcpStream::connect(address).await.expect("it listens");
    let request = "POST /charges HTTP/1.1\r\nhost: shop\r\nidempotency-key: k\r\ncontent-length: 9\r\n\r\namount=12";
    client
        .write_all(request.as_bytes())
        .await
        .expect("it is sent");
    gate.arrived(1).await;

    drop(client);
    dropped.await.expect("the server notices");
    gate.open();

    assert!(shop.layer.shutdown(Duration::from_secs(60)).await);
    is_recorded(&shop).await;
}

/// A new service over the same store replays the first run.
pub(crate) async fn is_recorded(shop: &Shop) {
    let successor = Shop::over(shop.store.clone(), shop.idem.clone(), Rules::ietf(), silent);
    let again = successor.send(charge()).await;
    assert!(again.is_replay(), "{again:?}");
    assert_eq!(again.body, "receipt 1");
    assert_eq!((shop.runs(), successor.runs()), (1, 0));
}

#[tokio::test]
async fn s_97_a_refusal_for_the_head_comes_before_any_hundred() {
    let shop = Shop::new(Rules::ietf());
    let (address, _) = served(&shop).await;
    for (key, begins) in [
        ("", "HTTP/1.1 400 "),
        ("idempotency-key: k\r\n", "HTTP/1.1 100 "),
    ] {
        let mut client = TcpStream::connect(address).await.expect("it listens");
        let head = format!(
            "POST /charges HTTP/1.1\r\nhost: shop\r\n{key}expect: 100-continue\r\ncontent-length: 9\r\n\r\n"
        );
        client.write_all(head.as_bytes()).await.expect("it is sent");
        let mut said = [0; 13];
        client.read_exact(&mut said).await.expect("it answers");
        assert_eq!(String::from_utf8_lossy(&said), begins);
    }
}

#[tokio::test]
async fn s_99_a_stream_that_is_reset_changes_nothing() {
    let (shop, gate) = waiting(Rules::ietf());
    let (address, dropped) = served(&shop).await;
    let socket = TcpStream::connect(address).await.expect("it listens");
    let (mut client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket))
            .await
            .expect("both speak HTTP/2");
    tokio::spawn(connection);
    let request = Request::post(format!("http://{address}/charges"))
        .header("idempotency-key", "k")
        .body(Full::new(bytes::Bytes::from("amount=12")))
        .expect("a request");
    let mut response = Box::pin(client.send_request(request));
    tokio::select! {
        answer = &mut response => panic!("the handler waits: {answer:?}"),
        () = gate.arrived(1) => {}
    }

    drop(response);
    dropped.await.expect("the server notices");
    gate.open();

    assert!(shop.layer.shutdown(Duration::from_secs(60)).await);
    is_recorded(&shop).await;
}

/// Time that is paused goes on when nothing else can: when the handler waits at its gate.
#[tokio::test(start_paused = true)]
async fn s_100_a_timeout_outside_changes_nothing() {
    let (shop, gate) = waiting(Rules::ietf());
    let impatient = ServiceBuilder::new()
        .timeout(Duration::from_secs(30))
        .service(shop.router.clone());

    let timed_out = impatient.oneshot(Request::<Body>::from(charge())).await;

    assert!(timed_out.is_err());
    assert_eq!(gate.arrivals(), 1);
    gate.open();
    shop.layer.shutdown(Duration::from_secs(60)).await;
    is_recorded(&shop).await;
}

#[tokio::test]
async fn s_100_the_layer_counts_the_handlers_that_run() {
    let (shop, gate) = waiting(Rules::ietf());
    let shop = shop.beside(|layer| layer.max_in_flight(1), held_at(&gate));
    let first = held(&shop, &gate, charge()).await;
    // Its client goes away, and it runs on.
    first.abort();
    let _gone = first.await;

    let second = post("/charges").key("l");
    let refused = shop.send(second.clone()).await;
    refused.is_problem(503, "overloaded");
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(shop.runs(), 1);

    gate.open();
    while shop.send(charge()).await.status == 409 {
        tokio::task::yield_now().await;
    }
    shop.send(second).await.is_fresh();
}

/// The shop again, where each caller has room for one handler. The first one waits at the gate.
fn with_room_for_one(shop: &Shop, gate: &Gate) -> Shop {
    let room_for_one = |layer: LayerBuilder<Scope>| layer.max_in_flight_per_caller(1);
    shop.beside(room_for_one, first_held_at(gate))
}

#[tokio::test]
async fn a_caller_has_a_bound_of_its_own() {
    let (shop, gate) = waiting(Rules::ietf());
    let shop = with_room_for_one(&shop, &gate);
    let first = held(&shop, &gate, charge()).await;

    let second = post("/charges").key("l");
    let refused = shop.send(second.clone()).await;
    refused.is_problem(429, "too_many_keys");
    assert!(refused.headers.contains_key("retry-after"));
    shop.send(second.clone().caller("B")).await.is_fresh();

    gate.open();
    first.await.expect("it is answered").is_fresh();
    shop.send(second).await.is_fresh();
}

/// A takeover stands for a handler that may have acted. If it was refused for want of room, that
/// would free the key for another request.
#[tokio::test]
async fn who_takes_over_finds_room() {
    let (shop, gate, clock) = on_a_clock(Rules::ietf());
    let shop = with_room_for_one(&shop, &gate);
    let first = vanished(&shop, &gate, charge()).await;
    clock.advance(Duration::from_secs(31));

    shop.send(charge()).await.is_fresh();

    assert_eq!(shop.runs(), 2);
    let other = shop.send(charge().body("amount=13")).await;
    other.is_problem(422, "key_reused");
    gate.open();
    first.await.expect("it is answered");
}

#[tokio::test]
async fn equal_requests_are_sent_and_compared() {
    let shop = Shop::new(Rules::ietf());
    let runs = async || shop.runs();
    let request = || Request::<Body>::from(charge());
    let first = assert_idempotent(5, shop.router.clone(), request, runs).await;
    assert_eq!(first.body(), "receipt 1");
}

#[tokio::test]
#[should_panic(expected = "the state after request 1 and after request 2")]
async fn a_request_that_runs_twice_is_found() {
    let shop = Shop::new(Rules::ietf());
    let runs = async || shop.runs();
    let unguarded = || Request::<Body>::from(Ask::new(Method::PUT, "/charges"));
    assert_idempotent(2, shop.router.clone(), unguarded, runs).await;
}

#[tokio::test]
#[should_panic(expected = "response 1 and response 2")]
async fn another_response_to_an_equal_request_is_found() {
    let shop = Shop::new(Rules::ietf());
    let put = || Request::<Body>::from(Ask::new(Method::PUT, "/charges").key("k"));
    assert_idempotent(2, shop.router.clone(), put, async || 0).await;
}

#[tokio::test]
async fn a_body_that_trickles_in_holds_no_key() {
    let shop = Shop::new(Rules::ietf());
    let (sender, receiver) = mpsc::unbounded_channel::<bytes::Bytes>();
    let slow = charge().streaming(live(receiver));
    let slow = tokio::spawn(shop.clone().send_owned(slow));
    sender.send("amount".into()).expect("it is read");

    shop.send(charge()).await.is_fresh();

    drop(sender);
    slow.await
        .expect("it is answered")
        .is_problem(422, "key_reused");
}
