//! A9: a rate limit outside of the layer.

use std::sync::{Arc, Mutex};

use axum::{
    extract::Request,
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use idempotent_runtime::http::Rules;

use crate::harness::{Shop, charge};

/// A rate limit: so many requests pass. A request that passes counts, whichever layer answers it.
#[derive(Clone)]
struct Limit(Arc<Mutex<usize>>);

impl Limit {
    fn refill(&self, requests: usize) {
        *self.0.lock().expect("nobody panics") = requests;
    }

    async fn enforce(self, request: Request, next: Next) -> Response {
        let passes = {
            let mut left = self.0.lock().expect("nobody panics");
            let passes = *left > 0;
            *left -= usize::from(passes);
            passes
        };
        if !passes {
            return StatusCode::TOO_MANY_REQUESTS.into_response();
        }
        next.run(request).await
    }
}

#[tokio::test]
async fn s_118_what_a_rate_limit_outside_refuses_is_not_stored_and_replays_count() {
    let shop = Shop::new(Rules::ietf());
    let limit = Limit(Arc::default());
    let outside = limit.clone();
    let enforced = middleware::from_fn(move |request, next| outside.clone().enforce(request, next));
    let router = shop.router.clone().layer(enforced);
    let shop = shop.routed_by(router);
    assert_eq!(shop.send(charge()).await.status, 429);

    limit.refill(3);
    let first = shop.send(charge()).await;
    first.is_fresh();
    for _ in 0..2 {
        shop.send(charge()).await.replays(&first);
    }
    for _ in 0..2 {
        assert_eq!(shop.send(charge()).await.status, 429);
    }

    limit.refill(1);
    shop.send(charge()).await.replays(&first);
    assert_eq!(shop.runs(), 1);
}
