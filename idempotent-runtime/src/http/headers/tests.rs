use super::*;

pub(in crate::http) fn map(fields: &[(&str, &[u8])]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let name: HeaderName = name.parse().expect("a name");
        let value = HeaderValue::from_bytes(value).expect("a value");
        headers.append(name, value);
    }
    headers
}

fn name(name: &str) -> HeaderName {
    name.parse().expect("a name")
}

/// The names of the checklist that are kept, and those that are not, under a policy.
fn split(policy: &HeaderPolicy, names: &[&str]) -> (Vec<String>, Vec<String>) {
    let fields: Vec<_> = names.iter().map(|name| (*name, &b"value"[..])).collect();
    let stored = policy.stored(&map(&fields));
    let lower = names.iter().map(|name| name.to_ascii_lowercase());
    lower.partition(|name| stored.contains_key(name))
}

fn keeps_none(policy: &HeaderPolicy, names: &[&str]) {
    let (kept, _) = split(policy, names);
    assert_eq!(kept, Vec::<String>::new());
}

fn assert_left_out(names: &[&str]) {
    keeps_none(&HeaderPolicy::new(), names);
}

#[test]
fn s_73_what_belongs_to_a_connection_is_never_kept() {
    let names = [
        "Connection",
        "Keep-Alive",
        "Proxy-Connection",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
    ];
    assert_left_out(&names);
    keeps_none(&HeaderPolicy::only(names.map(name)), &names);
}

#[test]
fn s_73_what_connection_nominates_is_not_kept_whatever_its_case() {
    let headers = map(&[
        ("connection", b"close, X-Hop"),
        ("connection", b"x-jump"),
        ("x-hop", b"1"),
        ("x-jump", b"2"),
        ("x-hope", b"3"),
    ]);
    let stored = HeaderPolicy::new().keep(name("x-hop")).stored(&headers);
    assert_eq!(stored, map(&[("x-hope", b"3")]));
}

#[test]
fn s_74_what_is_made_anew_is_not_kept() {
    assert_left_out(&["Date", "Age", "Via", "Server", "Alt-Svc"]);
}

#[test]
fn s_75_the_length_is_not_kept() {
    assert_left_out(&["Content-Length"]);
    let listed = HeaderPolicy::only([name("content-length")]);
    assert!(!listed.keeps(&name("content-length")));
}

#[test]
fn s_76_cookies_are_kept_only_where_the_policy_says_so() {
    assert_left_out(&["Set-Cookie", "Set-Cookie2"]);
    let policy = HeaderPolicy::new().keep(name("set-cookie"));
    assert!(policy.keeps(&name("set-cookie")));
    assert!(!policy.keeps(&name("set-cookie2")));
    let policy = policy.leave_out(name("set-cookie"));
    assert!(!policy.keeps(&name("set-cookie")));
    let policy = policy.keep(name("set-cookie"));
    assert!(policy.keeps(&name("set-cookie")));
}

#[test]
fn s_77_what_is_said_about_who_calls_is_not_kept() {
    assert_left_out(&[
        "WWW-Authenticate",
        "Proxy-Authenticate",
        "Authentication-Info",
        "Proxy-Authentication-Info",
        "Authorization",
        "Proxy-Authorization",
    ]);
}

#[test]
fn s_78_what_a_cors_layer_adds_is_not_kept() {
    assert_left_out(&[
        "Access-Control-Allow-Origin",
        "Access-Control-Allow-Credentials",
        "Access-Control-Expose-Headers",
    ]);
    let varies = |lines: &[&'static str]| {
        let lines: Vec<_> = lines.iter().map(|line| ("vary", line.as_bytes())).collect();
        let stored = HeaderPolicy::new().stored(&map(&lines));
        let values = stored
            .get_all("vary")
            .iter()
            .map(|value| value.to_str().expect("text").to_owned());
        values.collect::<Vec<_>>()
    };
    assert_eq!(varies(&["Origin"]), Vec::<String>::new());
    assert_eq!(
        varies(&["origin, Accept , access-control-request-method"]),
        ["Accept"]
    );
    assert_eq!(
        varies(&["Accept-Language,Accept", "Access-Control-Request-Headers"]),
        ["Accept-Language,Accept"]
    );
    assert_eq!(varies(&["*"]), ["*"]);

    let vary = map(&[("vary", b"origin")]);
    assert_eq!(HeaderPolicy::new().keep(VARY).stored(&vary), vary);
    let odd = map(&[("vary", b"\xff")]);
    assert_eq!(HeaderPolicy::new().stored(&odd), odd);
}

#[test]
fn s_79_what_tells_of_one_request_is_not_kept() {
    assert_left_out(&[
        "X-Request-Id",
        "Request-Id",
        "X-Correlation-Id",
        "traceparent",
        "tracestate",
        "Server-Timing",
        "RateLimit",
        "RateLimit-Policy",
        "RateLimit-Remaining",
        "X-RateLimit-Remaining",
        "Retry-After",
    ]);
}

#[test]
fn s_79_a_replay_tells_the_id_of_the_request_that_ran_when_it_is_asked_to() {
    let headers = map(&[("x-request-id", b"r-1"), ("content-type", b"text/plain")]);
    let policy = HeaderPolicy::new().original_request_id(name("x-request-id"));
    let expected = map(&[
        ("content-type", b"text/plain"),
        ("original-request-id", b"r-1"),
    ]);
    assert_eq!(policy.stored(&headers), expected);
    assert_eq!(policy.stored(&HeaderMap::new()), HeaderMap::new());
}

#[test]
fn s_80_everything_else_is_kept_unless_only_some_are_listed() {
    let names = [
        "Content-Type",
        "Location",
        "Content-Location",
        "Link",
        "ETag",
        "Last-Modified",
        "Content-Language",
        "Content-Disposition",
        "Cache-Control",
        "X-Order",
    ];
    let (kept, left_out) = split(&HeaderPolicy::new(), &names);
    assert_eq!((kept.len(), left_out.len()), (names.len(), 0));
    let listed = HeaderPolicy::only([name("location"), name("set-cookie")]);
    let (kept, _) = split(&listed, &names);
    assert_eq!(kept, ["location"]);
    assert!(listed.keeps(&name("set-cookie")));
}

#[test]
fn s_80_s_93_the_coding_of_a_body_is_kept_whatever_the_policy_says() {
    let headers = map(&[
        ("content-encoding", b"gzip"),
        ("content-encoding", b"br"),
        ("x-order", b"1"),
    ]);
    let coding = map(&[("content-encoding", b"gzip"), ("content-encoding", b"br")]);
    let only = HeaderPolicy::only([name("content-type")]);
    let without = HeaderPolicy::only([]).leave_out(name("content-encoding"));
    for policy in [only, without] {
        assert_eq!(policy.stored(&headers), coding);
    }
}

#[test]
fn s_81_a_field_that_is_there_twice_keeps_both_values_and_their_order_and_bytes() {
    let headers = map(&[
        ("link", b"<a>; rel=next"),
        ("x-name", b"f\xfcr"),
        ("link", b"<b>; rel=prev"),
    ]);
    let stored = HeaderPolicy::new().stored(&headers);
    assert_eq!(stored, headers);
    let links: Vec<_> = stored.get_all("link").iter().collect();
    assert_eq!(links, ["<a>; rel=next", "<b>; rel=prev"]);
    assert_eq!(stored["x-name"].as_bytes(), b"f\xfcr");
}

#[test]
fn s_37_a_mark_that_a_handler_sets_is_never_kept() {
    let names = ["Idempotent-Replayed", "Idempotency-Key"];
    assert_left_out(&names);
    keeps_none(&HeaderPolicy::only(names.map(name)), &names);
}
