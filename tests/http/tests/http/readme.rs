//! The listing of the front end in the manual: its middle is this one.

use std::{fs, path::Path};

use axum::{
    Extension, Json, Router,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::post,
};
use http::{StatusCode, header::AUTHORIZATION};
use idempotent_runtime::{
    Error, ErrorVerdict, Idempotency,
    http::{IdempotencyLayer, ReleaseOnReject, ReplayHint, Rules},
    idempotent,
};
use serde::{Deserialize, Serialize};
use sqlx::SqlitePool;
use tempfile::TempDir;

use crate::harness::{self, Ask, Shop as Harness};

#[derive(Clone)]
struct User {
    id: i64,
}

#[derive(Clone)]
struct Shop {
    pool: SqlitePool,
    idem: Idempotency,
}

#[derive(Serialize, Deserialize)]
struct Order {
    number: String,
    cents: i64,
}

#[derive(Debug, Serialize, Deserialize, ErrorVerdict, thiserror::Error)]
enum ShopError {
    #[verdict(release)] // a retry runs again
    #[serde(skip)] // it is not recorded, so serde need not know it
    #[error("the database failed")]
    Database(#[from] sqlx::Error),
    #[verdict(replay)] // an error of the library is never recorded: `on_crash` decides
    #[error(transparent)]
    Idempotency(#[from] Error),
}

async fn place(
    State(shop): State<Shop>,
    Extension(user): Extension<User>,
    ReleaseOnReject(Json(order)): ReleaseOnReject<Json<Order>>, // a body that is no order leaves the key free
) -> Result<(StatusCode, Json<Order>), ShopError> {
    Ok((StatusCode::CREATED, Json(charge(shop, user, order).await?)))
}

#[idempotent(name = "orders.charge", key = order.number, scope = user.id, handle = shop.idem,
    skip(shop, user), on_error = ErrorVerdict::verdict, on_cancel = detach)]
async fn charge(shop: Shop, user: User, order: Order) -> Result<Order, ShopError> {
    let insert = sqlx::query("INSERT INTO charges VALUES (?, ?, ?) ON CONFLICT DO NOTHING");
    let insert = insert.bind(user.id).bind(&order.number).bind(order.cents);
    insert.execute(&shop.pool).await?;
    Ok(order)
}

fn app(shop: Shop) -> Result<Router, Error> {
    let layer = IdempotencyLayer::builder(shop.idem.clone())
        .scope("user", |request| Some(request.extensions.get::<User>()?.id))
        .build()?;
    Ok(Router::new()
        .route("/orders", post(place))
        .layer(layer)
        .layer(from_fn_with_state(shop.clone(), authenticate)) // puts the `User` there
        .with_state(shop))
}

impl IntoResponse for ShopError {
    fn into_response(self) -> Response {
        match self {
            // The statement may be carried out again, so a retry runs, whatever became of it.
            Self::Database(_) => {
                let failed = "the database failed";
                (
                    StatusCode::INTERNAL_SERVER_ERROR,
                    ReplayHint::Retryable,
                    failed,
                )
                    .into_response()
            }
            Self::Idempotency(error) => error.into_response(),
        }
    }
}

async fn authenticate(State(shop): State<Shop>, mut request: Request, next: Next) -> Response {
    let header = request.headers().get(AUTHORIZATION);
    let header = header.and_then(|header| header.to_str().ok());
    let Some(token) = header.and_then(|header| header.strip_prefix("Bearer ")) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let user = sqlx::query_scalar("SELECT user FROM tokens WHERE token = ?").bind(token);
    match user.fetch_optional(&shop.pool).await {
        Ok(Some(id)) => request.extensions_mut().insert(User { id }),
        Ok(None) => return StatusCode::UNAUTHORIZED.into_response(),
        Err(_) => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
    };
    next.run(request).await
}

const CHARGES: &str = "CREATE TABLE charges (user, number, cents, PRIMARY KEY (user, number))";

/// The service of the listing over a file, in which no user can be charged yet.
async fn open() -> (Harness, SqlitePool, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("shop.db");
    let idem = Idempotency::sqlite(&path).await.expect("the file opens");
    let pool = SqlitePool::connect(&format!("sqlite:{}", path.display())).await;
    let pool = pool.expect("the file opens");
    run(
        &pool,
        "CREATE TABLE tokens (token TEXT PRIMARY KEY, user INTEGER)",
    )
    .await;
    run(
        &pool,
        "INSERT INTO tokens VALUES ('old', 1), ('new', 1), ('other', 2)",
    )
    .await;
    let service = app(Shop {
        pool: pool.clone(),
        idem,
    });
    let service = service.expect("the settings are sound");
    let shop = Harness::new(Rules::ietf()).routed_by(service);
    (shop, pool, folder)
}

async fn run(pool: &SqlitePool, statement: &'static str) {
    let done = sqlx::query(statement).execute(pool).await;
    done.expect("the statement is sound");
}

async fn charges(pool: &SqlitePool) -> i64 {
    let count = sqlx::query_scalar("SELECT count(*) FROM charges");
    count.fetch_one(pool).await.expect("a count")
}

fn order(token: &str, key: &str, body: &'static str) -> Ask {
    let sent = harness::post("/orders").key(key).json(body);
    sent.header("authorization", format!("Bearer {token}"))
}

const ORDER: &str = r#"{"number":"42","cents":1250}"#;

#[tokio::test]
async fn first_hour_13_the_service_of_the_listings_charges_an_order_of_a_user_once() {
    let (shop, pool, _folder) = open().await;
    run(&pool, CHARGES).await;

    let first = shop.send(order("old", "a", ORDER)).await;
    assert_eq!(
        (first.status, &*first.body),
        (StatusCode::CREATED, ORDER.as_bytes())
    );
    shop.send(order("old", "a", ORDER)).await.replays(&first);
    // Another token of the user is the same user.
    shop.send(order("new", "a", ORDER)).await.replays(&first);
    let under_another_key = shop.send(order("new", "b", ORDER)).await;
    assert_eq!(under_another_key.status, StatusCode::CREATED);
    assert_eq!(charges(&pool).await, 1);

    shop.send(order("other", "a", ORDER)).await.is_fresh();
    assert_eq!(charges(&pool).await, 2);
    let nobody = shop.send(order("none", "a", ORDER)).await;
    assert_eq!(nobody.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn first_hour_13_a_rejected_body_and_a_failed_database_leave_the_key_free() {
    let (shop, pool, _folder) = open().await;

    let rejected = shop.send(order("old", "a", r#"{"number":"42"}"#)).await;
    assert_eq!(rejected.status, StatusCode::UNPROCESSABLE_ENTITY);
    let failed = shop.send(order("old", "a", ORDER)).await;
    assert_eq!(failed.status, StatusCode::INTERNAL_SERVER_ERROR);
    run(&pool, CHARGES).await;
    let charged = shop.send(order("old", "a", ORDER)).await;

    charged.is_fresh();
    assert_eq!(charged.status, StatusCode::CREATED);
    assert_eq!(charges(&pool).await, 1);
}

/// The first listing of Rust in a page, behind these words.
fn listing<'a>(page: &'a str, behind: &str, opening: &str) -> &'a str {
    let (_, page) = page.split_once(behind).expect("the section is there");
    let (_, listing) = page.split_once(opening).expect("a listing");
    let (listing, _) = listing.split_once("\n```\n").expect("its end");
    listing
}

#[test]
fn first_hour_13_the_listing_of_the_manual_is_this_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manual = fs::read_to_string(root.join("idempotent-runtime/src/http/http.md"));
    let manual = manual.expect("the page is there");
    let whole = listing(
        &manual,
        "# axum and sqlx in ten minutes\n",
        "```\n# #![allow(dead_code)]\n",
    );
    let source = include_str!("readme.rs");
    let (_, source) = source.split_once("enum ShopError {\n").expect("the error");
    let (shown, _) = source
        .split_once("\nimpl IntoResponse for ShopError")
        .expect("the end");

    assert!(whole.contains(shown.trim_end()), "{shown}");
}
