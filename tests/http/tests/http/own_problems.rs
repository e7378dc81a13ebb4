//! Problems in a handler's own response: with the usual types, whatever the layer says of its own.

use axum::{Router, routing::post as on_post};
use idempotent_runtime::{
    Error, Idempotency,
    http::{
        IdempotencyLayer, Rules,
        problem::{Kind, Problem, Problems},
    },
};
use serde_json::Value;

use crate::harness::{Shop, by_caller, post};

#[tokio::test]
async fn s_121_a_problem_of_a_handler_s_own_has_the_usual_type_and_its_own_fields() {
    let problems = Problems::new().base("https://shop.example/problems/");
    let layer = IdempotencyLayer::builder(Idempotency::memory())
        .scope("caller", by_caller)
        .problems(problems.expect("an absolute URI"))
        .build()
        .expect("the settings are sound");
    let helped = || async { ([("x-till", "7")], Problem::new(Kind::KeyReused)) };
    let error = || async { Err::<(), _>(Error::AlreadyInstalled) };
    let router = Router::new()
        .route("/helped", on_post(helped))
        .route("/error", on_post(error))
        .layer(layer);
    let shop = Shop::new(Rules::ietf()).routed_by(router);

    let helped = shop.send(post("/helped").key("k")).await;
    helped.is_problem(422, "key_reused");
    assert_eq!(helped.headers["x-till"], "7");
    for (answer, slug) in [
        (helped, "idempotency-key-reused"),
        (
            shop.send(post("/error").key("l")).await,
            "idempotency-misconfigured",
        ),
    ] {
        let document: Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert_eq!(
            document["type"],
            format!("urn:idempotent-runtime:problem:{slug}")
        );
    }
}
