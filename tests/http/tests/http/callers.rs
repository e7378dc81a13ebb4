//! Handlers that carry the attribute, called by two callers that took the same key.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    Extension, Router,
    extract::{Request, State},
    middleware::map_request,
    routing::post as on_post,
};
use idempotent_runtime::{
    Error, Idempotency, KeyPart, Status, current,
    http::{IdempotencyKey, IdempotencyLayer, Json, KeyScope, Rules},
    idempotent,
};
use serde::{Deserialize, Serialize};

use crate::harness::{Answer, Ask, CALLER, Shop, layer_over, post};

/// The state that the handlers share.
#[derive(Clone)]
struct Orders {
    idem: Idempotency,
    runs: Arc<AtomicUsize>,
}

/// The user that the authentication found out.
#[derive(Clone, Debug)]
struct User {
    name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    run: usize,
    caller: String,
    downstream: String,
}

impl Orders {
    fn new() -> Self {
        Self {
            idem: Idempotency::memory(),
            runs: Arc::default(),
        }
    }

    fn take(&self, user: User) -> Json<Receipt> {
        Json(Receipt {
            run: self.runs.fetch_add(1, Ordering::SeqCst) + 1,
            caller: user.name,
            downstream: current().child_key("gateway.charge"),
        })
    }
}

/// As the manual writes it for a service without a layer.
#[idempotent(
    name = "orders.place",
    key = key,
    scope = user.name,
    handle = orders.idem,
    skip(orders, user),
    on_cancel = detach
)]
async fn place(
    State(orders): State<Orders>,
    Extension(user): Extension<User>,
    key: IdempotencyKey,
    Json(order): Json<String>,
) -> Result<Json<Receipt>, Error> {
    Ok(orders.take(user))
}

/// Says nothing of who calls.
#[idempotent(
    name = "orders.pay",
    key = key,
    handle = orders.idem,
    skip(orders, user),
    on_cancel = detach
)]
async fn pay(
    State(orders): State<Orders>,
    Extension(user): Extension<User>,
    key: IdempotencyKey,
    Json(order): Json<String>,
) -> Result<Json<Receipt>, Error> {
    Ok(orders.take(user))
}

/// Tells the key as the client sent it.
async fn told(key: IdempotencyKey) -> String {
    key.as_str().to_owned()
}

async fn authenticate(mut request: Request) -> Request {
    let name = request.headers().get(CALLER);
    let name = name.and_then(|name| name.to_str().ok()).unwrap_or("A");
    let name = name.to_owned();
    request.extensions_mut().insert(User { name });
    request
}

impl Orders {
    fn router(&self) -> Router {
        Router::new()
            .route("/orders", on_post(place))
            .route("/payments", on_post(pay))
            .route("/told", on_post(told))
            .with_state(self.clone())
    }

    fn alone(&self) -> Shop {
        shop(self.router())
    }

    fn behind(&self, rules: Rules) -> Shop {
        let layer = layer_over(&self.idem, |layer| layer.rules(rules));
        shop(self.router().layer(layer))
    }

    fn behind_one_space(&self) -> Shop {
        let layer = IdempotencyLayer::builder(self.idem.clone()).shared_by_all_callers();
        let layer = layer.build().expect("the settings are sound");
        shop(self.router().layer(layer))
    }

    async fn knows(&self, operation: &str) -> bool {
        self.knows_of(operation, None, &"k").await
    }

    async fn knows_of(
        &self,
        operation: &str,
        scope: Option<&(&str, &str)>,
        key: &dyn KeyPart,
    ) -> bool {
        let status = self.idem.lookup(operation, scope, key).await;
        !matches!(status.expect("the store answers"), Status::Unknown)
    }
}

fn shop(router: Router) -> Shop {
    Shop::new(Rules::ietf()).routed_by(router.layer(map_request(authenticate)))
}

fn ask(path: &str, caller: &str) -> Ask {
    post(path).caller(caller).key("\"k\"").json("\"book\"")
}

fn receipt(answer: &Answer) -> Receipt {
    serde_json::from_slice(&answer.body).expect("it is a receipt")
}

/// Two callers that took the same key for the same request, and repeat it, each get what is theirs.
async fn are_apart(shop: &Shop, path: &str) {
    let mut receipts = Vec::new();
    for (caller, run) in [("alice", 1), ("bob", 2)] {
        let first = receipt(&shop.send(ask(path, caller)).await);
        assert_eq!((&*first.caller, first.run), (caller, run));
        receipts.push(first);
    }
    for first in &receipts {
        let again = shop.send(ask(path, &first.caller)).await;
        assert_eq!(&receipt(&again), first);
    }
    assert_ne!(receipts[0].downstream, receipts[1].downstream);
}

#[tokio::test]
async fn s_49_s_51_a_scope_keeps_callers_apart_without_a_layer() {
    are_apart(&Orders::new().alone(), "/orders").await;
}

#[tokio::test]
async fn s_49_s_51_a_key_from_a_layer_belongs_to_its_caller() {
    for rules in [Rules::ietf(), Rules::ietf().key_scope(KeyScope::Route)] {
        let orders = Orders::new();
        are_apart(&orders.behind(rules), "/payments").await;
    }
}

#[tokio::test]
async fn s_49_a_key_is_the_clients_own_text_whoever_sends_it() {
    for caller in ["alice", "bob"] {
        let shop = Orders::new().behind(Rules::ietf());
        assert_eq!(shop.send(ask("/told", caller)).await.body, "k");
    }
}

/// Records that stand in a store are found again under the names that they have there.
#[tokio::test]
async fn s_49_only_where_a_layer_knows_callers_has_a_key_more_than_its_text() {
    let alone = Orders::new();
    alone.alone().send(ask("/payments", "alice")).await;
    assert!(alone.knows("orders.pay").await);

    let shared = Orders::new();
    let shop = shared.behind_one_space();
    shop.send(ask("/payments", "alice")).await;
    assert!(shared.knows("orders.pay").await);
    assert!(shared.knows("http").await);

    let apart = Orders::new();
    let shop = apart.behind(Rules::ietf());
    shop.send(ask("/payments", "alice")).await;
    assert!(!apart.knows("orders.pay").await);
    let alice = ("caller", "alice");
    let pair = (alice, "k");
    assert!(
        apart.knows_of("orders.pay", None, &pair).await,
        "for operators"
    );
    assert!(apart.knows_of("http", Some(&alice), &"k").await);
}
