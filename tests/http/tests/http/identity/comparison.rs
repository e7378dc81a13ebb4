//! The rules by which two requests with one key are the same.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderName, header::HOST};
use idempotent_runtime::{
    FingerprintKey, Idempotency, MemoryStore,
    http::{BodyComparison, KeyScope, QueryComparison, Rules},
    testing::FaultyStore,
};

use crate::harness::{Ask, Shop, charge, post, silent, stream};

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

#[tokio::test]
async fn mend_39_what_is_left_of_a_query_is_compared_without_what_is_empty() {
    let without = || Rules::ietf().compare_queries(QueryComparison::Without(&["t"]));
    for (one, other, same) in [
        ("/c?t=1", "/c?t=1&", true),
        ("/c", "/c?&", true),
        ("/c?a=1&t=1", "/c?&a=1&", true),
        ("/c?a=1", "/c?a=2&", false),
    ] {
        let (one, other) = (post(one).key("k"), post(other).key("k"));
        compare(without(), one, other, same).await;
    }
}

#[tokio::test]
async fn mend_39_a_host_is_compared_wherever_it_stands() {
    let rules = || Rules::ietf().compare_headers([HOST]);
    let by_field = |host| post("/c").key("k").header("host", host);
    let by_target = |target| post(target).key("k");
    for (one, other, same) in [
        (by_field("a"), by_field("b"), false),
        (by_target("http://a/c"), by_target("http://b/c"), false),
        (by_field("a"), by_target("http://a/c"), true),
        (
            by_target("http://a/c"),
            by_target("http://a/c").header("host", "b"),
            true,
        ),
    ] {
        compare(rules(), one, other, same).await;
    }
}

#[tokio::test]
async fn mend_39_all_lines_of_a_field_are_compared() {
    let lines = |name: &'static str, values: &[&str]| {
        let ask = post("/c").key("k");
        values
            .iter()
            .fold(ask, |ask, value| ask.header(name, value))
    };
    for (name, one, other, same) in [
        ("content-encoding", &["br"][..], &["br", "gzip"][..], false),
        ("content-encoding", &["br, gzip"], &["br", "gzip"], true),
        ("content-encoding", &["br"], &["br", "identity"], true),
        ("content-type", &["a/a"], &["a/a", "b/b"], false),
        ("content-type", &["a/a; x=1"], &["a/a; x=2"], true),
        ("x-version", &["1"], &["1", "2"], false),
    ] {
        let rules = Rules::ietf().compare_headers([HeaderName::from_static("x-version")]);
        compare(rules, lines(name, one), lines(name, other), same).await;
    }
}

fn json(body: &'static str) -> Ask {
    post("/charges").key("k").json(body)
}

fn of(media: &str, body: &'static str) -> Ask {
    let ask = post("/c").key("k").header("content-type", media);
    ask.body(body)
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
    let text = |body| of("text/plain", body);
    compare(canonical(), text("[1]"), text("[ 1]"), false).await;
    let vendor = |body| of("application/vnd.shop+json; charset=utf-8", body);
    compare(canonical(), vendor("[1]"), vendor("[ 1]"), true).await;
}

#[tokio::test]
async fn s_59f_the_media_type_counts_and_its_parameters_do_not() {
    for (other, same) in [
        (of("text/plain", "{}"), false),
        (of("Application/JSON; charset=utf-8", "{}"), true),
        (post("/c").key("k").body("{}"), false),
    ] {
        let one = of("application/json", "{}");
        compare(Rules::ietf(), one, other, same).await;
    }
}

#[tokio::test]
async fn s_59g_the_coding_of_a_body_counts() {
    let coded = charge().header("content-encoding", "gzip");
    compare(Rules::ietf(), charge(), coded, false).await;
}

/// It says that there is none (RFC 9110, section 8.4.1), and an intermediary that hands a request
/// on may leave it out.
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
        Rules::ietf().compare_headers(named.map(HeaderName::from_static))
    };
    let version = |version: &str| charge().header("api-version", version);
    let other = version("c07f0106140b189d63ff353983a283b854e54b97c5e237a493bd877b9cc197e7");
    compare(rules(), version("1"), other, false).await;
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
    let by_value = Rules::ietf().compare_bodies(by_value);
    compare(by_value, form("one"), form("two"), true).await;
}

#[tokio::test]
async fn s_59k_names_and_values_do_not_run_into_each_other() {
    let named = ["x-a", "x-ab"].map(HeaderName::from_static);
    let rules = || Rules::ietf().compare_headers(named.clone());
    let one = charge().header("x-a", "bc");
    let other = charge().header("x-ab", "c");
    compare(rules(), one.clone(), other, false).await;
    let (two_lines, joined) = (one.header("x-a", "d"), charge().header("x-a", "bcd"));
    compare(rules(), two_lines, joined, false).await;
}

#[tokio::test]
async fn s_59l_a_body_is_the_same_however_it_comes() {
    for length in [0, 30 * 1024, 1024 * 1024] {
        let body = Bytes::from(vec![7; length]);
        let shop = Shop::new(Rules::ietf());
        let sized = post("/c").key("k").body(body.clone());
        let first = shop.send(sized.clone()).await;
        first.is_fresh();
        let pieces = body.chunks(1_000).map(Bytes::copy_from_slice);
        let chunked = stream::<Infallible>(pieces.map(Ok).collect());
        let again = shop.send_as_is(sized.streaming(chunked)).await;
        again.replays(&first);
    }
}

#[tokio::test]
async fn s_59m_a_secret_keys_the_fingerprint_and_no_body_is_stored() {
    let fingerprint = |secret: Option<&'static [u8]>| async move {
        let store = FaultyStore::new(MemoryStore::new());
        let mut builder = Idempotency::builder(store.clone());
        if let Some(secret) = secret {
            let secret = FingerprintKey::new(secret).expect("it is long enough");
            builder = builder.fingerprint_key(secret);
        }
        let idem = builder.build().expect("the settings are sound");
        let shop = Shop::over(store, idem, Rules::ietf(), silent);
        let pin = post("/c").key("k").body("pin=1234");
        shop.send(pin).await.is_fresh();
        let records = shop.records().await;
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

/// Later releases must find what is stored: another value here is a breaking change.
#[tokio::test]
async fn s_59n_the_fingerprints_of_requests_stay_what_they_are() {
    let headers = || Rules::ietf().compare_headers([HeaderName::from_static("api-version")]);
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
        let records = shop.records().await;
        let (id, record) = &records[0];
        assert_eq!(record.subject.fingerprint.fingerprint().to_hex(), golden);
        assert_eq!(
            id.to_hex(),
            "2c5aac038dbb3dac72ca35bac4c348f9693f2ff700e3752268e0cee15694d7cc"
        );
    }
}
