//! A4: several layers over one handle, whose callers must not be taken for each other.

use axum::{Router, routing::any};
use http::{HeaderName, StatusCode};
use idempotent_runtime::{
    Idempotency,
    http::{Builder, IdempotencyLayer, Rules, Scope},
};

use crate::{
    harness::{Shop, charge},
    said::warnings_of,
};

/// Customers and merchants, each of them numbered from one on.
const CUSTOMER: HeaderName = HeaderName::from_static("customer");
const MERCHANT: HeaderName = HeaderName::from_static("merchant");

fn numbered(kind: HeaderName) -> Scope {
    Scope::of(move |request| {
        let number = request.headers.get(&kind)?.to_str().ok()?;
        number.parse::<u64>().ok()
    })
}

fn layer(idem: &Idempotency, name: &str, scope: Scope) -> IdempotencyLayer {
    let layer = IdempotencyLayer::builder(idem.clone())
        .name(name)
        .scope(scope);
    layer.build().expect("the settings are sound")
}

/// How often operators are told, while these layers are made, that layers of this name may meet.
async fn told(name: &str, make: impl FnOnce(&Idempotency) -> Vec<IdempotencyLayer>) -> usize {
    let idem = Idempotency::memory();
    let (layers, said) = warnings_of(name, async { make(&idem) }).await;
    drop(layers);
    said.matches("two layers over one handle").count()
}

#[tokio::test]
async fn s_51_operators_are_told_once_of_layers_of_one_name_whose_scopes_are_not_one() {
    let times = told("two of one name", |idem| {
        let scopes = [numbered(CUSTOMER), numbered(MERCHANT), numbered(MERCHANT)];
        scopes
            .map(|scope| layer(idem, "two of one name", scope))
            .into()
    });
    assert_eq!(times.await, 1);

    // A service holds its layer's settings for as long as it can be called.
    let times = told("service of a namesake", |idem| {
        let make = |kind| layer(idem, "service of a namesake", numbered(kind));
        let routes = Router::new().route("/", any(|| async {}));
        let service: Router = routes.layer(make(CUSTOMER));
        let second = make(MERCHANT);
        drop(service);
        vec![second]
    });
    assert_eq!(times.await, 1);
}

#[tokio::test]
async fn s_51_nobody_is_told_of_layers_that_cannot_meet_or_share_their_callers() {
    let clones = |idem: &Idempotency| {
        let first = layer(idem, "cloned layer", numbered(CUSTOMER));
        vec![first.clone(), first]
    };
    assert_eq!(told("cloned layer", clones).await, 0);

    let built_again = |idem: &Idempotency| {
        drop(layer(idem, "built again", numbered(CUSTOMER)));
        vec![layer(idem, "built again", numbered(CUSTOMER))]
    };
    assert_eq!(told("built again", built_again).await, 0);

    let one_scope = |idem: &Idempotency| {
        let scope = numbered(CUSTOMER);
        let refusing = scope.clone().refuse_with(StatusCode::UNAUTHORIZED);
        [scope, refusing]
            .map(|scope| layer(idem, "one scope", scope))
            .into()
    };
    assert_eq!(told("one scope", one_scope).await, 0);

    let of_all = |idem: &Idempotency| {
        let scopes = [
            Scope::shared_by_all_callers(),
            Scope::shared_by_all_callers(),
            numbered(CUSTOMER),
        ];
        scopes.map(|scope| layer(idem, "of all", scope)).into()
    };
    assert_eq!(told("of all", of_all).await, 0);

    let named = |idem: &Idempotency| {
        let customers = layer(idem, "named, customers", numbered(CUSTOMER));
        vec![
            customers,
            layer(idem, "named, merchants", numbered(MERCHANT)),
        ]
    };
    assert_eq!(told("named", named).await, 0);

    let of_other_handles = |idem: &Idempotency| {
        let other = Idempotency::memory();
        let make = |idem| layer(idem, "of other handles", numbered(CUSTOMER));
        vec![make(idem), make(&other)]
    };
    assert_eq!(told("of other handles", of_other_handles).await, 0);
}

/// The services of two layers, and whether the second one replays what the first one answered to its caller of the same number.
async fn meets(name: impl Fn(Builder<Scope>, &str) -> Builder<Scope>) -> bool {
    let shop = Shop::new(Rules::ietf());
    let answer = |kind: &'static str, scope| {
        let layer = IdempotencyLayer::builder(shop.idem.clone()).scope(scope);
        let layer = name(layer, kind).build().expect("the settings are sound");
        let router = Router::new().route("/charges", any(move || async move { kind }));
        shop.clone().routed_by(router.layer(layer))
    };
    let customers = answer("customers", numbered(CUSTOMER));
    let merchants = answer("merchants", numbered(MERCHANT));
    let first = customers.send(charge().header("customer", "7")).await;
    assert_eq!(first.body, "customers");
    let second = merchants.send(charge().header("merchant", "7")).await;
    second.is_replay() && second.body == first.body
}

#[tokio::test]
async fn s_51_callers_of_layers_with_names_of_their_own_never_meet() {
    assert!(
        meets(|builder, _| builder).await,
        "the warning is about this"
    );
    assert!(!meets(Builder::name).await);
}
