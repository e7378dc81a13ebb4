//! What the README shows of the front end.

use std::{fs, path::Path};

use axum::{Router, routing::post};
use idempotent_runtime::{
    Error, Idempotency,
    http::{IdempotencyLayer, Rules, Scope},
};
use tower::ServiceExt;

use crate::harness::charge;

#[derive(Clone)]
struct User {
    id: u64,
}

fn service(idem: Idempotency) -> Result<Router, Error> {
    let layer = IdempotencyLayer::builder(idem)
        .scope(Scope::of(|request| {
            request.extensions.get::<User>().map(|user| user.id)
        }))
        .rules(Rules::ietf())
        .build()?;
    let app = Router::new()
        .route("/charges", post(charge_card))
        .layer(layer);
    Ok(app)
}

async fn charge_card(body: String) -> String {
    body
}

#[tokio::test]
async fn the_listing_of_the_readme_is_this_one_and_works() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(readme).expect("it is there");
    let (_, listing) = readme.split_once("```rust\nlet layer").expect("a listing");
    let (listing, _) = listing.split_once("```").expect("its end");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join("");
    assert!(
        words(include_str!("readme.rs")).contains(&words(listing)),
        "{listing}"
    );

    let service = service(Idempotency::memory()).expect("the settings are sound");
    let mut request = http::Request::from(charge());
    request.extensions_mut().insert(User { id: 1 });
    let response = service
        .oneshot(request)
        .await
        .expect("a router does not fail");
    assert_eq!(response.status(), 200);
}
