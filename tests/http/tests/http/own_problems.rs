//! Problems in a handler's own response: told as the layer around it tells those that it answers with itself.

use axum::{
    Router,
    body::Body,
    middleware::map_response,
    response::{IntoResponse, Response},
    routing::{any, post as on_post},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header::ACCEPT};
use idempotent_runtime::{
    Error, Idempotency,
    http::{
        IdempotencyKey, IdempotencyLayer, Mark, Presence, Rules,
        problem::{Document, Kind, Problem, ProblemJson, Problems, Rendered, Renderer},
    },
};
use serde_json::Value;

use crate::{
    harness::{Answer, Ask, Shop, by_caller, charge, post},
    panics::NoTemplate,
};

/// Plain text for those who ask for it.
#[derive(Debug)]
struct TextOnRequest;

impl Renderer for TextOnRequest {
    fn render(&self, document: &Document<'_>, request: &HeaderMap) -> Rendered {
        if request
            .get(ACCEPT)
            .is_none_or(|accept| accept != "text/plain")
        {
            return ProblemJson.render(document, request);
        }
        Rendered {
            content_type: HeaderValue::from_static("text/plain"),
            content_language: None,
            body: document.type_uri().to_owned().into(),
        }
    }
}

fn of_the_shop(base: &str) -> Problems {
    Problems::new()
        .base(base)
        .and_then(|problems| problems.documentation("https://shop.example/keys"))
        .expect("absolute URIs")
}

fn layer(problems: Problems, rules: Rules) -> IdempotencyLayer {
    IdempotencyLayer::builder(Idempotency::memory())
        .scope(by_caller())
        .rules(rules)
        .problems(problems)
        .build()
        .expect("the settings are sound")
}

/// Handlers that answer with problems, in every way that there is.
fn handlers() -> Router {
    let helped = || async {
        let beside = [("x-till", "7"), ("link", "</help>; rel=\"help\"")];
        (beside, Problem::new(Kind::KeyReused))
    };
    let conflict = || async { (StatusCode::CONFLICT, Problem::new(Kind::KeyReused)) };
    let failed = || async { (Mark::Final, Problem::new(Kind::HandlerFailed)) };
    Router::new()
        .route("/keyed", on_post(async |_key: IdempotencyKey| ()))
        .route(
            "/error",
            any(async || Err::<(), _>(Error::AlreadyInstalled)),
        )
        .route("/helped", on_post(helped))
        .route("/conflict", on_post(conflict))
        .route("/failed", on_post(failed))
}

fn told(problems: Problems, rules: Rules) -> Shop {
    Shop::new(Rules::ietf()).routed_by(handlers().layer(layer(problems, rules)))
}

fn by_the_shop(rules: Rules) -> Shop {
    told(of_the_shop("https://shop.example/problems/"), rules)
}

fn keyed(path: &str) -> Ask {
    post(path).key("\"k\"")
}

#[track_caller]
fn speaks(answer: &Answer, uri: &str) -> Value {
    let document: Value = serde_json::from_slice(&answer.body).expect("the document is JSON");
    assert_eq!(document["type"], uri);
    assert_eq!(document["status"], answer.status.as_u16());
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    assert_eq!(answer.headers["cache-control"], "no-store");
    document
}

const REUSED: &str = "https://shop.example/problems/idempotency-key-reused";
const MISSING: &str = "https://shop.example/problems/idempotency-key-missing";
const MISCONFIGURED: &str = "https://shop.example/problems/idempotency-misconfigured";
const FAILED: &str = "https://shop.example/problems/idempotency-handler-failed";

#[tokio::test]
async fn s_121_a_problem_of_a_handlers_is_told_as_the_layer_tells_its_own() {
    let shop = by_the_shop(Rules::ietf());
    let first = shop.send(keyed("/helped").body("1")).await;
    speaks(&first, REUSED);
    assert_eq!(first.headers["x-till"], "7");
    let links: Vec<_> = first.headers.get_all("link").iter().collect();
    assert_eq!(
        links,
        [
            "</help>; rel=\"help\"",
            "<https://shop.example/keys>; rel=\"describedby\"; type=\"text/html\""
        ]
    );

    let error = shop.send(keyed("/error")).await;
    speaks(&error, MISCONFIGURED);
    assert!(!error.headers.contains_key("link"));

    let conflict = shop.send(keyed("/conflict")).await;
    assert_eq!(conflict.status, 409);
    speaks(&conflict, REUSED);
}

#[tokio::test]
async fn s_121_a_problem_that_is_stored_is_repeated_as_it_was_told() {
    let shop = by_the_shop(Rules::ietf());
    let first = shop.send(keyed("/failed")).await;
    speaks(&first, FAILED);
    shop.send(keyed("/failed")).await.replays(&first);
}

#[tokio::test]
async fn s_121_so_it_is_where_a_request_is_only_handed_on() {
    let shop = by_the_shop(Rules::ietf().key(Presence::Optional));
    speaks(&shop.send(post("/keyed")).await, MISSING);
    let get = shop.send(Ask::new(Method::GET, "/error")).await;
    speaks(&get, MISCONFIGURED);
    let head = shop.send(Ask::new(Method::HEAD, "/error")).await;
    assert!(head.body.is_empty());
    let length = &head.headers["content-length"];
    assert_eq!(length, &get.body.len().to_string(), "as of the GET");
    let shop = by_the_shop(Rules::ietf().key(Presence::IgnoredAloud));
    let ignored = shop.send(keyed("/helped")).await;
    speaks(&ignored, REUSED);
    assert_eq!(ignored.headers["idempotency-status"], "ignored");
}

#[tokio::test]
async fn s_121_a_renderer_is_asked_with_the_request() {
    for rules in [Rules::ietf(), Rules::ietf().key(Presence::Ignored)] {
        let shop = told(Problems::new().renderer(TextOnRequest), rules);
        let ask = || keyed("/helped");
        let text = shop.send(ask().header("accept", "text/plain")).await;
        assert_eq!(text.headers["content-type"], "text/plain");
        assert!(!text.headers.contains_key("content-language"));
        assert_eq!(text.headers["x-till"], "7");
        assert!(text.body.ends_with(b":idempotency-key-reused"));
        shop.send(ask()).await.is_problem(422, "key_reused");
    }
}

#[tokio::test]
async fn s_121_s_122_the_layer_that_guards_a_request_tells_its_problems() {
    let inner = handlers().layer(layer(
        of_the_shop("https://inner.example/problems/"),
        Rules::ietf(),
    ));
    let outer = layer(of_the_shop("https://shop.example/problems/"), Rules::ietf());
    let shop = Shop::new(Rules::ietf()).routed_by(inner.layer(outer));
    speaks(&shop.send(keyed("/helped")).await, REUSED);
}

/// What the service makes of its errors itself stays.
#[tokio::test]
async fn s_121_a_problem_that_was_changed_on_its_way_stays_as_it_is() {
    let changes: [fn(Response) -> Response; 3] = [
        |response| response.map(|_| Body::from("{\"error\":\"ours\"}")),
        |mut response| {
            let zipped = HeaderValue::from_static("gzip");
            response.headers_mut().insert("content-encoding", zipped);
            response
        },
        |mut response| {
            let ours = HeaderValue::from_static("application/vnd.shop+json");
            response.headers_mut().insert("content-type", ours);
            response
        },
    ];
    for change in changes {
        for rules in [Rules::ietf(), Rules::ietf().key(Presence::Ignored)] {
            let problems = of_the_shop("https://shop.example/problems/");
            let router = handlers().layer(map_response(
                move |response| async move { change(response) },
            ));
            let shop = Shop::new(Rules::ietf());
            let shop = shop.routed_by(router.layer(layer(problems, rules)));
            let answer = shop.send(keyed("/helped")).await;
            let expected = (
                StatusCode::UNPROCESSABLE_ENTITY,
                Problem::new(Kind::KeyReused),
            );
            let expected = Answer::of(change(expected.into_response())).await;
            assert_eq!(answer.body, expected.body);
            assert_eq!(answer.headers["x-till"], "7");
        }
    }
}

#[tokio::test]
async fn s_102_a_renderer_that_panics_leaves_a_handler_its_own_words() {
    let shop = Shop::new(Rules::ietf());
    let layer = layer(Problems::new().renderer(NoTemplate), Rules::ietf());
    let shop = Shop::behind(layer, shop.store, shop.idem, |run, _| async move {
        match run {
            1 => Problem::new(Kind::StoreUnavailable).into_response(),
            _ => "receipt".into_response(),
        }
    });
    shop.send(charge())
        .await
        .is_problem(503, "store_unavailable");
    shop.send(charge()).await.is_fresh();
}
