//! A8: clients that go away, handlers that fail, leases that end, stores that are out of reach.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{body::Body, middleware, middleware::Next};
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use idempotent_runtime::{
    Idempotency, MemoryStore, OnCrash, OnOutage, RawOutcome, Status,
    http::{IdempotencyLayer, Rules, ServerErrors},
    record::{Draft, Moment, TokenRule, Version},
    store::{StoreErrorKind, Swap},
    testing::{Fault, FaultyStore, Gate, ManualClock, Nth, Operation, assert_idempotent},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

use crate::harness::{Shop, by_caller, charge, post, spawn};

/// A shop whose handler waits at the gate in its first run.
fn waiting(rules: Rules) -> (Shop, Gate) {
    let store = FaultyStore::new(MemoryStore::new());
    let idem = Idempotency::new(store.clone());
    waiting_over(store, idem, rules)
}

fn waiting_over(store: FaultyStore, idem: Idempotency, rules: Rules) -> (Shop, Gate) {
    let gate = Gate::new();
    let inside = gate.clone();
    let shop = Shop::over(store, idem, rules, move |run, _| {
        let gate = inside.clone();
        async move {
            if run == 1 {
                gate.pass().await;
            }
            Response::new(Body::from(format!("receipt {run}")))
        }
    });
    (shop, gate)
}

/// The same on a clock of the test's own, for store and handle.
fn on_a_clock(rules: Rules) -> (Shop, Gate, ManualClock) {
    let clock = ManualClock::new();
    let store = FaultyStore::new(MemoryStore::with_clock(clock.clone()));
    let idem = Idempotency::builder(store.clone())
        .timer(clock.clone())
        .build();
    let (shop, gate) = waiting_over(store, idem.expect("the settings are sound"), rules);
    (shop, gate, clock)
}

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
async fn served(shop: &Shop) -> (std::net::SocketAddr, oneshot::Receiver<()>) {
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

/// The first run is what a new service over the same store replays.
async fn is_recorded(shop: &Shop) {
    let successor = Shop::over(
        shop.store.clone(),
        shop.idem.clone(),
        Rules::ietf(),
        |_, _| async { Response::default() },
    );
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
        .body(http_body_util::Full::new(bytes::Bytes::from("amount=12")))
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

#[tokio::test]
async fn s_114_http_2_is_answered_as_http_1() {
    let shop = Shop::new(Rules::ietf());
    let first = shop.send(charge()).await;
    let (address, _) = served(&shop).await;
    let socket = TcpStream::connect(address).await.expect("it listens");
    let (mut client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket))
            .await
            .expect("both speak HTTP/2");
    tokio::spawn(connection);
    let request = Request::post(format!("http://{address}/charges"))
        .header("idempotency-key", "k")
        .body(http_body_util::Full::new(bytes::Bytes::from("amount=12")))
        .expect("a request");

    let again = client.send_request(request).await.expect("it is answered");

    assert_eq!(again.headers()["idempotent-replayed"], "true");
    assert!(!again.headers().contains_key("connection"));
    assert!(!again.headers().contains_key("transfer-encoding"));
    let body = again
        .into_body()
        .collect()
        .await
        .expect("it is whole")
        .to_bytes();
    assert_eq!(body, first.body);
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
    let layer = IdempotencyLayer::builder(shop.idem.clone())
        .scope(by_caller())
        .max_in_flight(1)
        .build()
        .expect("the settings are sound");
    let inside = gate.clone();
    let shop = Shop::behind(layer, shop.store, shop.idem, move |_, _| {
        let gate = inside.clone();
        async move {
            gate.pass().await;
            Response::default()
        }
    });
    let first = spawn(&shop, charge());
    gate.arrived(1).await;
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

#[tokio::test]
async fn a_caller_has_a_bound_of_its_own() {
    let (shop, gate) = waiting(Rules::ietf());
    let layer = IdempotencyLayer::builder(shop.idem.clone())
        .scope(by_caller())
        .max_in_flight_per_caller(1)
        .build()
        .expect("the settings are sound");
    let inside = gate.clone();
    let shop = Shop::behind(layer, shop.store, shop.idem, move |run, _| {
        let gate = inside.clone();
        async move {
            if run == 1 {
                gate.pass().await;
            }
            Response::default()
        }
    });
    let first = spawn(&shop, charge());
    gate.arrived(1).await;

    let second = post("/charges").key("l");
    let refused = shop.send(second.clone()).await;
    refused.is_problem(429, "too_many_keys");
    assert!(refused.headers.contains_key("retry-after"));
    shop.send(second.clone().caller("B")).await.is_fresh();

    gate.open();
    first.await.expect("it is answered").is_fresh();
    shop.send(second).await.is_fresh();
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
    let unguarded =
        || Request::<Body>::from(crate::harness::Ask::new(http::Method::PUT, "/charges"));
    assert_idempotent(2, shop.router.clone(), unguarded, runs).await;
}

#[tokio::test]
#[should_panic(expected = "response 1 and response 2")]
async fn another_response_to_an_equal_request_is_found() {
    let shop = Shop::new(Rules::ietf());
    let put =
        || Request::<Body>::from(crate::harness::Ask::new(http::Method::PUT, "/charges").key("k"));
    assert_idempotent(2, shop.router.clone(), put, async || 0).await;
}

#[tokio::test]
async fn s_101_a_shutdown_waits_for_handlers_and_refuses_new_work() {
    let (shop, gate) = waiting(Rules::ietf());
    let first = spawn(&shop, charge());
    gate.arrived(1).await;
    first.abort();
    let _gone = first.await;

    assert!(!shop.layer.shutdown(Duration::ZERO).await, "a handler runs");
    let refused = shop.send(post("/charges").key("l")).await;
    refused.is_problem(503, "overloaded");

    gate.open();
    assert!(shop.layer.shutdown(Duration::from_secs(60)).await);
    is_recorded(&shop).await;
}

#[tokio::test]
async fn s_101_a_shutdown_waits_for_what_is_being_recorded() {
    let (shop, inside) = waiting(Rules::ietf());
    inside.open();
    let writing = Gate::new();
    shop.store
        .fault(Operation::Ending, Nth::Every, Fault::Delay(writing.clone()));
    let first = spawn(&shop, charge());
    writing.arrived(1).await;

    assert!(
        !shop.layer.shutdown(Duration::ZERO).await,
        "the handler has ended, and nothing is recorded"
    );

    writing.open();
    assert!(shop.layer.shutdown(Duration::from_secs(60)).await);
    first.await.expect("it is answered").is_fresh();
}

fn panicking(rules: Rules) -> Shop {
    Shop::with(rules, |_, _| async { panic!("the handler of a test") })
}

#[tokio::test]
async fn s_102_a_panic_is_a_failure() {
    let shop = panicking(Rules::ietf());
    let first = shop.send(charge()).await;
    first.is_problem(500, "handler_failed");
    shop.send(charge()).await.replays(&first);
    assert_eq!(shop.runs(), 1);

    let shop = panicking(Rules::ietf().server_errors(ServerErrors::Release));
    for _ in 0..2 {
        shop.send(charge()).await.is_problem(500, "handler_failed");
    }
    assert_eq!(shop.runs(), 2);

    let shop = panicking(Rules::ietf().server_errors(ServerErrors::Uncertain));
    shop.send(charge()).await.is_problem(500, "handler_failed");
    shop.send(charge()).await.is_problem(409, "outcome_unknown");
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_103_an_error_of_the_service_is_a_failure() {
    for (errors, again_is) in [
        (ServerErrors::Replay, 500),
        (ServerErrors::Release, 0),
        (ServerErrors::Uncertain, 409),
    ] {
        let shop = Shop::new(Rules::ietf());
        let layer = IdempotencyLayer::builder(shop.idem.clone())
            .scope(by_caller())
            .rules(Rules::ietf().server_errors(errors))
            .build()
            .expect("the settings are sound");
        let fails =
            service_fn(|_| async { Err::<Response<Empty<bytes::Bytes>>, _>("no connection") });
        let service = layer.layer(fails);
        let send = || service.clone().oneshot(Request::<Body>::from(charge()));

        let first = send().await.map(|response| response.status().as_u16());
        let again = send().await.map(|response| response.status().as_u16());

        assert_eq!(first, Err("no connection"));
        assert_eq!(again.unwrap_or(0), again_is, "{errors:?}");
    }
}

#[tokio::test]
async fn s_104_a_vanished_process_binds_a_key_for_one_lease() {
    for (on_crash, runs) in [(OnCrash::Rerun, 2), (OnCrash::Uncertain, 1)] {
        let (shop, gate, clock) = on_a_clock(Rules::ietf().on_crash(on_crash));
        // To the store, a process that is gone is one of which nothing more is heard.
        shop.store
            .fault(Operation::Heartbeat, Nth::Every, Fault::LoseRequest);
        let first = spawn(&shop, charge());
        gate.arrived(1).await;
        shop.send(charge())
            .await
            .is_problem(409, "request_in_progress");

        clock.advance(Duration::from_secs(31));

        let again = shop.send(charge()).await;
        match on_crash {
            OnCrash::Rerun => again.is_fresh(),
            _ => drop(again.is_problem(409, "outcome_unknown")),
        }
        assert_eq!(shop.runs(), runs);
        first.abort();
    }
}

#[tokio::test]
async fn s_105_a_slow_handler_keeps_its_key() {
    let (shop, gate, clock) = on_a_clock(Rules::ietf().lease("30s"));
    let first = spawn(&shop, charge());
    gate.arrived(1).await;
    for beats in 1..=6 {
        clock.await_sleepers(1).await;
        clock.advance(Duration::from_secs(10));
        while shop.store.calls(Operation::Heartbeat) < beats {
            tokio::task::yield_now().await;
        }
    }
    shop.send(charge())
        .await
        .is_problem(409, "request_in_progress");
    gate.open();
    let first = first.await.expect("it is answered");
    shop.send(charge()).await.replays(&first);
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_106_who_lost_its_lease_gives_the_response_that_won() {
    let (shop, gate, clock) = on_a_clock(Rules::ietf());
    shop.store
        .fault(Operation::Heartbeat, Nth::Every, Fault::LoseRequest);
    let stale = spawn(&shop, charge());
    gate.arrived(1).await;
    clock.advance(Duration::from_secs(31));
    let winner = shop.send(charge()).await;
    assert_eq!(winner.body, "receipt 2");

    gate.open();

    let stale = stale.await.expect("it is answered");
    assert_eq!(stale.body, "receipt 2", "one outcome");
    shop.send(charge()).await.replays(&winner);
    assert_eq!(shop.runs(), 2);
}

#[tokio::test]
async fn s_107_nothing_runs_without_a_store_unless_that_is_asked_for() {
    let shop = Shop::new(Rules::ietf());
    shop.store.outage(StoreErrorKind::Unavailable);
    let refused = shop.send(charge()).await;
    refused.is_problem(503, "store_unavailable");
    assert_eq!(refused.headers["retry-after"], "5");
    assert_eq!(shop.runs(), 0);
    shop.store.heal();
    shop.send(charge()).await.is_fresh();

    let open = Shop::new(Rules::ietf().on_outage(OnOutage::Open));
    open.store.outage(StoreErrorKind::Unavailable);
    for _ in 0..2 {
        open.send(charge()).await.is_fresh();
    }
    assert_eq!(open.runs(), 2);
}

#[tokio::test]
async fn s_108_a_store_that_dies_meanwhile_costs_nobody_the_response() {
    let shop = Shop::new(Rules::ietf());
    shop.store.fault(
        Operation::Ending,
        Nth::Every,
        Fault::Fail(StoreErrorKind::Unavailable),
    );

    let first = shop.send(charge()).await;

    first.is_fresh();
    shop.send(charge())
        .await
        .is_problem(409, "request_in_progress");
    shop.store.heal();
    while let Ok(Status::Processing { .. }) = shop.idem.lookup("http", Some("A"), "k").await {
        tokio::task::yield_now().await;
    }
    shop.send(charge()).await.replays(&first);
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_109_what_cannot_be_read_is_neither_given_nor_run_again() {
    for damaged in [&b""[..], b"garbage", b"\xff\x01"] {
        let shop = Shop::new(Rules::ietf());
        shop.send(charge()).await.is_fresh();
        let records = shop
            .idem
            .store()
            .scan(None, 1)
            .await
            .expect("the store answers");
        let (id, record) = &records[0];
        let draft = Draft {
            version: Version::random(),
            subject: None,
            state: record.state,
            token: TokenRule::Keep,
            attempt: record.attempt,
            attempt_id: record.attempt_id,
            holder: record.holder.clone(),
            on_crash: record.on_crash,
            lease: Moment::Keep,
            expires: Moment::Keep,
            keep: Duration::ZERO,
            outcome: Some(RawOutcome::value(damaged)),
        };
        let swap = shop
            .idem
            .store()
            .swap(id, Some(record.version), &draft)
            .await;
        assert!(matches!(swap, Ok(Swap::Applied(_))), "{swap:?}");

        shop.send(charge()).await.is_problem(409, "outcome_unknown");

        assert_eq!(shop.runs(), 1);
        let kept = shop.idem.store().load(id).await.expect("the store answers");
        assert_eq!(
            kept.record.expect("it is kept").outcome,
            Some(RawOutcome::value(damaged))
        );
    }
}

#[tokio::test]
async fn s_110_s_111_after_its_time_a_key_is_new_purged_or_not() {
    let (shop, gate, clock) = on_a_clock(Rules::ietf().ttl("36h"));
    gate.open();
    let first = shop.send(charge()).await;
    clock.advance(Duration::from_secs(36 * 60 * 60 - 1));
    shop.send(charge()).await.replays(&first);

    clock.advance(Duration::from_secs(1));

    let second = shop.send(charge()).await;
    second.is_fresh();
    assert_eq!(second.body, "receipt 2");
    shop.send(charge()).await.replays(&second);
}

#[test]
fn s_112_the_front_end_reads_no_clock() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = here.join("../../idempotent-runtime/src/http");
    let mut folders = vec![sources];
    let mut read = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("it is there") {
            let path = entry.expect("it is there").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("it is text");
            read += 1;
            for clock in ["SystemTime", "Instant", "tokio::time"] {
                assert!(!text.contains(clock), "{} reads {clock}", path.display());
            }
        }
    }
    assert!(read > 20);
}

#[tokio::test]
async fn a_body_that_trickles_in_holds_no_key() {
    let shop = Shop::new(Rules::ietf());
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel::<bytes::Bytes>();
    let slow = Body::new(crate::bodies::Live(receiver));
    let slow = tokio::spawn(shop.clone().send_owned(charge().streaming(slow)));
    sender.send("amount".into()).expect("it is read");

    shop.send(charge()).await.is_fresh();

    drop(sender);
    slow.await
        .expect("it is answered")
        .is_problem(422, "key_reused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_clients_of_a_thousand_requests_run_each_key_once() {
    let shop = Shop::new(Rules::ietf());
    let clients: Vec<_> = (0..64)
        .map(|_| {
            let shop = shop.clone();
            tokio::spawn(async move {
                for key in 0..1_000 {
                    let request = || post("/charges").key(format!("key-{key}"));
                    let mut answer = shop.send(request()).await;
                    while answer.status == 409 {
                        answer.is_problem(409, "request_in_progress");
                        tokio::task::yield_now().await;
                        answer = shop.send(request()).await;
                    }
                    assert_eq!(answer.status, 201);
                }
            })
        })
        .collect();
    for client in clients {
        client.await.expect("every request is answered");
    }
    assert_eq!(shop.runs(), 1_000);
}
