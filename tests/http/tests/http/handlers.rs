//! Handlers that carry the attribute themselves, with a layer around them and without.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    Router,
    extract::State,
    response::{IntoResponse, Response},
    routing::post as on_post,
};
use http::StatusCode;
use idempotent_runtime::{
    Error, Idempotency, RawEnding, RawOutcome,
    http::{
        IdempotencyKey, Json, ReplayHint, Rules,
        problem::{Kind, Problem},
    },
    idempotent,
    testing::Gate,
};
use serde::{Deserialize, Serialize};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
};

use crate::harness::{Answer, Ask, Shop, charge, layer_over, post};

/// The state that the handlers share.
#[derive(Clone)]
struct App {
    idem: Idempotency,
    runs: Arc<AtomicUsize>,
    gate: Gate,
}

impl App {
    fn new() -> Self {
        let gate = Gate::new();
        gate.open();
        Self {
            idem: Idempotency::memory(),
            runs: Arc::default(),
            gate,
        }
    }

    fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    fn router(&self) -> Router {
        Router::new()
            .route("/orders", on_post(order))
            .route("/optional", on_post(optional))
            .with_state(self.clone())
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    item: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    run: usize,
    item: String,
}

#[axum::debug_handler]
#[idempotent(
    name = "orders.place",
    key = key,
    handle = app.idem,
    skip(app),
    in_flight = reject,
    on_cancel = detach
)]
async fn order(
    State(app): State<App>,
    key: IdempotencyKey,
    Json(order): Json<Order>,
) -> Result<Json<Receipt>, Error> {
    let run = app.runs.fetch_add(1, Ordering::SeqCst) + 1;
    app.gate.pass().await;
    let item = order.item;
    Ok(Json(Receipt { run, item }))
}

async fn optional(key: Option<IdempotencyKey>) -> String {
    key.map_or("none".to_owned(), |key| key.as_str().to_owned())
}

fn place(item: &str) -> Ask {
    post("/orders")
        .key("\"k\"")
        .json(format!("{{\"item\":\"{item}\"}}"))
}

/// A shop over this router alone.
fn shop(router: Router) -> Shop {
    Shop::new(Rules::ietf()).routed_by(router)
}

#[tokio::test]
async fn an_annotated_handler_answers_a_retry_with_its_first_result() {
    let app = App::new();
    let shop = shop(app.router());
    let first = shop.send(place("book")).await;
    assert_eq!(first.status, 200);
    assert_eq!(first.headers["content-type"], "application/json");
    assert_eq!(first.body, "{\"run\":1,\"item\":\"book\"}");
    assert_eq!(shop.send(place("book")).await, first);
    assert_eq!(app.runs(), 1);
}

#[tokio::test]
async fn a_question_mark_answers_with_a_problem() {
    let app = App::new();
    let shop = shop(app.router());
    shop.send(place("book")).await;
    shop.send(place("pen")).await.is_problem(422, "key_reused");
    assert_eq!(app.runs(), 1);
}

#[tokio::test]
async fn s_49_an_extractor_finds_the_key_or_refuses() {
    let app = App::new();
    let shop = shop(app.router());
    let order = |ask: Ask| ask.json("{\"item\":\"book\"}");
    shop.refuses(order(post("/orders")), 400, "key_missing")
        .await;
    shop.refuses(order(post("/orders").key("\"k")), 400, "key_invalid")
        .await;
    assert_eq!(shop.send(post("/optional")).await.body, "none");
    assert_eq!(shop.send(post("/optional").key("k")).await.body, "k");
    shop.refuses(post("/optional").key(""), 400, "key_invalid")
        .await;
    assert_eq!(app.runs(), 0);
}

#[tokio::test]
async fn s_29_a_refusal_names_the_path_that_the_client_sent_where_routers_are_nested() {
    let nested = Router::new().nest("/shop", App::new().router());

    let refused = shop(nested).send(post("/shop/orders")).await;

    let problem = refused.is_problem(400, "key_missing");
    let detail = problem["detail"].as_str().expect("a text");
    assert!(detail.starts_with("POST /shop/orders requires"), "{detail}");
}

#[tokio::test]
async fn an_annotated_handler_without_a_layer_outlives_its_client() {
    let app = App::new();
    app.gate.close();
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("there is a port");
    let address = listener.local_addr().expect("it has an address");
    let router = app.router();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let mut client = TcpStream::connect(address).await.expect("it listens");
    let request = "POST /orders HTTP/1.1\r\nhost: shop\r\nidempotency-key: \"k\"\r\ncontent-type: application/json\r\ncontent-length: 15\r\n\r\n{\"item\":\"book\"}";
    client
        .write_all(request.as_bytes())
        .await
        .expect("it is sent");
    app.gate.arrived(1).await;

    drop(client);
    let shop = shop(app.router());
    shop.refuses(place("book"), 409, "request_in_progress")
        .await;
    app.gate.open();

    let mut again = shop.send(place("book")).await;
    while again.status == 409 {
        tokio::task::yield_now().await;
        again = shop.send(place("book")).await;
    }
    assert_eq!(again.body, "{\"run\":1,\"item\":\"book\"}");
    assert_eq!(app.runs(), 1);
}

/// An error of the application's own, which holds one of ours.
#[derive(Debug)]
enum ShopError {
    SoldOut,
    Idempotency(Error),
}

impl From<Error> for ShopError {
    fn from(error: Error) -> Self {
        Self::Idempotency(error)
    }
}

impl IntoResponse for ShopError {
    fn into_response(self) -> Response {
        match self {
            Self::SoldOut => {
                (StatusCode::CONFLICT, ReplayHint::Retryable, "sold out").into_response()
            }
            Self::Idempotency(error) => error.into_response(),
        }
    }
}

#[idempotent(name = "stock.take", key = article, handle = idem, skip(idem))]
async fn take(idem: &Idempotency, article: &str, amount: u32) -> Result<u32, Error> {
    Ok(amount)
}

#[tokio::test]
async fn neither_a_mark_nor_an_error_of_ours_is_stored_by_a_layer() {
    let idem = Idempotency::memory();
    let runs = Arc::new(AtomicUsize::new(0));
    let handler = {
        let (idem, runs) = (idem.clone(), Arc::clone(&runs));
        move || async move {
            let run = runs.fetch_add(1, Ordering::SeqCst) as u32;
            match run {
                0 => Err(ShopError::SoldOut),
                // The call inside is refused, because it was made with another amount before.
                1 | 2 => {
                    take(&idem, "book", 1).await?;
                    take(&idem, "book", 2).await?;
                    Ok("taken")
                }
                _ => Ok("taken"),
            }
        }
    };
    let router = Router::new()
        .route("/charges", on_post(handler))
        .layer(layer_over(&idem, |layer| layer));
    let shop = shop(router);
    let sold_out = shop.send(charge()).await;
    assert_eq!(
        (sold_out.status.as_u16(), &sold_out.body[..]),
        (409, &b"sold out"[..])
    );
    shop.send(charge())
        .await
        .is_problem(409, "inner_call_refused");
    shop.send(charge())
        .await
        .is_problem(409, "inner_call_refused");
    let first = shop.send(charge()).await;
    assert_eq!(first.body, "taken");
    shop.send(charge()).await.replays(&first);
}

#[tokio::test]
async fn s_67_an_error_of_ours_frees_the_key_only_where_nothing_was_executed() {
    for (kind, status, code) in [
        (Kind::KeyReused, 422, "key_reused"),
        (Kind::InnerCallRefused, 409, "inner_call_refused"),
        (Kind::RequestInProgress, 409, "request_in_progress"),
        (Kind::StoreUnavailable, 503, "store_unavailable"),
        (Kind::ResultOutOfReach, 503, "result_out_of_reach"),
        (Kind::Misconfigured, 500, "misconfigured"),
    ] {
        let shop = Shop::with(Rules::ietf(), move |_, _| async move {
            Problem::new(kind).into_response()
        });
        for _ in 0..2 {
            shop.send(charge()).await.is_problem(status, code);
        }
        assert_eq!(shop.runs(), 2, "{kind:?}");
    }
    for (kind, again_is) in [
        (Kind::OutcomeUnknown, "outcome_unknown"),
        (Kind::ResultUnavailable, "result_unavailable"),
        (Kind::ResultExpired, "result_unavailable"),
    ] {
        let shop = Shop::with(Rules::ietf(), move |_, _| async move {
            Problem::new(kind).into_response()
        });
        shop.send(charge())
            .await
            .is_problem(409, &kind.code()["idempotency_".len()..]);
        shop.send(charge()).await.is_problem(409, again_is);
        assert_eq!(shop.runs(), 1, "{kind:?}");
    }
    // The policy says what a handler that failed has done, whichever code says that it failed.
    let shop = Shop::with(Rules::ietf(), |_, _| async {
        Problem::new(Kind::HandlerFailed).into_response()
    });
    shop.keeps(charge()).await;
}

/// A receipt in a database that is out of reach when it is asked for again.
#[idempotent(name = "receipts.write", key = number, handle = idem, skip(idem), outcome = reference(
    |number: &u64| *number,
    |_number: u64| async { Err::<u64, std::io::Error>(std::io::ErrorKind::TimedOut.into()) },
))]
async fn write(idem: &Idempotency, number: u64) -> Result<u64, Error> {
    Ok(number)
}

#[tokio::test]
async fn what_was_carried_out_and_cannot_be_loaded_is_not_told_as_not_executed() {
    let idem = Idempotency::memory();
    write(&idem, 1).await.expect("it runs");

    let error = write(&idem, 1).await.expect_err("it cannot be loaded");

    let answer = Answer::of(error.into_response()).await;
    let document = answer.is_problem(503, "result_out_of_reach");
    assert_eq!(document["retryable"], true);
    assert_eq!(document["key_action"], "keep");
    assert_eq!(answer.headers["retry-after"], "5");
    let detail = document["detail"].as_str().expect("it has a detail");
    assert!(detail.contains("was carried out"), "{detail}");
}

#[tokio::test]
async fn s_67_an_effect_before_a_call_of_unknown_outcome_happens_once() {
    let inner = Idempotency::memory();
    let unknown = inner
        .call("mail")
        .key("1")
        .run_raw(|_| async { RawEnding::Uncertain(RawOutcome::not_replayable()) });
    unknown.await.expect("its own caller gets an outcome");
    let shop = Shop::with(Rules::ietf(), move |_, _| {
        let mail = inner.call("mail").key("1");
        async move {
            // Each run has charged the card by now.
            match mail.run_raw(|_| std::future::pending()).await {
                Ok(_) => "sent".into_response(),
                Err(error) => error.into_response(),
            }
        }
    });
    for _ in 0..2 {
        shop.send(charge()).await.is_problem(409, "outcome_unknown");
    }
    assert_eq!(shop.runs(), 1);
}
