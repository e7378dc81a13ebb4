//! Problems in a handler's own response: with the usual types, whatever the layer says of its own.

use axum::{Router, routing::post as on_post};
use http::StatusCode;
use idempotent_runtime::{
    Error, Idempotency, InFlight,
    http::{
        IdempotencyLayer, Rules,
        problem::{Kind, Problem, Problems},
    },
    testing::Gate,
};
use serde_json::Value;

use crate::harness::{Shop, by_caller, post, respond};

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

/// A handler tells of a refusal with a status and words of its own.
#[tokio::test]
async fn mend_05_a_refusal_in_a_handler_s_own_words_is_not_stored() {
    for status in [400, 409, 422, 500] {
        let (gate, inner) = (Gate::new(), Idempotency::memory());
        let (its, other) = (gate.clone(), inner.clone());
        let running = tokio::spawn(async move {
            let body = async |_| {
                its.pass().await;
                Ok::<_, Error>(7)
            };
            other.call("charge").key("k").run(body).await
        });
        gate.arrived(1).await;
        let shop = Shop::with(Rules::ietf(), move |_, _| {
            let inner = inner.clone();
            async move {
                let charge = inner.call("charge").key("k").in_flight(InFlight::Reject);
                match charge.run(async |_| Ok::<_, Error>(8)).await {
                    Ok(_) => respond(StatusCode::CREATED, "paid"),
                    Err(_) => {
                        let status = StatusCode::from_u16(status).expect("a status");
                        respond(status, "later")
                    }
                }
            }
        });

        for _ in 0..2 {
            assert_eq!(shop.send(post("/").key("k")).await.status, status);
        }
        gate.open();
        assert_eq!(running.await.expect("no panic"), Ok(7));
        for _ in 0..2 {
            assert_eq!(shop.send(post("/").key("k")).await.status, 201);
        }
    }
}
