//! The parser beside that of the crate `sfv`, on values drawn from the grammar and near it.

use proptest::{collection::vec, prelude::*, sample::select};
use sfv::{BareItem, Item, Parser};

use super::{IdempotencyKey, Syntax, field};

/// The result of `sfv` for a value: the string of an item, or nothing.
fn reference(value: &[u8]) -> Option<String> {
    match Parser::new(value).parse::<Item>().ok()?.bare_item {
        BareItem::String(text) => Some(text.as_str().to_owned()),
        _ => None,
    }
}

fn ours(value: &[u8], syntax: Syntax) -> Option<String> {
    match field::parse(value, syntax).ok()? {
        field::Parsed::Borrowed(text) => Some(text.to_owned()),
        field::Parsed::Unescaped(text) => Some(text),
    }
}

/// The white space around a value that HTTP takes off before structured fields begin.
fn without_white_space(value: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = value
        .iter()
        .position(|byte| !is_space(byte))
        .unwrap_or(value.len());
    let end = value
        .iter()
        .rposition(|byte| !is_space(byte))
        .map_or(start, |last| last + 1);
    &value[start..end]
}

/// A sound string with its quotation marks (RFC 9651, section 3.3.3).
fn string() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        8 => "[ !#-\\[\\]-~]",
        1 => Just("\\\"".to_owned()),
        1 => Just("\\\\".to_owned()),
    ];
    vec(character, 0..20).prop_map(|characters| format!("\"{}\"", characters.concat()))
}

/// A bare item of any type, with a few that are none.
fn bare_item() -> impl Strategy<Value = String> {
    prop_oneof![
        string(),
        "-?[0-9]{1,17}",
        "-?[0-9]{1,14}\\.[0-9]{0,4}",
        "[a-zA-Z*][a-zA-Z0-9!#$%&'*+.^_`|~:/-]{0,6}",
        ":[A-Za-z0-9+/]{0,9}={0,3}:?",
        "\\?[0-2]?",
        "@-?[0-9]{0,16}(\\.[0-9])?",
        "%\"([ !#$&-~]|%[0-9a-fA-F]{2}|%c3%bc){0,5}\"?",
    ]
}

fn parameter() -> impl Strategy<Value = String> {
    let key = "[a-z*][a-z0-9_.*-]{0,4}";
    prop_oneof![
        6 => (" {0,2}", key, bare_item()).prop_map(|(space, key, item)| format!(";{space}{key}={item}")),
        3 => (" {0,2}", key).prop_map(|(space, key)| format!(";{space}{key}")),
        1 => "[;= A-Z\t]{0,3}",
    ]
}

/// A value of the grammar, with mistakes here and there.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let item = (
        prop_oneof![6 => string(), 1 => bare_item()],
        vec(parameter(), 0..4),
    );
    let whole = item.prop_map(|(item, parameters)| (item + &parameters.concat()).into_bytes());
    let mistake = prop_oneof![
        6 => Just(None),
        2 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(Some),
        2 => (
            any::<prop::sample::Index>(),
            select(b"\"\\;=, \t:%?@-.0aA\x7f".as_slice()),
        )
            .prop_map(Some),
    ];
    (whole, mistake, select(["", " ", "\t "].as_slice())).prop_map(|(mut whole, mistake, space)| {
        if let Some((at, byte)) = mistake {
            let at = at.index(whole.len());
            whole[at] = byte;
        }
        [space.as_bytes(), &whole].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn s_11_values_near_the_grammar_are_read_as_the_reference_reads_them(value in value()) {
        let bare = without_white_space(&value);
        prop_assert_eq!(ours(&value, Syntax::Strict), reference(bare));
        if bare.first() == Some(&b'"') {
            prop_assert_eq!(ours(&value, Syntax::Compatible), reference(bare));
        }
    }

    #[test]
    fn s_17_any_bytes_are_read_as_the_reference_reads_them(value in vec(any::<u8>(), 0..40)) {
        let bare = without_white_space(&value);
        prop_assert_eq!(ours(&value, Syntax::Strict), reference(bare));
    }

    #[test]
    fn s_17_a_key_is_sound_whatever_it_was_read_from(value in value(), bytes in vec(any::<u8>(), 0..300)) {
        for value in [value, bytes] {
            for syntax in [Syntax::Compatible, Syntax::Strict] {
                if let Ok(key) = IdempotencyKey::parse(&value, syntax) {
                    prop_assert!((1..=255).contains(&key.as_str().len()));
                    prop_assert!(key.as_str().bytes().all(|byte| (b' '..=b'~').contains(&byte)));
                    let written = key.to_header_value();
                    prop_assert_eq!(IdempotencyKey::parse(written.as_bytes(), Syntax::Strict), Ok(key));
                }
            }
        }
    }

    #[test]
    fn s_07_every_key_comes_back_from_its_field(text in "[ -~]{1,255}") {
        if let Ok(key) = IdempotencyKey::new(&text) {
            let written = key.to_header_value();
            prop_assert_eq!(reference(written.as_bytes()), Some(text));
            for syntax in [Syntax::Compatible, Syntax::Strict] {
                prop_assert_eq!(IdempotencyKey::parse(written.as_bytes(), syntax), Ok(key.clone()));
            }
        } else {
            prop_assert!(text.bytes().all(|byte| byte == b' '));
        }
    }
}
