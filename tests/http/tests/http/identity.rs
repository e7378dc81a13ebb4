//! A4: whose key it is, and what makes two requests the same.

use http::{Method, Response, StatusCode};
use idempotent_runtime::{
    FingerprintKey, Idempotency, MemoryStore,
    http::{BodyComparison, IdempotencyLayer, KeyScope, QueryComparison, Rules},
    testing::FaultyStore,
};

use crate::{
    harness::{Ask, Shop, charge, post},
    said::warnings_of,
};

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

/// That a layer without a scope does not compile is shown by the documentation of its builder.
#[tokio::test]
async fn s_52_only_the_explicit_word_shares_one_space() {
    let shop = Shop::new(Rules::ietf());
    let layer = IdempotencyLayer::builder(shop.idem.clone())
        .shared_by_all_callers()
        .build()
        .expect("the settings are sound");
    let shop = Shop::behind(layer, shop.store, shop.idem, |_, _| async {
        Response::default()
    });
    let first = shop.send(charge().caller("A")).await;
    shop.send(charge().caller("B")).await.replays(&first);
}

#[tokio::test]
async fn s_53_who_is_nobody_is_refused() {
    let shop = Shop::new(Rules::ietf());
    let refused = shop.send(charge().caller("nobody")).await;
    refused.is_problem(400, "scope_unresolved");
    let layer = IdempotencyLayer::builder(shop.idem.clone())
        .scope("caller", |_| None::<String>)
        .unscoped_status(StatusCode::UNAUTHORIZED)
        .build()
        .expect("the settings are sound");
    let unauthorized = Shop::behind(layer, shop.store.clone(), shop.idem.clone(), |_, _| async {
        Response::default()
    });
    unauthorized
        .send(charge())
        .await
        .is_problem(401, "scope_unresolved");
    assert_eq!(
        (shop.runs(), unauthorized.runs(), shop.store.round_trips()),
        (0, 0, 0)
    );
}

#[tokio::test]
async fn s_53_operators_are_told_once_that_nobody_is_refused() {
    let handle = Idempotency::memory();
    let layer = IdempotencyLayer::builder(handle.clone())
        .name("outside of the authentication")
        .scope("caller", |_| None::<String>)
        .build()
        .expect("the settings are sound");
    let store = FaultyStore::new(MemoryStore::new());
    let shop = Shop::behind(layer, store, handle, |_, _| async { Response::default() });

    let ((), said) = warnings_of("outside of the authentication", async {
        for _ in 0..2 {
            shop.send(charge())
                .await
                .is_problem(400, "scope_unresolved");
        }
    })
    .await;

    assert_eq!(
        said.matches("put the authentication outside").count(),
        1,
        "{said}"
    );
}

#[tokio::test]
async fn s_53_whose_name_cannot_be_one_is_nobody() {
    for name in [String::new(), "A".repeat(70_000)] {
        let shop = Shop::new(Rules::ietf());
        let layer = IdempotencyLayer::builder(shop.idem.clone())
            .scope("caller", move |_| Some(name.clone()))
            .unscoped_status(StatusCode::UNAUTHORIZED)
            .build()
            .expect("the settings are sound");
        let shop = Shop::behind(layer, shop.store, shop.idem, |_, _| async {
            Response::default()
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
        match request
            .headers()
            .get("authorization")
            .map(http::HeaderValue::as_bytes)
        {
            Some(b"Bearer old" | b"Bearer new") => next.run(request).await,
            _ => {
                let mut refused = Response::default();
                *refused.status_mut() = StatusCode::UNAUTHORIZED;
                refused
            }
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
    let shop = Shop::new(Rules::ietf());
    let layer = IdempotencyLayer::builder(shop.idem.clone())
        .scope("caller", |request| {
            let text = |name| request.headers.get(name)?.to_str().ok().map(str::to_owned);
            Some((text("organisation")?, text("caller")?))
        })
        .build()
        .expect("the settings are sound");
    let shop = Shop::behind(layer, shop.store, shop.idem, |_, _| async {
        Response::default()
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
    shop.send(charge().body("amount=99"))
        .await
        .is_problem(422, "key_reused");
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

/// The second request is the first one again, or another one.
async fn compare(rules: Rules, first: Ask, second: Ask, same: bool) {
    let shop = Shop::new(rules);
    let answered = shop.send(first.clone()).await;
    answered.is_fresh();
    let again = shop.send(second.clone()).await;
    if same {
        again.replays(&answered);
    } else {
        again.is_problem(422, "key_reused");
        shop.send(first).await.replays(&answered);
    }
    assert_eq!(shop.runs(), 1, "{second:?}");
}

#[tokio::test]
async fn s_59_another_query_is_another_request() {
    for (one, other) in [
        ("/c?a=1", "/c?a=2"),
        ("/c?a=&a=b&c=", "/c?a=&b=c&b="),
        ("/c", "/c?"),
        ("/c?a", "/ca?"),
        ("/c?a=1&a=1", "/c?a=1"),
    ] {
        for rules in [
            Rules::ietf(),
            Rules::ietf().compare_queries(QueryComparison::AnyOrder),
        ] {
            compare(rules, post(one).key("k"), post(other).key("k"), false).await;
        }
    }
}

#[tokio::test]
async fn s_59b_the_order_of_a_query_counts_unless_it_is_said_not_to() {
    let (one, other) = (post("/c?a=1&b=2").key("k"), post("/c?b=2&a=1").key("k"));
    compare(Rules::ietf(), one.clone(), other.clone(), false).await;
    let any_order = Rules::ietf().compare_queries(QueryComparison::AnyOrder);
    compare(any_order, one, other, true).await;
}

#[tokio::test]
async fn first_hour_21_two_spellings_of_a_path_are_one_request_and_one_route() {
    for (one, other, same) in [
        ("/orders/a", "/orders/%61", true),
        ("/caf%c3%a9", "/caf%C3%A9", true),
        ("/a%2Fb", "/a/b", false),
        ("/orders/a", "/orders/A", false),
    ] {
        let (one, other) = (post(one).key("k"), post(other).key("k"));
        let shop = Shop::new(Rules::ietf().key_scope(KeyScope::Route));
        let first = shop.send(one.clone()).await;
        let second = shop.send(other.clone()).await;
        if same {
            second.replays(&first);
        } else {
            second.is_fresh();
        }
        compare(Rules::ietf(), one, other, same).await;
    }
}

#[tokio::test]
async fn first_hour_21_a_query_or_some_of_its_parameters_can_be_left_out() {
    let without = QueryComparison::Without(&["trace", "b"]);
    for (comparison, one, other, same) in [
        (QueryComparison::Ignored, "/c?a=1", "/c", true),
        (QueryComparison::Ignored, "/c?a=1", "/d?a=1", false),
        (without, "/c?a=1&trace=7", "/c?trace=8&a=1", true),
        (without, "/c?a=1&b&trace", "/c?a=1", true),
        (without, "/c?trace=7", "/c", true),
        (without, "/c?", "/c", false),
        (without, "/c?a=1&trace=7", "/c?a=2&trace=7", false),
        (without, "/c?traces=7", "/c?traces=8", false),
        (without, "/c?a=1&d=2", "/c?d=2&a=1", false),
    ] {
        let rules = Rules::ietf().compare_queries(comparison);
        compare(rules, post(one).key("k"), post(other).key("k"), same).await;
    }
}

fn json(body: &'static str) -> Ask {
    post("/charges").key("k").json(body)
}

fn canonical() -> Rules {
    Rules::ietf().compare_bodies(BodyComparison::CanonicalJson)
}

#[tokio::test]
async fn s_59c_the_spelling_of_json_counts_unless_it_is_said_not_to() {
    let (one, other) = (
        json(r#"{"a":1,"b":[2]}"#),
        json("{ \"b\": [2],\n\"a\": 1 }"),
    );
    compare(Rules::ietf(), one.clone(), other.clone(), false).await;
    compare(canonical(), one, other, true).await;
}

#[tokio::test]
async fn s_59d_what_json_says_counts() {
    for (one, other, same) in [
        (r#"{"a":null}"#, "{}", false),
        ("[1,2]", "[2,1]", false),
        ("1.0", "1", true),
        (r#"{"a":1,"a":2}"#, r#"{"a":2}"#, false),
        (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#, false),
        (r#"{"a":1,"a":2}"#, r#"{"a":1,"a":2}"#, true),
        ("9007199254740993", "9007199254740992", false),
        ("18446744073709551617", "18446744073709551616", false),
    ] {
        compare(canonical(), json(one), json(other), same).await;
    }
}

#[tokio::test]
async fn s_59e_what_is_not_json_is_compared_byte_by_byte() {
    compare(canonical(), json("{oops"), json("{oops "), false).await;
    compare(canonical(), json("{oops"), json("{oops"), true).await;
    let text = |body: &'static str| {
        post("/c")
            .key("k")
            .header("content-type", "text/plain")
            .body(body)
    };
    compare(canonical(), text("[1]"), text("[ 1]"), false).await;
    let vendor = |body: &'static str| {
        let ask = post("/c")
            .key("k")
            .header("content-type", "application/vnd.shop+json; charset=utf-8");
        ask.body(body)
    };
    compare(canonical(), vendor("[1]"), vendor("[ 1]"), true).await;
}

#[tokio::test]
async fn s_59f_the_media_type_counts_and_its_parameters_do_not() {
    let of = |media: &'static str| post("/c").key("k").header("content-type", media).body("{}");
    compare(
        Rules::ietf(),
        of("application/json"),
        of("text/plain"),
        false,
    )
    .await;
    compare(
        Rules::ietf(),
        of("application/json"),
        of("Application/JSON; charset=utf-8"),
        true,
    )
    .await;
    compare(
        Rules::ietf(),
        of("application/json"),
        post("/c").key("k").body("{}"),
        false,
    )
    .await;
}

#[tokio::test]
async fn s_59g_the_coding_of_a_body_counts() {
    let coded = post("/c")
        .key("k")
        .header("content-encoding", "gzip")
        .body("amount=12");
    compare(
        Rules::ietf(),
        post("/c").key("k").body("amount=12"),
        coded,
        false,
    )
    .await;
}

/// It says that there is none (RFC 9110, section 8.4.1), and whoever hands a request on may leave it out.
#[tokio::test]
async fn s_59g_identity_is_no_coding() {
    let shop = Shop::new(Rules::ietf());
    let first = shop.send(charge()).await;
    for none in ["identity", "Identity ", ""] {
        let again = shop.send(charge().header("content-encoding", none)).await;
        again.replays(&first);
    }
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_59h_other_header_fields_do_not_count() {
    let mut other = charge();
    for (name, value) in [
        ("authorization", "Bearer 2"),
        ("user-agent", "curl"),
        ("traceparent", "00-1-2-01"),
        ("date", "Sat, 21 Nov 2026 10:00:00 GMT"),
        ("signature", "sig=:YQ==:"),
        ("if-match", "\"1\""),
    ] {
        other = other.header(name, value);
    }
    compare(Rules::ietf(), charge(), other, true).await;
}

#[tokio::test]
async fn s_59i_s_94_header_fields_that_are_named_count() {
    let rules = || {
        let named = ["api-version", "accept-language"];
        Rules::ietf().compare_headers(named.map(http::HeaderName::from_static))
    };
    let version = |version: &str| charge().header("api-version", version);
    compare(
        rules(),
        version("1"),
        version("c07f0106140b189d63ff353983a283b854e54b97c5e237a493bd877b9cc197e7"),
        false,
    )
    .await;
    compare(rules(), version("1"), charge(), false).await;
    compare(rules(), version("1"), version("1"), true).await;
    let language = |language: &str| charge().header("accept-language", language);
    compare(rules(), language("de"), language("en"), false).await;
    compare(Rules::ietf(), language("de"), language("en"), true).await;
}

#[tokio::test]
async fn s_59j_a_digest_of_ones_own_sees_through_a_boundary() {
    let form = |boundary: &str| {
        let body = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n1\r\n--{boundary}--\r\n"
        );
        let media = format!("multipart/form-data; boundary={boundary}");
        post("/c").key("k").header("content-type", media).body(body)
    };
    compare(Rules::ietf(), form("one"), form("two"), false).await;
    let by_value = BodyComparison::by(|_, body| {
        let lines = body.split(|byte| *byte == b'\n');
        lines
            .filter(|line| !line.starts_with(b"--"))
            .flatten()
            .copied()
            .collect()
    });
    compare(
        Rules::ietf().compare_bodies(by_value),
        form("one"),
        form("two"),
        true,
    )
    .await;
}

#[tokio::test]
async fn s_59k_names_and_values_do_not_run_into_each_other() {
    let named = ["x-a", "x-ab"].map(http::HeaderName::from_static);
    let rules = || Rules::ietf().compare_headers(named.clone());
    let one = charge().header("x-a", "bc");
    let other = charge().header("x-ab", "c");
    compare(rules(), one.clone(), other, false).await;
    compare(
        rules(),
        one.clone().header("x-a", "d"),
        charge().header("x-a", "bcd"),
        false,
    )
    .await;
}

#[tokio::test]
async fn s_59l_a_body_is_the_same_however_it_comes() {
    for length in [0, 30 * 1024, 1024 * 1024] {
        let body = bytes::Bytes::from(vec![7; length]);
        let shop = Shop::new(Rules::ietf());
        let sized = post("/c").key("k").body(body.clone());
        let first = shop.send(sized.clone()).await;
        first.is_fresh();
        let pieces: Vec<Result<_, std::convert::Infallible>> = body
            .chunks(1_000)
            .map(|piece| Ok(bytes::Bytes::copy_from_slice(piece)))
            .collect();
        let chunked = crate::harness::stream(pieces);
        shop.send_as_is(sized.streaming(chunked))
            .await
            .replays(&first);
    }
}

#[tokio::test]
async fn s_59m_a_secret_keys_the_fingerprint_and_no_body_is_stored() {
    let fingerprint = |secret: Option<&'static [u8]>| async move {
        let store = FaultyStore::new(MemoryStore::new());
        let mut builder = Idempotency::builder(store.clone());
        if let Some(secret) = secret {
            builder =
                builder.fingerprint_key(FingerprintKey::new(secret).expect("it is long enough"));
        }
        let idem = builder.build().expect("the settings are sound");
        let shop = Shop::over(store, idem, Rules::ietf(), |_, _| async {
            Response::default()
        });
        shop.send(post("/c").key("k").body("pin=1234"))
            .await
            .is_fresh();
        let records = shop
            .idem
            .store()
            .scan(None, 10)
            .await
            .expect("the store answers");
        let (_, record) = &records[0];
        let outcome = &record.outcome.as_ref().expect("it is done").bytes[..];
        for stored in [&record.subject.key, &record.subject.scope, outcome] {
            assert!(!stored.windows(4).any(|piece| piece == b"pin="));
        }
        record.subject.fingerprint.fingerprint()
    };
    let plain = fingerprint(None).await;
    let keyed = fingerprint(Some(b"sixteen bytes at least")).await;
    assert_ne!(plain, keyed);
    assert_ne!(keyed, fingerprint(Some(b"another secret of bytes")).await);
}

/// What is stored must be found by later releases: another value here is a breaking change.
#[tokio::test]
async fn s_59n_the_fingerprints_of_requests_stay_what_they_are() {
    let headers = || Rules::ietf().compare_headers([http::HeaderName::from_static("api-version")]);
    let request = || post("/charges?b=2&a=1").key("k").header("api-version", "1");
    let any_order = headers().compare_queries(QueryComparison::AnyOrder);
    let canonical = canonical().compare_queries(QueryComparison::Exact);
    for (rules, request, golden) in [
        (
            headers(),
            request().body("amount=12"),
            "05f044c31331ac94e43e5c0bb78ece48ca78e4fbf7d201e9f5c5d50259c58b7a",
        ),
        (
            any_order,
            request().json("{\"a\": 1}"),
            "c07f0106140b189d63ff353983a283b854e54b97c5e237a493bd877b9cc197e7",
        ),
        (
            canonical,
            json("{\"a\": [1.50, null, true, \"x\"]}"),
            "1a15f6444dd7c22ece174c0d8476c47b1a150d29d3dcf3749fe6140770130c56",
        ),
    ] {
        let shop = Shop::new(rules);
        shop.send(request).await.is_fresh();
        let records = shop
            .idem
            .store()
            .scan(None, 1)
            .await
            .expect("the store answers");
        let (id, record) = &records[0];
        assert_eq!(record.subject.fingerprint.fingerprint().to_hex(), golden);
        assert_eq!(
            id.to_hex(),
            "2c5aac038dbb3dac72ca35bac4c348f9693f2ff700e3752268e0cee15694d7cc"
        );
    }
}

#[tokio::test]
async fn a_host_counts_only_where_it_is_part_of_the_scope() {
    let at = |host: &str| charge().header("host", host);
    let shop = Shop::new(Rules::ietf());
    let first = shop.send(at("a.example")).await;
    shop.send(at("b.example")).await.replays(&first);

    let layer = IdempotencyLayer::builder(shop.idem.clone())
        .name("hosts")
        .scope("caller", |request| {
            let host = request.headers.get("host")?.to_str().ok()?;
            Some((host.to_owned(), "A".to_owned()))
        })
        .build()
        .expect("the settings are sound");
    let shop = Shop::behind(layer, shop.store, shop.idem, |_, _| async {
        Response::default()
    });
    shop.send(at("a.example")).await.is_fresh();
    shop.send(at("b.example")).await.is_fresh();
    assert_eq!(shop.runs(), 2);
}
