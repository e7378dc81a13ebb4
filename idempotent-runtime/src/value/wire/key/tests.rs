use http::{HeaderMap, HeaderName, HeaderValue};

use super::{
    IDEMPOTENCY_KEY, IdempotencyKey, InvalidHeader, KeyReader, Reason, Syntax, vectors::VECTORS,
};
use crate::key::{Key, KeyError, KeyPart};

const ALIAS: HeaderName = HeaderName::from_static("x-idempotency-key");

fn map(name: HeaderName, lines: &[&[u8]]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        let value = HeaderValue::from_bytes(line).expect("a value that HTTP can carry");
        headers.append(name.clone(), value);
    }
    headers
}

fn parse(value: &[u8], syntax: Syntax) -> Result<String, Reason> {
    IdempotencyKey::parse(value, syntax)
        .map(|key| key.as_str().to_owned())
        .map_err(|error| error.reason())
}

#[test]
fn s_01_to_s_22_every_vector_is_read_as_it_says_under_both_syntaxes() {
    for vector in VECTORS {
        let headers = map(IDEMPOTENCY_KEY, vector.lines);
        for (syntax, expected) in [
            (Syntax::Compatible, vector.compatible),
            (Syntax::Strict, vector.strict),
        ] {
            let read = KeyReader::new().syntax(syntax).read(&headers);
            let found = read
                .as_ref()
                .map(|key| key.as_ref().expect("the field is there").as_str())
                .map_err(|error| error.reason().as_str());
            assert_eq!(found, expected, "{} {headers:?} {syntax:?}", vector.id);
        }
    }
}

#[test]
fn s_05_a_bare_uuid_is_taken_whatever_its_first_digit() {
    for digit in "0123456789abcdefABCDEF".chars() {
        let uuid = format!("{digit}e03978e-40d5-43e8-bc93-6894a57f9324");
        let found = parse(uuid.as_bytes(), Syntax::Compatible);
        assert_eq!(found.as_ref(), Ok(&uuid));
        let strict = parse(uuid.as_bytes(), Syntax::Strict);
        assert_eq!(strict, Err(Reason::NotAString));
    }
}

#[test]
fn s_06_a_key_is_the_same_with_quotation_marks_and_without() {
    let quoted = IdempotencyKey::parse(b"\"abc-1\"", Syntax::Compatible);
    assert_eq!(quoted, IdempotencyKey::parse(b"abc-1", Syntax::Compatible));
    assert!(quoted.is_ok());
}

#[test]
fn s_07_s_08_every_byte_is_taken_or_refused_as_the_grammar_says() {
    for byte in 0..=255_u8 {
        let alone = match byte {
            b'"' => Err(Reason::TrailingData),
            b'\\' => Err(Reason::BadEscape),
            b' '..=b'~' => Ok(format!("a{}b", char::from(byte))),
            _ => Err(Reason::NonAscii),
        };
        let escaped = match byte {
            b'"' | b'\\' => Ok(format!("a{}b", char::from(byte))),
            _ => Err(Reason::BadEscape),
        };
        for syntax in [Syntax::Compatible, Syntax::Strict] {
            assert_eq!(
                parse(&[b'"', b'a', byte, b'b', b'"'], syntax),
                alone,
                "{byte}"
            );
            let value = [b'"', b'a', b'\\', byte, b'b', b'"'];
            assert_eq!(parse(&value, syntax), escaped, "{byte}");
        }
    }
}

#[test]
fn s_10_every_byte_that_may_begin_a_bare_key_is_known() {
    for byte in 0..=255_u8 {
        let value = [byte, b'b'];
        let expected = match byte {
            b'"' => Err(Reason::Unterminated),
            b'\'' | b'(' | b':' => Err(Reason::NotAString),
            b',' => Err(Reason::MultipleFieldLines),
            b' ' | b'\t' => Ok("b".to_owned()),
            b'!'..=b'~' => Ok(String::from_utf8_lossy(&value).into_owned()),
            _ => Err(Reason::NonAscii),
        };
        assert_eq!(parse(&value, Syntax::Compatible), expected, "{byte}");
    }
}

#[test]
fn s_16_a_key_has_up_to_255_characters_without_its_escapes() {
    let escaped = |count: usize| format!("\"{}\"", "\\\"".repeat(count));
    let bare = |count: usize| "k".repeat(count);
    for syntax in [Syntax::Compatible, Syntax::Strict] {
        let longest = parse(escaped(255).as_bytes(), syntax);
        assert_eq!(longest, Ok("\"".repeat(255)));
        let longer = parse(escaped(256).as_bytes(), syntax);
        assert_eq!(longer, Err(Reason::TooLong));
    }
    assert_eq!(
        parse(bare(255).as_bytes(), Syntax::Compatible),
        Ok(bare(255))
    );
    let longer = parse(bare(256).as_bytes(), Syntax::Compatible);
    assert_eq!(longer, Err(Reason::TooLong));
}

#[test]
fn s_17_a_value_of_9_000_bytes_is_refused_without_being_quoted() {
    let value = "secret".repeat(1_500);
    let error = IdempotencyKey::parse(value.as_bytes(), Syntax::Compatible).expect_err("too long");
    assert_eq!(error.reason(), Reason::TooLong);
    assert_eq!(
        error.to_string(),
        "the key has 9000 characters, and at most 255 are allowed"
    );
}

#[test]
fn s_19_a_control_character_is_refused_wherever_it_stands() {
    for control in (0..b' ').chain([0x7f]) {
        for syntax in [Syntax::Compatible, Syntax::Strict] {
            let quoted = [b'"', b'a', control, b'b', b'"'];
            assert_eq!(parse(&quoted, syntax), Err(Reason::NonAscii), "{control}");
        }
        let bare = [b'a', control, b'b'];
        let found = parse(&bare, Syntax::Compatible);
        assert_eq!(found, Err(Reason::NonAscii), "{control}");
    }
}

#[test]
fn s_20_the_name_of_the_field_has_no_case() {
    for name in ["idempotency-key", "IDEMPOTENCY-KEY", "Idempotency-Key"] {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        let found = KeyReader::new().read(&map(name, &[b"k"]));
        assert_eq!(found, Ok(Some(IdempotencyKey::new("k").expect("a key"))));
    }
}

#[test]
fn s_22_keys_that_look_alike_when_joined_stay_apart() {
    let framed = |scope: &str, key: &str| {
        let key = IdempotencyKey::new(key).expect("a key");
        Key::from_part(&(scope, key)).map(|key| key.framed().to_vec())
    };
    assert_ne!(framed("a:", "b"), framed("a", ":b"));
    assert_ne!(framed("a", "b, c"), framed("a, b", "c"));
    assert_eq!(framed("a", "b"), framed("a", "b"));
}

#[test]
fn s_23_two_fields_with_different_keys_are_refused_and_with_one_key_taken() {
    let reader = KeyReader::new().also(ALIAS);
    let both = |usual: &'static [u8], alias: &'static [u8]| {
        let mut headers = map(IDEMPOTENCY_KEY, &[usual]);
        headers.extend(map(ALIAS, &[alias]));
        reader.read(&headers).map_err(|error| error.reason())
    };
    let key = IdempotencyKey::new("a").expect("a key");
    assert_eq!(both(b"\"a\"", b"a"), Ok(Some(key.clone())));
    assert_eq!(both(b"a", b"b"), Err(Reason::MultipleFieldLines));
    assert_eq!(both(b"a", b""), Err(Reason::Empty));
    assert_eq!(both(b"", b"a"), Err(Reason::Empty));

    let alone = map(ALIAS, &[b"a"]);
    assert_eq!(reader.read(&alone), Ok(Some(key)));
    assert_eq!(KeyReader::new().read(&alone), Ok(None));
    let twice = map(ALIAS, &[b"a", b"a"]);
    let found = reader.read(&twice).map_err(|error| error.reason());
    assert_eq!(found, Err(Reason::MultipleFieldLines));
}

#[test]
fn s_24_a_field_that_is_there_is_never_taken_for_a_missing_one() {
    assert_eq!(KeyReader::new().read(&HeaderMap::new()), Ok(None));
    for line in [&b""[..], b" ", b"\"\"", b"\"", b"\xff", b"\"\xff\""] {
        for syntax in [Syntax::Compatible, Syntax::Strict] {
            let headers = map(IDEMPOTENCY_KEY, &[line]);
            let found = KeyReader::new().syntax(syntax).read(&headers);
            assert!(found.is_err(), "{line:?} {syntax:?}");
        }
    }
}

#[test]
fn a_key_is_written_as_the_string_that_it_is_read_from() {
    let key = IdempotencyKey::new(r#"a"b\c"#).expect("a key");
    let value = key.to_header_value();
    assert_eq!(value.as_bytes(), br#""a\"b\\c""#);
    assert!(value.is_sensitive());
    let read = IdempotencyKey::parse(value.as_bytes(), Syntax::Strict);
    assert_eq!(read, Ok(key));
}

#[test]
fn a_key_that_came_another_way_must_be_sound_too() {
    let reason = |text: &str| IdempotencyKey::new(text).map_err(|error| error.reason());
    assert_eq!(reason("").err(), Some(Reason::Empty));
    assert_eq!(reason("  ").err(), Some(Reason::Empty));
    assert_eq!(reason("f\u{fc}").err(), Some(Reason::NonAscii));
    assert_eq!(reason(&"k".repeat(256)).err(), Some(Reason::TooLong));
    assert!(reason(" k ").is_ok());
}

#[test]
fn s_119_a_key_is_never_shown() {
    let key = IdempotencyKey::new("who-knows-it-may-ask").expect("a key");
    assert_eq!(format!("{key:?}"), "IdempotencyKey(20 characters)");
    assert_eq!(format!("{:?}", key.to_header_value()), "Sensitive");
}

#[test]
fn s_49_a_key_is_the_key_of_an_annotated_handler_and_none_is_a_missing_one() {
    let key = IdempotencyKey::new("order-42").expect("a key");
    let bytes = |part: Result<Key, KeyError>| part.map(|key| key.framed().to_vec());
    assert_eq!(
        bytes(Key::from_part(&key)),
        bytes(Key::from_part("order-42"))
    );
    assert_eq!(
        bytes(Key::from_part(&Some(key.clone()))),
        bytes(Key::from_part(&key))
    );
    let none = Key::from_part(&None::<IdempotencyKey>);
    assert_eq!(bytes(none), Err(KeyError::Missing));
    assert_eq!(serde_json::to_value(&key).expect("text"), "order-42");
}

#[test]
fn s_49_a_key_of_a_caller_is_that_callers_alone() {
    let of = |caller: &dyn KeyPart, text: &str| {
        IdempotencyKey::new(text).expect("a key").of_caller(caller)
    };
    let keys = [
        IdempotencyKey::new("bc").expect("a key"),
        of(&"a", "bc"),
        of(&"ab", "c"),
        of(&("a", "b"), "c"),
        of(&"a", "bd"),
    ];
    for (one, key) in keys.iter().enumerate() {
        for (other, another) in keys.iter().enumerate() {
            let framed = |key| Key::from_part(key).expect("a key").framed().to_vec();
            assert_eq!(key == another, one == other);
            assert_eq!(framed(key) == framed(another), one == other);
        }
    }
    let key = of(&"alice", "order-42");
    let stored = Key::from_part(&key).expect("a key");
    assert_eq!(stored.framed(), b"\"\x05alice\"\x08order-42");
    assert_eq!(stored.into_readable(), b"alice, order-42");
    let pair = |caller: &dyn KeyPart| {
        let (mine, pair) = (of(caller, "k"), Key::from_part(&(caller, "k")));
        (Key::from_part(&mine).expect("a key"), pair.expect("a key"))
    };
    for (mine, pair) in [pair(&"alice"), pair(&("shop", 7)), pair(&7)] {
        assert_eq!(mine.framed(), pair.framed());
    }
    assert_eq!(key.as_str(), "order-42");
    assert_eq!(key.to_header_value(), "\"order-42\"");
    assert_eq!(serde_json::to_value(&key).expect("text"), "order-42");
    assert_eq!(format!("{key:?}"), "IdempotencyKey(8 characters)");
}

#[test]
fn every_error_names_a_reason_of_its_own_for_programs() {
    let names: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(
        names,
        [
            "empty",
            "too_long",
            "too_short",
            "not_a_string",
            "bad_escape",
            "unterminated",
            "trailing_data",
            "non_ascii",
            "multiple_field_lines",
            "policy"
        ]
    );
    let shown = |error: InvalidHeader| error.to_string();
    let two = KeyReader::new().read(&map(IDEMPOTENCY_KEY, &[b"a", b"b"]));
    assert_eq!(
        shown(two.expect_err("two")),
        "expected exactly one key, found 2 field lines"
    );
}
