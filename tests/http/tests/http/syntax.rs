//! A1: what is a key, and what is refused before anything is looked up.

use http::HeaderName;
use idempotent_runtime::{
    Status,
    http::{KeyPolicy, KeyReader, Presence, Rules, Syntax},
};

use crate::harness::{Answer, Ask, Shop, charge, post};

const UUID: &str = "8e03978e-40d5-43e8-bc93-6894a57f9324";

fn strict() -> Rules {
    Rules::ietf().reader(KeyReader::new().syntax(Syntax::Strict))
}

fn keyed(value: impl AsRef<[u8]>) -> Ask {
    post("/charges").key(value).body("amount=12")
}

/// The value is a key, and a retry with it is a replay.
async fn is_a_key(rules: Rules, value: impl AsRef<[u8]>) {
    let shop = Shop::new(rules);
    shop.keeps(keyed(&value)).await.is_fresh();
    assert_eq!(shop.runs(), 1);
}

/// It was carried out under this key.
async fn is_done(shop: &Shop, key: &str) {
    let found = shop.idem.lookup("http", Some(&("caller", "A")), key).await;
    assert!(
        matches!(found, Ok(Status::Completed(_))),
        "{key}: {found:?}"
    );
}

/// The request is refused before the handler runs and before the store is asked.
async fn is_refused(rules: Rules, request: Ask, reason: &str) -> Answer {
    let shop = Shop::new(rules);
    let answer = shop.send(request).await;
    let document = answer.is_problem(400, "key_invalid");
    assert_eq!(document["reason"], reason, "{document}");
    assert_eq!(document["key_action"], "new");
    assert_eq!((shop.runs(), shop.store.round_trips()), (0, 0));
    answer
}

#[tokio::test]
async fn s_01_a_quoted_uuid_is_a_key_without_its_quotes() {
    let shop = Shop::new(strict());
    let first = shop.send(keyed(format!("\"{UUID}\""))).await;
    first.is_fresh();
    is_done(&shop, UUID).await;
}

#[tokio::test]
async fn s_02_a_quoted_word_is_a_key() {
    is_a_key(strict(), "\"clkyoesmbgybucifusbbtdsbohtyuuwz\"").await;
}

#[tokio::test]
async fn s_03_s_04_strict_syntax_refuses_bare_keys_alike() {
    let digit = is_refused(strict(), keyed(UUID), "not_a_string").await;
    let letter = format!("a{}", &UUID[1..]);
    let letter = is_refused(strict(), keyed(letter), "not_a_string").await;
    assert_eq!(digit.body, letter.body);
}

#[tokio::test]
async fn s_05_bare_keys_are_taken_whatever_they_begin_with() {
    for first in "0123456789abcdef".chars() {
        is_a_key(Rules::ietf(), format!("{first}{}", &UUID[1..])).await;
    }
}

#[tokio::test]
async fn s_06_a_quoted_key_and_the_same_bare_are_one_key() {
    let shop = Shop::new(Rules::ietf());
    let first = shop.send(keyed(format!("\"{UUID}\""))).await;
    shop.send(keyed(UUID)).await.replays(&first);
}

#[tokio::test]
async fn s_07_escapes_stand_for_what_they_escape() {
    let shop = Shop::new(Rules::ietf());
    for (value, key) in [("\"a\\\"b\"", "a\"b"), ("\"a\\\\b\"", "a\\b")] {
        shop.send(keyed(value)).await.is_fresh();
        is_done(&shop, key).await;
    }
    assert_eq!(shop.runs(), 2);
}

#[tokio::test]
async fn s_08_other_escapes_are_refused() {
    for value in ["\"a\\nb\"", "\"foo \\,\""] {
        is_refused(Rules::ietf(), keyed(value), "bad_escape").await;
    }
}

#[tokio::test]
async fn s_09_a_broken_string_is_never_taken_raw() {
    for rules in [strict, Rules::ietf] {
        is_refused(rules(), keyed("\"abc"), "unterminated").await;
        is_refused(rules(), keyed("\"abc\\"), "unterminated").await;
        for value in ["abc\"", "'abc'"] {
            is_refused(rules(), keyed(value), "not_a_string").await;
        }
    }
}

#[tokio::test]
async fn s_10_other_structured_fields_are_no_strings() {
    let shop = Shop::new(strict());
    for value in [
        "\"abc\"x",
        "(\"abc\")",
        "42",
        "4.2",
        "?1",
        ":YQ==:",
        "@1659578233",
        "%\"f%c3%bc\"",
    ] {
        shop.send(keyed(value)).await.is_problem(400, "key_invalid");
    }
    let shop = Shop::new(Rules::ietf());
    for value in ["\"abc\"x", "(\"abc\")", ":YQ==:", "%\"f%c3%bc\""] {
        shop.send(keyed(value)).await.is_problem(400, "key_invalid");
    }
    for value in ["42", "4.2", "?1", "@1659578233"] {
        shop.send(keyed(value)).await.is_fresh();
    }
}

#[tokio::test]
async fn s_11_parameters_are_read_and_do_not_count() {
    let shop = Shop::new(strict());
    let first = shop.send(keyed("\"abc\"")).await;
    shop.send(keyed("\"abc\";v=1;foo")).await.replays(&first);
    let upper = keyed("\"abc\";V=1");
    shop.refuses(upper, 400, "key_invalid").await;
}

#[tokio::test]
async fn s_12_two_lines_are_refused() {
    let request = keyed("\"a\"").key("\"b\"");
    is_refused(Rules::ietf(), request, "multiple_field_lines").await;
}

#[tokio::test]
async fn s_13_two_equal_lines_are_refused_and_one_line_of_two() {
    let request = keyed("\"a\"").key("\"a\"");
    is_refused(Rules::ietf(), request, "multiple_field_lines").await;
    for rules in [strict, Rules::ietf] {
        is_refused(rules(), keyed("\"a\", \"a\""), "trailing_data").await;
    }
}

#[tokio::test]
async fn s_14_a_string_over_two_lines_is_refused() {
    let request = keyed("\"foo").key("bar\"");
    is_refused(Rules::ietf(), request, "multiple_field_lines").await;
}

#[tokio::test]
async fn s_15_an_empty_key_is_malformed_and_not_missing() {
    let optional = || Rules::ietf().key(Presence::Optional);
    for rules in [Rules::ietf, optional] {
        for value in ["", "\"\"", "\"   \""] {
            is_refused(rules(), keyed(value), "empty").await;
        }
    }
}

#[tokio::test]
async fn s_16_a_key_has_at_most_255_bytes() {
    is_a_key(strict(), format!("\"{}\"", "k".repeat(255))).await;
    is_a_key(Rules::ietf(), "k".repeat(255)).await;
    let quoted = keyed(format!("\"{}\"", "k".repeat(256)));
    is_refused(strict(), quoted, "too_long").await;
    is_refused(Rules::ietf(), keyed("k".repeat(256)), "too_long").await;
}

#[tokio::test]
async fn s_17_a_huge_value_is_refused() {
    let huge = "k".repeat(9_000);
    let answer = is_refused(Rules::ietf(), keyed(&huge), "too_long").await;
    assert!(answer.body.len() < 1_000);
}

#[tokio::test]
async fn s_18_what_is_not_ascii_is_refused() {
    for value in [
        "\"f\u{fc}\u{fc}\"".as_bytes(),
        b"\"f\xfc\"",
        "\u{201c}k\u{201d}".as_bytes(),
    ] {
        is_refused(Rules::ietf(), keyed(value), "non_ascii").await;
    }
}

#[tokio::test]
async fn s_19_control_characters_are_refused() {
    let shop = Shop::new(Rules::ietf());
    shop.refuses(keyed("\"a\tb\""), 400, "key_invalid").await;
    shop.refuses(keyed("a\tb"), 400, "key_invalid").await;
    assert_eq!(shop.runs(), 0);
}

#[tokio::test]
async fn s_20_the_name_of_the_field_has_no_case() {
    let shop = Shop::new(Rules::ietf());
    let first = shop.send(keyed("k")).await;
    let name = HeaderName::from_bytes(b"IDEMPOTENCY-KEY").expect("a name");
    let mut again = http::Request::from(post("/charges").body("amount=12"));
    again
        .headers_mut()
        .insert(name, "k".parse().expect("a value"));
    shop.send_as_is(again).await.replays(&first);
}

#[tokio::test]
async fn s_21_a_policy_is_named_where_it_refuses() {
    for (policy, named) in [
        (KeyPolicy::new().length(16..=64), "at least 16"),
        (KeyPolicy::new().uuid(), "UUID"),
        (
            KeyPolicy::new().require("without a `c`", |key| !key.contains('c')),
            "without a `c`",
        ),
    ] {
        let shop = Shop::new(Rules::ietf().reader(KeyReader::new().policy(policy)));
        let document = shop.send(keyed("abc")).await.is_problem(400, "key_invalid");
        let detail = document["detail"].as_str().expect("it has a detail");
        assert!(detail.contains(named), "{detail}");
        assert_eq!(shop.runs(), 0);
    }
}

#[tokio::test]
async fn s_22_no_delimiter_runs_into_the_scope() {
    let shop = Shop::new(Rules::ietf());
    let callers_and_keys = [
        ("a:", "b"),
        ("a", "\":b\""),
        ("a:b", "\"\\\"\""),
        ("a", "../%2f"),
    ];
    for (caller, key) in callers_and_keys {
        shop.send(keyed(key).caller(caller)).await.is_fresh();
    }
    assert_eq!(shop.runs(), 4);
}

#[tokio::test]
async fn s_23_two_names_with_different_keys_are_refused() {
    let alias = HeaderName::from_static("x-idempotency-key");
    let rules = || Rules::ietf().reader(KeyReader::new().also(alias.clone()));
    let request = keyed("k").header("x-idempotency-key", "l");
    is_refused(rules(), request, "multiple_field_lines").await;

    let shop = Shop::new(rules());
    let first = shop.send(keyed("k")).await;
    let by_alias = post("/charges")
        .header("x-idempotency-key", "k")
        .body("amount=12");
    shop.send(by_alias).await.replays(&first);
}

#[tokio::test]
async fn s_24_a_malformed_key_is_refused_where_keys_are_optional() {
    let rules = || Rules::ietf().key(Presence::Optional);
    is_refused(rules(), charge().key("again"), "multiple_field_lines").await;
    is_refused(rules(), keyed("\"abc"), "unterminated").await;
}
