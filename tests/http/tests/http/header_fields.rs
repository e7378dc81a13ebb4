//! A6: which header fields of a response its replays have.

use axum::body::Body;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use idempotent_runtime::http::Rules;

use crate::harness::{Answer, Shop, charge, respond};

/// The first response with these header fields, and the one to its repetition.
async fn replayed(
    rules: Rules,
    fields: &'static [(&'static str, &'static [u8])],
) -> (Answer, Answer) {
    let shop = Shop::with(rules, move |_, _| async move {
        let mut response = Response::new(Body::from("receipt"));
        for (name, value) in fields {
            let value = HeaderValue::from_bytes(value).expect("a value");
            response.headers_mut().append(*name, value);
        }
        response
    });
    let first = shop.send(charge()).await;
    (first, shop.send(charge()).await)
}

async fn are_fresh_only(fields: &'static [(&'static str, &'static [u8])]) {
    let (first, again) = replayed(Rules::ietf(), fields).await;
    let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
    again.replays_but_for(&names, &first);
    for name in &names {
        assert!(first.headers.contains_key(*name), "{name} is the handler's");
        assert!(!again.headers.contains_key(*name), "{name} is replayed");
    }
}

#[tokio::test]
async fn s_73_fields_of_one_connection_are_never_replayed() {
    are_fresh_only(&[
        ("connection", b"x-hop"),
        ("x-hop", b"1"),
        ("keep-alive", b"timeout=5"),
        ("proxy-connection", b"keep-alive"),
        ("te", b"trailers"),
        ("upgrade", b"h2c"),
    ])
    .await;
}

#[tokio::test]
async fn s_74_fields_of_one_moment_are_never_replayed() {
    are_fresh_only(&[
        ("date", b"Sat, 21 Nov 2026 10:00:00 GMT"),
        ("age", b"1"),
        ("via", b"1.1 proxy"),
        ("server", b"shop"),
        ("alt-svc", b"clear"),
    ])
    .await;
}

#[tokio::test]
async fn s_75_the_length_is_that_of_the_stored_body() {
    let (first, again) = replayed(Rules::ietf(), &[("content-length", b"99")]).await;
    again.replays_but_for(&["content-length"], &first);
    assert_eq!(first.headers["content-length"], "99", "it is the handler's");
    assert_eq!(again.headers["content-length"], "7");
    assert_eq!(again.body, "receipt");
}

#[tokio::test]
async fn s_76_s_77_credentials_are_not_replayed() {
    are_fresh_only(&[
        ("set-cookie", b"session=1"),
        ("set-cookie2", b"session=1"),
        ("www-authenticate", b"Basic"),
        ("proxy-authenticate", b"Basic"),
        ("authentication-info", b"nextnonce=1"),
        ("authorization", b"Bearer 1"),
    ])
    .await;
}

#[tokio::test]
async fn s_78_what_is_said_to_one_origin_is_not_replayed() {
    are_fresh_only(&[
        ("access-control-allow-origin", b"https://a.example"),
        ("access-control-allow-credentials", b"true"),
        ("vary", b"Origin"),
    ])
    .await;
}

#[tokio::test]
async fn s_79_what_names_one_request_is_not_replayed() {
    are_fresh_only(&[
        ("x-request-id", b"1"),
        ("traceparent", b"00-1-2-01"),
        ("server-timing", b"db;dur=1"),
        ("ratelimit-remaining", b"1"),
        ("retry-after", b"1"),
    ])
    .await;
}

#[tokio::test]
async fn s_80_s_81_everything_else_is_replayed_in_its_order() {
    let fields: &[(&str, &[u8])] = &[
        ("content-type", b"text/plain"),
        ("location", b"/receipts/1"),
        ("link", b"</1>; rel=\"next\""),
        ("link", b"</2>; rel=\"prev\""),
        ("etag", b"\"1\""),
        ("content-language", b"de"),
        ("x-shop", b"caf\xe9"),
    ];
    let (first, again) = replayed(Rules::ietf(), fields).await;
    again.replays(&first);
    let mut expected = HeaderMap::new();
    for (name, value) in fields {
        expected.append(*name, HeaderValue::from_bytes(value).expect("a value"));
    }
    for name in expected.keys() {
        let of = |answer: &Answer| {
            answer
                .headers
                .get_all(name)
                .iter()
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&again), of(&first), "{name}");
        assert_eq!(of(&again).len(), expected.get_all(name).iter().count());
    }
}

#[tokio::test]
async fn s_82_a_response_without_a_body_is_replayed_without_one() {
    for status in [204, 205] {
        let shop = Shop::with(Rules::ietf(), move |_, _| async move {
            respond(
                StatusCode::from_u16(status).expect("a status"),
                Body::empty(),
            )
        });
        let first = shop.keeps(charge()).await;
        assert!(first.body.is_empty());
    }
}

#[tokio::test]
async fn s_83_trailers_are_replayed() {
    let shop = Shop::with(Rules::ietf(), |_, _| async {
        let trailers = async {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
            Some(Ok(trailers))
        };
        Response::new(Body::new(Full::from("receipt").with_trailers(trailers)))
    });
    let first = shop.send(charge()).await;
    let again = shop.send(charge()).await;
    again.replays_but_for(&["trailer"], &first);
    for answer in [first, again] {
        let trailers = answer.trailers.expect("there are trailers");
        assert_eq!(trailers["grpc-status"], "0");
    }
}
