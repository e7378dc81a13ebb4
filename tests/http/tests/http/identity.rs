//! A4: whose key it is, and what makes two requests the same.

use axum::response::IntoResponse as _;
use http::{Method, StatusCode};
use idempotent_runtime::http::{KeyScope, LayerBuilder, MissingScope, Rules, Scope};

use crate::{
    harness::{Ask, Shop, charge, post, silent},
    said::warnings_of,
};

mod comparison;

#[tokio::test]
async fn s_51_callers_never_meet_each_other() {
    let shop = Shop::new(Rules::ietf());
    let mine = shop.send(charge().caller("A")).await;
    let theirs = shop.send(charge().caller("B")).await;
    let others = shop.send(charge().caller("C").body("amount=99")).await;
    for answer in [&mine, &theirs, &others] {
        answer.is_fresh();
    }
    assert_ne!(mine.body, theirs.body);
    assert_eq!(shop.runs(), 3);
    shop.send(charge().caller("B")).await.replays(&theirs);
}

/// A shop where the set-up says whose keys they are.
fn scoped(set_up: impl FnOnce(LayerBuilder<MissingScope>) -> LayerBuilder<Scope>) -> Shop {
    Shop::new(Rules::ietf()).scoped_by(set_up, silent)
}

/// That a layer without a scope does not compile is shown by the documentation of its builder.
#[tokio::test]
async fn s_52_only_the_explicit_word_shares_one_space() {
    let shop = scoped(LayerBuilder::shared_by_all_callers);
    let first = shop.send(charge().caller("A")).await;
    shop.send(charge().caller("B")).await.replays(&first);
}

#[tokio::test]
async fn s_53_who_is_nobody_is_refused() {
    let shop = Shop::new(Rules::ietf());
    let refused = shop.send(charge().caller("nobody")).await;
    refused.is_problem(400, "scope_unresolved");
    let nobody = |layer: LayerBuilder<MissingScope>| {
        let layer = layer.scope("caller", |_| None::<String>);
        layer.unscoped_status(StatusCode::UNAUTHORIZED)
    };
    let unauthorized = shop.scoped_by(nobody, silent);
    unauthorized
        .refuses(charge(), 401, "scope_unresolved")
        .await;
    assert_eq!(
        (shop.runs(), unauthorized.runs(), shop.store.round_trips()),
        (0, 0, 0)
    );
}

#[tokio::test]
async fn s_53_operators_are_told_once_that_nobody_is_refused() {
    let name = "outside of the authentication";
    let shop = scoped(|layer| layer.name(name).scope("caller", |_| None::<String>));

    let ((), said) = warnings_of(name, async {
        for _ in 0..2 {
            shop.refuses(charge(), 400, "scope_unresolved").await;
        }
    })
    .await;

    let told = said.matches("put the authentication outside").count();
    assert_eq!(told, 1, "{said}");
}

#[tokio::test]
async fn s_53_whose_name_cannot_be_one_is_nobody() {
    for name in [String::new(), "A".repeat(70_000)] {
        let shop = scoped(|layer| {
            let layer = layer.scope("caller", move |_| Some(name.clone()));
            layer.unscoped_status(StatusCode::UNAUTHORIZED)
        });
        let refused = shop.send(charge()).await;
        refused.is_problem(401, "scope_unresolved");
        assert_eq!((shop.runs(), shop.store.round_trips()), (0, 0));
    }
}

#[tokio::test]
async fn s_54_s_55_authentication_outside_decides_who_gets_a_replay() {
    let shop = Shop::new(Rules::ietf());
    let authenticated = |request: http::Request<axum::body::Body>, next: axum::middleware::Next| async move {
        let token = request.headers().get("authorization");
        match token.map(http::HeaderValue::as_bytes) {
            Some(b"Bearer old" | b"Bearer new") => next.run(request).await,
            _ => StatusCode::UNAUTHORIZED.into_response(),
        }
    };
    let router = shop
        .router
        .clone()
        .layer(axum::middleware::from_fn(authenticated));
    let shop = shop.routed_by(router);
    let by = |token| charge().header("authorization", token);

    let first = shop.send(by("Bearer old")).await;
    first.is_fresh();
    shop.send(by("Bearer new")).await.replays(&first);
    let revoked = shop.send(by("Bearer revoked")).await;
    assert_eq!(revoked.status, 401);
    assert!(!revoked.is_replay());
}

#[tokio::test]
async fn s_56_a_user_is_another_caller_in_another_organisation() {
    let shop = scoped(|layer| {
        layer.scope("caller", |request| {
            let text = |name| request.headers.get(name)?.to_str().ok().map(str::to_owned);
            Some((text("organisation")?, text("caller")?))
        })
    });
    for organisation in ["x", "y"] {
        let request = charge().caller("A").header("organisation", organisation);
        shop.send(request).await.is_fresh();
    }
    assert_eq!(shop.runs(), 2);
}

#[tokio::test]
async fn s_57_s_58_a_key_on_another_route_is_refused_or_another_call() {
    let others = [
        post("/refunds").key("k").body("amount=12"),
        Ask::new(Method::PATCH, "/charges")
            .key("k")
            .body("amount=12"),
    ];
    let shop = Shop::new(Rules::ietf());
    shop.send(charge()).await.is_fresh();
    for other in &others {
        shop.send(other.clone()).await.is_problem(422, "key_reused");
    }
    assert_eq!(shop.runs(), 1);

    let shop = Shop::new(Rules::ietf().key_scope(KeyScope::Route));
    let first = shop.send(charge()).await;
    for other in others {
        shop.send(other).await.is_fresh();
    }
    shop.send(charge()).await.replays(&first);
    shop.refuses(charge().body("amount=99"), 422, "key_reused")
        .await;
    assert_eq!(shop.runs(), 3);
}

#[tokio::test]
async fn s_57_nested_routers_do_not_hide_the_path() {
    let nested = |key_scope| {
        let shop = Shop::new(Rules::ietf().key_scope(key_scope));
        let inner = || axum::Router::new().route("/pay", axum::routing::post(|| async { "paid" }));
        let router = axum::Router::new()
            .nest("/a", inner().layer(shop.layer.clone()))
            .nest("/b", inner().layer(shop.layer.clone()));
        shop.routed_by(router)
    };
    let by_caller = nested(KeyScope::Caller);
    let by_route = nested(KeyScope::Route);
    for shop in [&by_caller, &by_route] {
        shop.send(post("/a/pay").key("k")).await.is_fresh();
    }
    let other = post("/b/pay").key("k");
    let reused = by_caller.send(other.clone()).await;
    reused.is_problem(422, "key_reused");
    by_route.send(other).await.is_fresh();
}

#[tokio::test]
async fn a_host_counts_only_where_it_is_part_of_the_scope() {
    let at = |host: &str| charge().header("host", host);
    let shop = Shop::new(Rules::ietf());
    let first = shop.send(at("a.example")).await;
    shop.send(at("b.example")).await.replays(&first);

    let by_host = |layer: LayerBuilder<MissingScope>| {
        layer.name("hosts").scope("caller", |request| {
            let host = request.headers.get("host")?.to_str().ok()?;
            Some((host.to_owned(), "A".to_owned()))
        })
    };
    let shop = shop.scoped_by(by_host, silent);
    shop.send(at("a.example")).await.is_fresh();
    shop.send(at("b.example")).await.is_fresh();
    assert_eq!(shop.runs(), 2);
}
