//! The service: processes that charge behind the layer, over one store, and the gateway that they
//! charge at.

use std::{
    collections::BTreeMap,
    net::{SocketAddr, TcpListener},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Extension, Json, Router,
    extract::{Request, State},
    http::{HeaderMap, StatusCode},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::post,
};
use idempotent_runtime::{
    Idempotency, OnCrash, StoreErrorKind,
    clock::Timer,
    current,
    http::{IdempotencyLayer, ReplayHint, Rules},
    store::MemoryStore,
    testing::{Fault, FaultyStore, ManualClock, On, StoreOperation},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use crate::{LEASE, RETENTION};

/// The charge that a call asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wish {
    pub(crate) intent: String,
    pub(crate) cents: u32,
}

/// The result at the gateway, and the answer of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    pub(crate) account: String,
    pub(crate) wish: Wish,
    pub(crate) number: usize,
    pub(crate) is_declined: bool,
}

/// Charges once for each key that it is sent. Remembers how often it was asked, and the statements
/// that it knows to be wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gateway(Arc<Mutex<Books>>);

#[derive(Debug, Default)]
struct Books {
    visits: BTreeMap<String, Visit>,
    lies: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Visit {
    pub(crate) receipt: Receipt,
    pub(crate) times: u32,
}

impl Gateway {
    pub(crate) fn visits(&self) -> Vec<Visit> {
        self.books().visits.values().cloned().collect()
    }

    pub(crate) fn lies(&self) -> Vec<String> {
        self.books().lies.clone()
    }

    /// The charge that was made under this key until now.
    fn charged(&self, key: &str) -> Option<Visit> {
        self.books().visits.get(key).cloned()
    }

    /// Notes a wrong statement, if this was charged before the statement.
    fn hears(&self, charged: Option<&Visit>, says: &str) {
        if let Some(visit) = charged {
            self.books().lies.push(format!("{says} after {visit:?}"));
        }
    }

    fn charge(&self, key: String, account: &str, wish: &Wish, declines: bool) -> Receipt {
        let visits = &mut self.books().visits;
        let number = visits.len();
        let visit = visits.entry(key).or_insert_with(|| Visit {
            receipt: Receipt {
                account: account.to_owned(),
                wish: wish.clone(),
                number,
                is_declined: declines,
            },
            times: 0,
        });
        visit.times += 1;
        visit.receipt.clone()
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A process of the service, with a runtime of its own.
#[derive(Debug)]
pub(crate) struct Process {
    runtime: Option<Runtime>,
    layer: IdempotencyLayer,
    pub(crate) address: SocketAddr,
    shop: Shop,
    pub(crate) is_shut: bool,
}

#[derive(Clone, Debug)]
struct Shop {
    store: FaultyStore,
    clock: ManualClock,
    gateway: Gateway,
    rng: Arc<Mutex<StdRng>>,
    is_healed: Arc<AtomicBool>,
}

impl Process {
    pub(crate) fn start(
        store: Arc<MemoryStore>,
        clock: ManualClock,
        gateway: Gateway,
        on_crash: OnCrash,
        lease: Duration,
        seed: u64,
    ) -> Self {
        let store = FaultyStore::new(store);
        let shop = Shop {
            store: store.clone(),
            clock: clock.clone(),
            gateway,
            rng: Arc::new(Mutex::new(StdRng::seed_from_u64(seed))),
            is_healed: Arc::default(),
        };
        let idem = Idempotency::builder(store).timer(clock).lease(lease);
        let layer = IdempotencyLayer::builder(idem.build().expect("the set-up is sound"))
            .scope("account", |request| account(&request.headers))
            .rules(Rules::ietf().on_crash(on_crash).ttl(RETENTION))
            .build()
            .expect("the settings are sound");
        let late = middleware::from_fn_with_state(shop.clone(), late);
        let app = Router::new()
            .route("/charges", post(charge))
            .layer(layer.clone())
            .layer(middleware::from_fn_with_state(shop.clone(), audit))
            .layer(late)
            .with_state(shop.clone());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket of tokio's");
        let address = listener.local_addr().expect("an address");
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            axum::serve(listener, app).await
        });
        Self {
            runtime: Some(runtime),
            layer,
            address,
            shop,
            is_shut: false,
        }
    }

    /// Nothing that it has begun reaches the store or a client.
    pub(crate) fn die(mut self) {
        self.lose_store();
        self.end();
    }

    pub(crate) fn lose_store(&self) {
        self.shop.store.outage(StoreErrorKind::Unavailable);
    }

    pub(crate) fn find_store(&self) {
        self.shop.store.heal();
    }

    /// Lets no more handlers begin, and those that run come to their end.
    pub(crate) fn shut(&mut self) {
        self.is_shut = true;
        let (layer, runtime) = (self.layer.clone(), self.runtime.as_ref());
        let runtime = runtime.expect("it is there until it dies");
        runtime.spawn(async move { layer.shutdown(RETENTION).await });
    }

    /// From now on everything goes well.
    pub(crate) fn heal(&self) {
        self.shop.is_healed.store(true, Ordering::SeqCst);
        self.find_store();
    }

    fn end(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

fn account(headers: &HeaderMap) -> Option<String> {
    let account = headers.get("account")?.to_str().ok()?;
    Some(account.to_owned())
}

/// How a handler goes, as the generator says.
#[derive(Clone, Copy, Debug)]
struct Script {
    before: Duration,
    begins: Begins,
    declines: bool,
    after: Duration,
    ends: Ends,
}

#[derive(Clone, Copy, Debug)]
enum Begins {
    Well,
    Busy,
    Refuses,
    /// With what looks like an outcome, and is none.
    Mistaken,
    Panics,
}

#[derive(Clone, Copy, Debug)]
enum Ends {
    Well,
    Fails,
    Doubts,
    Panics,
}

impl Shop {
    fn draw(&self) -> Script {
        let mut rng = self.rng();
        let mut pause = || match rng.random_range(0..6) {
            0 => LEASE.mul_f64(rng.random_range(0.0..2.5)),
            1..3 => LEASE.mul_f64(rng.random_range(0.0..0.3)),
            _ => Duration::ZERO,
        };
        let (before, after) = (pause(), pause());
        if self.is_healed.load(Ordering::SeqCst) {
            return Script {
                before: Duration::ZERO,
                begins: Begins::Well,
                declines: false,
                after: Duration::ZERO,
                ends: Ends::Well,
            };
        }
        self.disturb(&mut rng);
        Script {
            before,
            begins: match rng.random_range(0..16) {
                0 | 1 => Begins::Busy,
                2 => Begins::Refuses,
                3 => Begins::Panics,
                4 | 5 => Begins::Mistaken,
                _ => Begins::Well,
            },
            declines: rng.random_range(0..8) == 0,
            after,
            ends: match rng.random_range(0..16) {
                0 => Ends::Fails,
                1 => Ends::Doubts,
                2 => Ends::Panics,
                _ => Ends::Well,
            },
        }
    }

    /// Lets one of the next calls of the store go wrong, now and then.
    fn disturb(&self, rng: &mut StdRng) {
        let operations = [
            StoreOperation::Claim,
            StoreOperation::Load,
            StoreOperation::Ending,
        ];
        let operation = operations[rng.random_range(0..operations.len())];
        match rng.random_range(0..8) {
            0 => self.store.fault(operation, On::Next, Fault::LoseAnswer),
            1 => self.store.fault(operation, On::Next, Fault::LoseRequest),
            _ => {}
        }
    }

    fn rng(&self) -> MutexGuard<'_, StdRng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes money, in a while, and mostly says so.
async fn charge(State(shop): State<Shop>, headers: HeaderMap, Json(wish): Json<Wish>) -> Response {
    let script = shop.draw();
    let key = current().child_key("gateway");
    if !current().is_takeover() {
        let charged = shop.gateway.charged(&key);
        let says = "a handler is told that it is the first one";
        shop.gateway.hears(charged.as_ref(), says);
    }
    shop.clock.sleep(script.before).await;
    let not_now = |status: StatusCode| (Extension(After(shop.gateway.charged(&key))), status);
    match script.begins {
        Begins::Well => {}
        Begins::Busy => return not_now(StatusCode::SERVICE_UNAVAILABLE).into_response(),
        Begins::Refuses => return not_now(StatusCode::FORBIDDEN).into_response(),
        Begins::Mistaken => {
            let mistaken = not_now(StatusCode::UNPROCESSABLE_ENTITY);
            return (ReplayHint::Retryable, mistaken).into_response();
        }
        Begins::Panics => panic!("a handler that panics before it charges"),
    }
    let account = account(&headers).expect("the layer knows the account");
    let receipt = shop.gateway.charge(key, &account, &wish, script.declines);
    shop.clock.sleep(script.after).await;
    let status = match receipt.is_declined {
        true => StatusCode::PAYMENT_REQUIRED,
        false => StatusCode::CREATED,
    };
    match script.ends {
        Ends::Well => (status, Json(receipt)).into_response(),
        Ends::Fails => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Ends::Doubts => (ReplayHint::Uncertain, StatusCode::BAD_GATEWAY).into_response(),
        Ends::Panics => panic!("a handler that panics when it has charged"),
    }
}

/// The charge that was made before a handler said that it did nothing. Once its key is free, the
/// next one may charge.
#[derive(Clone, Debug)]
struct After(Option<Visit>);

/// Listens to what clients are told of their keys.
async fn audit(State(shop): State<Shop>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let said = response.headers().get("idempotency-status");
    if let (Some(said), Some(After(charged))) = (said, response.extensions().get())
        && said == "released"
    {
        let says = "a key is said to be free";
        shop.gateway.hears(charged.as_ref(), says);
    }
    response
}

/// Some requests arrive when their clients have long gone.
async fn late(State(shop): State<Shop>, request: Request, next: Next) -> Response {
    let pause = {
        let mut rng = shop.rng();
        let is_late = !shop.is_healed.load(Ordering::SeqCst) && rng.random_range(0..4) == 0;
        is_late.then(|| LEASE.mul_f64(rng.random_range(0.0..8.0)))
    };
    let Some(pause) = pause else {
        return next.run(request).await;
    };
    let (head, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, 1 << 20).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let arriving = tokio::spawn(async move {
        shop.clock.sleep(pause).await;
        next.run(Request::from_parts(head, body.into())).await
    });
    let answer = arriving.await;
    answer.unwrap_or_else(|_| StatusCode::BAD_GATEWAY.into_response())
}
