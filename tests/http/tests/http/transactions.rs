//! Handlers that place their rows and their record in one transaction.

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
    Error, Idempotency,
    http::{IdempotencyKey, Json, Rules},
    idempotent,
    store::SqliteStore,
};
use serde::{Deserialize, Serialize};
use sqlx::{SqliteConnection, SqlitePool};
use tempfile::TempDir;

use crate::harness::{Ask, Shop, post};

/// The state of the handler: a database, with its orders and our records in it.
#[derive(Clone)]
struct App {
    idem: Idempotency,
    pool: SqlitePool,
    runs: Arc<AtomicUsize>,
    /// How many of its runs fail after they wrote a row.
    failing: usize,
    _folder: Arc<TempDir>,
}

impl App {
    async fn new(failing: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("shop.db");
        let store = SqliteStore::open(&path).await.expect("the file opens");
        let pool = SqlitePool::connect(&format!("sqlite:{}", path.display())).await;
        let pool = pool.expect("the file opens");
        let create = sqlx::query("CREATE TABLE orders (item TEXT NOT NULL)");
        create.execute(&pool).await.expect("a table");
        Self {
            idem: Idempotency::new(store),
            pool,
            runs: Arc::default(),
            failing,
            _folder: Arc::new(folder),
        }
    }

    async fn orders(&self) -> i64 {
        let count = sqlx::query_scalar("SELECT count(*) FROM orders");
        count.fetch_one(&self.pool).await.expect("a count")
    }

    fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    item: String,
}

#[derive(Debug)]
enum PlaceError {
    OutOfOrder,
    Idempotency(Error),
    Database,
}

impl From<Error> for PlaceError {
    fn from(error: Error) -> Self {
        Self::Idempotency(error)
    }
}

impl From<sqlx::Error> for PlaceError {
    fn from(_: sqlx::Error) -> Self {
        Self::Database
    }
}

impl IntoResponse for PlaceError {
    fn into_response(self) -> Response {
        match self {
            Self::Idempotency(error) => error.into_response(),
            Self::OutOfOrder | Self::Database => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}

async fn order(
    State(app): State<App>,
    key: IdempotencyKey,
    Json(order): Json<Order>,
) -> Result<Json<usize>, PlaceError> {
    let mut transaction = app.pool.begin_with("BEGIN IMMEDIATE").await?;
    let run = insert(&app, &mut transaction, &key, &order).await?;
    transaction.commit().await?;
    Ok(Json(run))
}

#[idempotent(name = "orders.place", key = key, tx = tx, handle = app.idem, skip(app), on_error = release)]
async fn insert(
    app: &App,
    tx: &mut SqliteConnection,
    key: &IdempotencyKey,
    order: &Order,
) -> Result<usize, PlaceError> {
    let run = app.runs.fetch_add(1, Ordering::SeqCst) + 1;
    let insert = sqlx::query("INSERT INTO orders VALUES (?)").bind(&order.item);
    insert.execute(tx).await?;
    if run <= app.failing {
        return Err(PlaceError::OutOfOrder);
    }
    Ok(run)
}

fn place(item: &str) -> Ask {
    post("/orders")
        .key("\"k\"")
        .json(format!("{{\"item\":\"{item}\"}}"))
}

fn shop(app: &App) -> Shop {
    let router = Router::new().route("/orders", on_post(order));
    Shop::new(Rules::ietf()).routed_by(router.with_state(app.clone()))
}

#[tokio::test]
async fn s_66_what_rolled_back_with_its_record_runs_once_more() {
    let app = App::new(1).await;
    let shop = shop(&app);

    assert_eq!(shop.send(place("book")).await.status, 500);
    assert_eq!((app.runs(), app.orders().await), (1, 0));

    let retry = shop.send(place("book")).await;
    assert_eq!((retry.status.as_u16(), &retry.body[..]), (200, &b"2"[..]));
    assert_eq!((app.runs(), app.orders().await), (2, 1));

    assert_eq!(shop.send(place("book")).await, retry);
    assert_eq!((app.runs(), app.orders().await), (2, 1));
    shop.send(place("pen")).await.is_problem(422, "key_reused");
}

#[tokio::test]
async fn s_66_duplicates_that_meet_place_one_order() {
    let app = App::new(0).await;
    let shop = Arc::new(shop(&app));
    let mut sending = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let shop = Arc::clone(&shop);
        sending.spawn(async move { shop.send(place("book")).await });
    }
    for answer in sending.join_all().await {
        assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"1"[..]));
    }
    assert_eq!((app.runs(), app.orders().await), (1, 1));
}
