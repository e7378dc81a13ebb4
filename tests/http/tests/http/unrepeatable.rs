//! A7: routes whose handlers may run again, because their responses cannot be repeated.

use axum::body::Body;
use bytes::Bytes;
use http::Response;
use idempotent_runtime::{
    BoxError, Idempotency,
    http::{ReplayHint, Rules, Storage, UnstorableResponse},
};
use tokio::sync::mpsc;

use crate::{
    bodies::{is_bound, until_settled},
    harness::{Shop, charge, live, marked, stream},
    statuses::Mask,
};

fn again() -> Rules {
    Rules::ietf().unrepeatable(UnstorableResponse::RunAgain)
}

fn streaming(mark: Option<ReplayHint>) -> Shop {
    Shop::with(again(), move |run, _| async move {
        let piece = Bytes::from(format!("event {run}"));
        marked(Response::new(stream::<BoxError>(vec![Ok(piece)])), mark)
    })
}

async fn runs_again(shop: &Shop) {
    let first = shop.send(charge()).await;
    let again = until_settled(shop).await;
    again.is_fresh();
    assert_ne!(first.body, again.body);
    assert_eq!(shop.runs(), 2);
}

#[tokio::test]
async fn s_89_what_cannot_be_repeated_runs_again_where_that_is_said() {
    runs_again(&streaming(None)).await;
    runs_again(&Shop::new(again().max_response(3))).await;
    runs_again(&Shop::new(again().storage(Storage::Nothing))).await;
    let shop = Shop::new(again());
    let handle = Idempotency::builder(shop.store.clone()).max_outcome(16);
    let small = handle.build().expect("the settings are sound");
    runs_again(&Shop::over(
        shop.store.clone(),
        small,
        again(),
        |run, _| async move { Response::new(Body::from(format!("a long receipt {run}"))) },
    ))
    .await;
    let unsealable = shop.beside(
        |layer| layer.rules(again()).seal(Mask(0)),
        |run, _| async move { Response::new(Body::from(format!("{run}"))) },
    );
    runs_again(&unsealable).await;
}

#[tokio::test]
async fn s_89_what_can_be_repeated_is() {
    let shop = Shop::new(again());
    shop.keeps(charge()).await;
}

#[tokio::test]
async fn s_89_the_key_is_bound_while_the_response_goes_on_and_free_when_its_client_leaves() {
    let (sender, receiver) = mpsc::unbounded_channel::<Bytes>();
    let receiver = std::sync::Mutex::new(Some(receiver));
    let receiver = std::sync::Arc::new(receiver);
    let shop = Shop::with(again(), move |_, _| {
        let receiver = receiver.lock().expect("nobody panics").take();
        async move { Response::new(receiver.map_or_else(Body::empty, live)) }
    });
    let response = shop.begin(charge()).await;
    shop.refuses(charge(), 409, "request_in_progress").await;

    drop((response, sender));

    until_settled(&shop).await.is_fresh();
    assert_eq!(shop.runs(), 2);
}

#[tokio::test]
async fn s_89_the_handlers_word_and_a_failure_count_more() {
    for (mark, code) in [
        (ReplayHint::NotStored, "result_unavailable"),
        (ReplayHint::Final, "result_unavailable"),
        (ReplayHint::Uncertain, "outcome_unknown"),
    ] {
        let shop = streaming(Some(mark));
        shop.send(charge()).await.is_fresh();
        is_bound(&shop, code).await;
    }
    let shop = Shop::with(again(), |_, _| async {
        Response::new(stream::<BoxError>(vec![Err("the disk is gone".into())]))
    });
    let body = shop.begin(charge()).await.into_body();
    assert!(axum::body::to_bytes(body, 64).await.is_err());
    is_bound(&shop, "outcome_unknown").await;
}

#[test]
fn s_89_s_125_the_contract_says_what_runs_again() {
    let told = |rules: Rules| Shop::new(rules).layer.contract().to_markdown();
    let streamed = "responses: those that are streamed or too large | is processed again";
    assert!(told(again()).contains(streamed));
    assert!(!told(Rules::ietf()).contains(streamed));
}
