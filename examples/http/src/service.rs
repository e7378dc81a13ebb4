//! The service: one route, the layer around it, and the authentication around that.

use std::{
    fs::{self, File},
    io::{self, Write},
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use axum::{
    Extension, Json, Router,
    extract::{Request, State},
    http::{StatusCode, header::AUTHORIZATION},
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
    routing::post,
};
use idempotent_runtime::{
    Idempotency,
    http::{IdempotencyKey, IdempotencyLayer, Rules},
};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use crate::Failure;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Charge {
    pub(crate) order: String,
    pub(crate) cents: u64,
}

#[derive(Debug, Serialize)]
struct Receipt {
    charge: String,
    cents: u64,
}

/// The user who calls, as the authentication found out.
#[derive(Clone, Copy)]
struct User {
    id: u64,
}

/// The tokens that were given out. A rotated one is still the same user's.
const TOKENS: [(&str, User); 2] = [
    ("alice-laptop", User { id: 1 }),
    ("alice-phone", User { id: 1 }),
];

/// Listens on a port, a free one if none is named, and serves in the background.
pub(crate) async fn start(
    idem: Idempotency,
    journal: Journal,
    port: u16,
) -> Result<SocketAddr, Failure> {
    let layer = IdempotencyLayer::builder(idem)
        .scope("user", |request| Some(request.extensions.get::<User>()?.id))
        .rules(Rules::ietf())
        .build()?;
    let app = Router::new()
        .route("/charges", post(charge))
        .layer(layer)
        .layer(from_fn(authenticate))
        .with_state(journal);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(address)
}

/// Puts the user of the token among the request's extensions. A request without a known user ends
/// here.
async fn authenticate(mut request: Request, next: Next) -> Response {
    let Some(user) = user_of(&request) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    request.extensions_mut().insert(user);
    next.run(request).await
}

fn user_of(request: &Request) -> Option<User> {
    let header = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
    let token = header.strip_prefix("Bearer ")?;
    let (_, user) = TOKENS.iter().find(|(given, _)| *given == token)?;
    Some(*user)
}

/// The handler: takes money, which takes a moment, and says so.
async fn charge(
    State(journal): State<Journal>,
    Extension(key): Extension<IdempotencyKey>,
    Json(charge): Json<Charge>,
) -> Result<impl IntoResponse, StatusCode> {
    tokio::time::sleep(Duration::from_millis(100)).await;
    let number = journal
        .add(&charge, key.as_str())
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    let receipt = Receipt {
        charge: format!("ch_{number}"),
        cents: charge.cents,
    };
    Ok((StatusCode::CREATED, Json(receipt)))
}

/// The charges that were made: a line each, in a file that several processes share.
#[derive(Clone)]
pub(crate) struct Journal(Arc<PathBuf>);

impl Journal {
    pub(crate) fn at(path: impl Into<PathBuf>) -> Self {
        Self(Arc::new(path.into()))
    }

    pub(crate) fn charges(&self) -> io::Result<Vec<String>> {
        let text = fs::read_to_string(&*self.0)?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Writes a charge down, and tells which one it is.
    fn add(&self, charge: &Charge, key: &str) -> io::Result<usize> {
        let mut file = File::options().create(true).append(true).open(&*self.0)?;
        let line = format!("order {}  {} cents  {key}\n", charge.order, charge.cents);
        file.write_all(line.as_bytes())?;
        Ok(self.charges()?.len())
    }
}
